internal import RondoConnections
public import RondoCore

// The initialisers of a session: they choose its schedule and the receiver of its calls.

extension URLSession {
    static let sharedSession = URLSession(
        .default, SessionCalls(nil), .queue(DelegateQueue()), isShared: true)

    static var clientWithoutDelegate: any SessionClient { SessionCalls(nil) }

    /// Makes a session without a delegate. Completion handlers are called on a serial queue of the session's
    /// own (rule US-17).
    public convenience init(configuration: URLSessionConfiguration) {
        self.init(configuration: configuration, delegate: nil, delegateQueue: nil)
    }

    /// Makes a session whose calls are operations of `queue` (rules US-17 to US-20).
    ///
    /// - Parameters:
    ///   - configuration: Is copied.
    ///   - delegate: Is retained until the session is invalidated or deallocated.
    ///   - queue: Calls delegate methods and completion handlers. It should be serial: on a concurrent
    ///     queue the calls of one task keep their order and do not overlap, but those of different tasks may
    ///     (rule US-19). Nil: the session makes a serial queue.
    public convenience init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        delegateQueue queue: OperationQueue?
    ) {
        self.init(
            configuration, SessionCalls(delegate), .queue(queue.map { DelegateQueue($0) } ?? DelegateQueue()),
            isShared: false)
    }

    /// Makes a session on a run loop: `runLoop` drives its tasks in `modes`, and all delegate methods and
    /// completion handlers are called on that loop's thread in those modes, and at no other time (rules US-21
    /// and US-22).
    ///
    /// - Parameters:
    ///   - configuration: Is copied.
    ///   - delegate: Is retained until the session is invalidated or deallocated. It need not be Sendable.
    ///   - runLoop: The loop of any thread.
    ///   - modes: `.common` stands for every common mode. An empty array stands for the default mode, with
    ///     a warning.
    public convenience init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, runLoop: RunLoop,
        modes: [RunLoop.Mode] = [.default]
    ) {
        if modes.isEmpty {
            Log.sessions.warning("A session on a run loop without modes is in the default mode.")
        }
        var loopModes: [LoopMode] = []
        for mode in modes.isEmpty ? [.default] : modes {
            let scheduled = LoopMode(loop: runLoop, mode: mode)
            if !loopModes.contains(scheduled) { loopModes.append(scheduled) }
        }
        self.init(configuration, SessionCalls(delegate), .loop(loopModes), isShared: false)
    }
}

internal import RondoConnections
public import RondoCore

// How a session is put together: what it loads with, what drives it, and what makes its calls.

extension URLSession {
    static let sharedSession = URLSession(
        .default, SessionCalls(nil), .queue(DelegateQueue()), isShared: true)

    /// A session without a delegate, whose handlers come on a serial queue of its own.
    public convenience init(configuration: URLSessionConfiguration) {
        self.init(configuration: configuration, delegate: nil, delegateQueue: nil)
    }

    /// - Parameters:
    ///   - delegate: Held until the session is invalidated or goes.
    ///   - queue: Where its methods and completion handlers are called. It should be a serial one: on another the calls of one
    ///     task come in order and one at a time, those of different tasks side by side (rule US-19). Nil: a serial queue of
    ///     the session's own.
    public convenience init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        delegateQueue queue: OperationQueue?
    ) {
        self.init(
            configuration, SessionCalls(delegate), .queue(queue.map { DelegateQueue($0) } ?? DelegateQueue()),
            isShared: false)
    }

    /// A session on a run loop: its tasks are driven by `runLoop` in `modes`, and every call to the delegate and every
    /// completion handler comes on that loop's thread in those modes, and at no other time (rules US-21 and US-22).
    ///
    /// - Parameter modes: `.common` stands for every common mode. Empty stands for the default mode, with a warning.
    public convenience init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, runLoop: RunLoop,
        modes: [RunLoop.Mode] = [.default]
    ) {
        if modes.isEmpty {
            Log.sessions.warning("A session on a run loop without modes is in the default mode.")
        }
        var places: [LoopMode] = []
        for mode in modes.isEmpty ? [.default] : modes {
            let place = LoopMode(loop: runLoop, mode: mode)
            if !places.contains(place) { places.append(place) }
        }
        self.init(configuration, SessionCalls(delegate), .loop(places), isShared: false)
    }
}

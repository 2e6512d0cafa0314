internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// What moves the tasks of a session, and where its calls come.
enum SessionDriver: Sendable {
    /// `RunLoop.loader` moves the tasks; calls are operations of this queue (rules US-17 to US-20).
    case queue(DelegateQueue)
    /// This loop in these modes, for both (rules US-21 and US-22).
    case loop([LoopMode])

    /// Where loads are scheduled.
    ///
    /// - Throws: Where the loader has no thread.
    func schedule() throws(SystemError) -> [LoopMode] {
        switch self {
        case .queue: [LoopMode(loop: try RunLoop.startedLoader(), mode: .default)]
        case .loop(let modes): modes
        }
    }

    /// The queue of calls; nil: they come on the loop.
    var queue: DelegateQueue? {
        if case .queue(let queue) = self { queue } else { nil }
    }

    /// The loop that moves the tasks, for traces.
    var servingLoop: RunLoop {
        switch self {
        case .queue: RunLoop.loader
        case .loop(let modes): modes.first?.loop ?? RunLoop.loader
        }
    }

    /// The loop of calls; nil: they come on the queue.
    var loop: RunLoop? {
        if case .loop(let modes) = self { modes.first?.loop } else { nil }
    }

    /// Has `call` made where the session's calls come, never inside this function (rule US-24). On a loop whose thread has
    /// ended it is let go.
    func perform(_ call: @escaping @Sendable () -> Void) {
        switch self {
        case .queue(let queue): queue.submit(call)
        case .loop(let modes): LoopCall(call, in: modes).begin()
        }
    }
}

/// A call that is made once, in a pass of one of some modes of a loop; until then it counts as an input source of theirs.
///
/// `@unchecked Sendable`: the registration has a lock of its own; the call is made by the loop's thread.
private final class LoopCall: RegisteredClient, @unchecked Sendable {
    private var call: (@Sendable () -> Void)?
    private let registration: LoadRegistration

    init(_ call: @escaping @Sendable () -> Void, in modes: [LoopMode]) {
        self.call = call
        registration = LoadRegistration(modes)
    }

    func begin() {
        guard registration.join(as: self, label: nil) else { return leave() }
        registration.wakeUp(self, deferred: false)
    }

    private func leave() {
        call = nil
        registration.leave(self)
    }

    func serve(by queue: SharedQueue) -> Bool {
        guard registration.takeWakeUp(by: queue, of: self) else { return false }
        let call = call
        leave()
        call?()
        return true
    }

    func loopHasEnded() { leave() }
    func shortDelayHasPassed() {}
}

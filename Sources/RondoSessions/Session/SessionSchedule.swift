internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex

/// The schedule of a session: the loop and modes in which its tasks are moved, and the queue or loop that
/// makes its calls.
enum SessionSchedule: Sendable {
    /// `RunLoop.loader` moves the tasks; this queue makes the calls (rules US-17 to US-20).
    case queue(DelegateQueue)
    /// This loop moves the tasks and makes the calls, in these modes (rules US-21 and US-22).
    case loop([LoopMode])

    /// The loops and modes in which loads are scheduled. Starts the thread of `RunLoop.loader` if it is
    /// needed.
    ///
    /// - Throws: If the thread cannot be started.
    func startedModes() throws(SystemError) -> [LoopMode] {
        switch self {
        case .queue: [LoopMode(loop: try RunLoop.startedLoader(), mode: .default)]
        case .loop(let modes): modes
        }
    }

    /// The queue of the calls; nil if a loop makes them.
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

    /// The loop of the calls; nil if a queue makes them.
    var loop: RunLoop? {
        if case .loop(let modes) = self { modes.first?.loop } else { nil }
    }

    /// Makes `call` later, on the queue or in a pass of the loop, never before this function returns
    /// (rule US-24). If the loop's thread has ended, `call` is released without having been made.
    func perform(_ call: @escaping @Sendable () -> Void) { prepare(call)() }

    /// Returns a function that makes `call` as `perform` does. It is called once, on any thread. From now
    /// until `call` is made it counts as an input source of the loop's modes, so that a run of the loop does
    /// not return for want of sources.
    func prepare(_ call: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        switch self {
        case .queue(let queue): return { queue.submit(mayBeDeferred: false, call) }
        case .loop(let modes):
            let call = LoopCall(call, in: modes)
            call.join()
            return { call.wakeUp() }
        }
    }
}

/// A call that is made once, in a pass of one of some modes of a loop. Until then it counts as an input
/// source of those modes.
///
/// A thread whose `join()` comes too late and the thread of the loop, as it ends, may leave at the same time.
private final class LoopCall: RegisteredClient, Sendable {
    private let call: Mutex<(@Sendable () -> Void)?>
    private let registration: ModeRegistration

    init(_ call: @escaping @Sendable () -> Void, in modes: [LoopMode]) {
        self.call = Mutex(call)
        registration = ModeRegistration(modes)
    }

    func join() {
        if !registration.join(as: self, label: nil) { loopHasEnded() }
    }

    /// Has no effect if the loops' threads have ended.
    func wakeUp() { registration.wakeUp(self, deferred: false) }

    /// - Returns: The call, if it was not taken before.
    private func leave() -> (@Sendable () -> Void)? {
        registration.leave(self)
        return call.withLock { $0.take() }
    }

    func serve(by queue: SharedQueue) -> Bool {
        guard registration.takeWakeUp(by: queue, of: self) else { return false }
        leave()?()
        return true
    }

    /// Releases the call without having made it.
    func loopHasEnded() { _ = leave() }
    func shortDelayHasPassed() {}
}

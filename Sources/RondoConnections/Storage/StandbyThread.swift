internal import CDispatch
internal import RondoCore
internal import RondoMutex

/// A thread that exists while it has work, and for a short time afterwards: creating a thread costs more than
/// most of its work.
final class StandbyThread: Sendable {
    private enum Phase {
        /// There is no thread.
        case none
        case working
        /// The thread waits for a call.
        case standingBy
        /// The thread works, or is about to wake up, and has to work once more.
        case called
    }

    /// As `SystemThread.start`.
    typealias Start = @Sendable (String, @escaping @Sendable () -> Void) throws(SystemError) -> Void

    private let name: String
    private let start: Start
    private let work: @Sendable () -> Double?
    private let phase = Mutex(Phase.none)
    private let wakeUp = DispatchSemaphore(value: 0)

    /// The seconds for which the thread waits for further work.
    static let stay = 0.1

    /// - Parameters:
    ///   - name: The name of the thread.
    ///   - start: Starts the thread.
    ///   - work: Called by the thread after calls of `call(keeping:)`, once for all that were made meanwhile.
    ///     It returns the seconds after which it is called without such a call; nil for never.
    init(
        _ name: String,
        start: @escaping Start = { name, body throws(SystemError) in
            try SystemThread.start(name: name, body)
        },
        work: @escaping @Sendable () -> Double?
    ) {
        self.name = name
        self.start = start
        self.work = work
    }

    /// Requests a call of `work`. Any thread may call it, also while it holds a lock that `work` takes.
    ///
    /// - Parameter object: Retained for as long as the thread exists.
    /// - Throws: If the machine has no thread left.
    func call(keeping object: any AnyObject & Sendable) throws(SystemError) {
        let mustWake = try phase.withLock { phase throws(SystemError) -> Bool in
            if phase == .none {
                // Under the lock, because a call that came before a failure was known would be lost.
                try start(name) { [self] in withExtendedLifetime(object) { serve() } }
                phase = .working
                return false
            }
            defer { phase = .called }
            return phase == .standingBy
        }
        if mustWake { wakeUp.signal() }
    }

    private func serve() {
        while true {
            let next = work()
            let end = LoopClock.systemNow.advanced(bySeconds: next ?? Self.stay)
            if !goesOn(until: end, mustWorkThen: next != nil) { return }
        }
    }

    /// Waits for a call.
    ///
    /// - Returns: Whether there is work to do.
    private func goesOn(until end: LoopInstant, mustWorkThen: Bool) -> Bool {
        while true {
            let goesOn = phase.withLock { phase -> Bool? in
                if phase == .called {
                    phase = .working
                    return true
                }
                guard LoopClock.systemNow < end else {
                    phase = mustWorkThen ? .working : .none
                    return mustWorkThen
                }
                phase = .standingBy
                return nil
            }
            if let goesOn { return goesOn }
            // `wait` returns at once if a call came when the time was up; then the time is checked again.
            let rest = end.seconds(since: LoopClock.systemNow)
            _ = wakeUp.wait(timeout: .now() + max(0, rest))
        }
    }
}

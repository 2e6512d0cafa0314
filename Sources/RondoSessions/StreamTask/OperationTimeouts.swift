internal import RondoConnections

/// The timeouts of a stream task's operations, with their timers, which run unless the task is suspended. On
/// the thread of the load's loop.
struct OperationTimeouts {
    private struct Timeout {
        let seconds: Double
        /// Nil while the task is suspended.
        var timer: ScheduleTimer?
    }

    private let shared: StreamTaskState
    /// By the numbers of their operations.
    private var timeouts: [Int: Timeout] = [:]

    init(of shared: StreamTaskState) { self.shared = shared }

    /// Starts the timers of new operations, and stops those of cancelled ones. The others are not looked at:
    /// thousands may wait.
    mutating func update() {
        let (new, cancelled) = shared.state.withLock { state in
            defer { (state.untimed, state.cancelled) = ([], []) }
            return (state.untimed, state.cancelled)
        }
        for (number, seconds) in new { timeouts[number] = Timeout(seconds: seconds) }
        for number in cancelled { remove(number) }
        for (number, seconds) in new where timeouts[number] != nil { start(number, seconds) }
    }

    private mutating func start(_ number: Int, _ seconds: Double) {
        let load = shared.state.withLock { $0.load }
        let timer = load?.timer(after: seconds) { [shared] in
            let load = shared.state.withLock { state in
                state.expired.append(number)
                return state.load
            }
            load?.wakeUp()
        }
        timeouts[number] = Timeout(seconds: seconds, timer: timer)
    }

    /// Removes the timeout of an operation that has ended.
    ///
    /// - Returns: The seconds; nil if the operation has no timeout.
    @discardableResult
    mutating func remove(_ number: Int) -> Double? {
        let removed = timeouts.removeValue(forKey: number)
        removed?.timer?.invalidate()
        return removed?.seconds
    }

    mutating func suspend() {
        for timeout in timeouts.values { timeout.timer?.invalidate() }
        timeouts = timeouts.mapValues { Timeout(seconds: $0.seconds) }
    }

    /// Lets the timeouts begin anew.
    mutating func resume() {
        update()
        for (number, timeout) in timeouts where timeout.timer == nil { start(number, timeout.seconds) }
    }

    mutating func removeAll() {
        for timeout in timeouts.values { timeout.timer?.invalidate() }
        timeouts = [:]
    }
}

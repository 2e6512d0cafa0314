internal import RondoCore

/// The timer that checks a time limit, and whether the last check has found the limit reached.
struct LimitTimer {
    /// Repeats; nil until the limit needs it.
    private var timer: ScheduleTimer?
    private(set) var isReached = false

    var isSet: Bool { timer != nil }

    mutating func set(_ timer: ScheduleTimer) { self.timer = timer }

    mutating func stop() {
        timer.take()?.invalidate()
        isReached = false
    }

    /// Notes whether the limit is reached; if not, sets the timer for the next check.
    ///
    /// - Parameters:
    ///   - left: The seconds until the limit is reached.
    ///   - interval: The interval of the timer, in seconds, if there is none yet.
    /// - Returns: Whether the limit is reached. See `takeReached()`.
    mutating func check(
        left: TimeInterval, interval: TimeInterval, makeTimer: (TimeInterval) -> ScheduleTimer
    ) -> Bool {
        guard left > 0 else {
            isReached = true
            return true
        }
        let timer = timer ?? makeTimer(interval)
        self.timer = timer
        timer.move(to: left)
        return false
    }

    /// Whether the last check has found the limit reached; true once.
    mutating func takeReached() -> Bool {
        defer { isReached = false }
        return isReached
    }
}

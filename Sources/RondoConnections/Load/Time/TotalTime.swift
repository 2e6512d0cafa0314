package import RondoCore

/// The maximum time of a load or of a stream task in total, and the timer that checks it (rule US-69). Most
/// have no such limit.
///
/// Time counts from the start, whether the load's modes run or not, except while the load is suspended.
package final class TotalTime {
    /// Limits longer than this, in seconds, are treated as none: 31 years.
    private static let longest: TimeInterval = 1e9

    package let seconds: TimeInterval
    /// The instant since which `passed` counts; nil before the start.
    private var since: LoopInstant?
    /// Seconds that count in addition: those before the load was last suspended.
    private var earlier = 0.0
    private var isSuspended = false
    private var timer = LimitTimer()

    private init(seconds: TimeInterval) { self.seconds = seconds }

    /// Nil if there is no limit.
    package static func of(seconds: TimeInterval?) -> TotalTime? {
        guard let seconds, seconds < longest else { return nil }
        return TotalTime(seconds: max(seconds, 0))
    }

    var isReached: Bool { timer.isReached }

    package var hasStarted: Bool { since != nil }

    /// Starts the time. Most loads end quickly, so a timer is made only for a load that takes longer than a
    /// short delay.
    ///
    /// - Parameters:
    ///   - isToldOfDelay: Whether `check(makeTimer:)` is called after a short delay in any case.
    ///   - makeTimer: Makes a repeating timer that calls `check(makeTimer:)`; its parameter is in seconds.
    package func start(
        _ registration: borrowing ModeRegistration, isToldOfDelay: Bool,
        makeTimer: (TimeInterval) -> ScheduleTimer
    ) {
        since = LoopClock.now
        if seconds <= 4 * SharedQueue.shortDelay || !(isToldOfDelay || registration.notifyAfterShortDelay()) {
            timer.set(makeTimer(seconds))
        }
    }

    package func stop() { timer.stop() }

    /// Stops the clock until `resume()`.
    package func suspend() {
        guard !isSuspended else { return }
        earlier = passed
        isSuspended = true
        stop()
    }

    /// - Returns: Whether the time has to be checked, because the load was suspended.
    package func resume() -> Bool {
        guard isSuspended else { return false }
        isSuspended = false
        if since != nil { since = LoopClock.now }
        return true
    }

    private var passed: Double {
        guard !isSuspended, let since else { return earlier }
        return earlier + LoopClock.now.seconds(since: since)
    }

    /// Checks the time, and sets the timer for the next check.
    ///
    /// - Returns: Whether the time is over. See `takeReached()`.
    package func check(makeTimer: (TimeInterval) -> ScheduleTimer) -> Bool {
        guard since != nil, !isSuspended else { return false }
        let left = seconds - passed
        return timer.check(left: left, interval: left, makeTimer: makeTimer)
    }

    /// Whether the last check has found the time over; true once.
    func takeReached() -> Bool { timer.takeReached() }
}

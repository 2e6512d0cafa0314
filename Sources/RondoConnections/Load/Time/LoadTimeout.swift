internal import RondoCore

/// The maximum time for which a load may receive nothing, and the timer that checks it (rule UC-58).
struct LoadTimeout {
    let seconds: TimeInterval
    private var idle: IdleTime
    private var timer = LimitTimer()
    /// Whether there was progress since the idle time was last restarted. It is restarted at the end of a
    /// pass, so that the time that the delegate takes does not count.
    private var hasProgressed = false

    init(seconds: TimeInterval, in modes: [LoopMode]) {
        self.seconds = seconds
        idle = IdleTime(modes)
    }

    var isReached: Bool { timer.isReached }

    private var isLimited: Bool { seconds > 0 && seconds.isFinite }

    /// Starts the idle time. Most loads end quickly, so a timer is made only for a load that takes longer
    /// than a short delay; such a load fails later by that delay at most.
    ///
    /// - Returns: Whether the load is told of the short delay as a result.
    mutating func start(
        _ registration: borrowing ModeRegistration, makeTimer: (TimeInterval) -> ScheduleTimer
    ) -> Bool {
        guard isLimited else { return false }
        if seconds > 20 * SharedQueue.shortDelay, registration.notifyAfterShortDelay() { return true }
        timer.set(makeTimer(seconds))
        return false
    }

    mutating func stop() { timer.stop() }

    mutating func noteProgress() { hasProgressed = true }

    private mutating func restartAfterProgress() {
        guard hasProgressed else { return }
        hasProgressed = false
        idle.restart()
    }

    /// Call it when the load was served: restarts the idle time after progress. Without a timer it does
    /// nothing: most loads end before they need one, and then never read the clock.
    mutating func endEvents() {
        if timer.isSet { restartAfterProgress() }
    }

    /// Stops the clock until `resume()`.
    mutating func suspend() {
        restartAfterProgress()
        idle.suspend()
    }

    /// - Returns: Whether the time has to be checked: a check may have been skipped while the load was
    ///   suspended.
    mutating func resume() -> Bool { idle.resume() && isLimited }

    /// The seconds until the load has been idle for too long. Call it after everything that has come was
    /// processed.
    ///
    /// - Parameter isLocal: Whether the load waits for something other than the sender.
    mutating func secondsLeft(isLocal: Bool) -> TimeInterval {
        restartAfterProgress()
        if isLocal { idle.restart() }
        return seconds - idle.seconds
    }

    /// Checks the time, and sets the timer for the next check.
    ///
    /// - Returns: Whether the time is over. See `takeReached()`.
    mutating func check(isLocal: Bool, makeTimer: (TimeInterval) -> ScheduleTimer) -> Bool {
        guard isLimited else { return false }
        let left = secondsLeft(isLocal: isLocal)
        return timer.check(left: left, interval: seconds, makeTimer: makeTimer)
    }

    /// Whether the last check has found the time over; true once.
    mutating func takeReached() -> Bool { timer.takeReached() }
}

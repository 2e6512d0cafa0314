internal import RondoCore

/// The clocks of a load: its idle time, its total time, and its rate of receiving.
///
/// Used inside the gate of its load.
struct LoadTimes {
    private var timeout: LoadTimeout
    /// Whether silence is a failure.
    private var limitsSilence = true
    /// Nil if the settings set no limit.
    private let total: TotalTime?
    /// The limiter of the receiving rate; nil if the settings set no limit.
    let rate: RateLimiter?
    private var hasBegun = false
    /// The instant of the load's first step.
    private(set) var startedAt = LoopInstant(nanoseconds: 0)

    init(timeout: TimeInterval, _ settings: LoadSettings, in modes: [LoopMode]) {
        self.timeout = LoadTimeout(seconds: timeout, in: modes)
        total = TotalTime.of(seconds: settings.values.totalTimeout)
        rate = settings.values.maximumRate.map { RateLimiter(bytesPerSecond: $0, in: modes) }
    }

    /// Call it when the load enters its loops.
    mutating func start(
        _ registration: borrowing ModeRegistration, makeTimer: (TimeInterval) -> ScheduleTimer
    ) {
        let isToldOfDelay = timeout.start(registration, makeTimer: makeTimer)
        total?.start(registration, isToldOfDelay: isToldOfDelay, makeTimer: makeTimer)
    }

    /// Notes the load's first step, if there was none yet.
    mutating func begin() {
        guard !hasBegun else { return }
        hasBegun = true
        startedAt = LoopClock.now
        timeout.noteProgress()
    }

    mutating func stop() {
        timeout.stop()
        total?.stop()
        rate?.stop()
    }

    // MARK: - Time limits

    /// Restarts the idle time, because the server has shown a sign of life.
    mutating func noteProgress() { timeout.noteProgress() }

    /// Call it when a pass, or an event of the connection, was handled: from here on idle time counts again.
    mutating func endEvents() { timeout.endEvents() }

    /// Stops the limit on silence; the total time still counts (rule WS-6).
    mutating func stopTimeout() {
        limitsSilence = false
        timeout.stop()
    }

    /// Stops the clock until `resume()`.
    mutating func suspend() {
        timeout.suspend()
        total?.suspend()
    }

    /// - Returns: Whether the times have to be checked.
    mutating func resume() -> Bool {
        let wasSuspended = timeout.resume()
        return total?.resume() ?? false || wasSuspended
    }

    enum CheckResult {
        case nothing
        /// A pass has to call `takeFailure`. If it is deferred, events that have come by then are handled
        /// first.
        case wakeUp(deferred: Bool)
    }

    /// Checks the times, and sets timers for the next check.
    ///
    /// - Parameter isLocal: Whether the load waits for something other than the sender.
    mutating func check(isLocal: Bool, makeTimer: (TimeInterval) -> ScheduleTimer) -> CheckResult {
        let isIdle = limitsSilence && timeout.check(isLocal: isLocal, makeTimer: makeTimer)
        // Not at once: events that have come already are handled first, and may complete the load (rule
        // US-69).
        let isOver = total?.check(makeTimer: makeTimer) ?? false
        if isIdle { return .wakeUp(deferred: false) }
        return isOver ? .wakeUp(deferred: true) : .nothing
    }

    /// Whether the last check has found a time over.
    var hasReachedLimit: Bool { timeout.isReached || total?.isReached ?? false }

    /// The failure if the last check has found a time over; nil from the second call on.
    mutating func takeFailure(isLocal: Bool) -> LoadFailure? {
        let isIdle = timeout.takeReached()
        if let total, total.takeReached() { return .exceededTotalTime(seconds: total.seconds) }
        // The awaited bytes may have come meanwhile.
        guard isIdle, timeout.secondsLeft(isLocal: isLocal) <= 0 else { return nil }
        return .timedOut(seconds: timeout.seconds)
    }

    // MARK: - Rate

    /// Whether no bytes are taken at present.
    var isPausing: Bool { rate?.isPausing ?? false }

    /// Allows more bytes to be taken.
    func endPause() { rate?.endPause() }
}

internal import RondoCore

/// The clocks of one load: how long it may hear nothing, how long it may take in all, and how fast it takes bytes.
///
/// Used inside the gate of its load.
struct LoadTimes {
    private var timeout: LoadTimeout
    /// Silence is a failure.
    private var limitsSilence = true
    /// Nil: the settings set no limit.
    private let total: TotalTime?
    /// How fast it takes bytes; nil: the settings set no limit.
    let rate: RateLimiter?
    private var hasBegun = false
    /// When the load made its first step.
    private(set) var startedAt = LoopInstant(nanoseconds: 0)

    init(timeout: TimeInterval, _ settings: LoadSettings, in schedule: [LoopMode]) {
        self.timeout = LoadTimeout(seconds: timeout, in: schedule)
        total = TotalTime.of(seconds: settings.values.totalTimeout)
        rate = settings.values.maximumRate.map { RateLimiter(bytesPerSecond: $0, in: schedule) }
    }

    /// The load enters its loops.
    mutating func start(
        _ registration: borrowing LoadRegistration, makeTimer: (TimeInterval) -> ScheduleTimer
    ) {
        let isToldOfDelay = timeout.start(registration, makeTimer: makeTimer)
        total?.start(registration, isToldOfDelay: isToldOfDelay, makeTimer: makeTimer)
    }

    /// The load makes its first step, if it has not yet.
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

    // MARK: - How long it takes

    /// There was a sign of life.
    mutating func noteProgress() { timeout.noteProgress() }

    /// The work of a pass, or what a connection has reported, is done: from here on the time is the sender's again.
    mutating func endEvents() { timeout.endEvents() }

    /// Time without a sign of life is no failure any more; the time in all still counts (rule WS-6).
    mutating func stopTimeout() {
        limitsSilence = false
        timeout.stop()
    }

    /// No time passes until `go()`.
    mutating func hold() {
        timeout.hold()
        total?.hold()
    }

    /// - Returns: Whether the clock has to be looked at.
    mutating func go() -> Bool {
        timeout.go()
        return total?.go() ?? false
    }

    /// What a look at the clock asks for.
    enum Look {
        case nothing
        /// A pass has to ask for `takeFailure`; after what has come by then, if it `mayWait`.
        case pass(mayWait: Bool)
    }

    /// Looks at the clock, and again when a time can be over.
    ///
    /// - Parameter isLocal: What the load waits for is not the sender's affair.
    mutating func look(isLocal: Bool, makeTimer: (TimeInterval) -> ScheduleTimer) -> Look {
        let isIdle = limitsSilence && timeout.look(isLocal: isLocal, makeTimer: makeTimer)
        // What has come by then is looked at before: it may be all (rule US-69).
        let isOver = total?.look(makeTimer: makeTimer) ?? false
        if isIdle { return .pass(mayWait: false) }
        return isOver ? .pass(mayWait: true) : .nothing
    }

    /// The last look has found a time over.
    var isOver: Bool { timeout.isReached || total?.isReached ?? false }

    /// Why the load fails, where a time was found over; once.
    mutating func takeFailure(isLocal: Bool) -> LoadFailure? {
        let isIdle = timeout.takeReached()
        if let total, total.takeReached() { return .exceededTotalTime(seconds: total.seconds) }
        // What it was idle for may have come meanwhile.
        guard isIdle, timeout.secondsLeft(isLocal: isLocal) <= 0 else { return nil }
        return .timedOut(seconds: timeout.seconds)
    }

    // MARK: - How fast it is

    /// No more bytes are taken at present.
    var isPausing: Bool { rate?.isPausing ?? false }

    /// More may be taken.
    func endPause() { rate?.endPause() }
}

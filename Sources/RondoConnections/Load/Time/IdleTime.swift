internal import RondoCore

/// The time for which a load has received nothing (rule UC-58).
///
/// Time outside the scheduled modes does not count, and time in which several loops ran at once counts once.
struct IdleTime {
    /// The values of both clocks at one moment.
    private struct Reading {
        /// The time for which the scheduled modes had been running, the sum of all, in nanoseconds.
        let running: Int64
        let clock: LoopInstant
    }

    private let modes: [LoopMode]
    /// Nil before the first `restart()`.
    private var progressedAt: Reading?
    /// Seconds that count in addition: those before the last `suspend()`.
    private var earlier = 0.0
    private var isSuspended = false

    init(_ modes: [LoopMode]) { self.modes = modes }

    /// Nearly all loads have one mode, which can be asked directly; the common name may stand for several
    /// modes.
    private var isInOneMode: Bool {
        // Comparing with `.default` first is quicker, and most modes are the default mode.
        modes.count == 1 && (modes[0].mode == .default || modes[0].mode != .common)
    }

    /// Starts again from zero: there was progress, or the load waits for something other than the server.
    mutating func restart() {
        progressedAt = now
        earlier = 0
    }

    /// Stops the clock until `resume()`.
    mutating func suspend() {
        guard !isSuspended else { return }
        earlier = seconds
        isSuspended = true
    }

    /// - Returns: Whether it was suspended.
    mutating func resume() -> Bool {
        guard isSuspended else { return false }
        isSuspended = false
        progressedAt = now
        return true
    }

    /// The seconds since the last `restart()` for which the modes were running, but no more than the clock
    /// shows.
    var seconds: Double {
        if isSuspended { return earlier }
        guard let progressedAt else { return 0 }
        let now = now
        let running = Double(now.running - progressedAt.running) / 1e9
        return earlier + min(running, now.clock.seconds(since: progressedAt.clock))
    }

    private var now: Reading {
        let clock = LoopClock.now
        return Reading(running: nanosecondsRun(until: clock), clock: clock)
    }

    private func nanosecondsRun(until now: LoopInstant) -> Int64 {
        if isInOneMode { return modes[0].loop.nanosecondsRun(in: modes[0].mode, until: now) }
        guard modes.count > 1 else {
            return modes.reduce(0) { sum, scheduled in
                scheduled.loop.modes(named: scheduled.mode).reduce(sum) {
                    $0 + scheduled.loop.nanosecondsRun(in: $1, until: now)
                }
            }
        }
        // A mode may be scheduled twice, by its own name and by the common one.
        let modes = Set(
            modes.flatMap { scheduled in
                scheduled.loop.modes(named: scheduled.mode).map { LoopMode(loop: scheduled.loop, mode: $0) }
            })
        return modes.reduce(0) { $0 + $1.loop.nanosecondsRun(in: $1.mode, until: now) }
    }
}

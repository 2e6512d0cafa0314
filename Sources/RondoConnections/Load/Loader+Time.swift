internal import FoundationNetworking
internal import RondoCore
internal import RondoStreams
internal import Synchronization

// Idle time (rule UC-58). Time outside the scheduled modes is not held against the load, and time that
// several loops ran at once counts once; what has come is looked at before the clock is.

extension Loader {
    var now: Moment {
        let clock = LoopClock.now
        return Moment(running: nanosecondsRun(until: clock), clock: clock)
    }

    private func nanosecondsRun(until now: LoopInstant) -> Int64 {
        if isInOneMode { return places[0].loop.nanosecondsRun(in: places[0].mode, until: now) }
        guard places.count > 1 else {
            return places.reduce(0) { sum, place in
                place.loop.modes(named: place.mode).reduce(sum) {
                    $0 + place.loop.nanosecondsRun(in: $1, until: now)
                }
            }
        }
        // A mode may be among the places twice, by its own name and by the common one.
        let modes = Set(
            places.flatMap { place in
                place.loop.modes(named: place.mode).map { Place(loop: place.loop, mode: $0) }
            })
        return modes.reduce(0) { $0 + $1.loop.nanosecondsRun(in: $1.mode, until: now) }
    }

    /// Seconds until the load has been idle for too long.
    var timeLeft: TimeInterval {
        // What is there is looked at before the clock, and what the delegate keeps back is not the server's
        // fault.
        noteProgress()
        if openChallenge != nil || waitingForSlot != nil { progressedAt = now }
        if let exchange, exchange.isPaused || exchange.hasUnreadInput {
            progressedAt = now
        }
        if exchange == nil, pipe != nil || isWaitingForStore { progressedAt = now }
        let now = now
        let running = Double(now.running - progressedAt.running) / 1e9
        return timeout - min(running, now.clock.seconds(since: progressedAt.clock))
    }

    /// Most loads are over in no time: so there is a timer only for one that takes longer than a moment.
    func beginMeasuringIdleTime() {
        guard timeout > 0, timeout.isFinite else { return }
        if timeout > 2 * SharedQueue.shortDelay, let seat, places.count == 1 {
            seat.notifyAfterShortDelay()
        } else {
            madeRare.idleTimer = makeIdleTimer()
        }
    }

    func shortDelayHasPassed() { mayHaveBeenIdle() }

    private func makeIdleTimer() -> PlaceTimer {
        PlaceTimer(places, after: timeout, repeats: true) { [self] _ in mayHaveBeenIdle() }
    }

    private func mayHaveBeenIdle() {
        // Who is turned away at the gate leaves it for the turn that follows.
        shared.withLock { _ = $0.alarms.insert(.idle) }
        enter {
            let mustLook = shared.withLock { $0.alarms.remove(.idle) != nil }
            if mustLook { lookAtTheClock() }
        }
    }

    func lookAtTheClock() {
        guard seat != nil, !state.isEnded, timeout > 0, timeout.isFinite else { return }
        let left = timeLeft
        if left > 0 {
            let timer = rare?.idleTimer ?? makeIdleTimer()
            madeRare.idleTimer = timer
            timer.move(to: left)
        } else {
            // Told by the source: a delivery is a handled source, which no timer is (rule UC-72).
            timeIsUp = true
            wakeUp()
        }
    }

    func stopTimers() {
        guard let rare else { return }
        rare.idleTimer?.invalidate()
        rare.idleTimer = nil
        rare.bodyTimer?.invalidate()
        rare.bodyTimer = nil
        stopGoAheadTimer()
    }
}

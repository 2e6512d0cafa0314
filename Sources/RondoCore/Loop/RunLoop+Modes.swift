extension RunLoop {
    /// Makes `mode` one of those that `.common` stands for on this loop, for ever (rule RL-22).
    ///
    /// Members that were added under `.common` so far become members of `mode` (rule RL-21).
    /// - Note: Any thread.
    public func addCommonMode(_ mode: Mode) {
        guard mode != .common else { return }
        let members = state.withLock { state -> (ObjectSet<Source>, ObjectSet<Observer>, Set<Timer>)? in
            let index = state.index(of: mode)
            guard state.makeCommon(index) else { return nil }
            return (state.commonSources, state.commonObservers, state.commonTimers)
        }
        guard let (sources, observers, timers) = members else { return }
        for source in sources { source.enter(self, mode, isCommon: true) }
        for observer in observers { observer.enter(self, mode, isCommon: true) }
        for timer in timers { timer.enter(self, mode, isCommon: true) }
        wakeIfForeign()
    }

    /// The modes that exist on this loop, in no particular order: the default and tracking modes, and every
    /// mode that was ever named to it, for example in an addition (rule RL-10).
    public var allModes: [Mode] { state.withLock { $0.modes.map(\.name) } }

    /// The earliest date at which the loop has something to do in `mode`.
    ///
    /// Makes one pass that does not sleep: due timers and ready sources are served (rule RL-41).
    /// - Returns: The date of the nearest timer; the distant future if there are only sources; nil if the
    ///   mode is empty, or this is not the calling thread's loop.
    @available(*, noasync, message: "It runs the loop of the calling thread.")
    public func limitDate(forMode mode: Mode) -> Date? {
        guard isCurrent, mode != .common else { return nil }
        _ = runActivation(mode, limit: .immediately, returnAfterSourceHandled: false)
        let next = state.withLock { state in
            state.existingIndex(of: mode).flatMap { state.modes[$0].nextInstant }
        }
        return next.map { $0 == .never ? .distantFuture : LoopClock.date(of: $0) }
    }

    /// The date of the nearest timer in `mode`; nil if there is none. Any thread may ask; nothing is run.
    public func nextTimerDate(forMode mode: Mode) -> Date? {
        let nearest = state.withLock { state in
            state.existingIndex(of: mode).flatMap { state.modes[$0].timers.nearestTimer }
        }
        // The date is computed without the loop's lock, because a timer's lock is taken before the loop's.
        return nearest.map { $0.timer.fireDate(at: $0.deadline) }
    }

    /// The total time for which the loop has run in `mode` until `now`, in nanoseconds.
    ///
    /// An idle time that counts only while a mode runs (rule UC-58) is the difference of two such values.
    package func nanosecondsRun(in mode: Mode, until now: LoopInstant) -> Int64 {
        state.withLock { state in
            guard let index = state.existingIndex(of: mode) else { return 0 }
            let counted = state.modes[index].ranNanoseconds
            guard state.activations.last?.mode == index else { return counted }
            // Not negative: the loop may have counted up to an instant after another thread read the clock.
            return counted + max(0, now.nanoseconds - state.countedUntil.nanoseconds)
        }
    }

    /// The modes that `mode` now stands for: itself, or every common one.
    package func modes(named mode: Mode) -> [Mode] {
        state.withLock { state in state.indices(named: mode).map { state.modes[$0].name } }
    }
}

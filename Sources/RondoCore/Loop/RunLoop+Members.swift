extension RunLoop {
    // MARK: Sources

    /// Serves `source` in `mode` of this loop until it is removed or invalidated.
    ///
    /// Adding it again does nothing; its schedule callback is made on the calling thread, once for each mode
    /// that it enters (rules RL-15 and SRC-9). A loop that sleeps on another thread is woken (rule RL-69).
    /// - Parameter mode: `.common` stands for every common mode, those added later too.
    /// - Note: Any thread may call this; the source is served on this loop's thread only.
    public func add(_ source: Source, forMode mode: Mode) {
        guard source.isValid else { return }
        if mode.namesCommonModes {
            for mode in source.register(in: self) { source.enter(self, mode, isCommon: true) }
        } else {
            source.enter(self, mode)
        }
        Trace.request(self, .add, mode: mode, label: source.label, of: source)
        wakeIfForeign()
        warnUnlessRun()
    }

    /// Ends the membership of `source` in `mode`. Does nothing where it has none.
    ///
    /// - Parameter mode: `.common` takes out of every common mode what was added under `.common` (rule
    ///   RL-24).
    /// - Note: Any thread. The source's cancel callback is made on the calling thread, once for each mode it
    ///   leaves.
    public func remove(_ source: Source, forMode mode: Mode) {
        if mode.namesCommonModes {
            for mode in source.unregister(from: self) { source.leave(self, mode, isCommon: true) }
        } else {
            source.leave(self, mode)
        }
    }

    /// Whether `source` is in `mode`; of `.common`, whether it was added under that name (rule RL-23).
    public func contains(_ source: Source, forMode mode: Mode) -> Bool {
        state.withLock { state in
            if mode == .common { return state.commonSources.contains(source) }
            guard let index = state.existingIndex(of: mode) else { return false }
            return state.modes[index].holds(source)
        }
    }

    // MARK: Observers

    /// Calls `observer` at its activities while this loop runs in `mode`.
    ///
    /// An observer belongs to one loop at a time: adding it to a second one does nothing (rule SRC-21).
    /// - Note: Any thread may call this; the observer is called on this loop's thread only.
    public func add(_ observer: Observer, forMode mode: Mode) {
        if mode == .common {
            for mode in observer.register(in: self) { observer.enter(self, mode, isCommon: true) }
        } else {
            observer.enter(self, mode)
        }
        Trace.request(self, .add, mode: mode, label: observer.label, of: observer)
    }

    public func remove(_ observer: Observer, forMode mode: Mode) {
        if mode == .common {
            for mode in observer.unregister(from: self) { observer.leave(self, mode, isCommon: true) }
        } else {
            observer.leave(self, mode)
        }
    }

    public func contains(_ observer: Observer, forMode mode: Mode) -> Bool {
        state.withLock { state in
            if mode == .common { return state.commonObservers.contains(observer) }
            guard let index = state.existingIndex(of: mode) else { return false }
            return state.modes[index].observers.contains { $0 === observer }
        }
    }

    // MARK: Timers

    /// Fires `timer` in `mode` of this run loop until it is invalidated or removed.
    ///
    /// Adding it again in the same mode does nothing. A date in the past fires on the next pass (rule TM-11).
    /// A timer belongs to one loop at a time: adding it to a second one does nothing (rule TM-13).
    /// - Parameter mode: `.common` stands for every common mode, those added later too.
    /// - Note: Any thread may call this; the block runs on this loop's thread only.
    public func add(_ timer: Timer, forMode mode: Mode) {
        if mode.namesCommonModes {
            timer.enter(self, common: timer.register(in: self))
        } else {
            timer.enter(self, mode)
        }
        Trace.request(self, .add, mode: mode, label: timer.label, of: timer)
    }

    /// Takes `timer` out of `mode`; it stays valid and keeps its date (rule TM-14).
    public func remove(_ timer: Timer, forMode mode: Mode) {
        if mode.namesCommonModes {
            for mode in timer.unregister(from: self) { timer.leave(self, mode, isCommon: true) }
        } else {
            timer.leave(self, mode)
        }
    }

    public func contains(_ timer: Timer, forMode mode: Mode) -> Bool {
        mode == .common ? state.withLock { $0.commonTimers.contains(timer) } : timer.isMember(of: self, mode)
    }

    // MARK: Waking

    /// A change made on another thread takes effect at once, and one made while a foreign loop waits for this
    /// one.
    func wakeIfForeign() {
        if mustBeWoken { wakeUp() }
    }

    /// Whether a change made by the calling thread would be overlooked.
    var mustBeWoken: Bool {
        !isCurrent || owner.isEmbedded
    }
}

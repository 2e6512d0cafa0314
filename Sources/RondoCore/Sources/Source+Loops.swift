// How a source enters and leaves the modes of its loops.

extension RunLoop {
    /// Serves `source` in `mode` of this loop until it is removed or invalidated.
    ///
    /// Adding it again does nothing; its schedule callback is made on the calling thread, once for each mode
    /// that it enters (rules RL-15 and SRC-9). A loop that sleeps on another thread is woken (rule RL-69).
    /// - Parameter mode: `.common` stands for every common mode, those added later too.
    /// - Note: Any thread may call this; the source is served on this loop's thread only.
    public func add(_ source: Source, forMode mode: Mode) {
        if addUnwatched(source, forMode: mode) { warnUnlessRun() }
    }

    /// Does the same as `add(_:forMode:)`, for a source that Rondo schedules rather than the program: there
    /// is no warning if the loop is never run.
    ///
    /// - Returns: Whether the source is valid.
    @discardableResult
    package func addUnwatched(_ source: Source, forMode mode: Mode) -> Bool {
        guard source.isValid else { return false }
        if mode.namesCommonModes {
            for mode in source.register(in: self) { source.enter(self, mode, isCommon: true) }
        } else {
            source.enter(self, mode)
        }
        Trace.request(self, .add, mode: mode, label: source.label, of: source)
        wakeIfForeign()
        return true
    }

    /// Ends the membership of `source` in `mode`. Does nothing if the source is not a member.
    ///
    /// - Parameter mode: `.common` removes, from every common mode, a source that was added under `.common`
    ///   (rule RL-24).
    /// - Note: Any thread. The source's cancel callback is made on the calling thread, once for each mode
    ///   that the source leaves.
    public func remove(_ source: Source, forMode mode: Mode) {
        remove(source, forMode: mode, keeping: [])
    }

    /// Does the same for an owner that keeps its modes by name.
    ///
    /// - Parameter remaining: The names that are left. The source stays in the modes of this loop that they
    ///   stand for: it is in a mode once, even if the owner has scheduled it there by name and under
    ///   `.common`.
    package func remove(_ source: Source, forMode mode: Mode, keeping remaining: [LoopMode]) {
        let kept = remaining.filter { $0.loop === self }.flatMap { modes(named: $0.mode) }
        if mode.namesCommonModes {
            for mode in source.unregister(from: self) where !kept.contains(mode) {
                source.leave(self, mode, isCommon: true)
            }
        } else if !kept.contains(mode) {
            source.leave(self, mode)
        }
    }

    /// Whether `source` is in `mode`; for `.common`, whether it was added under that name (rule RL-23).
    public func contains(_ source: Source, forMode mode: Mode) -> Bool {
        state.withLock { state in
            if mode == .common { return state.commonSources.contains(source) }
            guard let index = state.existingIndex(of: mode) else { return false }
            return state.modes[index].holds(source)
        }
    }
}

extension RunLoop.Source {
    /// - Parameter signal: The number of the last signal. The caller holds the source's lock.
    func withdraw(from membership: LoopMode, signal: UInt64) {
        membership.loop.state.withLock { loopState in
            guard let index = loopState.existingIndex(of: membership.mode) else { return }
            loopState.modes[index].remove(self, signal: signal)
        }
    }

    /// Registers the source under the common name.
    ///
    /// - Returns: The modes that it has to enter.
    func register(in loop: RunLoop) -> [RunLoop.Mode] {
        state.withLock { state in
            guard state.isValid else { return [] }
            let modes = loop.state.withLock { loopState -> [RunLoop.Mode] in
                guard loopState.isAlive else { return [] }
                loopState.commonSources.insert(self)
                return loopState.commonModes.map { loopState.modes[$0].name }
            }
            if !modes.isEmpty, !state.isCommon(in: loop) {
                state.makeDetails().commonLoops.append(loop)
            }
            return modes
        }
    }

    /// - Returns: The modes that the source has to leave; none if it was not registered (rule RL-24).
    func unregister(from loop: RunLoop) -> [RunLoop.Mode] {
        state.withLock { state in
            state.details?.commonLoops.removeAll { $0 == loop }
            return loop.state.withLock { loopState in
                guard loopState.commonSources.remove(self) else { return [] }
                return loopState.commonModes.map { loopState.modes[$0].name }
            }
        }
    }

    /// - Parameter isCommon: The source enters because it is registered under the common name. Nothing
    ///   happens if another thread has unregistered it meanwhile.
    func enter(_ loop: RunLoop, _ mode: RunLoop.Mode, isCommon: Bool = false) {
        let membership = LoopMode(loop: loop, mode: mode)
        let schedule = state.withLock { state -> ModeCallback?? in
            guard state.isValid, !isCommon || state.isCommon(in: loop) else { return nil }
            guard !state.memberships.contains(membership) else { return nil }
            let (isSignalled, signal) = (state.isSignalled, state.lastSignal)
            let added = loop.state.withLock { loopState -> Bool in
                guard loopState.isAlive else { return false }
                let index = loopState.index(of: mode)
                loopState.modes[index].insert(self)
                if isSignalled {
                    loopState.modes[index].signalled.insert(self, signal: signal, replacing: signal)
                }
                if kind.behaviour.descriptor != nil { loopState.modes[index].noteChange(of: self) }
                return true
            }
            state.threadHasEnded = !added
            guard added else { return nil }
            state.memberships.append(membership)
            return .some(state.details?.schedule)
        }
        if case .some(.some(let schedule)) = schedule { schedule(loop, mode) }
    }

    /// - Parameter isCommon: The source leaves because it is no longer registered under the common name.
    ///   Nothing happens if it has been registered again.
    func leave(_ loop: RunLoop, _ mode: RunLoop.Mode, isCommon: Bool = false) {
        let membership = LoopMode(loop: loop, mode: mode)
        let cancel = state.withLock { state -> ModeCallback?? in
            guard !isCommon || !state.isCommon(in: loop) else { return nil }
            guard state.memberships.remove(membership) else { return nil }
            withdraw(from: membership, signal: state.lastSignal)
            state.threadHasEnded = !loop.state.withLock { $0.isAlive }
            return .some(state.details?.cancel)
        }
        if case .some(.some(let cancel)) = cancel { cancel(loop, mode) }
    }
}

// How a timer enters and leaves the modes of its loop.

extension RunLoop {
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

    /// Removes `timer` from `mode`; it stays valid and keeps its date (rule TM-14).
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
}

extension Timer {
    /// Registers the timer under the common name.
    ///
    /// - Returns: The modes that it has to enter.
    func register(in loop: RunLoop) -> [RunLoop.Mode] {
        state.withLock { state in
            guard state.mayEnter(loop) else { return [] }
            let modes = loop.state.withLock { loopState -> [RunLoop.Mode] in
                guard loopState.isAlive else { return [] }
                loopState.commonTimers.insert(self)
                return loopState.commonModes.map { loopState.modes[$0].name }
            }
            if !modes.isEmpty {
                state.loop = loop
                state.isCommon = true
            }
            return modes
        }
    }

    /// - Returns: The modes that the timer has to leave; none if it was not registered (rule RL-24).
    func unregister(from loop: RunLoop) -> [RunLoop.Mode] {
        state.withLock { state in
            guard state.isHeld(by: loop), state.isCommon else { return [] }
            state.isCommon = false
            return loop.state.withLock { loopState in
                loopState.commonTimers.remove(self)
                if registration.isEmpty { state.loop = nil }
                return loopState.commonModes.map { loopState.modes[$0].name }
            }
        }
    }

    func isMember(of loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
        state.withLock { state in
            guard state.isHeld(by: loop) else { return false }
            return loop.state.withLock { loopState in
                loopState.existingIndex(of: mode).map { registration.contains($0) } ?? false
            }
        }
    }

    /// - Parameter isCommon: The timer enters because it is registered under the common name. Nothing happens
    ///   if another thread has unregistered it meanwhile.
    func enter(_ loop: RunLoop, _ mode: RunLoop.Mode, isCommon: Bool = false) {
        enter(loop, .one(mode), isCommon: isCommon)
    }

    /// Enters all common modes in one step: the timer's date is read before it waits in the first of them.
    func enter(_ loop: RunLoop, common modes: [RunLoop.Mode]) {
        if !modes.isEmpty { enter(loop, .several(modes), isCommon: true) }
    }

    private enum Entered {
        case one(RunLoop.Mode)
        case several([RunLoop.Mode])
    }

    private func enter(_ loop: RunLoop, _ entered: Entered, isCommon: Bool) {
        let added = state.withLock { state -> Bool in
            guard state.mayEnter(loop), !isCommon || state.isCommon else { return false }
            let added = loop.state.withLock { loopState -> Bool in
                guard loopState.isAlive else { return false }
                switch entered {
                case .one(let mode):
                    return loopState.add(self, toMode: loopState.index(of: mode))
                case .several(let modes):
                    let deadline = loopState.deadline(of: self)
                    return modes.reduce(false) {
                        loopState.add(self, toMode: loopState.index(of: $1), deadline: deadline) || $0
                    }
                }
            }
            if added {
                state.loop = loop
                state.threadHasEnded = false
            } else if state.loop == nil {
                state.threadHasEnded = true
            }
            return added
        }
        if added { loop.wakeIfForeign() }
        loop.warnUnlessRun()
    }

    /// - Parameter isCommon: The timer leaves because it is no longer registered under the common name.
    ///   Nothing happens if it has been registered again.
    func leave(_ loop: RunLoop, _ mode: RunLoop.Mode, isCommon: Bool = false) {
        state.withLock { state in
            guard state.isHeld(by: loop), !isCommon || !state.isCommon else { return }
            let isOutOfAll = loop.state.withLock { loopState -> Bool in
                guard let index = loopState.existingIndex(of: mode),
                    loopState.remove(self, fromMode: index)
                else {
                    return false
                }
                state.threadHasEnded = !loopState.isAlive
                return registration.isEmpty
            }
            if isOutOfAll && !state.isCommon { state.loop = nil }
        }
    }
}

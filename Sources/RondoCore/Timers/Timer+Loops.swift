// A timer in the modes of its loop, and what a pass does with it.
extension Timer {
    // MARK: - Membership

    /// Under the common name.
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

    /// - Returns: The modes that it has to leave; none where it was not registered (rule RL-24).
    func unregister(from loop: RunLoop) -> [RunLoop.Mode] {
        state.withLock { state in
            guard state.isHeld(by: loop), state.isCommon else { return [] }
            state.isCommon = false
            return loop.state.withLock { loopState in
                loopState.commonTimers.remove(self)
                if slots.isEmpty { state.loop = nil }
                return loopState.commonModes.map { loopState.modes[$0].name }
            }
        }
    }

    func isMember(of loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
        state.withLock { state in
            guard state.isHeld(by: loop) else { return false }
            return loop.state.withLock { loopState in
                loopState.existingIndex(of: mode).map { slots.contains($0) } ?? false
            }
        }
    }

    /// - Parameter isCommon: Because it is registered under the common name; it does nothing if it is not
    ///   any more, since another thread may have taken it out meanwhile.
    func enter(_ loop: RunLoop, _ mode: RunLoop.Mode, isCommon: Bool = false) {
        enter(loop, .one(mode), isCommon: isCommon)
    }

    /// The common modes, in one step: its date is known before it waits in the first of them.
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

    /// - Parameter isCommon: Because it is not registered under the common name any more; it does nothing
    ///   if it is again.
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
                return slots.isEmpty
            }
            if isOutOfAll && !state.isCommon { state.loop = nil }
        }
    }

    // MARK: - From the pass

    /// Calls the timer, which `loop` has taken as due in `mode`, and puts it back on its grid.
    func fire(in mode: Int, of loop: RunLoop) {
        let (block, repeats) = state.withLock { state -> (Block?, Bool) in
            // Another thread may have changed it since it was taken.
            guard state.isValid, state.isHeld(by: loop), !state.isOvertaken else { return (nil, false) }
            state.isCalled = true
            let repeats = state.withRarities { rarities in
                rarities.lastBeat = slots.deadline
                return rarities.interval > 0
            }
            return (state.block, repeats ?? false)
        }
        if let block {
            Trace.callOut(loop, mode, .timer, label: label, of: self) { block.call(self) }
            guard repeats else { return invalidate() }
        }
        let now = LoopClock.now
        let holder = state.withLock { state -> RunLoop? in
            let deadline = block != nil ? state.next(after: slots.deadline, now) : slots.deadline
            (state.isCalled, state.isOvertaken) = (false, false)
            // The block may have moved it to another loop.
            guard let holder = state.loop else {
                slots.endFiring(deadline: deadline, order: nil)
                return nil
            }
            holder.state.withLock { $0.putBack(self, deadline) }
            return holder
        }
        if let holder, holder !== loop { holder.wakeUp() }
    }
}

extension Timer.State {
    /// After a firing at `deadline`: the date that the block has set, or the next one of the grid.
    fileprivate func next(after deadline: LoopInstant, _ now: LoopInstant) -> LoopInstant {
        withMadeRarities { rarities in
            rarities.lastBeat = deadline
            if let moved = rarities.moved {
                rarities.moved = nil
                return moved
            }
            let beat = max(1, LoopClock.nanoseconds(rarities.interval))
            var schedule = TimerSchedule(first: deadline, interval: beat)
            schedule.advance(past: now)
            return schedule.deadline
        }
    }
}

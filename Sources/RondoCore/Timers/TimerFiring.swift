// How a pass calls a due timer. Loop's thread only.

extension Timer {
    /// Calls the timer, which `loop` has taken as due in `mode`, and sets the next date of its grid.
    func fire(in mode: Int, of loop: RunLoop) {
        let (block, repeats) = state.withLock { state -> (Block?, Bool) in
            // Another thread may have changed the timer since it was taken.
            guard state.isValid, state.isHeld(by: loop), !state.isOvertaken else { return (nil, false) }
            state.isCalled = true
            let repeats = state.withDetails { details in
                details.lastBeat = registration.deadline
                return details.interval > 0
            }
            return (state.block, repeats ?? false)
        }
        if let block {
            Trace.callOut(loop, mode, .timer, label: label, of: self) { block.call(self) }
            guard repeats else { return invalidate() }
        }
        let now = LoopClock.now
        let holder = state.withLock { state -> RunLoop? in
            let deadline =
                block != nil ? state.next(after: registration.deadline, now) : registration.deadline
            (state.isCalled, state.isOvertaken) = (false, false)
            // The block may have moved the timer to another loop.
            guard let holder = state.loop else {
                registration.endFiring(deadline: deadline, order: nil)
                return nil
            }
            holder.state.withLock { $0.putBack(self, deadline) }
            return holder
        }
        if let holder, holder !== loop { holder.wakeUp() }
    }
}

extension Timer.State {
    /// The date after a firing at `deadline`: the date that the block has set, or the next date of the grid.
    fileprivate func next(after deadline: LoopInstant, _ now: LoopInstant) -> LoopInstant {
        updateDetails { details in
            details.lastBeat = deadline
            if let moved = details.moved {
                details.moved = nil
                return moved
            }
            let beat = max(1, LoopClock.nanoseconds(details.interval))
            var schedule = TimerSchedule(first: deadline, interval: beat)
            schedule.advance(past: now)
            return schedule.deadline
        }
    }
}

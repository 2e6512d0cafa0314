// How a pass calls a due timer. Loop's thread only.

extension Timer {
    /// Calls the timer, which `loop` has taken as due in `mode`, and sets the next date of its grid.
    func fire(in mode: Int, of loop: RunLoop) {
        let (block, repeats) = state.withLock { state -> (TimerState.Block?, Bool) in
            // Another thread may have changed the timer since it was taken.
            guard state.isValid, state.isHeld(by: loop), !state.isOvertaken else { return (nil, false) }
            state.isCalled = true
            let repeats = state.withDetails { details in
                details.dates.noteBeat(registration.deadline)
                return details.dates.repeats
            }
            return (state.block, repeats ?? false)
        }
        if let block {
            Trace.callOut(loop, mode, .timer, label: label, of: self) { block.call(self) }
            guard repeats else { return invalidate() }
        }
        let now = LoopClock.now
        let holder = state.withLock { state -> RunLoop? in
            let fired = registration.deadline
            let deadline =
                block != nil ? state.updateDetails { $0.dates.next(after: fired, now: now) } : fired
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

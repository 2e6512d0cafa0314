extension LoopState {
    /// A member without a date, since it is being called. `Unmanaged`: a timer that leaves its last mode leaves the
    /// list too, and in a mode the loop holds it.
    struct FiringTimer {
        let timer: Unmanaged<Timer>
        /// See `TimerSlots.order`.
        var order: UInt32

        func isOf(_ other: Timer) -> Bool { timer.toOpaque() == Unmanaged.passUnretained(other).toOpaque() }
    }

    @inline(__always)
    func withTimers<Result>(of mode: Int, _ body: (TimerHeap<Timer>) -> Result) -> Result {
        modes[mode].unretainedTimers._withUnsafeGuaranteedRef(body)
    }

    /// - Parameter deadline: Of a timer that waits in other modes, where it is known; see `deadline(of:)`.
    /// - Returns: False where the mode holds it already.
    @inline(__always)
    mutating func add(_ timer: Timer, toMode mode: Int, deadline: LoopInstant? = nil) -> Bool {
        var slots = timer.slots
        guard !slots.contains(mode) else { return false }
        let deadline = slots.isEmpty ? slots.deadline : deadline ?? self.deadline(of: timer)
        if !slots.isEmpty { slots = timer.slots }
        if slots.isEmpty {
            // In whatever mode it stands, it has been added once.
            let order = nextTimerOrder()
            // Released when it leaves its last mode; a loop that ends takes all of its timers out.
            let unmanaged = Unmanaged.passRetained(timer)
            if slots.isFiring { firingTimers.append(FiringTimer(timer: unmanaged, order: order)) }
            slots.add(mode, order: order)
        } else {
            slots.add(mode, order: order(of: timer))
        }
        timer.slots = slots
        let isFiring = slots.isFiring
        withTimers(of: mode) { timers in
            timers.count += 1
            if !isFiring { timers.insert(timer, deadline) }
        }
        return true
    }

    /// Whoever takes a timer out holds it, so that nothing is freed under the lock.
    ///
    /// - Returns: False where the mode does not hold it.
    @discardableResult
    mutating func remove(_ timer: Timer, fromMode mode: Int) -> Bool {
        guard timer.slots.contains(mode) else { return false }
        let deadline = withTimers(of: mode) { timers in
            timers.count -= 1
            return timer.slots.isFiring ? nil : timers.remove(timer)
        }
        var slots = timer.slots
        slots.remove(mode, deadline: deadline)
        timer.slots = slots
        if slots.isEmpty {
            if slots.isFiring { isFiringNoMore(timer) }
            Unmanaged.passUnretained(timer).release()
        }
        return true
    }

    /// When it is due next, or was due that is being called. Not for where it is asked of every timer: who waits is
    /// asked for its place in the heap, which all others then have to keep as well.
    func deadline(of timer: Timer) -> LoopInstant {
        let slots = timer.slots
        guard slots.isWaiting, let mode = slots.first else { return slots.deadline }
        return withTimers(of: mode) { $0.deadline(of: timer) }
    }

    /// Moves a timer that is not firing.
    func setDate(_ deadline: LoopInstant, of timer: Timer) {
        guard timer.slots.isWaiting else {
            timer.slots.deadline = deadline
            return
        }
        timer.slots.forEach { mode in
            withTimers(of: mode) {
                $0.remove(timer)
                $0.insert(timer, deadline)
            }
        }
    }

    /// The next timer of those that were found due in `mode`. It has no date while it fires.
    mutating func takeDueTimer(in mode: Int) -> Timer? {
        guard let node = withTimers(of: mode, { $0.takeFirstDue() }),
            let timer = node.timer?.takeUnretainedValue()
        else { return nil }
        timer.slots.forEach { other in
            if other != mode { withTimers(of: other) { _ = $0.remove(timer) } }
        }
        var slots = timer.slots
        firingTimers.append(FiringTimer(timer: .passUnretained(timer), order: slots.order ?? 0))
        slots.beginFiring(deadline: node.deadline)
        timer.slots = slots
        return timer
    }

    /// It has fired and gets its next date, in whatever modes it is now.
    mutating func putBack(_ timer: Timer, _ deadline: LoopInstant) {
        var slots = timer.slots
        guard slots.isFiring else { return }
        slots.endFiring(deadline: deadline, order: slots.isEmpty ? nil : isFiringNoMore(timer))
        timer.slots = slots
        slots.forEach { mode in withTimers(of: mode) { $0.insert(timer, deadline) } }
    }

    /// - Returns: Its order.
    @discardableResult
    private mutating func isFiringNoMore(_ timer: Timer) -> UInt32? {
        // The innermost is the last.
        guard let place = firingTimers.lastIndex(where: { $0.isOf(timer) }) else { return nil }
        // Nearly always it stands at the end, where it leaves no gap to be closed.
        return place == firingTimers.count - 1
            ? firingTimers.removeLast().order : firingTimers.remove(at: place).order
    }

    /// The timers in `mode` and their dates, in no particular order.
    func timerDates(inMode mode: Int) -> [TimerDate<Timer>] {
        modes[mode].timers.dates
            + firingTimers.map { $0.timer.takeUnretainedValue() }.filter { $0.slots.contains(mode) }
            .map { TimerDate(timer: $0, deadline: $0.slots.deadline) }
    }

    func timers(inMode mode: Int) -> [Timer] { timerDates(inMode: mode).map(\.timer) }

    // MARK: - The order of addition

    /// Of a timer that is in a mode.
    private func order(of timer: Timer) -> UInt32 {
        timer.slots.order ?? firingTimers.last { $0.isOf(timer) }?.order ?? 0
    }

    private mutating func nextTimerOrder() -> UInt32 {
        // Before a number comes for the second time, all begin anew.
        if lastTimerOrder == .max { renumberTimers() }
        lastTimerOrder += 1
        return lastTimerOrder
    }

    private mutating func renumberTimers() {
        var numbered: Set<ObjectIdentifier> = []
        let timers = modes.indices.flatMap { self.timers(inMode: $0) }
            .filter { numbered.insert(ObjectIdentifier($0)).inserted }
            .sorted { order(of: $0) < order(of: $1) }
        lastTimerOrder = 0
        for timer in timers {
            lastTimerOrder += 1
            if timer.slots.order != nil { timer.slots.order = lastTimerOrder }
            for index in firingTimers.indices where firingTimers[index].isOf(timer) {
                firingTimers[index].order = lastTimerOrder
            }
        }
    }
}

extension LoopState {
    @inline(__always)
    func withTimers<Result>(of mode: Int, _ body: (TimerHeap) -> Result) -> Result {
        modes[mode].unretainedTimers._withUnsafeGuaranteedRef(body)
    }

    /// - Returns: False where the mode holds it already.
    mutating func add(_ timer: Timer, toMode mode: Int, deadline: LoopInstant) -> Bool {
        guard !timer.slots.contains(mode) else { return false }
        if timer.slots.isEmpty {
            // In whatever mode it stands, it has been added once.
            timer.slots.order = nextTimerOrder()
            // Released when it leaves its last mode; a loop that ends takes all of its timers out.
            _ = Unmanaged.passRetained(timer)
            if timer.slots.isFiring { firingTimers.append(.passUnretained(timer)) }
        }
        timer.slots.add(mode)
        withTimers(of: mode) { timers in
            timers.count += 1
            if !timer.slots.isFiring { timers.insert(timer, deadline) }
        }
        return true
    }

    /// Whoever takes a timer out holds it, so that nothing is freed under the lock.
    ///
    /// - Returns: False where the mode does not hold it.
    @discardableResult
    mutating func remove(_ timer: Timer, fromMode mode: Int) -> Bool {
        guard timer.slots.contains(mode) else { return false }
        withTimers(of: mode) { timers in
            timers.count -= 1
            if !timer.slots.isFiring { timers.remove(timer) }
        }
        timer.slots.remove(mode)
        if timer.slots.isEmpty {
            if timer.slots.isFiring { isFiringNoMore(timer) }
            Unmanaged.passUnretained(timer).release()
        }
        return true
    }

    /// Moves a timer that is not firing.
    func setDate(_ deadline: LoopInstant, of timer: Timer) {
        timer.slots.forEach { mode in
            withTimers(of: mode) {
                $0.remove(timer)
                $0.insert(timer, deadline)
            }
        }
    }

    /// The next timer of those that were found due in `mode`. It has no date while it fires.
    mutating func takeDueTimer(in mode: Int) -> Timer? {
        guard let timer = withTimers(of: mode, { $0.takeFirstDue()?.timer?.takeUnretainedValue() }) else {
            return nil
        }
        timer.slots.forEach { if $0 != mode { withTimers(of: $0) { $0.remove(timer) } } }
        timer.slots.isFiring = true
        firingTimers.append(.passUnretained(timer))
        return timer
    }

    /// It has fired and gets its next date, in whatever modes it is now.
    mutating func putBack(_ timer: Timer, _ deadline: LoopInstant) {
        guard timer.slots.isFiring else { return }
        if !timer.slots.isEmpty { isFiringNoMore(timer) }
        timer.slots.isFiring = false
        timer.slots.forEach { withTimers(of: $0) { $0.insert(timer, deadline) } }
    }

    private mutating func isFiringNoMore(_ timer: Timer) {
        // The innermost is the last.
        let place = firingTimers.lastIndex { $0.toOpaque() == Unmanaged.passUnretained(timer).toOpaque() }
        if let place { firingTimers.remove(at: place) }
    }

    /// The timers in `mode`, in no particular order.
    func timers(inMode mode: Int) -> [Timer] {
        modes[mode].timers.timers
            + firingTimers.map { $0.takeUnretainedValue() }.filter { $0.slots.contains(mode) }
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
            .sorted { $0.slots.order < $1.slots.order }
        lastTimerOrder = 0
        for timer in timers {
            lastTimerOrder += 1
            timer.slots.order = lastTimerOrder
        }
    }
}

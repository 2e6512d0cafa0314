extension LoopState {
    /// A member without a date, since it is being called. `Unmanaged`: a timer that leaves its last mode leaves the
    /// list too, and in a mode the loop holds it.
    struct FiringTimer {
        let timer: Unmanaged<Timer>
        /// See `TimerRegistration.order`.
        var order: UInt32

        func isOf(_ other: Timer) -> Bool { timer.toOpaque() == Unmanaged.passUnretained(other).toOpaque() }
    }

    func withTimers<Result>(of mode: Int, _ body: (TimerHeap<Timer>) -> Result) -> Result {
        modes[mode].unretainedTimers._withUnsafeGuaranteedRef(body)
    }

    /// - Parameter deadline: Of a timer that waits in other modes, where it is known; see `deadline(of:)`.
    /// - Returns: False where the mode holds it already.
    mutating func add(_ timer: Timer, toMode mode: Int, deadline: LoopInstant? = nil) -> Bool {
        var registration = timer.registration
        guard !registration.contains(mode) else { return false }
        let deadline = registration.isEmpty ? registration.deadline : deadline ?? self.deadline(of: timer)
        if !registration.isEmpty { registration = timer.registration }
        if registration.isEmpty {
            // In whatever mode it stands, it has been added once.
            let order = nextTimerOrder()
            // Released when it leaves its last mode; a loop that ends takes all of its timers out.
            let unmanaged = Unmanaged.passRetained(timer)
            if registration.isFiring { firingTimers.append(FiringTimer(timer: unmanaged, order: order)) }
            registration.add(mode, order: order)
        } else {
            registration.add(mode, order: order(of: timer))
        }
        timer.registration = registration
        let isFiring = registration.isFiring
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
        guard timer.registration.contains(mode) else { return false }
        let deadline = withTimers(of: mode) { timers in
            timers.count -= 1
            return timer.registration.isFiring ? nil : timers.remove(timer)
        }
        var registration = timer.registration
        registration.remove(mode, deadline: deadline)
        timer.registration = registration
        if registration.isEmpty {
            if registration.isFiring { removeFiring(timer) }
            Unmanaged.passUnretained(timer).release()
        }
        return true
    }

    /// When it is due next, or was due that is being called. Not for where it is asked of every timer: who waits is
    /// asked for its place in the heap, which all others then have to keep as well.
    func deadline(of timer: Timer) -> LoopInstant {
        let registration = timer.registration
        guard registration.isWaiting, let mode = registration.first else { return registration.deadline }
        return withTimers(of: mode) { $0.deadline(of: timer) }
    }

    /// Moves a timer that is not firing.
    func setDate(_ deadline: LoopInstant, of timer: Timer) {
        guard timer.registration.isWaiting else {
            timer.registration.deadline = deadline
            return
        }
        timer.registration.forEach { mode in
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
        timer.registration.forEach { other in
            if other != mode { withTimers(of: other) { _ = $0.remove(timer) } }
        }
        var registration = timer.registration
        firingTimers.append(FiringTimer(timer: .passUnretained(timer), order: registration.order ?? 0))
        registration.beginFiring(deadline: node.deadline)
        timer.registration = registration
        return timer
    }

    /// It has fired and gets its next date, in whatever modes it is now.
    mutating func putBack(_ timer: Timer, _ deadline: LoopInstant) {
        var registration = timer.registration
        guard registration.isFiring else { return }
        registration.endFiring(deadline: deadline, order: registration.isEmpty ? nil : removeFiring(timer))
        timer.registration = registration
        registration.forEach { mode in withTimers(of: mode) { $0.insert(timer, deadline) } }
    }

    /// - Returns: Its order.
    @discardableResult
    private mutating func removeFiring(_ timer: Timer) -> UInt32? {
        // The innermost is the last.
        guard let place = firingTimers.lastIndex(where: { $0.isOf(timer) }) else { return nil }
        // Nearly always it stands at the end, where it leaves no gap to be closed.
        return place == firingTimers.count - 1
            ? firingTimers.removeLast().order : firingTimers.remove(at: place).order
    }

    /// The timers in `mode` and their dates, in no particular order.
    func timerDates(inMode mode: Int) -> [TimerDate<Timer>] {
        modes[mode].timers.dates
            + firingTimers.map { $0.timer.takeUnretainedValue() }.filter { $0.registration.contains(mode) }
            .map { TimerDate(timer: $0, deadline: $0.registration.deadline) }
    }

    func timers(inMode mode: Int) -> [Timer] { timerDates(inMode: mode).map(\.timer) }

    // MARK: - The order of addition

    /// Of a timer that is in a mode.
    private func order(of timer: Timer) -> UInt32 {
        timer.registration.order ?? firingTimers.last { $0.isOf(timer) }?.order ?? 0
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
            if timer.registration.order != nil { timer.registration.order = lastTimerOrder }
            for index in firingTimers.indices where firingTimers[index].isOf(timer) {
                firingTimers[index].order = lastTimerOrder
            }
        }
    }
}

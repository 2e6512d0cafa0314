extension LoopState {
    /// A timer that is being called, and has no date meanwhile. `Unmanaged` is safe since the loop retains
    /// the timer while it is in a mode, and a timer that leaves its last mode is removed from this list too.
    /// With a reference bench-guard's timer.fired takes 5 % more instructions.
    struct FiringTimer {
        let timer: Unmanaged<Timer>
        /// See `TimerRegistration.order`.
        var order: UInt32

        func isOf(_ other: Timer) -> Bool { timer.toOpaque() == Unmanaged.passUnretained(other).toOpaque() }
    }

    func withTimers<Result>(of mode: Int, _ body: (TimerHeap<Timer>) -> Result) -> Result {
        modes[mode].unretainedTimers._withUnsafeGuaranteedRef(body)
    }

    /// - Parameter deadline: The date of a timer that waits in other modes, if it is known; see
    ///   `deadline(of:)`.
    /// - Returns: False if the mode already holds the timer.
    mutating func add(_ timer: Timer, toMode mode: Int, deadline: LoopInstant? = nil) -> Bool {
        var registration = timer.registration
        guard !registration.contains(mode) else { return false }
        let deadline = registration.isEmpty ? registration.deadline : deadline ?? self.deadline(of: timer)
        if !registration.isEmpty { registration = timer.registration }
        if registration.isEmpty {
            // A timer has one order for all its modes.
            let order = nextTimerOrder()
            // `Unmanaged`: the loop retains the timer once for all its modes, from here until it leaves the
            // last of them in `remove`. A loop that ends removes all of its timers.
            let unmanaged = Unmanaged.passRetained(timer)
            if registration.isFiring { firingTimers.append(FiringTimer(timer: unmanaged, order: order)) }
            registration.add(mode, order: order)
        } else {
            registration.add(mode, order: order(of: timer))
        }
        timer.registration = registration
        let isFiring = registration.isFiring
        withTimers(of: mode) { timers in
            timers.noteAdded()
            if !isFiring { timers.insert(timer, deadline) }
        }
        return true
    }

    /// Removes the timer from a mode. The caller retains the timer, so that nothing is freed under the lock.
    ///
    /// - Returns: False if the mode does not hold the timer.
    @discardableResult
    mutating func remove(_ timer: Timer, fromMode mode: Int) -> Bool {
        guard timer.registration.contains(mode) else { return false }
        let deadline = withTimers(of: mode) { timers in
            timers.noteRemoved()
            return timer.registration.isFiring ? nil : timers.remove(timer)
        }
        var registration = timer.registration
        registration.remove(mode, deadline: deadline)
        timer.registration = registration
        if registration.isEmpty {
            if registration.isFiring { removeFiring(timer) }
            // Balances the retain of `add`: the timer has left its last mode.
            Unmanaged.passUnretained(timer).release()
        }
        return true
    }

    /// The instant at which the timer is due next, or was due if it is being called. Not for frequent use: it
    /// needs the index of a waiting timer in the heap, and from then on the heap keeps the indices of all its
    /// timers.
    func deadline(of timer: Timer) -> LoopInstant {
        let registration = timer.registration
        guard registration.isWaiting, let mode = registration.first else { return registration.deadline }
        return withTimers(of: mode) { $0.deadline(of: timer) }
    }

    /// Sets the date of a timer that is not firing.
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

    /// Takes the next of the timers that were found due in `mode`. The timer has no date while it fires.
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

    /// Gives a timer that has fired its next date, in the modes that now hold it.
    mutating func putBack(_ timer: Timer, _ deadline: LoopInstant) {
        var registration = timer.registration
        guard registration.isFiring else { return }
        registration.endFiring(deadline: deadline, order: registration.isEmpty ? nil : removeFiring(timer))
        timer.registration = registration
        registration.forEach { mode in withTimers(of: mode) { $0.insert(timer, deadline) } }
    }

    /// Removes the timer from the list of firing timers.
    ///
    /// - Returns: Its order.
    @discardableResult
    private mutating func removeFiring(_ timer: Timer) -> UInt32? {
        // From the end, because the innermost call is the last element.
        guard let index = firingTimers.lastIndex(where: { $0.isOf(timer) }) else { return nil }
        // It is nearly always the last one.
        return index == firingTimers.count - 1
            ? firingTimers.removeLast().order : firingTimers.remove(at: index).order
    }

    /// The timers in `mode` and their dates, in no particular order.
    func timerDates(inMode mode: Int) -> [TimerDate<Timer>] {
        modes[mode].timers.dates
            + firingTimers.map { $0.timer.takeUnretainedValue() }.filter { $0.registration.contains(mode) }
            .map { TimerDate(timer: $0, deadline: $0.registration.deadline) }
    }

    func timers(inMode mode: Int) -> [Timer] { timerDates(inMode: mode).map(\.timer) }

    // MARK: - The order of addition

    /// The order of a timer that is in a mode.
    private func order(of timer: Timer) -> UInt32 {
        timer.registration.order ?? firingTimers.last { $0.isOf(timer) }?.order ?? 0
    }

    private mutating func nextTimerOrder() -> UInt32 {
        // Before a number would be used for the second time, all timers get new ones.
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

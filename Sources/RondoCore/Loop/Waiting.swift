internal import CRondoEv

// How a loop that has nothing to do waits. Loop's thread only, but for `spinDuration`.
//
// Sleeping and being woken costs some microseconds on both sides and, most of all, the time until the kernel
// runs the thread again. If answers come faster than that, a loop that looks for them for a short time before
// it sleeps gets them sooner, while its processor is busy.

extension RunLoop {
    /// The longest `spinDuration`, in seconds: a millisecond.
    public static let maximumSpinDuration: TimeInterval = 0.001

    /// Seconds for which the loop, when it has nothing to do, looks for something again and again before it
    /// sleeps; 0, as at first: it sleeps at once.
    ///
    /// What another thread asks of a loop that spins (a block, a signal, a wake-up) is seen without a system
    /// call on either side, in less than a microsecond; what sleeps is woken in five to ten. That takes a
    /// core for itself, so it is for loops that answer one another quickly, on machines with cores to spare.
    /// Some ten to a hundred microseconds make sense; negative values count as 0, larger ones than
    /// `maximumSpinDuration` as that.
    ///
    /// A wait begins with a spin only if the wait before it was no longer than this, so that a loop that
    /// waits for seconds does not spin at all. Descriptors and the main queue are looked at as well, by a
    /// system call each time, and a timer that falls into the spin fires without the delay of waking up.
    /// Observers, `isWaiting` and instruments see no difference: to spin is to wait.
    /// - Note: Any thread may set it; it counts from the next wait on.
    public var spinDuration: TimeInterval {
        get { Double(spinNanoseconds.load(ordering: .relaxed)) / 1e9 }
        set {
            let nanoseconds = LoopClock.nanoseconds(min(newValue, Self.maximumSpinDuration))
            spinNanoseconds.store(max(0, nanoseconds), ordering: .relaxed)
        }
    }

    /// Whether a wait that begins now begins with a spin. Not under a clock of the loop's own, which does not
    /// advance meanwhile.
    var spinsBeforeSleep: Bool {
        spinNanoseconds.load(ordering: .relaxed) > 0 && owner.hasWaitedShortly && owner.timeSource == nil
    }
}

extension RunLoop {
    /// How often the loop checks for a request before it reads the clock, and asks the kernel for
    /// descriptors.
    private static let looksBetweenReadings = 16

    /// Waits until an event of the mode has happened or `end` has come: a spin, if the loop is to spin, and
    /// then a sleep. It may return without either; see `Pass.look(maySleep:)`.
    ///
    /// - Parameter spins: The argument of `Attention.beginWaiting(spins:)`.
    func wait(_ modeLoop: ModeLoop, until end: LoopInstant, now: LoopInstant, spins: Bool) {
        let longest = spinNanoseconds.load(ordering: .relaxed)
        guard longest > 0 || spins else { return sleep(modeLoop, until: end, now: now) }
        let began = LoopClock.machineNow
        let isOver = spins && spin(modeLoop, until: end, butNotBeyond: began.advanced(byNanoseconds: longest))
        if !isOver, !spins || attention.fallAsleep() { sleep(modeLoop, until: end, now: now) }
        owner.hasWaitedShortly = LoopClock.machineNow.nanoseconds - began.nanoseconds <= longest
    }

    /// - Returns: Whether the wait is over; false if only the time for spinning is.
    private func spin(_ modeLoop: ModeLoop, until end: LoopInstant, butNotBeyond spinEnd: LoopInstant) -> Bool
    {
        while true {
            for _ in 0..<Self.looksBetweenReadings {
                guard attention.isSpinning else { return true }
                rondo_pause()
            }
            modeLoop.pollWhatIsWatched()
            if !modeLoop.ready.isEmpty || modeLoop.mainQueueIsReady { return true }
            let now = LoopClock.machineNow
            if now >= end { return true }
            if now >= spinEnd { return false }
        }
    }

    private func sleep(_ modeLoop: ModeLoop, until instant: LoopInstant, now: LoopInstant) {
        if let bridge = owner.bridge, bridge.sleep(modeLoop, until: instant) { return }
        guard let source = owner.timeSource else {
            let hasTimer = owner.kernel.armTimer(noLaterThan: instant, now: now)
            return modeLoop.poll(mayBlock: true, until: instant, hasTimer: hasTimer)
        }
        // If the loop has a clock of its own, time does not pass by itself: the loop looks at its
        // descriptors, then asks the clock to advance, and sleeps only if the clock does not.
        modeLoop.poll(mayBlock: false)
        let isIdle =
            modeLoop.ready.isEmpty && !modeLoop.mainQueueIsReady && !attention.wasAsked
        guard isIdle, !source.loopIsIdle(until: instant) else { return }
        owner.kernel.armTimer(noLaterThan: .never, now: now)
        modeLoop.poll(mayBlock: true)
    }
}

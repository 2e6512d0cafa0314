internal import CRondoEv

/// The wait of a pass that has nothing to do: a spin, if the loop spins, and then a sleep. Loop's thread
/// only.
///
/// Going to sleep and being woken costs some microseconds on both sides and, above all, the time until the
/// kernel runs the thread again. If answers come faster than that, a loop that looks for them for a short
/// time before it sleeps gets them sooner, while its processor stays busy.
enum Sleep {
    // Not a value with these parameters as its properties: with it bench-guard's pass.other-mode takes 8 %
    // more instructions.

    /// The number of checks for a request between two readings of the clock, at which the kernel is also
    /// asked for descriptors.
    private static let looksBetweenReadings = 16

    /// Waits until an event of the mode has happened or `end` has come. It may return without either; see
    /// `Pass.look(_:)`.
    ///
    /// - Parameter spins: The argument of `Attention.beginWaiting(spins:)`.
    static func run(
        _ loop: RunLoop, _ modeLoop: ModeLoop, until end: LoopInstant, now: LoopInstant, spins: Bool
    ) {
        let longest = loop.spinNanoseconds.load(ordering: .relaxed)
        guard longest > 0 || spins else { return sleep(loop, modeLoop, until: end, now: now) }
        let began = LoopClock.systemNow
        let spinEnd = began.advanced(byNanoseconds: longest)
        let isOver = spins && spin(loop, modeLoop, until: end, butNotBeyond: spinEnd)
        if !isOver, !spins || loop.attention.fallAsleep() { sleep(loop, modeLoop, until: end, now: now) }
        loop.threadState.hasWaitedShortly = LoopClock.systemNow.nanoseconds - began.nanoseconds <= longest
    }

    /// - Returns: Whether the wait is over; false if only the spinning time has passed.
    private static func spin(
        _ loop: RunLoop, _ modeLoop: ModeLoop, until end: LoopInstant, butNotBeyond spinEnd: LoopInstant
    ) -> Bool {
        while true {
            for _ in 0..<looksBetweenReadings {
                guard loop.attention.isSpinning else { return true }
                rondo_pause()
            }
            modeLoop.pollWatched()
            if !modeLoop.ready.isEmpty || modeLoop.mainQueue.isReady { return true }
            let now = LoopClock.systemNow
            if now >= end { return true }
            if now >= spinEnd { return false }
        }
    }

    private static func sleep(
        _ loop: RunLoop, _ modeLoop: ModeLoop, until end: LoopInstant, now: LoopInstant
    ) {
        // Another poll, as for a new watcher of the main queue, may have read the eventfd since the loop
        // announced its wait. Then a request for attention has come, and the loop must not sleep.
        guard loop.attention.isWaiting else { return }
        let threadState = loop.threadState
        if let bridge = threadState.bridge, bridge.sleep(modeLoop, until: end) { return }
        guard let source = threadState.timeSource else {
            let hasTimer = threadState.kernel.armTimer(noLaterThan: end, now: now)
            return modeLoop.poll(mayBlock: true, until: end, hasTimer: hasTimer)
        }
        // A clock of the loop's own does not advance by itself: the loop looks at its descriptors, then asks
        // the clock to advance, and sleeps only if the clock does not.
        modeLoop.poll(mayBlock: false)
        let isIdle =
            modeLoop.ready.isEmpty && !modeLoop.mainQueue.isReady && !loop.attention.wasAsked
        guard isIdle, !source.loopIsIdle(until: end) else { return }
        threadState.kernel.armTimer(noLaterThan: .never, now: now)
        modeLoop.poll(mayBlock: true)
    }
}

public import RondoCore
internal import RondoMutex

/// A clock for one run loop that advances only on request, so that timers and time limits are tested without
/// sleeping and with the same result each time.
///
/// ```swift
/// let clock = ManualClock()
/// clock.attach(to: .current)
/// let timer = Timer(timeInterval: 3600, repeats: false) { _ in print("an hour") }
/// RunLoop.current.add(timer, forMode: .default)
/// // Prints, and returns at once.
/// RunLoop.current.run(until: clock.date.addingTimeInterval(7200))
/// ```
///
/// A loop that would sleep moves the clock to its next deadline instead: that of a timer, or the end of the
/// run. If `advancesAutomatically` is false, the loop sleeps until another thread calls `advance(by:)`. Ready
/// descriptors, signals and blocks are served first, and no time passes. A loop without a deadline sleeps as
/// it would without the clock.
///
/// Such a loop takes dates by this clock: make them from `date`, not from `Date()`. Timers made with an
/// interval on the loop's thread count from this clock.
public final class ManualClock: Sendable {
    private struct State {
        var elapsed: Int64 = 0
        var isAttached = false
        /// Weak: the loop retains the clock.
        weak var loop: RunLoop?
    }

    /// Whether a loop with nothing to do moves the clock to its next deadline.
    public let advancesAutomatically: Bool
    private let start = LoopClock.now
    private let startDate: Date
    private let state = Mutex(State())

    /// Makes a clock that stands at the current time.
    public init(advancesAutomatically: Bool = true) {
        self.advancesAutomatically = advancesAutomatically
        startDate = LoopClock.date(of: start)
    }

    /// Makes this the clock of `loop` for good. Call it on the loop's own thread; a clock serves only one
    /// loop. For the loop of a `RunLoopThread`, call `attach(to:)` with the thread. Misuse traps.
    public func attach(to loop: RunLoop) {
        if !loop.isCurrent {
            fatalError(
                "ManualClock.attach(to:) was called on another thread than the loop's own. Call it there, or, for a "
                    + "RunLoopThread, attach the clock to the thread before you start it.")
        }
        reserve()
        take(loop)
    }

    /// Makes this the clock of the loop of `thread` for good. Call it before `thread` is started; a clock
    /// serves only one loop. Misuse traps.
    ///
    /// ```swift
    /// let thread = RunLoopThread(name: "network")
    /// let clock = ManualClock()
    /// clock.attach(to: thread)
    /// let loop = thread.start()
    /// ```
    public func attach(to thread: RunLoopThread) {
        reserve()
        if !thread.beforeFirstRun({ [self] loop in take(loop) }) {
            fatalError(
                "ManualClock.attach(to:) was called after the start() of the RunLoopThread “\(thread.name)”. Attach "
                    + "the clock first, so that its loop has one clock from the beginning.")
        }
    }

    /// Marks the clock as in use.
    private func reserve() {
        let isFree = state.withLock { state in
            defer { state.isAttached = true }
            return !state.isAttached
        }
        if !isFree { fatalError("A ManualClock is the clock of one run loop; make another one.") }
    }

    private func take(_ loop: RunLoop) {
        state.withLock { $0.loop = loop }
        loop.setTimeSource(self)
    }

    /// Seconds that have passed by this clock. Any thread.
    public var elapsed: TimeInterval { Double(state.withLock { $0.elapsed }) / 1e9 }

    /// The date by this clock. Any thread.
    public var date: Date { startDate.addingTimeInterval(elapsed) }

    /// Advances the clock and wakes the loop. Any thread.
    ///
    /// - Parameter seconds: Not negative; a negative number traps.
    public func advance(by seconds: TimeInterval) {
        // A precondition would lose its message in release builds.
        guard seconds >= 0 else {
            fatalError(
                "ManualClock.advance(by:) was given \(seconds) s. Time does not go back: pass 0 or more.")
        }
        let loop = state.withLock { state in
            state.elapsed = LoopInstant(nanoseconds: state.elapsed).advanced(bySeconds: seconds).nanoseconds
            return state.loop
        }
        loop?.wakeUp()
    }
}

extension ManualClock: LoopTimeSource {
    package var now: LoopInstant {
        start.advanced(byNanoseconds: state.withLock { $0.elapsed })
    }

    package func loopIsIdle(until instant: LoopInstant) -> Bool {
        guard advancesAutomatically, instant != .never else { return false }
        state.withLock { state in
            let distance = instant.nanoseconds - start.nanoseconds
            state.elapsed = max(state.elapsed, distance)
        }
        return true
    }
}

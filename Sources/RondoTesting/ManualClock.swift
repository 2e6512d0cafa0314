public import RondoCore
internal import RondoMutex

/// A clock for one run loop that advances only when it is told to, so that timers and time limits are tested
/// without sleeping, with the same result each time.
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
/// A loop that would sleep moves the clock to its next deadline instead (a timer's, or the end of the run),
/// unless `advancesAutomatically` is false: then it sleeps until `advance(by:)` is called, from another
/// thread. Ready descriptors, signals and blocks are served first, without time passing. A loop without a
/// deadline sleeps, as it would without the clock.
///
/// Dates handed to such a loop are meant by this clock: make them from `date`, not from `Date()`. Timers made
/// with an interval count from it if they are made on the loop's thread.
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

    public init(advancesAutomatically: Bool = true) {
        self.advancesAutomatically = advancesAutomatically
        startDate = LoopClock.date(of: start)
    }

    /// Makes this the clock of `loop`, for ever. One loop only, on the loop's own thread. For the loop of a
    /// `RunLoopThread`, call `attach(to:)` with the thread.
    public func attach(to loop: RunLoop) {
        if !loop.isCurrent {
            fatalError(
                "ManualClock.attach(to:) was called on another thread than the loop's own. Call it there, or, for a "
                    + "RunLoopThread, attach the clock to the thread before you start it.")
        }
        reserve()
        take(loop)
    }

    /// Makes this the clock of the loop of `thread`, for ever. One loop only; before `thread` is started.
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

    /// Marks the clock as a loop's.
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

    /// Lets time pass, and wakes the loop. Any thread.
    ///
    /// - Parameter seconds: Not negative: time does not go back.
    public func advance(by seconds: TimeInterval) {
        // Not a precondition, which loses its message in release.
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

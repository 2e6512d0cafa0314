/// The dates of a timer that repeats, or whose date the program has set or asked for: a value, which knows
/// neither loop nor lock.
///
/// A timer waits for an instant of the monotonic clock, its *deadline*, which the loop keeps. The grid is
/// continued from there (`TimerSchedule`); the wall clock is only for `fireDate`.
struct TimerDates {
    /// An instant and its date, so that a date reads back exactly as it was set.
    private struct Anchor {
        let instant: LoopInstant
        let date: Date
    }

    /// Seconds between two firings; 0 for a timer that fires once.
    let interval: TimeInterval
    /// See `Timer.tolerance`.
    private(set) var tolerance: TimeInterval = 0
    private var anchor: Anchor?
    /// The last firing: a beat of the grid, or the instant at which `fire()` was called. Nil if it is the
    /// deadline, or the timer has not fired.
    private var lastBeat: LoopInstant?
    /// The date that the block itself has set while the timer fires.
    private var moved: LoopInstant?

    init(interval: TimeInterval) { self.interval = interval }

    var repeats: Bool { interval > 0 }

    /// A repeating timer keeps at most half its interval; a negative value counts as 0 (rule TM-27).
    mutating func setTolerance(_ seconds: TimeInterval) {
        let seconds = max(0, seconds.isNaN ? 0 : seconds)
        tolerance = repeats ? min(seconds, interval / 2) : seconds
    }

    // MARK: Firing

    mutating func noteBeat(_ instant: LoopInstant) { lastBeat = instant }

    /// Sets the date after the firing at `deadline`, while the block is called.
    mutating func move(to instant: LoopInstant, firingAt deadline: LoopInstant) {
        (moved, lastBeat) = (instant, deadline)
    }

    /// The instant after the firing at `deadline`, which has ended: the date that the block has set, or the
    /// next beat of the grid.
    mutating func next(after deadline: LoopInstant, now: LoopInstant) -> LoopInstant {
        lastBeat = deadline
        if let moved = moved.take() { return moved }
        var schedule = TimerSchedule(first: deadline, interval: max(1, LoopClock.nanoseconds(interval)))
        schedule.advance(past: now)
        return schedule.deadline
    }

    // MARK: The wall clock

    /// Makes `instant` have the date `date`, and other instants theirs by their distance from it.
    mutating func setAnchor(_ instant: LoopInstant, date: Date) {
        anchor = Anchor(instant: instant, date: date)
    }

    /// The date of the next firing; of a timer that is no longer valid, the date of the last one (rule
    /// TM-22).
    mutating func fireDate(deadline: LoopInstant, isValid: Bool) -> Date {
        let next = moved ?? deadline
        return date(of: isValid ? next : lastBeat ?? next, deadline: deadline)
    }

    /// The date of an instant, computed from the anchor. A timer that was made with an interval gets its
    /// anchor here, at its deadline.
    mutating func date(of instant: LoopInstant, deadline: LoopInstant) -> Date {
        let anchor = self.anchor ?? Anchor(instant: deadline, date: LoopClock.systemDate(of: deadline))
        self.anchor = anchor
        if instant == anchor.instant { return anchor.date }
        let distance = instant.seconds(since: anchor.instant)
        // A distance that is not finite cannot be added.
        return distance.isFinite ? anchor.date.addingTimeInterval(distance) : LoopClock.date(of: instant)
    }
}

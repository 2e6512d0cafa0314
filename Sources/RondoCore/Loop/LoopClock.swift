internal import RondoMutex

internal import struct Synchronization.Atomic

/// An instant on the monotonic clock, in nanoseconds from an arbitrary start.
///
/// Everything that waits in a run loop waits for such an instant: a `Date` is translated once, when it is
/// passed in, so that setting the wall clock moves nothing (rule TM-29).
package struct LoopInstant: Comparable, Hashable, Sendable {
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Later than any other instant: about 292 years after the clock's start.
    package static let never = LoopInstant(nanoseconds: .max)

    package static func < (a: LoopInstant, b: LoopInstant) -> Bool { a.nanoseconds < b.nanoseconds }

    /// This instant moved by `seconds`, clamped to what can be represented (rule TM-28).
    package func advanced(bySeconds seconds: Double) -> LoopInstant {
        advanced(byNanoseconds: LoopClock.nanoseconds(seconds))
    }

    package func advanced(byNanoseconds distance: Int64) -> LoopInstant {
        let (sum, overflows) = nanoseconds.addingReportingOverflow(distance)
        guard overflows else { return LoopInstant(nanoseconds: sum) }
        return LoopInstant(nanoseconds: distance > 0 ? .max : .min)
    }

    /// Seconds from `other` to this instant.
    package func seconds(since other: LoopInstant) -> Double {
        let (difference, overflows) = nanoseconds.subtractingReportingOverflow(other.nanoseconds)
        return overflows
            ? (nanoseconds > other.nanoseconds ? .infinity : -.infinity) : Double(difference) / 1e9
    }
}

/// The monotonic clock and its relation to dates.
package enum LoopClock {
    /// The current instant, by the clock of the calling thread's loop if the loop has one of its own.
    package static var now: LoopInstant {
        timeSource?.now ?? systemNow
    }

    /// The current instant by the machine's clock, whatever clock the calling thread's loop has: for state
    /// that all threads share, in which instants of several clocks would otherwise be compared, and for
    /// instants that another loop waits for.
    package static var systemNow: LoopInstant {
        LoopInstant(nanoseconds: nanoseconds(on: CLOCK_MONOTONIC))
    }

    private static func nanoseconds(on clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// The nanoseconds of an interval in seconds, rounded and clamped; not-a-number counts as 0.
    package static func nanoseconds(_ seconds: Double) -> Int64 {
        let scaled = seconds * 1e9
        if scaled.isNaN { return 0 }
        if scaled >= 9.2e18 { return .max }
        if scaled <= -9.2e18 { return .min }
        return Int64(scaled.rounded())
    }

    /// The monotonic instant at which the wall clock will show `date`, provided that it is not set until
    /// then.
    ///
    /// Equal dates have equal instants as long as the wall clock is not set (rule TM-23).
    package static func instant(of date: Date) -> LoopInstant {
        let wall = nanoseconds(date.timeIntervalSinceReferenceDate)
        // The date is out of the clock's range.
        if wall == .max || wall == .min { return LoopInstant(nanoseconds: wall) }
        return LoopInstant(nanoseconds: wall).advanced(byNanoseconds: -wallOffset)
    }

    /// The date of an instant: the reverse of `instant(of:)`.
    package static func date(of instant: LoopInstant) -> Date {
        if instant == .never { return .distantFuture }
        let wall = instant.advanced(byNanoseconds: wallOffset)
        return Date(timeIntervalSinceReferenceDate: Double(wall.nanoseconds) / 1e9)
    }

    /// The date `seconds` from now, by the clock of the calling thread's loop. The machine's clock is read
    /// directly, since the stored offset may be wrong by some microseconds.
    package static func date(inSeconds seconds: Double) -> Date {
        isSystemTime ? systemDate(inSeconds: seconds) : date(of: now.advanced(bySeconds: seconds))
    }

    /// The date `seconds` from now by the machine's clock; see `systemNow`.
    package static func systemDate(inSeconds seconds: Double) -> Date {
        let wall = nanoseconds(on: CLOCK_REALTIME)
        return Date(timeIntervalSince1970: Double(wall / 1_000_000_000) + Double(wall % 1_000_000_000) * 1e-9)
            .addingTimeInterval(seconds)
    }

    /// Whether the calling thread's loop uses the machine's clock.
    package static var isSystemTime: Bool { timeSource == nil }

    // MARK: Clocks of threads

    /// Whether any thread of the process has ever had a clock of its own; costs one branch if none has.
    private static let hasTimeSources = Atomic(false)
    private static let timeSources = Mutex<[pthread_t: any LoopTimeSource]>([:])

    /// The clock that replaces the machine's on the calling thread; nil if none does. Also called with locks
    /// held.
    private static var timeSource: (any LoopTimeSource)? {
        guard hasTimeSources.load(ordering: .relaxed) else { return nil }
        return timeSources.withLock { $0[pthread_self()] }
    }

    /// Replaces the machine's clock by `source` on the calling thread. Nil restores the machine's clock,
    /// which has to be done before the thread ends.
    static func setTimeSource(_ source: (any LoopTimeSource)?) {
        if source != nil { hasTimeSources.store(true, ordering: .relaxed) }
        let replaced = timeSources.withLock { sources in
            defer { sources[pthread_self()] = source }
            return sources[pthread_self()]
        }
        withExtendedLifetime(replaced) {}
    }

    /// The date of an instant of the machine's clock, by the present difference of the two clocks: the
    /// reverse of `systemDate(inSeconds:)`, and as precise.
    package static func systemDate(of instant: LoopInstant) -> Date {
        var (before, wall) = (Int64(0), Int64(0))
        var gap = Int64.max
        // Repeated, because the thread may lose the processor between the two readings.
        for _ in 0..<10 where gap > 500 {
            let first = nanoseconds(on: CLOCK_MONOTONIC)
            let middle = nanoseconds(on: CLOCK_REALTIME)
            let last = nanoseconds(on: CLOCK_MONOTONIC)
            if last - first < gap { (before, wall, gap) = (first + (last - first) / 2, middle, last - first) }
        }
        let then = LoopInstant(nanoseconds: wall).advanced(byNanoseconds: instant.nanoseconds - before)
            .nanoseconds
        return Date(timeIntervalSince1970: Double(then / 1_000_000_000) + Double(then % 1_000_000_000) * 1e-9)
    }

    private static let knownWallOffset = Atomic(Int64.min)

    /// The difference between the wall clock, counted from the reference date, and the monotonic clock. It
    /// changes only when the wall clock is set, so the first measurement is kept until another one differs
    /// from it by more than the measuring error.
    private static var wallOffset: Int64 {
        let referenceDate = Int64(Date.timeIntervalBetween1970AndReferenceDate) * 1_000_000_000
        var measured: Int64 = 0
        var leastGap = Int64.max
        // Repeated, because the thread may lose the processor between the two readings.
        for _ in 0..<3 where leastGap > 1_000 {
            let before = nanoseconds(on: CLOCK_MONOTONIC)
            let wall = nanoseconds(on: CLOCK_REALTIME) - referenceDate
            // Measured from the later reading, so that no timer fires early.
            let after = nanoseconds(on: CLOCK_MONOTONIC)
            if after - before < leastGap {
                leastGap = after - before
                measured = wall - after
            }
        }
        let known = knownWallOffset.load(ordering: .relaxed)
        if known != .min, abs(measured - known) <= 20_000 { return known }
        knownWallOffset.store(measured, ordering: .relaxed)
        return measured
    }
}

/// A clock that replaces the monotonic one on one run loop, so that a test can control time.
package protocol LoopTimeSource: AnyObject, Sendable {
    var now: LoopInstant { get }

    /// Called when the loop has nothing to do before `instant`, which is `.never` if it waits for no timer.
    ///
    /// - Returns: Whether time has passed; if not, the loop sleeps until it is woken.
    func loopIsIdle(until instant: LoopInstant) -> Bool
}

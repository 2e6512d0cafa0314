/// A moment on the monotonic clock, in nanoseconds from an arbitrary start.
///
/// Everything that waits in a run loop waits for such a moment: a `Date` is translated once, when it is
/// handed in, so that setting the wall clock moves nothing (rule TM-29).
package struct LoopInstant: Comparable, Hashable, Sendable {
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Later than anything: about 292 years after the machine started.
    package static let never = LoopInstant(nanoseconds: .max)

    package static func < (a: LoopInstant, b: LoopInstant) -> Bool { a.nanoseconds < b.nanoseconds }

    /// This moment moved by `seconds`, clamped to what can be represented (rule TM-28).
    package func advanced(bySeconds seconds: Double) -> LoopInstant {
        advanced(byNanoseconds: LoopClock.nanoseconds(seconds))
    }

    package func advanced(byNanoseconds distance: Int64) -> LoopInstant {
        let (sum, overflows) = nanoseconds.addingReportingOverflow(distance)
        guard overflows else { return LoopInstant(nanoseconds: sum) }
        return LoopInstant(nanoseconds: distance > 0 ? .max : .min)
    }

    /// Seconds from `other` to this moment.
    package func seconds(since other: LoopInstant) -> Double {
        let (difference, overflows) = nanoseconds.subtractingReportingOverflow(other.nanoseconds)
        return overflows
            ? (nanoseconds > other.nanoseconds ? .infinity : -.infinity) : Double(difference) / 1e9
    }
}

/// The monotonic clock and its relation to dates.
package enum LoopClock {
    package static var now: LoopInstant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return LoopInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Whole nanoseconds of an interval in seconds, clamped; not-a-number counts as nothing.
    package static func nanoseconds(_ seconds: Double) -> Int64 {
        let scaled = (seconds * 1e9).rounded()
        if scaled.isNaN { return 0 }
        if scaled >= 9.2e18 { return .max }
        if scaled <= -9.2e18 { return .min }
        return Int64(scaled)
    }

    /// The monotonic moment at which the wall clock, if nobody sets it, will show `date`.
    package static func instant(of date: Date) -> LoopInstant {
        now.advanced(bySeconds: date.timeIntervalSinceNow)
    }
}

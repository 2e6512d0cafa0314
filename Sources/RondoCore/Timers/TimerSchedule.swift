/// The grid of a repeating timer: first + k × interval.
///
/// The grid follows scheduled dates, never the instant of a callback, so lateness does not add up (rule
/// TM-4). It is kept in whole nanoseconds.
struct TimerSchedule: Equatable, Sendable {
    /// The date that fires next, or is firing now.
    private(set) var deadline: LoopInstant
    /// Nanoseconds between two beats; 0 for a timer that fires once.
    let interval: Int64

    init(first: LoopInstant, interval: Int64) {
        self.deadline = first
        self.interval = interval
    }

    var repeats: Bool { interval > 0 }

    /// Moves the deadline, after a firing that ended at `now`, to the first beat of the grid that is later
    /// than `now`. That one firing has served all missed beats (rules TM-5 and TM-6).
    mutating func advance(past now: LoopInstant) {
        precondition(repeats, "bug in Rondo: only a repeating timer has a next beat")
        guard deadline <= now else {
            // The callback was made early by hand (`fire()` does not change the grid) or took no time at all.
            deadline = deadline.advanced(byNanoseconds: interval)
            return
        }
        let (behind, overflows) = now.nanoseconds.subtractingReportingOverflow(deadline.nanoseconds)
        guard !overflows else {
            deadline = now.advanced(byNanoseconds: interval)
            return
        }
        let missed = behind / interval
        deadline = deadline.advanced(byNanoseconds: missed * interval).advanced(byNanoseconds: interval)
    }
}

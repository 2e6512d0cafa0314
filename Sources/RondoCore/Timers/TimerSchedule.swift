/// When a timer is due: a grid of dates, first + k × interval.
///
/// The grid is laid on scheduled dates, never on the instant a callback came, so lateness does not add up
/// (rule TM-4). It is kept in whole nanoseconds.
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

    /// After a firing that ended at `now`: the first beat of the grid that is later than `now`; however many
    /// beats were missed, they have been served by the one firing (rules TM-5 and TM-6).
    mutating func advance(past now: LoopInstant) {
        precondition(repeats, "bug in Rondo: only a repeating timer has a next beat")
        guard deadline <= now else {
            // The callback was early by hand (`fire()` leaves the grid alone) or took no time at all.
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

import RondoTestSupport
import Testing

@testable import RondoCore

@Suite(.leavesNothing) struct TimerDatesTests {
    private func instant(_ seconds: Int64) -> LoopInstant {
        LoopInstant(nanoseconds: seconds * 1_000_000_000)
    }

    @Test func `TM-20 a date that the block sets is the next one, once, and the grid goes on from there`() {
        var dates = TimerDates(interval: 10)
        #expect(dates.next(after: instant(100), now: instant(101)) == instant(110))
        dates.move(to: instant(117), firingAt: instant(110))
        #expect(dates.next(after: instant(110), now: instant(111)) == instant(117))
        #expect(dates.next(after: instant(117), now: instant(118)) == instant(127))
    }

    @Test func `TM-22 an invalid timer tells its last firing, and a date reads back as it was set`() {
        var dates = TimerDates(interval: 0.1)
        // A date that no sum of another date and a distance would give exactly.
        let date = Date(timeIntervalSinceReferenceDate: 700_000_000.123_456_7)
        dates.setAnchor(instant(100), date: date)
        #expect(dates.fireDate(deadline: instant(100), isValid: true) == date)
        #expect(dates.fireDate(deadline: instant(103), isValid: true) == date.addingTimeInterval(3))
        // It has not fired: there is no other date.
        #expect(dates.fireDate(deadline: instant(103), isValid: false) == date.addingTimeInterval(3))
        dates.noteBeat(instant(101))
        #expect(dates.fireDate(deadline: instant(103), isValid: false) == date.addingTimeInterval(1))
        dates.move(to: instant(105), firingAt: instant(103))
        #expect(dates.fireDate(deadline: instant(103), isValid: true) == date.addingTimeInterval(5))
        #expect(dates.fireDate(deadline: instant(103), isValid: false) == date.addingTimeInterval(3))
    }

    @Test(
        arguments: [(0, 7, 7), (10, 7, 5), (10, 4, 4), (0, -1, 0), (10, .nan, 0), (10, .infinity, 5)]
            as [(Double, Double, Double)])
    func `TM-27 the tolerance is at most half the interval and never negative`(
        interval: Double, asked: Double, kept: Double
    ) {
        var dates = TimerDates(interval: interval)
        dates.setTolerance(asked)
        #expect(dates.tolerance == kept)
    }
}

import RondoTestSupport
import Testing

@testable import RondoCore

@Suite(.leavesNothing) struct TimerScheduleTests {
    private func schedule(first: Int64, interval: Int64) -> TimerSchedule {
        TimerSchedule(first: LoopInstant(nanoseconds: first), interval: interval)
    }

    @Test(arguments: [
        (100, 110), (101, 110), (109, 110), (110, 120), (119, 120), (120, 130), (100_005, 100_010),
    ])
    func `TM-4 the next date lies on the grid after the end of the callback`(now: Int64, next: Int64) {
        var schedule = schedule(first: 100, interval: 10)
        schedule.advance(past: LoopInstant(nanoseconds: now))
        #expect(schedule.deadline.nanoseconds == next)
    }

    @Test func `TM-4 lateness does not add up`() {
        var schedule = schedule(first: 0, interval: 1_000_000)
        var beats: [Int64] = []
        for beat in Int64(0)..<1000 {
            beats.append(schedule.deadline.nanoseconds)
            // Each callback ends late by nearly half an interval.
            schedule.advance(past: LoopInstant(nanoseconds: beat * 1_000_000 + 499_999))
        }
        #expect(beats == (0..<1000).map { $0 * 1_000_000 })
    }

    @Test func `TM-5 missed dates are one firing`() {
        var schedule = schedule(first: -1_000_000, interval: 7)
        schedule.advance(past: LoopInstant(nanoseconds: 3))
        #expect(schedule.deadline.nanoseconds > 3)
        #expect(schedule.deadline.nanoseconds <= 10)
        #expect((schedule.deadline.nanoseconds + 1_000_000) % 7 == 0)
    }

    @Test func `TM-6 a callback of two and a half intervals is followed by the third date`() {
        var schedule = schedule(first: 1000, interval: 100)
        schedule.advance(past: LoopInstant(nanoseconds: 1250))
        #expect(schedule.deadline.nanoseconds == 1300)
    }

    @Test func `TM-28 very far dates are clamped, not wrapped`() {
        var schedule = schedule(first: .min, interval: .max)
        schedule.advance(past: LoopInstant(nanoseconds: 1000))
        #expect(schedule.deadline.nanoseconds > 1000)
        #expect(LoopInstant(nanoseconds: .max - 1).advanced(bySeconds: 1e30) == .never)
        #expect(LoopInstant(nanoseconds: 0).advanced(bySeconds: .nan).nanoseconds == 0)
        #expect(LoopClock.instant(of: .distantFuture) > LoopClock.now)
        #expect(LoopClock.instant(of: .distantPast) < LoopClock.now)
    }
}

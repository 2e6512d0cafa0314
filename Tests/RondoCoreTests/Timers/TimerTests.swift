import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct TimerTests {
    @Test func `TM-22 a repeating timer from the distant past has a fire date`() throws {
        let dates = try onLoopThread { loop -> [Date?] in
            let made = Timer(fire: .distantPast, interval: 1000, repeats: true) { _ in }
            let moved = Timer(fire: .distantFuture, interval: 1000, repeats: true) { _ in }
            for timer in [made, moved] { loop.add(timer, forMode: .work) }
            moved.fireDate = .distantPast
            loop.poll(.work)
            defer { for timer in [made, moved] { timer.invalidate() } }
            return [made.fireDate, moved.fireDate, loop.nextTimerDate(forMode: .work)]
        }
        for date in dates {
            let seconds = try #require(date).timeIntervalSinceNow
            #expect(seconds > 0 && seconds <= 1000)
        }
    }

    @Test func `TM-22 an invalid timer that was fired by hand says when that was`() {
        let timer = Timer(timeInterval: 1000, repeats: false) { _ in }
        let before = Date()
        timer.fire()
        #expect(!timer.isValid)
        #expect(timer.fireDate.timeIntervalSince(before) < 999)
    }

    @Test func `TM-1 a timer never fires early`() throws {
        let early = try onLoopThread { loop in
            let log = EventLog()
            for step in 1...50 {
                let interval = Double(step) * 0.0007
                let due = LoopClock.now.advanced(bySeconds: interval)
                let timer = Timer(timeInterval: interval, repeats: false) { timer in
                    // A date has a resolution of a tenth of a microsecond.
                    let distance = LoopClock.now.seconds(since: due)
                    if distance < -0.000_001 { log.note("early by \(-distance) s") }
                }
                loop.add(timer, forMode: .work)
            }
            log.note("\(loop.runOn(.work))")
            return log.entries
        }
        #expect(early == ["finished"])
    }

    @Test func `TM-1 a timer fires on its loop's thread, in its mode, at the first chance if it is late`()
        throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let thread = pthread_self()
            let date = Date(timeIntervalSinceNow: 0.01)
            let timer = Timer(fire: date, interval: 0, repeats: false) { _ in
                log.note("late, here \(pthread_equal(thread, pthread_self()) != 0)")
            }
            _ = try? onLoopThread { _ in loop.add(timer, forMode: .other) }
            let witness = Timer(fire: date + 0.005, interval: 0, repeats: false) { _ in log.note("witness") }
            loop.add(witness, forMode: .work)
            loop.runOn(.work)
            loop.poll(.other)
            return log.entries
        }
        #expect(entries == ["witness", "late, here true"])
    }

    @Test func `TM-1 a timer on a loop that is not run never fires`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            loop.addDueTimer("fired", to: log)
            Timer.scheduledTimer(withTimeInterval: 0, repeats: true) { _ in log.note("fired") }
            spin(until: LoopClock.now.advanced(bySeconds: 0.005))
        }
        #expect(log.entries == [])
    }

    @Test func `TM-2 a timer that comes due during a callback waits for the next pass`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe(.beforeTimers, of: loop, in: .work)
            let second = Timer(fire: Date(timeIntervalSinceNow: 0.01), interval: 0, repeats: false) { _ in
                log.note("second")
            }
            loop.addDueTimer("first begins", to: log, mode: .work) {
                // The second is moved, so that it comes due in here however slow the machine is.
                second.fireDate = Date(timeIntervalSinceNow: 0.002)
                spin(until: second.fireDate + 0.001)
                log.note("first ends")
            }
            second.fireDate = .distantFuture
            loop.add(second, forMode: .work)
            loop.runOn(.work)
            return log.entries
        }
        #expect(entries == ["beforeTimers", "first begins", "first ends", "beforeTimers", "second"])
    }

    @Test func `TM-3 a timer that fires once is valid in its callback and invalid after it`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let timer = Timer(fire: Date(), interval: 5, repeats: false) { log.note("valid \($0.isValid)") }
            loop.add(timer, forMode: .work)
            loop.add(Port(), forMode: .work)
            log.note("valid \(timer.isValid)")
            for _ in 1...3 { loop.poll(.work) }
            log.note("valid \(timer.isValid)")
            loop.add(timer, forMode: .work)
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["valid true", "valid true", "valid false"])
    }

    @Test func `TM-4 dates stay on the grid of the first one however late the callbacks are`() throws {
        let interval = 0.004
        let first = Date(timeIntervalSinceNow: 0.002)
        let dates = try onLoopThread { loop in
            let log = DateLog()
            let timer = Timer(fire: first, interval: interval, repeats: true) { timer in
                log.note(timer.fireDate)
                // A third of an interval, so that what counts from the callback leaves the grid.
                spin(until: LoopClock.now.advanced(bySeconds: interval / 3))
                if log.dates.count == 8 { timer.invalidate() }
            }
            loop.add(timer, forMode: .work)
            loop.runOn(.work)
            return log.dates
        }
        #expect(dates.count == 8)
        #expect(dates.first == first)
        for (date, next) in zip(dates, dates.dropFirst()) {
            let beats = next.timeIntervalSince(date) / interval
            #expect(beats > 0.5)
            #expect(abs(beats - beats.rounded()) < 0.01)
        }
    }

    @Test func `TM-5 missed dates make one firing, and the next date is on the grid in the future`() throws {
        let first = Date(timeIntervalSinceNow: -250)
        let (entries, next) = try onLoopThread { loop in
            let log = EventLog()
            let timer = Timer(fire: first, interval: 100, repeats: true) { _ in log.note("timer") }
            loop.add(timer, forMode: .work)
            for _ in 1...5 { loop.poll(.work) }
            return (log.entries, timer.fireDate)
        }
        #expect(entries == ["timer"])
        #expect(abs(next.timeIntervalSince(first) - 300) < 0.001)
    }

    @Test func `TM-6 the next date is the first one after the end of the callback`() throws {
        let interval = 0.02
        let (first, end, next, looked) = try onLoopThread { loop in
            let first = Date()
            let end = DateLog()
            let timer = Timer(fire: first, interval: interval, repeats: true) { _ in
                spin(until: first + 2.5 * interval)
                end.note(Date())
            }
            loop.add(timer, forMode: .work)
            loop.poll(.work)
            return (first, end.dates.first, timer.fireDate, Date())
        }
        let ended = try #require(end)
        #expect(next > ended)
        #expect(next - interval <= looked)
        let beats = next.timeIntervalSince(first) / interval
        #expect(abs(beats - beats.rounded()) < 0.01)
        #expect(beats.rounded() >= 3)
    }

    @Test func `TM-7 a repeating interval of nothing becomes a tenth of a millisecond`() throws {
        for interval in [0, -1, -Double.infinity] {
            #expect(Timer(timeInterval: interval, repeats: true) { _ in }.timeInterval == 0.0001)
        }
        let count = try onLoopThread { loop in
            let log = EventLog()
            let timer = Timer(timeInterval: 0, repeats: true) { timer in
                log.note("timer")
                if log.entries.count == 5 { timer.invalidate() }
            }
            loop.add(timer, forMode: .work)
            loop.runOn(.work)
            return log.entries.count
        }
        #expect(count == 5)
    }

    @Test func `TM-8 the interval of a timer that fires once reads 0`() {
        #expect(Timer(timeInterval: 7, repeats: false) { _ in }.timeInterval == 0)
        #expect(Timer(fire: Date(), interval: 7, repeats: false) { _ in }.timeInterval == 0)
        #expect(Timer(fire: Date(), interval: 7, repeats: true) { _ in }.timeInterval == 7)
    }

    @Test func `TM-9 a new timer counts from now, or has its date, and is in no loop`() throws {
        let before = Date()
        let relative = Timer(timeInterval: 100, repeats: true) { _ in }
        let after = Date()
        #expect(relative.fireDate >= before + 100)
        #expect(relative.fireDate <= after + 100)
        let date = Date(timeIntervalSinceNow: 1234.5678)
        #expect(Timer(fire: date, interval: 1, repeats: true) { _ in }.fireDate == date)
        let result = try onLoopThread { loop in
            let timer = Timer(timeInterval: 0, repeats: false) { _ in }
            return withExtendedLifetime(timer) { loop.runOn() }
        }
        #expect(result == .finished)
    }

    @Test func `TM-10 a scheduled timer is in the default mode of the current loop only`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in log.note("timer")
            }
            log.note("\(loop.contains(timer, forMode: .default)) \(loop.contains(timer, forMode: .common))")
            spin(until: timer.fireDate)
            log.note("\(loop.poll(.tracking))")
            loop.runOn()
            return log.entries
        }
        #expect(entries == ["true false", "finished", "timer"])
    }

    @Test func `TM-11 a date in the past fires in the first pass`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            loop.add(
                Timer(fire: .distantPast, interval: 0, repeats: false) { _ in log.note("timer") },
                forMode: .work)
            log.observe(.beforeTimers, of: loop, in: .work)
            loop.runOn(.work)
            return log.entries
        }
        #expect(entries == ["beforeTimers", "timer"])
    }

    @Test func `TM-12 a timer in several modes has one schedule`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let timer = Timer(fire: Date(timeIntervalSinceNow: -1), interval: 1000, repeats: true) { _ in
                log.note("timer")
            }
            for mode in [RunLoop.Mode.work, .other, .inner] { loop.add(timer, forMode: mode) }
            for mode in [RunLoop.Mode.work, .other, .inner] { loop.poll(mode) }
            timer.fireDate = Date(timeIntervalSinceNow: -1)
            for mode in [RunLoop.Mode.inner, .other, .work] { loop.poll(mode) }
            return log.entries
        }
        #expect(entries == ["timer", "timer"])
    }

    @Test func `TM-13 a timer belongs to one loop at a time`() throws {
        let log = EventLog()
        let timer = Timer(fire: .distantPast, interval: 1000, repeats: true) { _ in log.note("timer") }
        let mayEnd = DispatchSemaphore(value: 0)
        let isAdded = DispatchSemaphore(value: 0)
        let first = LoopThread { loop in
            loop.add(timer, forMode: .work)
            loop.add(timer, forMode: .default)
            isAdded.signal()
            mayEnd.wait()
            loop.remove(timer, forMode: .work)
            loop.remove(timer, forMode: .default)
        }
        isAdded.wait()
        let refused = try onLoopThread { loop in
            loop.add(timer, forMode: .work)
            loop.add(timer, forMode: .common)
            return "\(loop.runOn(.work)) \(loop.contains(timer, forMode: .work)) "
                + "\(loop.contains(timer, forMode: .default)) \(loop.contains(timer, forMode: .common))"
        }
        mayEnd.signal()
        try first.value()
        #expect(refused == "finished false false false")
        #expect(log.entries == [])
        try onLoopThread { loop in
            loop.add(timer, forMode: .work)
            loop.poll(.work)
        }
        #expect(log.entries == ["timer"])
    }

    @Test func `TM-13 a timer may move to another loop in its own callback`() throws {
        let log = EventLog()
        let second = LoopThread { loop in
            loop.add(Port(), forMode: .work)
            return loop.runOn(.work)
        }
        let secondLoop = try second.loop
        try onLoopThread { loop in
            let timer = Timer(fire: .distantPast, interval: 0.001, repeats: true) { timer in
                guard loop.isCurrent else {
                    log.note("second")
                    timer.invalidate()
                    secondLoop.stop()
                    return
                }
                log.note("first")
                loop.remove(timer, forMode: .work)
                secondLoop.add(timer, forMode: .work)
            }
            loop.add(timer, forMode: .work)
            loop.poll(.work)
        }
        #expect(try second.value() == .stopped)
        #expect(log.entries == ["first", "second"])
    }

    @Test func `TM-14 a removed timer keeps its date`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let timer = Timer(timeInterval: 0.001, repeats: false) { _ in log.note("timer") }
            let date = timer.fireDate
            loop.add(timer, forMode: .work)
            loop.remove(timer, forMode: .work)
            spin(until: date)
            log.note("\(loop.poll(.work)) \(timer.isValid) \(timer.fireDate == date)")
            loop.add(timer, forMode: .work)
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["finished true true", "timer"])
    }

    @Test func `TM-15 invalidate ends a timer and releases it`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            weak var weakTimer: Timer?
            weak var captured: EventLog?
            do {
                let object = EventLog()
                let timer = Timer(fire: .distantPast, interval: 1, repeats: true) { _ in
                    log.note("fired")
                    object.note("fired")
                }
                (weakTimer, captured) = (timer, object)
                for mode in [RunLoop.Mode.work, .other, .common] { loop.add(timer, forMode: mode) }
                timer.invalidate()
                timer.invalidate()
                loop.add(timer, forMode: .work)
                timer.fireDate = .distantPast
                timer.fire()
                log.note("\(timer.isValid) \(loop.contains(timer, forMode: .common))")
            }
            for mode in [RunLoop.Mode.work, .other, .default] { log.note("\(loop.poll(mode))") }
            log.note("\(weakTimer == nil) \(captured == nil)")
            return log.entries
        }
        #expect(entries == ["false false", "finished", "finished", "finished", "true true"])
    }

    /// An object that notes when it is released.
    private final class Kept: Sendable {
        let name: String
        private let log: EventLog

        init(_ name: String, _ log: EventLog) { (self.name, self.log) = (name, log) }

        deinit { log.note("\(name) goes") }
    }

    @Test func `TM-15 the user info of a timer is there in its block, until it is invalidated`() throws {
        let log = EventLog()
        let note: @Sendable (Timer) -> Void = { log.note(($0.userInfo as? Kept)?.name ?? "nothing") }
        try onLoopThread { loop in
            let scheduled = Timer.scheduledTimer(
                withTimeInterval: 0, userInfo: Kept("scheduled", log), repeats: false, block: note)
            loop.runOn()
            log.note("\(scheduled.userInfo == nil)")
            for timer in [
                Timer(timeInterval: 0, userInfo: Kept("once", log), repeats: false, block: note),
                Timer(timeInterval: 0, userInfo: Kept("repeating", log), repeats: true) { timer in
                    note(timer)
                    timer.invalidate()
                    note(timer)
                },
                Timer(
                    fire: .distantPast, interval: 0, userInfo: Kept("dated", log), repeats: false,
                    block: note),
                Timer(timeInterval: 0, userInfo: nil, repeats: false, block: note),
                Timer(timeInterval: 0, repeats: false, block: note),
            ] {
                loop.add(timer, forMode: .default)
                loop.runOn()
                log.note("\(timer.userInfo == nil)")
            }
        }
        #expect(
            log.entries == [
                "scheduled", "scheduled goes", "true", "once", "once goes", "true", "repeating",
                "repeating goes", "nothing", "true", "dated", "dated goes", "true", "nothing", "true",
                "nothing", "true",
            ])
    }

    @Test func `TM-15 the user info of a timer that is never invalidated is released with it`() {
        let log = EventLog()
        var timer: Timer? = Timer(timeInterval: 5, userInfo: Kept("it", log), repeats: false) { _ in }
        #expect((timer?.userInfo as? Kept)?.name == "it")
        #expect(log.entries == [])
        timer = nil
        #expect(log.entries == ["it goes"])
    }

    @Test func `a timer's user info may be a dictionary of different things`() {
        let timer = Timer(
            timeInterval: 5, userInfo: ["count": 1, "name": "n"] as [String: any Sendable], repeats: false
        ) { _ in }
        let info = timer.userInfo as? [String: Any]
        #expect(info?["count"] as? Int == 1 && info?["name"] as? String == "n")
    }

    @Test func `TM-16 invalidate in a callback ends the repetition, or a firing of the same batch`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            loop.add(Port(), forMode: .work)
            let own = Timer(fire: .distantPast, interval: 0.0001, repeats: true) { timer in
                log.note("own")
                timer.invalidate()
            }
            loop.add(own, forMode: .work)
            let second = loop.addDueTimer("second", to: log, mode: .work, ago: 1)
            loop.addDueTimer("first", to: log, mode: .work, ago: 2) { second.invalidate() }
            for _ in 1...3 { loop.poll(.work) }
            return log.entries
        }
        #expect(entries == ["own", "first"])
    }

    @Test func `TM-17 invalidate from another thread lets a callback that has begun finish`() throws {
        let log = EventLog()
        let begun = DispatchSemaphore(value: 0)
        let mayEnd = DispatchSemaphore(value: 0)
        let timer = Timer(fire: .distantPast, interval: 0.0001, repeats: true) { _ in
            log.note("begins")
            begun.signal()
            mayEnd.wait()
            log.note("ends")
        }
        let thread = LoopThread { loop in
            loop.add(timer, forMode: .work)
            return loop.runOn(.work)
        }
        begun.wait()
        timer.invalidate()
        mayEnd.signal()
        #expect(try thread.value() == .finished)
        #expect(log.entries == ["begins", "ends"])
    }

    @Test func `TM-18 fire calls at once and leaves a repeating schedule alone`() throws {
        let log = EventLog()
        let date = Date(timeIntervalSinceNow: 1000)
        let repeating = Timer(fire: date, interval: 10, repeats: true) { _ in log.note("repeating") }
        repeating.fire()
        repeating.fire()
        #expect(repeating.isValid)
        #expect(repeating.fireDate == date)
        let once = Timer(fire: date, interval: 0, repeats: false) { log.note("once \($0.isValid)") }
        once.fire()
        once.fire()
        #expect(!once.isValid)
        #expect(log.entries == ["repeating", "repeating", "once true"])
    }

    @Test func `TM-19 setting the fire date moves the next firing and lays a new grid`() throws {
        let (entries, next, moved) = try onLoopThread { loop in
            let log = EventLog()
            let timer = Timer(fire: Date(timeIntervalSinceNow: 1000), interval: 100, repeats: true) { _ in
                log.note("timer")
            }
            loop.add(timer, forMode: .work)
            loop.poll(.work)
            log.note("moved")
            let moved = Date(timeIntervalSinceNow: -30)
            timer.fireDate = moved
            loop.poll(.work)
            loop.poll(.work)
            return (log.entries, timer.fireDate, moved)
        }
        #expect(entries == ["moved", "timer"])
        #expect(abs(next.timeIntervalSince(moved) - 100) < 0.001)
    }

    @Test func `TM-20 a date set in the callback counts if it is later than the one that fired`() throws {
        let (later, earlier, start) = try onLoopThread { loop in
            let start = Date(timeIntervalSinceNow: -10)
            let later = Timer(fire: start, interval: 100, repeats: true) { $0.fireDate = start + 1000 }
            let earlier = Timer(fire: start, interval: 100, repeats: true) { $0.fireDate = start - 5 }
            loop.add(later, forMode: .work)
            loop.add(earlier, forMode: .work)
            loop.poll(.work)
            return (later.fireDate, earlier.fireDate, start)
        }
        #expect(abs(later.timeIntervalSince(start) - 1000) < 0.001)
        #expect(abs(earlier.timeIntervalSince(start) - 100) < 0.001)
    }

    @Test func `TM-20 a date set in the callback reads back there`() throws {
        let dates = try onLoopThread { loop in
            let log = DateLog()
            let date = Date(timeIntervalSinceNow: 1000)
            let timer = Timer(fire: .distantPast, interval: 100, repeats: true) { timer in
                timer.fireDate = date
                log.note(timer.fireDate)
            }
            loop.add(timer, forMode: .work)
            loop.poll(.work)
            return log.dates + [date]
        }
        #expect(dates.first == dates.last)
        #expect(dates.count == 2)
    }

    @Test func `TM-20 a date set in the callback counts although the callback removed the timer`() throws {
        let (found, date) = try onLoopThread { loop in
            let date = Date(timeIntervalSinceNow: 1000)
            let timer = Timer(fire: .distantPast, interval: 100, repeats: true) { timer in
                loop.remove(timer, forMode: .work)
                timer.fireDate = date
            }
            loop.add(timer, forMode: .work)
            loop.poll(.work)
            return (timer.fireDate, date)
        }
        #expect(found == date)
    }

    @Test func `TM-21 a fire date set from another thread wakes the loop`() throws {
        let log = EventLog()
        let timer = Timer(fire: .distantFuture, interval: 0, repeats: false) { _ in log.note("timer") }
        let thread = LoopThread { loop in
            loop.add(timer, forMode: .work)
            return loop.runOn(.work)
        }
        try thread.loop.waitUntilAsleep()
        let set = LoopClock.now
        timer.fireDate = Date()
        #expect(try thread.value() == .finished)
        #expect(log.entries == ["timer"])
        // libev's own limit of a minute would end the wait too.
        #expect(LoopClock.now.seconds(since: set) < testPatience)
        let last = timer.fireDate
        timer.fireDate = .distantFuture
        #expect(timer.fireDate == last)
    }

    @Test func `TM-22 the fire date is the next one, and of an invalid timer the last that fired`() throws {
        let (waiting, past, last, first) = try onLoopThread { loop in
            let first = Date(timeIntervalSinceNow: -250)
            let timer = Timer(fire: first, interval: 100, repeats: true) { _ in }
            let past = timer.fireDate
            loop.add(timer, forMode: .work)
            loop.poll(.work)
            let waiting = timer.fireDate
            timer.invalidate()
            return (waiting, past, timer.fireDate, first)
        }
        #expect(past == first)
        #expect(abs(waiting.timeIntervalSince(first) - 300) < 0.001)
        #expect(last == first)
    }

    @Test func `TM-23 due timers fire by date, equal dates in order of addition`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let date = Date(timeIntervalSinceNow: -5)
            var timers: [String: Timer] = [:]
            for (name, offset) in [("b3", 0.0), ("c", 1), ("b2", 0), ("a", -1), ("b1", 0), ("b4", 0)] {
                timers[name] = Timer(fire: date + offset, interval: 0, repeats: false) { _ in log.note(name) }
            }
            for name in ["c", "b1", "b2", "b3", "b4", "a"] {
                timers[name].map { loop.add($0, forMode: .work) }
            }
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["a", "b1", "b2", "b3", "b4", "c"])
    }

    /// The timer that replaces the invalidated one in memory has an older order.
    @Test func `TM-1 a timer added while due ones fire does not fire early`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let late = Timer(fire: Date(timeIntervalSinceNow: 3600), interval: 0, repeats: false) { _ in
                log.note("an hour early")
            }
            loop.add(late, forMode: .other)
            let date = Date(timeIntervalSinceNow: -5)
            let going = Timer(fire: date, interval: 0, repeats: false) { _ in log.note("gone") }
            let first = Timer(fire: date, interval: 0, repeats: false) { _ in
                log.note("a")
                going.invalidate()
                loop.add(late, forMode: .work)
                loop.poll(.work)
                log.note("a ends")
            }
            let second = Timer(fire: date, interval: 0, repeats: false) { _ in log.note("b") }
            for timer in [first, second, going] { loop.add(timer, forMode: .work) }
            loop.poll(.work)
            late.invalidate()
            return log.entries
        }
        #expect(entries == ["a", "b", "a ends"])
    }

    @Test func `TM-24 due timers fire in one pass, those that become due meanwhile in a later one`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe(.beforeTimers, of: loop, in: .work)
            loop.addDueTimer("1", to: log, mode: .work, ago: 3) {
                loop.addDueTimer("4", to: log, mode: .work, ago: 9)
            }
            loop.addDueTimer("2", to: log, mode: .work, ago: 2)
            loop.addDueTimer("3", to: log, mode: .work, ago: 1)
            loop.runOn(.work)
            return log.entries
        }
        #expect(entries == ["beforeTimers", "1", "2", "3", "beforeTimers", "4"])
    }

    @Test func `TM-25 a timer is not re-entered, and keeps the mode non-empty meanwhile`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let timer = Timer(fire: .distantPast, interval: 0.0001, repeats: true) { timer in
                log.note("begins")
                spin(until: LoopClock.now.advanced(bySeconds: 0.001))
                log.note("\(loop.poll(.work))")
                loop.addDueTimer("other", to: log, mode: .work)
                timer.fireDate = Date()
                loop.poll(.work)
                timer.invalidate()
                log.note("ends")
            }
            loop.add(timer, forMode: .work)
            log.note("\(loop.runOn(.work))")
            return log.entries
        }
        #expect(entries == ["begins", "timedOut", "other", "ends", "finished"])
    }

    @Test func `TM-26 TM-27 tolerance is 0, never negative, and at most half a repeating interval`() {
        let repeating = Timer(timeInterval: 10, repeats: true) { _ in }
        #expect(repeating.tolerance == 0)
        repeating.tolerance = 7
        #expect(repeating.tolerance == 5)
        repeating.tolerance = 3
        #expect(repeating.tolerance == 3)
        repeating.tolerance = -1
        #expect(repeating.tolerance == 0)
        let once = Timer(timeInterval: 10, repeats: false) { _ in }
        once.tolerance = 70
        #expect(once.tolerance == 70)
        once.tolerance = -70
        #expect(once.tolerance == 0)
    }

    @Test func `TM-26 tolerance moves no date of the grid`() throws {
        let first = Date(timeIntervalSinceNow: -250)
        let next = try onLoopThread { loop in
            let timer = Timer(fire: first, interval: 100, repeats: true) { _ in }
            timer.tolerance = 50
            loop.add(timer, forMode: .work)
            loop.poll(.work)
            return timer.fireDate
        }
        #expect(abs(next.timeIntervalSince(first) - 300) < 0.001)
    }

    @Test func `TM-28 a timer parked at the distant future keeps the mode and can be brought nearer`() throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let timer = Timer(fire: .distantFuture, interval: 0, repeats: false) { _ in log.note("timer") }
            loop.add(timer, forMode: .work)
            log.note("\(loop.poll(.work))")
            loop.perform(inModes: [.work]) { timer.fireDate = Date() }
            log.note("\(loop.runOn(.work))")
            return log.entries
        }
        #expect(entries == ["timedOut", "timer", "finished"])
    }

    @Test func `TM-30 a timer added or brought nearer from another thread fires although the loop sleeps`()
        throws
    {
        let log = EventLog()
        let parked = Timer(fire: .distantFuture, interval: 0, repeats: false) { _ in log.note("nearer") }
        let thread = LoopThread { loop in
            loop.add(parked, forMode: .work)
            loop.add(Port(), forMode: .work)
            return loop.runOn(.work)
        }
        let loop = try thread.loop
        try loop.waitUntilAsleep()
        loop.add(Timer(timeInterval: 0.001, repeats: false) { _ in log.note("added") }, forMode: .work)
        try waitFor("the first timer") { log.entries == ["added"] ? () : nil }
        try loop.waitUntilAsleep()
        parked.fireDate = Date(timeIntervalSinceNow: 0.001)
        try waitFor("the second timer") { log.entries == ["added", "nearer"] ? () : nil }
        loop.stop()
        #expect(try thread.value() == .stopped)
    }
}

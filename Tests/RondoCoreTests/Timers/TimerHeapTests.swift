import RondoProbeSupport
import RondoTestSupport
import Testing

@testable import RondoCore

@Suite(.leavesNothing) struct TimerHeapTests {
    private func timer() -> Timer { Timer(timeInterval: 1, repeats: false) { _ in } }

    /// Takes the due timers, as a pass does.
    private func takeDue(from heap: TimerHeap<Timer>, at now: Int64) -> [ObjectIdentifier] {
        heap.collectDue(at: LoopInstant(nanoseconds: now))
        var taken: [ObjectIdentifier] = []
        while let node = heap.takeFirstDue(), let timer = node.timer?.takeUnretainedValue() {
            taken.append(ObjectIdentifier(timer))
        }
        return taken
    }

    /// A few timers, which are taken from the top one by one; so many that the whole heap is searched; and so
    /// many that the due ones are moved in pieces.
    @Test(arguments: [20, 300, 70_000])
    func `TM-23 due timers come by date, equal dates in order of addition`(count: Int) {
        let heap = TimerHeap<Timer>(mode: 3)
        var generator = Random(seed: 7)
        var expected: [(date: Int64, timer: Timer)] = []
        var added: UInt32 = 0
        func add() {
            let timer = timer()
            let date = Int64(generator.next() % 20)
            added += 1
            timer.registration.add(3, order: added)
            heap.insert(timer, LoopInstant(nanoseconds: date))
            expected.append((date, timer))
        }
        for _ in 0..<count { add() }
        // Some leave from the middle, some get another date, and others come.
        for step in 0..<2 * min(count, 300) {
            let chosen = Int(generator.next() % UInt64(expected.count))
            let entry = expected.remove(at: chosen)
            #expect(heap.deadline(of: entry.timer).nanoseconds == entry.date)
            #expect(heap.remove(entry.timer).nanoseconds == entry.date)
            if step % 2 == 0 {
                let date = Int64(generator.next() % 20)
                heap.insert(entry.timer, LoopInstant(nanoseconds: date))
                expected.append((date, entry.timer))
            } else if step % 3 == 0 {
                add()
            }
            if expected.isEmpty { break }
        }
        expected.sort {
            ($0.date, $0.timer.registration.order ?? 0) < ($1.date, $1.timer.registration.order ?? 0)
        }
        #expect(heap.dates.count == expected.count)
        #expect(heap.nearest?.nanoseconds == expected.first?.date)
        #expect((heap.nearestTimer == nil) == expected.isEmpty)
        let due = expected.filter { $0.date <= 12 }.map { ObjectIdentifier($0.timer) }
        #expect(heap.dueTimers(at: LoopInstant(nanoseconds: 12)).map { ObjectIdentifier($0.timer) } == due)
        #expect(takeDue(from: heap, at: 12) == due)
        let rest = expected.filter { $0.date > 12 }
        #expect(heap.nearest?.nanoseconds == rest.first?.date)
        #expect(takeDue(from: heap, at: 19) == rest.map { ObjectIdentifier($0.timer) })
        #expect(heap.nearest == nil && heap.dates.isEmpty)
    }

    @Test func `TM-15 a date is removed from the heap or from those that are due`() {
        let heap = TimerHeap<Timer>(mode: 0)
        var generator = Random(seed: 11)
        var timers: [(date: Int64, timer: Timer)] = []
        for order in 0..<500 {
            let entry = (date: Int64(generator.next() % 1000), timer: timer())
            entry.timer.registration.add(0, order: UInt32(order))
            heap.insert(entry.timer, LoopInstant(nanoseconds: entry.date))
            timers.append(entry)
        }
        func takeBack(_ isTaken: (Int) -> Bool) {
            for index in timers.indices where isTaken(index) {
                #expect(heap.remove(timers[index].timer).nanoseconds == timers[index].date)
            }
            timers = timers.enumerated().filter { !isTaken($0.offset) }.map(\.element)
        }
        // Before anything was due, in the midst of what is due, and after a heap was made anew.
        takeBack { $0 % 7 == 0 }
        heap.collectDue(at: LoopInstant(nanoseconds: 500))
        takeBack { $0 % 3 == 0 }
        heap.collectDue(at: LoopInstant(nanoseconds: 510))
        takeBack { $0 % 5 == 0 }
        timers.sort {
            ($0.date, $0.timer.registration.order ?? 0) < ($1.date, $1.timer.registration.order ?? 0)
        }
        #expect(heap.dates.count == timers.count)
        #expect(
            takeDue(from: heap, at: 510)
                == timers.filter { $0.date <= 510 }.map { ObjectIdentifier($0.timer) })
        #expect(
            takeDue(from: heap, at: 999) == timers.filter { $0.date > 510 }.map { ObjectIdentifier($0.timer) }
        )
    }

    @Test func `TM-23 the order of addition is kept when its numbers begin anew`() throws {
        let (calls, order) = try onLoopThread { loop in
            let log = EventLog()
            loop.state.withLock { $0.lastTimerOrder = .max - 2 }
            let date = Date(timeIntervalSinceNow: -1)
            for number in 1...5 {
                let timer = Timer(fire: date, interval: 0, repeats: false) { _ in log.note("\(number)") }
                // The second is in several modes.
                for mode in number == 2 ? [RunLoop.Mode.work, .default] : [.work] {
                    loop.add(timer, forMode: mode)
                }
            }
            let order = loop.state.withLock { $0.lastTimerOrder }
            loop.poll(.work)
            return (log.entries, order)
        }
        #expect(calls == ["1", "2", "3", "4", "5"])
        #expect(order == 5)
    }

    @Test func `TM-12 a timer knows its index in each of its modes, and its order in all`() {
        let timer = timer()
        for mode in [7, 0, 5] { timer.registration.add(mode, order: 42) }
        for (index, mode) in [7, 0, 5].enumerated() {
            timer.registration.setIndex(Int32(index) - 1, in: mode)
        }
        #expect(
            timer.registration.modes == [7, 0, 5] && timer.registration.order == 42
                && timer.registration.isWaiting)
        #expect([7, 0, 5].map { timer.registration.index(in: $0) } == [-1, 0, 1])
        timer.registration.remove(7, deadline: LoopInstant(nanoseconds: 1))
        timer.registration.remove(9, deadline: nil)
        #expect(timer.registration.modes == [0, 5] && !timer.registration.contains(7))
        timer.registration.remove(0, deadline: LoopInstant(nanoseconds: 1))
        #expect(
            timer.registration.first == 5 && timer.registration.order == 42
                && timer.registration.index(in: 5) == 1)
        #expect(timer.registration.contains(5) && !timer.registration.contains(0))
        timer.registration.remove(5, deadline: LoopInstant(nanoseconds: 1))
        #expect(
            timer.registration.isEmpty && timer.registration.first == nil
                && timer.registration.deadline.nanoseconds == 1)
    }

    /// The last mode has a number that does not fit into a timer's own registration.
    @Test(arguments: [[3], [3, 5], [16_383], [16_384, 2], [1 << 20]])
    func `TM-25 a timer that fires keeps its own date, whatever its modes`(_ modes: [Int]) {
        let date = LoopInstant(nanoseconds: .min + 7)
        let timer = timer()
        for mode in modes { timer.registration.add(mode, order: 42) }
        #expect(
            timer.registration.modes == modes && timer.registration.order == 42
                && timer.registration.isWaiting)
        timer.registration.beginFiring(deadline: date)
        #expect(
            timer.registration.modes == modes && timer.registration.isFiring && !timer.registration.isWaiting)
        #expect(timer.registration.deadline == date)
        // The block of the timer may remove it from all modes, and add it to others.
        for mode in modes { timer.registration.remove(mode, deadline: nil) }
        #expect(
            timer.registration.isEmpty && timer.registration.isFiring && timer.registration.deadline == date)
        for mode in modes.reversed() { timer.registration.add(mode, order: 43) }
        timer.registration.add(9, order: 43)
        #expect(timer.registration.modes == modes.reversed() + [9] && timer.registration.deadline == date)
        timer.registration.remove(9, deadline: nil)
        #expect(timer.registration.deadline == date)
        timer.registration.endFiring(deadline: LoopInstant(nanoseconds: 8), order: 43)
        #expect(
            timer.registration.order == 43 && timer.registration.isWaiting
                && timer.registration.modes == modes.reversed())
        for mode in modes { timer.registration.remove(mode, deadline: LoopInstant(nanoseconds: 8)) }
        #expect(timer.registration.isEmpty && timer.registration.deadline.nanoseconds == 8)
    }

    /// The date of a timer that waits is in the heap only.
    @Test func `TM-19 the date of a timer is read and set in no mode, in one and in several`() throws {
        let dates = try onLoopThread { loop in
            let start = Date(timeIntervalSinceReferenceDate: 1e9)
            let others = (0..<50).map { number in
                Timer(fire: start + Double(number), interval: 0, repeats: false) { _ in }
            }
            let timer = Timer(fire: start, interval: 60, repeats: true) { _ in }
            var dates = [timer.fireDate]
            for other in others { loop.add(other, forMode: .work) }
            loop.add(timer, forMode: .work)
            dates.append(timer.fireDate)
            timer.fireDate = start + 25
            dates.append(timer.fireDate)
            loop.add(timer, forMode: .other)
            dates.append(timer.fireDate)
            timer.fireDate = start + 26
            loop.remove(timer, forMode: .work)
            dates.append(timer.fireDate)
            dates.append(loop.nextTimerDate(forMode: .other) ?? .distantPast)
            loop.remove(timer, forMode: .other)
            dates.append(timer.fireDate)
            loop.add(timer, forMode: .work)
            timer.invalidate()
            dates.append(timer.fireDate)
            for other in others { other.invalidate() }
            return dates.map { $0.timeIntervalSince(start) }
        }
        #expect(dates == [0, 0, 25, 25, 26, 26, 26, 26])
    }

    /// This thread does what another thread would do in between.
    @Test func `TM-21 a date that is set between the pass that found the timer due and the call counts`()
        throws
    {
        let (calls, isValid, date, next) = try onLoopThread { loop in
            let log = EventLog()
            let timer = Timer(fire: .distantPast, interval: 0, repeats: false) { _ in log.note("timer") }
            loop.add(timer, forMode: .work)
            let index = loop.state.withLock { $0.index(of: .work) }
            loop.state.withLock { $0.modes[index].timers.collectDue(at: LoopClock.now) }
            let taken = loop.state.withLock { $0.takeDueTimer(in: index) }
            #expect(taken === timer)
            let date = Date(timeIntervalSinceNow: 3600)
            timer.fireDate = date
            taken?.fire(in: index, of: loop)
            let found = (log.entries, timer.isValid, timer.fireDate == date)
            let next = loop.nextTimerDate(forMode: .work)
            // It is called, once it is due.
            timer.fireDate = .distantPast
            loop.poll(.work)
            return (found.0 + log.entries, found.1, found.2, next == date)
        }
        #expect(calls == ["timer"])
        #expect(isValid && date && next)
    }

    @Test func `TM-23 due timers that have not fired yet are ordered with those that a nested run finds due`()
    {
        let heap = TimerHeap<Timer>(mode: 0)
        let timers = (0..<4).map { _ in timer() }
        for (order, timer) in timers.enumerated() {
            timer.registration.add(0, order: UInt32(order))
        }
        func date(_ index: Int, _ nanoseconds: Int64) {
            heap.insert(timers[index], LoopInstant(nanoseconds: nanoseconds))
        }
        func takeFirst() -> Timer? { heap.takeFirstDue()?.timer?.takeUnretainedValue() }
        date(0, 1)
        date(1, 5)
        date(2, 5)
        heap.collectDue(at: LoopInstant(nanoseconds: 5))
        #expect(takeFirst() === timers[0])
        // In the block of the first: one comes before those that wait, and one of them gets a later date.
        date(3, 2)
        #expect(heap.nearestTimer?.timer === timers[3])
        heap.remove(timers[1])
        date(1, 6)
        heap.collectDue(at: LoopInstant(nanoseconds: 6))
        for index in [3, 2, 1] { #expect(takeFirst() === timers[index]) }
        #expect(takeFirst() == nil && heap.nearest == nil)
    }
}

import RondoTestSupport
import Testing

@testable import RondoCore

@Suite(.leavesNothing) struct TimerHeapTests {
    private func timer() -> Timer { Timer(timeInterval: 1, repeats: false) { _ in } }

    /// Takes out what is due, as a pass does.
    private func takeDue(from heap: inout TimerHeap, at now: Int64, _ places: [ObjectIdentifier: Int32])
        -> [ObjectIdentifier]
    {
        heap.collectDue(at: LoopInstant(nanoseconds: now))
        var taken: [ObjectIdentifier] = []
        while let timer = heap.firstDue(), let place = places[ObjectIdentifier(timer)] {
            heap.clearDate(of: place)
            taken.append(ObjectIdentifier(timer))
        }
        return taken
    }

    /// A few, which are taken from the top one by one, and so many that the whole heap is gone through.
    @Test(arguments: [20, 300])
    func `TM-23 due timers come by date, equal dates in order of addition`(count: Int) {
        var heap = TimerHeap()
        var generator = SplitMix(state: 7)
        var places: [ObjectIdentifier: Int32] = [:]
        var expected: [(date: Int64, order: UInt64, timer: Timer)] = []
        for order in 0..<UInt64(count) {
            let timer = timer()
            let date = Int64(generator.next() % 20)
            let place = heap.admit(timer, order: order)
            heap.setDate(LoopInstant(nanoseconds: date), of: place)
            places[ObjectIdentifier(timer)] = place
            expected.append((date, order, timer))
        }
        // Some leave from the middle, some get another date, and most of what comes instead has their places.
        for step in 0..<2 * count {
            let chosen = Int(generator.next() % UInt64(expected.count))
            let entry = expected.remove(at: chosen)
            let place = places[ObjectIdentifier(entry.timer)] ?? -1
            let date = Int64(generator.next() % 20)
            if step % 2 == 0 {
                heap.setDate(LoopInstant(nanoseconds: date), of: place)
                expected.append((date, entry.order, entry.timer))
            } else {
                heap.dismiss(place)
                places[ObjectIdentifier(entry.timer)] = nil
                guard step % 3 == 0 else { continue }
                let timer = timer()
                let order = UInt64(count + step)
                let place = heap.admit(timer, order: order)
                heap.setDate(LoopInstant(nanoseconds: date), of: place)
                places[ObjectIdentifier(timer)] = place
                expected.append((date, order, timer))
            }
            if expected.isEmpty { break }
        }
        #expect(heap.count == expected.count)
        expected.sort { ($0.date, $0.order) < ($1.date, $1.order) }
        #expect(heap.nearest?.nanoseconds == expected.first?.date)
        #expect(
            heap.nearestTimer.map { places[ObjectIdentifier($0)] != nil } == (expected.isEmpty ? nil : true))
        let due = expected.filter { $0.date <= 12 }.map { ObjectIdentifier($0.timer) }
        #expect(heap.dueTimers(at: LoopInstant(nanoseconds: 12)).map { ObjectIdentifier($0) } == due)
        #expect(takeDue(from: &heap, at: 12, places) == due)
        let rest = expected.filter { $0.date > 12 }
        #expect(heap.nearest?.nanoseconds == rest.first?.date)
        #expect(takeDue(from: &heap, at: 19, places) == rest.map { ObjectIdentifier($0.timer) })
        // The heap holds its timers until they are dismissed.
        #expect(heap.nearest == nil && heap.count == expected.count)
        for place in places.values { heap.dismiss(place) }
        #expect(heap.count == 0)
    }

    /// What another thread does in between is done here by this one.
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

    @Test func `TM-23 what is due and has not fired yet comes with what is found due in a nested run`() {
        var heap = TimerHeap()
        let timers = (0..<4).map { _ in timer() }
        let places = timers.indices.map { heap.admit(timers[$0], order: UInt64($0)) }
        func date(_ index: Int, _ nanoseconds: Int64) {
            heap.setDate(LoopInstant(nanoseconds: nanoseconds), of: places[index])
        }
        date(0, 1)
        date(1, 5)
        date(2, 5)
        heap.collectDue(at: LoopInstant(nanoseconds: 5))
        #expect(heap.firstDue() === timers[0])
        heap.clearDate(of: places[0])
        // In the block of the first: one comes before those that wait, and one of them gets a later date.
        date(3, 2)
        #expect(heap.nearestTimer === timers[3])
        date(1, 6)
        #expect(heap.firstDue() === timers[2])
        heap.collectDue(at: LoopInstant(nanoseconds: 6))
        for index in [3, 2, 1] {
            #expect(heap.firstDue() === timers[index])
            heap.clearDate(of: places[index])
        }
        #expect(heap.firstDue() == nil && heap.nearest == nil)
        for place in places { heap.dismiss(place) }
    }
}

/// Random numbers that are the same in each run.
struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

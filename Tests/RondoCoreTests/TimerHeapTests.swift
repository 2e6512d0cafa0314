import RondoTestSupport
import Testing

@testable import RondoCore

@Suite(.leavesNothing) struct TimerHeapTests {
    private func timer() -> Timer { Timer(timeInterval: 1, repeats: false) { _ in } }

    @Test func `TM-23 due timers come by date, equal dates in order of addition`() {
        var heap = TimerHeap(mode: 0)
        var generator = SplitMix(state: 7)
        var expected: [(date: Int64, order: UInt64, timer: Timer)] = []
        for order in UInt64(0)..<200 {
            let timer = timer()
            timer.slots.add(mode: 0)
            let date = Int64(generator.next() % 20)
            heap.insert(timer, deadline: LoopInstant(nanoseconds: date), order: order)
            expected.append((date, order, timer))
        }
        // Some leave from the middle.
        for _ in 0..<60 {
            let (_, _, timer) = expected.remove(at: Int(generator.next() % UInt64(expected.count)))
            if let place = timer.slots.place(in: 0) { heap.remove(at: place) }
        }
        expected.sort { ($0.date, $0.order) < ($1.date, $1.order) }
        #expect(heap.nearest?.nanoseconds == expected.first?.date)
        let due = heap.dueTimers(at: LoopInstant(nanoseconds: 12)).map { ObjectIdentifier($0) }
        #expect(due == expected.filter { $0.date <= 12 }.map { ObjectIdentifier($0.timer) })
        // The heap holds its timers until they are taken out.
        for (_, _, timer) in expected {
            if let place = timer.slots.place(in: 0) { heap.remove(at: place) }
        }
        #expect(heap.isEmpty)
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

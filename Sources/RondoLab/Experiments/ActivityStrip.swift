package import Rondo

/// The bytes that arrived in each tenth of a second: a picture of the whole run with one row for each load.
package struct ActivityStrip: Sendable, Equatable {
    package struct Slot: Sendable, Equatable {
        package var mode: RunLoop.Mode
        package var bytes: [Int]
    }

    package static let slotLength = 0.1
    package private(set) var slots: [Slot] = []
    private let loads: Int

    package init(loads: Int) {
        self.loads = loads
    }

    /// Extends the strip to `elapsed` seconds in `mode`. A column keeps the mode in which it began.
    package mutating func advance(to elapsed: Double, mode: RunLoop.Mode) {
        while Double(slots.count) * Self.slotLength <= elapsed {
            slots.append(Slot(mode: mode, bytes: Array(repeating: 0, count: loads)))
        }
    }

    package mutating func record(_ count: Int, load: Int, at elapsed: Double, mode: RunLoop.Mode) {
        advance(to: elapsed, mode: mode)
        slots[slots.count - 1].bytes[load] += count
    }

    /// Bytes a second over the last two complete slots, so that the rate of a load that stands still soon is
    /// zero.
    package func rate(ofLoad load: Int) -> Double {
        let last = slots.dropLast().suffix(2)
        guard !last.isEmpty else { return 0 }
        return Double(last.reduce(0) { $0 + $1.bytes[load] }) / (Double(last.count) * Self.slotLength)
    }
}

/// The modes that hold a timer, where its date stands in the heap of each, and when it was added to its loop.
///
/// Nearly every timer is in one mode, and a program may have a million of them: that one takes twelve bytes, and what
/// a timer in several needs stands elsewhere. All of it is guarded by the lock of the loop.
struct TimerSlots {
    struct Slot {
        let mode: Int
        var index: Int32
    }

    /// Of a timer in several modes.
    private final class Several {
        var order: UInt32
        var slots: [Slot]

        init(order: UInt32, slots: [Slot]) {
            self.order = order
            self.slots = slots
        }
    }

    /// `isFiring`, `isSeveral` and the mode, if it is one.
    private var bits = noMode
    // Of a timer in one mode its order and its index; of one in several, the two halves of a reference to them: in
    // one word, they would need to stand on an address that eight divides.
    private var low: UInt32 = 0
    private var high: UInt32 = 0

    private static let firingBit: UInt32 = 1 << 31
    private static let severalBit: UInt32 = 1 << 30
    private static let noMode = severalBit - 1

    private var oneMode: UInt32 {
        get { bits & Self.noMode }
        set { bits = bits & ~Self.noMode | newValue }
    }

    private var isSeveral: Bool { bits & Self.severalBit != 0 }

    /// Retained by this struct, from the second mode on until one is left, which every timer comes to before it goes:
    /// its loop holds it as long.
    private var several: Unmanaged<Several>? {
        guard isSeveral else { return nil }
        return UnsafeRawPointer(bitPattern: UInt(high) << 32 | UInt(low)).map(Unmanaged.fromOpaque)
    }

    /// The loop is calling the timer: it has no date, and yet belongs to its modes (rule TM-25).
    @inline(__always)
    var isFiring: Bool {
        get { bits & Self.firingBit != 0 }
        set { bits = newValue ? bits | Self.firingBit : bits & ~Self.firingBit }
    }

    @inline(__always)
    var isEmpty: Bool { bits & ~Self.firingBit == Self.noMode }

    /// One of them; nil if there is none.
    var first: Int? {
        if let several { return several.takeUnretainedValue().slots.first?.mode }
        return isEmpty ? nil : Int(oneMode)
    }

    var modes: [Int] {
        if let several { return several.takeUnretainedValue().slots.map(\.mode) }
        return isEmpty ? [] : [Int(oneMode)]
    }

    @inline(__always)
    func forEach(_ body: (Int) -> Void) {
        guard isSeveral else {
            if !isEmpty { body(Int(oneMode)) }
            return
        }
        for mode in modes { body(mode) }
    }

    @inline(__always)
    func contains(_ mode: Int) -> Bool {
        guard let several else { return oneMode == mode }
        return several.takeUnretainedValue().slots.contains { $0.mode == mode }
    }

    /// Timers with equal dates fire in this order (rule TM-23).
    var order: UInt32 {
        get { isSeveral ? orderOfSeveral : low }
        set {
            if let several { several.takeUnretainedValue().order = newValue } else { low = newValue }
        }
    }

    private var orderOfSeveral: UInt32 { several?.takeUnretainedValue().order ?? 0 }

    /// - Parameter mode: One that holds it.
    @inline(__always)
    func index(in mode: Int) -> Int32 {
        guard let several else { return Int32(bitPattern: high) }
        return several.takeUnretainedValue().slots.first { $0.mode == mode }?.index ?? 0
    }

    @inline(__always)
    mutating func setIndex(_ index: Int32, in mode: Int) {
        guard isSeveral else {
            high = UInt32(bitPattern: index)
            return
        }
        setIndexAmongSeveral(index, in: mode)
    }

    private func setIndexAmongSeveral(_ index: Int32, in mode: Int) {
        guard let several = several?.takeUnretainedValue() else { return }
        if let place = several.slots.firstIndex(where: { $0.mode == mode }) {
            several.slots[place].index = index
        }
    }

    mutating func add(_ mode: Int) {
        if isEmpty {
            oneMode = UInt32(mode)
        } else if let several {
            several.takeUnretainedValue().slots.append(Slot(mode: mode, index: 0))
        } else {
            let first = Slot(mode: Int(oneMode), index: Int32(bitPattern: high))
            let made = Several(order: low, slots: [first, Slot(mode: mode, index: 0)])
            let word = UInt(bitPattern: Unmanaged.passRetained(made).toOpaque())
            bits |= Self.severalBit
            (low, high) = (UInt32(truncatingIfNeeded: word), UInt32(truncatingIfNeeded: word >> 32))
        }
    }

    mutating func remove(_ mode: Int) {
        guard let several else {
            if oneMode == mode { oneMode = Self.noMode }
            return
        }
        let modes = several.takeUnretainedValue()
        modes.slots.removeAll { $0.mode == mode }
        guard modes.slots.count == 1, let last = modes.slots.first else { return }
        bits &= ~Self.severalBit
        oneMode = UInt32(last.mode)
        (low, high) = (modes.order, UInt32(bitPattern: last.index))
        several.release()
    }
}

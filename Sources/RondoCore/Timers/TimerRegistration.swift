/// A timer's registration with its loop: the modes that hold the timer, its number in the order of addition,
/// and its date, or the position of the date in the heap of a mode.
///
/// Nearly every timer is in one mode, and a program may have a million of them. A registration in one mode
/// takes ten bytes (`TimerState.LoopOrDetails` tells what that saves), one in several modes also an object.
/// While the timer waits in one mode, its date is only in the heap of that mode. The lock of the loop that
/// holds the timer guards the registration. While the timer waits nowhere, changing it requires the timer's
/// own lock too, so that this lock suffices for reading its deadline.
struct TimerRegistration {
    struct Position {
        let mode: Int
        var index: Int32
    }

    /// The registration of a timer in several modes, or in one mode whose index is too large.
    private final class Several {
        var order: UInt32
        /// The date while the timer fires.
        var deadline: LoopInstant
        var positions: [Position]

        init(order: UInt32, deadline: LoopInstant, positions: [Position]) {
            self.order = order
            self.deadline = deadline
            self.positions = positions
        }
    }

    /// The flags `isFiring` and `isSeveral`, and the mode if there is only one.
    private(set) var bits: UInt16
    /// If the timer waits in one mode: its order in the low half, its index in the heap in the high half. If
    /// it is in several modes: a reference to `Several`. Otherwise its deadline.
    private(set) var word: UInt64

    private static let firingBit: UInt16 = 1 << 15
    private static let severalBit: UInt16 = 1 << 14
    private static let noMode = severalBit - 1

    /// A registration in no mode.
    init(deadline: LoopInstant) {
        self.init(bits: Self.noMode, word: Self.word(of: deadline))
    }

    /// A registration made of stored `bits` and `word`.
    init(bits: UInt16, word: UInt64) {
        self.bits = bits
        self.word = word
    }

    private static func word(of deadline: LoopInstant) -> UInt64 { UInt64(bitPattern: deadline.nanoseconds) }

    private var oneMode: Int { Int(bits & Self.noMode) }

    private var isSeveral: Bool { bits & Self.severalBit != 0 }

    /// `Unmanaged`, since it is stored in `word`. This struct retains it until the timer waits in only one
    /// mode again, or is in none. Every timer leaves its modes before it is freed, because its loop retains
    /// it until then.
    private var several: Unmanaged<Several>? {
        guard isSeveral else { return nil }
        return UnsafeRawPointer(bitPattern: UInt(word)).map(Unmanaged.fromOpaque)
    }

    /// Retains `made`; see `several`.
    private mutating func make(_ made: Several) {
        bits = bits & Self.firingBit | Self.severalBit
        word = UInt64(UInt(bitPattern: Unmanaged.passRetained(made).toOpaque()))
    }

    /// The loop is calling the timer: it has no date, and still belongs to its modes (rule TM-25).
    var isFiring: Bool { bits & Self.firingBit != 0 }

    var isEmpty: Bool { bits & ~Self.firingBit == Self.noMode }

    /// Whether the date is in the heaps of the modes.
    var isWaiting: Bool { !isEmpty && !isFiring }

    /// The date of a timer that does not wait.
    var deadline: LoopInstant {
        get {
            isSeveral ? deadlineOfSeveral : LoopInstant(nanoseconds: Int64(bitPattern: word))
        }
        set {
            if isSeveral { deadlineOfSeveral = newValue } else { word = Self.word(of: newValue) }
        }
    }

    private var deadlineOfSeveral: LoopInstant {
        get { several?.takeUnretainedValue().deadline ?? .never }
        nonmutating set { several?.takeUnretainedValue().deadline = newValue }
    }

    /// One of the modes; nil if there is none.
    var first: Int? { isSeveral ? firstOfSeveral : isEmpty ? nil : oneMode }

    private var firstOfSeveral: Int? { several?.takeUnretainedValue().positions.first?.mode }

    var modes: [Int] {
        if let several { return several.takeUnretainedValue().positions.map(\.mode) }
        return isEmpty ? [] : [oneMode]
    }

    func forEach(_ body: (Int) -> Void) {
        guard isSeveral else {
            if !isEmpty { body(oneMode) }
            return
        }
        for mode in modes { body(mode) }
    }

    func contains(_ mode: Int) -> Bool {
        isSeveral ? severalContain(mode) : !isEmpty && oneMode == mode
    }

    private func severalContain(_ mode: Int) -> Bool {
        several?.takeUnretainedValue().positions.contains { $0.mode == mode } ?? false
    }

    /// The number in the order of addition: timers with equal dates fire in this order (rule TM-23). Nil if
    /// the timer is in no mode, or fires and is in one mode only; `LoopState.firingTimers` keeps its order
    /// while it fires.
    var order: UInt32? {
        get {
            if isSeveral { return orderOfSeveral }
            return isWaiting ? UInt32(truncatingIfNeeded: word) : nil
        }
        set {
            guard let newValue else { return }
            if let several {
                several.takeUnretainedValue().order = newValue
            } else if isWaiting {
                word = word & ~UInt64(UInt32.max) | UInt64(newValue)
            }
        }
    }

    private var orderOfSeveral: UInt32? { several?.takeUnretainedValue().order }

    /// - Parameter mode: A mode in which the timer waits.
    func index(in mode: Int) -> Int32 {
        isSeveral ? indexAmongSeveral(mode) : Int32(truncatingIfNeeded: Int64(bitPattern: word) >> 32)
    }

    private func indexAmongSeveral(_ mode: Int) -> Int32 {
        several?.takeUnretainedValue().positions.first { $0.mode == mode }?.index ?? 0
    }

    mutating func setIndex(_ index: Int32, in mode: Int) {
        guard isSeveral else {
            word = word & UInt64(UInt32.max) | UInt64(UInt32(bitPattern: index)) << 32
            return
        }
        setIndexAmongSeveral(index, in: mode)
    }

    private func setIndexAmongSeveral(_ index: Int32, in mode: Int) {
        guard let several = several?.takeUnretainedValue() else { return }
        if let position = several.positions.firstIndex(where: { $0.mode == mode }) {
            several.positions[position].index = index
        }
    }

    /// - Parameters:
    ///   - mode: A mode that does not hold the timer.
    ///   - order: The timer's order; a new one if this is its first mode.
    mutating func add(_ mode: Int, order: UInt32) {
        if isEmpty, mode < Self.noMode {
            bits = bits & Self.firingBit | UInt16(truncatingIfNeeded: mode)
            if !isFiring { word = UInt64(order) }
        } else {
            addToSeveral(mode, order: order)
        }
    }

    private mutating func addToSeveral(_ mode: Int, order: UInt32) {
        let position = Position(mode: mode, index: 0)
        if let several {
            several.takeUnretainedValue().positions.append(position)
        } else if isEmpty {
            make(Several(order: order, deadline: deadline, positions: [position]))
        } else {
            let first = Position(mode: oneMode, index: isFiring ? 0 : index(in: oneMode))
            let deadline = isFiring ? deadline : LoopInstant(nanoseconds: 0)
            make(Several(order: order, deadline: deadline, positions: [first, position]))
        }
    }

    /// - Parameter deadline: The date that the timer had in `mode`, if it waited.
    mutating func remove(_ mode: Int, deadline: LoopInstant?) {
        if isSeveral { return removeFromSeveral(mode, deadline: deadline) }
        guard !isEmpty, oneMode == mode else { return }
        bits = bits & Self.firingBit | Self.noMode
        if let deadline { word = Self.word(of: deadline) }
    }

    private mutating func removeFromSeveral(_ mode: Int, deadline: LoopInstant?) {
        guard let several else { return }
        let modes = several.takeUnretainedValue()
        modes.positions.removeAll { $0.mode == mode }
        if modes.positions.isEmpty {
            bits = bits & Self.firingBit | Self.noMode
            self.deadline = deadline ?? modes.deadline
        } else if !isFiring, modes.positions.count == 1, modes.positions[0].mode < Self.noMode {
            // (While the timer fires, a registration in one mode has no room for its order.)
            bits = UInt16(modes.positions[0].mode)
            word = UInt64(modes.order)
            setIndex(modes.positions[0].index, in: modes.positions[0].mode)
        } else {
            return
        }
        several.release()
    }

    /// To be called when the date was removed from the heaps of all modes.
    mutating func beginFiring(deadline: LoopInstant) {
        bits |= Self.firingBit
        self.deadline = deadline
    }

    /// - Parameter order: The order kept in `LoopState.firingTimers`; nil if the timer is in no mode.
    mutating func endFiring(deadline: LoopInstant, order: UInt32?) {
        bits &= ~Self.firingBit
        if isEmpty {
            self.deadline = deadline
        } else if !isSeveral {
            word = UInt64(order ?? 0)
        }
    }
}

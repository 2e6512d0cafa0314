/// The priority of a load that waits for a connection, as a number that an atomic can hold.
struct LoadRank {
    static let normal = LoadRank(priority: 0.5)

    let bits: UInt32

    init(priority: Float) { bits = priority.bitPattern }
    init(bits: UInt32) { self.bits = bits }

    var isNormal: Bool { bits == Self.normal.bits }

    var priority: Float { Float(bitPattern: bits) }
}

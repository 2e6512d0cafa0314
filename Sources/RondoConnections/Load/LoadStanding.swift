/// What a load waits for that is neither its server's doing nor its client's.
package enum LoadStanding: UInt8, Sendable {
    case underWay
    /// As many connections to its server as may be are in use.
    case waitsForPlace
    /// See `ConnectivityWait`.
    case waitsForConnectivity
}

/// Where a load stands among those that wait for a connection: a number that can be kept in an atomic.
struct LoadRank {
    static let normal = LoadRank(priority: 0.5)

    let bits: UInt32

    init(priority: Float) { bits = priority.bitPattern }
    init(bits: UInt32) { self.bits = bits }

    var priority: Float { Float(bitPattern: bits) }
}

internal import RondoCore
internal import RondoStreams

/// A connection as the pool keeps it and leases it: ready for an exchange, or as its descriptor alone.
///
/// `@unchecked Sendable`: an origin keeps it under its lock and hands it out once, and the exchange that has
/// ended uses the connection no more (`Lease.keep(registeredAt:)` consumes its lease).
enum PooledConnection: @unchecked Sendable {
    case ready(ServerConnection)
    /// Only the descriptor is kept, because there are many idle connections to the server.
    case parked(ParkedSocket)

    var descriptor: Int32? {
        switch self {
        case .ready(let connection): connection.channel.descriptor
        case .parked(let socket): socket.descriptor
        }
    }

    /// See `ChannelRegistration.isServedInOuterRun`.
    var isServedInOuterRun: Bool {
        switch self {
        case .ready(let connection): connection.channel.registration.isServedInOuterRun
        case .parked: false
        }
    }

    func isSame(as identity: ObjectIdentifier) -> Bool {
        if case .ready(let connection) = self { ObjectIdentifier(connection) == identity } else { false }
    }

    /// Looks at the connection: true if it seems to be open, so that no end, and no bytes, have come.
    func checkIdle() -> Bool {
        switch self {
        case .ready(let connection): connection.channel.checkIdle()
        case .parked(let socket): socket.isQuiet
        }
    }

    /// See `ServerConnection.unregister(unlessAt:)`.
    func unregister(unlessAt queue: SharedQueue?) {
        if case .ready(let connection) = self { connection.unregister(unlessAt: queue) }
    }

    func close() {
        switch self {
        case .ready(let connection): connection.channel.close()
        case .parked(let socket): socket.close()
        }
    }

    /// Nil if it is parked already, or cannot be parked.
    func parked() -> PooledConnection? {
        guard case .ready(let connection) = self, !connection.isRegisteredIdle else { return nil }
        return connection.channel.park().map { .parked($0) }
    }
}

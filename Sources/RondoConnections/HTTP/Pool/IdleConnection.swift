internal import RondoCore
internal import RondoStreams

/// An idle connection: one that no load uses.
///
/// `@unchecked Sendable`: the exchange that hands the connection in must not use it afterwards, and it is
/// handed out once.
enum IdleConnection: @unchecked Sendable {
    case ready(KeptConnection)
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

    /// See `KeptConnection.unregister(unlessAt:)`.
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
    func parked() -> IdleConnection? {
        guard case .ready(let connection) = self, !connection.isRegisteredIdle else { return nil }
        return connection.channel.park().map { .parked($0) }
    }
}

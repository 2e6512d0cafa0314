internal import RondoConnections
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// Hands the connection of a data task to the stream task that takes its place, after a 101 response
/// (rule US-47).
///
/// `@unchecked Sendable`: used only inside the gate of the load.
final class StreamUpgrade: Upgrade, @unchecked Sendable {
    /// The state of the stream task; set once the delegate has chosen `.becomeStream`.
    private var shared: StreamTaskState?
    private weak var load: (any UpgradeOwner)?

    deinit { shared?.loseConnection() }

    func become(_ shared: StreamTaskState, load: any UpgradeOwner) {
        self.shared = shared
        self.load = load
    }

    // MARK: - Upgrade

    var isRequired: Bool { false }

    /// Adds none: the request has its own Upgrade field.
    func addFields(to fields: inout HeaderFields) {}
    func refusal(of head: ResponseHead, for load: any UpgradeOwner) -> String? { nil }

    func begin(_ channel: SocketChannel, received: UnsafeRawBufferPointer) {
        if let shared = shared.take() {
            if let connection = channel.moveConnection() {
                shared.give(OpenConnection(channel: connection, received: Array(received)))
            } else {
                shared.loseConnection()
            }
        }
        load?.endUpgrade(nil)
    }

    func serve() {}
    func readable() {}
    func writable() {}
    func failed(_ error: ChannelError) {}
    func pause() {}
    func resume() {}
}

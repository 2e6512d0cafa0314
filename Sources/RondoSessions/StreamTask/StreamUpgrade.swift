internal import RondoConnections
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// Takes the connection of a data task whose server has changed protocols, for the stream task that takes its place (rule US-47).
///
/// `@unchecked Sendable`: used inside the gate of the load.
final class StreamUpgrade: Upgrade, @unchecked Sendable {
    /// Set when the delegate has said so.
    private var link: StreamLink?
    private weak var owner: (any UpgradeOwner)?

    deinit { link?.loseConnection() }

    func become(_ link: StreamLink, owner: any UpgradeOwner) {
        self.link = link
        self.owner = owner
    }

    // MARK: - Upgrade

    var isRequired: Bool { false }

    /// The request asks for it itself.
    func addFields(to fields: inout HeaderFields) {}
    func refusal(of head: ResponseHead, for owner: any UpgradeOwner) -> String? { nil }

    func begin(_ channel: SocketChannel, received: UnsafeRawBufferPointer) {
        if let link = link.take(), let connection = channel.moveConnection() {
            link.give(OpenConnection(channel: connection, received: Array(received)))
        }
        owner?.endUpgrade(nil)
    }

    func serve() {}
    func readable() {}
    func writable() {}
    func failed(_ error: ChannelError) {}
    func pause() {}
    func resume() {}
}

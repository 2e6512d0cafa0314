internal import RondoConnections
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// Hands the connection of a data task to the stream task that takes its place, after a 101 response
/// (rule US-47).
///
/// `@unchecked Sendable`: used only inside the gate of the load.
final class StreamUpgrade: Upgrade, @unchecked Sendable {
    /// Set once the delegate has chosen `.becomeStream`.
    private var link: StreamLink?
    private weak var load: (any UpgradeOwner)?

    deinit { link?.loseConnection() }

    func become(_ link: StreamLink, load: any UpgradeOwner) {
        self.link = link
        self.load = load
    }

    // MARK: - Upgrade

    var isRequired: Bool { false }

    /// Adds none: the request has its own Upgrade field.
    func addFields(to fields: inout HeaderFields) {}
    func refusal(of head: ResponseHead, for load: any UpgradeOwner) -> String? { nil }

    func begin(_ channel: SocketChannel, received: UnsafeRawBufferPointer) {
        if let link = link.take() {
            if let connection = channel.moveConnection() {
                link.give(OpenConnection(channel: connection, received: Array(received)))
            } else {
                link.loseConnection()
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

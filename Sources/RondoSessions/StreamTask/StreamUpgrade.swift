internal import RondoConnections
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex
internal import RondoStreams

/// Hands the connection of a data task to the stream task that takes its place, after a 101 response
/// (rule US-47).
///
/// `@unchecked Sendable`: `shared` has a lock; the load is used only inside its gate.
final class StreamUpgrade: Upgrade, @unchecked Sendable {
    /// Set once the delegate has chosen `.becomeStream`.
    private let shared = Mutex<StreamTaskState?>(nil)
    private weak var load: (any UpgradeOwner)?

    /// The load has ended, perhaps before it has heard of the delegate's choice.
    deinit { takeShared()?.loseConnection() }

    private func takeShared() -> StreamTaskState? { shared.withLock { $0.take() } }

    /// Has the connection handed to `shared`, which loses it if the load ends before. Any thread.
    func become(_ shared: StreamTaskState) { self.shared.withLock { $0 = shared } }

    /// Notes the load that hands the connection over. Inside its gate.
    func belong(to load: any UpgradeOwner) { self.load = load }

    // MARK: - Upgrade

    var isRequired: Bool { false }

    /// Adds none: the request has its own Upgrade field.
    func addFields(to fields: inout HeaderFields) {}
    func refusal(of head: ResponseHead, for load: any UpgradeOwner) -> String? { nil }

    func begin(_ channel: SocketChannel, received: UnsafeRawBufferPointer) {
        if let shared = takeShared() {
            if let connection = channel.moveConnection() {
                shared.give(OpenConnection(channel: connection, received: Array(received)))
            } else {
                shared.loseConnection()
            }
        }
        load?.endUpgrade(nil)
    }

    func serve() {}
    func becameReadable() {}
    func becameWritable() {}
    func failed(_ error: ChannelError) {}
    func stopReading() {}
    func startReading() {}
}

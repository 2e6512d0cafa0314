import Rondo

/// Serves a `Site` on the run loop of the thread that makes it, with a listener and a `ServedConnection` for
/// each client.
final class FileServer {
    private let listener: StreamListener
    private let settings: ServedConnection.Settings
    private let loop: RunLoop
    private var connections: Set<ServedConnection> = []
    /// Connections that are refused because there are too many.
    private var refused: Set<ServedConnection> = []

    /// Begins to listen.
    /// - Throws: The error of `StreamListener`.
    init(
        _ settings: ServedConnection.Settings, address: String, port: Int, identity: TLSIdentity?,
        loop: RunLoop = .current
    ) throws {
        self.settings = settings
        self.loop = loop
        var configuration = StreamListener.Configuration()
        if let identity {
            var tls = TLSSettings()
            tls.role = .server
            tls.identity = identity
            tls.alpn = ["http/1.1"]
            configuration.tls = tls
        }
        configuration.maximumUnfinishedHandshakes = ServerLimits.connections
        listener = try StreamListener(port: port, host: address, configuration: configuration)
        listener.onConnection = { [unowned self] in accept($0) }
        listener.schedule(in: loop, forMode: .default)
    }

    /// Called when accepting pauses because there are no descriptors, and when it has ended for good.
    var onTrouble: ((any Error) -> Void)? {
        get { listener.onTrouble }
        set { listener.onTrouble = newValue }
    }

    var port: Int { listener.port }
    var isListening: Bool { listener.isListening }

    private func accept(_ connection: StreamListener.Connection) {
        if connections.count >= ServerLimits.connections { makeRoom() }
        if connections.count < ServerLimits.connections {
            let served = ServedConnection(connection, settings) { [weak self] in
                self?.connections.remove($0)
            }
            connections.insert(served)
            served.start(in: loop)
        } else if refused.count < ServerLimits.connections / 8 {
            let refused = ServedConnection(connection, settings, refusal: .serviceUnavailable) {
                [weak self] in
                self?.refused.remove($0)
            }
            self.refused.insert(refused)
            refused.start(in: loop)
        }
        // Otherwise the connection is dropped with its streams.
    }

    /// Ends the connection that has been idle for longest, or else the one whose client has taken nothing for
    /// longest.
    private func makeRoom() {
        let idle = connections.compactMap { one in one.idleSince.map { (one, $0) } }
        if let longest = idle.min(by: { $0.1 < $1.1 }) { return longest.0.end() }
        let stalled = connections.compactMap { one in
            one.secondsStalled(beyond: settings.yieldTime).map { (one, $0) }
        }
        stalled.max { $0.1 < $1.1 }?.0.end()
    }
}

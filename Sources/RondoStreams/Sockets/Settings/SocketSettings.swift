internal import RondoCore

/// The settings of a connection's streams (rule ST-39).
///
/// Nearly all connections have the same settings, so they share one object; a change makes a new one.
final class SocketSettings: Sendable {
    struct Value: Sendable {
        var tls: TLSSettings?
        var proxy: StreamProxy?
        var options = SocketOptions()
        /// Whether the options have to be set on the socket, because a stream's property has changed them. A
        /// new socket has the standard options anyway, and an accepted socket has its listener's options.
        var needsOptions = false
        /// Nil: the default for the kind of connection.
        var closesDescriptor: Bool?
        /// The response of a proxy that has refused the connection.
        var proxyResponse: [UInt8] = []
        /// What TLS has agreed on, while there is no channel to ask: before the streams of a secured
        /// connection are opened, and after both were closed.
        var tlsInformation: TLSInformation?
        /// For a connection that a listener has accepted: the count of its unfinished handshakes.
        var handshakes: UnfinishedHandshakes?
    }

    static let standard = SocketSettings(Value())

    let value: Value

    init(_ value: Value) { self.value = value }

    /// The settings to keep after the connection has ended: handlers may retain the streams, and are not
    /// called any more.
    var withoutHandlers: SocketSettings {
        guard value.tls?.trustHandler != nil || value.tls?.identityHandler != nil else { return self }
        return changed {
            $0.tls?.trustHandler = nil
            $0.tls?.identityHandler = nil
        }
    }

    func changed(_ change: (inout Value) -> Void) -> SocketSettings {
        var value = value
        change(&value)
        return SocketSettings(value)
    }
}

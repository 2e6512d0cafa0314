internal import RondoCore

/// What a client has set on the streams of a connection (rule ST-39).
///
/// Nearly all connections have the same settings, so they share them: a change makes a new object.
final class SocketSettings: Sendable {
    struct Value: Sendable {
        var tls: TLSSettings?
        var proxy: StreamProxy?
        var options = SocketOptions()
        /// Nil: as the kind of connection has it.
        var closesDescriptor: Bool?
        /// What a proxy has said that did not let the connection through.
        var proxyResponse: [UInt8] = []
        /// Of a connection that a listener has accepted.
        var handshakes: UnfinishedHandshakes?
    }

    static let standard = SocketSettings(Value())

    let value: Value

    init(_ value: Value) { self.value = value }

    /// The settings that are kept when the connection is over, since handlers may hold on to the streams and are not called any more.
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

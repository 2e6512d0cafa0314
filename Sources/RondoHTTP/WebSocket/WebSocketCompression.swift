/// The parameters of permessage-deflate that both ends have agreed on (RFC 7692 §7.1, rule WS-23).
package struct WebSocketCompression: Sendable, Equatable {
    /// The parameters that one end follows when it sends.
    package struct Sender: Sendable, Equatable {
        /// Whether its messages may refer to earlier ones.
        package var keepsContext = true
        /// The longest distance of back-references, as a power of two: 8 to 15.
        package var windowBits = 15

        package init() {}
    }

    package var server = Sender()
    package var client = Sender()

    package init() {}

    /// The parameters that the end with this role follows.
    func sender(_ role: WebSocketRole) -> Sender {
        switch role {
        case .client: client
        case .server: server
        }
    }

    // MARK: Negotiation

    /// The offer in a client's Sec-WebSocket-Extensions. The server may set every parameter, including the
    /// client's window, which needs the client's permission.
    static let offer = "\(name); client_max_window_bits"

    private static let name = "permessage-deflate"

    /// The server's answer to `offer`; nil if its fields name no extension.
    static func agreed(in fields: HeaderFields) throws(WebSocketHandshakeError) -> WebSocketCompression? {
        var agreed: WebSocketCompression?
        try fields.forEachElement(of: "Sec-WebSocket-Extensions") {
            (element) throws(WebSocketHandshakeError) in
            if element.isEmpty { return }
            let text = String(decoding: element, as: UTF8.self)
            // Named twice the extension would compress twice, which was not offered.
            guard agreed == nil else { throw .extensions(text) }
            guard let compression = WebSocketCompression(answer: text) else { throw .extensions(text) }
            agreed = compression
        }
        return agreed
    }

    /// Returns nil for another extension, or an unknown, repeated or out-of-range parameter.
    private init?(answer: String) {
        var seen: Set<String> = []
        var isSound = true
        var agreed = WebSocketCompression()
        FieldParameters.forEachMember(of: answer[...].utf8) { name, value in
            // The first member is the extension's name.
            if seen.isEmpty {
                isSound = name == Self.name && value == nil
            } else {
                isSound = isSound && agreed.set(name, value)
            }
            isSound = seen.insert(name).inserted && isSound
        }
        guard isSound else { return nil }
        self = agreed
    }

    private mutating func set(_ parameter: String, _ value: String?) -> Bool {
        switch parameter {
        case "server_no_context_takeover":
            server.keepsContext = false
            return value == nil
        case "client_no_context_takeover":
            client.keepsContext = false
            return value == nil
        case "server_max_window_bits":
            return Self.set(&server.windowBits, value)
        case "client_max_window_bits":
            return Self.set(&client.windowBits, value)
        default:
            return false
        }
    }

    /// Sets a number from 8 to 15, without leading zeros.
    private static func set(_ bits: inout Int, _ value: String?) -> Bool {
        guard let value, let number = (8...15).first(where: { String($0) == value }) else { return false }
        bits = number
        return true
    }
}

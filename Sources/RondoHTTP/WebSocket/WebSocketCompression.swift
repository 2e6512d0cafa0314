/// What both ends have agreed on about permessage-deflate (RFC 7692 §7.1, rule WS-23).
package struct WebSocketCompression: Sendable, Equatable {
    /// What one end keeps to when it sends.
    package struct Sender: Sendable, Equatable {
        /// Its messages may refer to those before.
        package var keepsContext = true
        /// How far back they refer at most, as a power of two: 8 to 15.
        package var windowBits = 15

        package init() {}
    }

    package var server = Sender()
    package var client = Sender()

    package init() {}

    /// What the end of this role keeps to.
    func sender(_ role: WebSocketRole) -> Sender {
        switch role {
        case .client: client
        case .server: server
        }
    }

    // MARK: Negotiation

    /// The offer in a client's Sec-WebSocket-Extensions: the server may set every parameter, also how far back the client
    /// refers, which it may not unless it is told so.
    static let offer = "\(name); client_max_window_bits"

    private static let name = "permessage-deflate"

    /// What the server's fields answer to `offer`; nil if they name no extension.
    static func agreed(in fields: HeaderFields) throws(WebSocketHandshakeError) -> WebSocketCompression? {
        var agreed: WebSocketCompression?
        try fields.forEachElement(of: "Sec-WebSocket-Extensions") {
            (element) throws(WebSocketHandshakeError) in
            if element.isEmpty { return }
            let text = String(decoding: element, as: UTF8.self)
            // Named twice it would compress twice, which was not offered.
            guard agreed == nil else { throw .extensions(text) }
            guard let compression = WebSocketCompression(answer: text) else { throw .extensions(text) }
            agreed = compression
        }
        return agreed
    }

    /// Nil if it is another extension, or has a parameter that is unknown, doubled or out of range.
    private init?(answer: String) {
        var seen: Set<String> = []
        var isSound = true
        var agreed = WebSocketCompression()
        FieldParameters.forEachMember(of: answer[...].utf8) { name, value in
            // The first member is the extension itself.
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

    /// 8 to 15, without leading zeros.
    private static func set(_ bits: inout Int, _ value: String?) -> Bool {
        guard let value, let number = (8...15).first(where: { String($0) == value }) else { return false }
        bits = number
        return true
    }
}

internal import Foundation

/// The client's opening handshake (RFC 6455 §4.1): the fields of a GET, and the check whether its response
/// opens the connection. Each request needs its own handshake, also one that is sent again after a redirect
/// or a challenge.
package struct WebSocketHandshake: Sendable {
    /// 16 random bytes in Base64, which prove that the response answers this request.
    package let key: String
    private var protocols: [String]
    private let offersCompression: Bool

    /// The protocol and the compression that both ends have agreed on.
    package struct Agreement: Sendable, Equatable {
        /// The protocol that the server chose from those offered.
        package var subprotocol: String?
        package var compression: WebSocketCompression?

        package init() {}
    }

    /// - Parameters:
    ///   - protocols: The protocols to offer, the preferred one first.
    ///   - offersCompression: Whether to offer permessage-deflate.
    package init(
        protocols: [String] = [], offersCompression: Bool = true,
        using generator: inout some RandomNumberGenerator
    ) {
        let random: [UInt8] = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        key = Data(random).base64EncodedString()
        self.protocols = protocols
        self.offersCompression = offersCompression
    }

    package init(protocols: [String] = [], offersCompression: Bool = true) {
        var generator = SystemRandomNumberGenerator()
        self.init(protocols: protocols, offersCompression: offersCompression, using: &generator)
    }

    // MARK: The request

    /// Adds the handshake's fields to those of a request (WS-2). Protocols in the request's own fields are
    /// offered after the others; extensions in them are not, since Rondo does not implement them.
    package mutating func addFields(to fields: inout HeaderFields) throws(WebSocketHandshakeError) {
        fields.forEachElement(of: "Sec-WebSocket-Protocol") { element in
            if !element.isEmpty { protocols.append(String(decoding: element, as: UTF8.self)) }
        }
        var names: Set<String> = []
        for name in protocols where !Grammar.isToken(name) || !names.insert(name).inserted {
            throw .invalidProtocol(name)
        }
        fields.set(name: "Upgrade", value: "websocket")
        fields.set(name: "Connection", value: "Upgrade")
        fields.set(name: "Sec-WebSocket-Key", value: key)
        fields.set(name: "Sec-WebSocket-Version", value: "13")
        if !protocols.isEmpty {
            fields.set(name: "Sec-WebSocket-Protocol", value: protocols.joined(separator: ", "))
        }
        if offersCompression {
            fields.set(name: "Sec-WebSocket-Extensions", value: WebSocketCompression.offer)
        } else {
            fields.remove("Sec-WebSocket-Extensions")
        }
    }

    // MARK: The response

    /// The agreement in the response. If this throws, the connection must not be used, and no frame may be
    /// sent (WS-4).
    package func agreement(in head: ResponseHead) throws(WebSocketHandshakeError) -> Agreement {
        guard head.status == 101 else { throw .status(head.status) }
        guard head.fields.contains("Upgrade", token: "websocket") else { throw .upgrade }
        guard head.fields.contains("Connection", token: "Upgrade") else { throw .connection }
        guard let accept = Self.accept(for: key) else { throw .noHash }
        guard head.fields.values(for: "Sec-WebSocket-Accept") == [accept] else { throw .accept }
        var agreement = Agreement()
        agreement.compression = try WebSocketCompression.agreed(in: head.fields)
        if agreement.compression != nil, !offersCompression {
            throw .extensions(head.fields["Sec-WebSocket-Extensions"] ?? "")
        }
        agreement.subprotocol = try chosenProtocol(head.fields)
        return agreement
    }

    private func chosenProtocol(_ fields: HeaderFields) throws(WebSocketHandshakeError) -> String? {
        let values = fields.values(for: "Sec-WebSocket-Protocol")
        guard let chosen = values.first else { return nil }
        guard values.count == 1, protocols.contains(chosen) else {
            throw .unofferedProtocol(values.joined(separator: ", "))
        }
        return chosen
    }

    /// The Sec-WebSocket-Accept that answers `key` (§4.2.2); nil if the machine's policy forbids SHA-1.
    package static func accept(for key: String) -> String? {
        var hash = DigestHash.RunningHash(named: "SHA1")
        hash?.update(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8).span.bytes)
        return hash?.finishBytes().map { Data($0).base64EncodedString() }
    }
}

/// The reason why a handshake did not open a WebSocket connection (rule WS-4).
package enum WebSocketHandshakeError: Error, Sendable, Equatable {
    /// A protocol to be offered is not a token, or is offered twice.
    case invalidProtocol(String)
    /// The status is not 101.
    case status(Int)
    /// No Upgrade field names websocket.
    case upgrade
    /// No Connection field names Upgrade.
    case connection
    /// Sec-WebSocket-Accept is missing, repeated, or does not match the key.
    case accept
    /// The response names an extension that was not offered, or uses one in a way that was not.
    case extensions(String)
    case unofferedProtocol(String)
    /// The machine's policy forbids the hash function of the handshake.
    case noHash
}

extension WebSocketHandshakeError: CustomStringConvertible {
    /// A sentence for people.
    package var description: String {
        switch self {
        case .invalidProtocol(let name): "“\(name)” cannot be offered as a WebSocket protocol."
        case .status(let status):
            "The server answered the WebSocket handshake with status \(status) instead of 101."
        case .upgrade:
            "The server's answer to the WebSocket handshake has no Upgrade field that names websocket."
        case .connection:
            "The server's answer to the WebSocket handshake has no Connection field that names Upgrade."
        case .accept: "The server's Sec-WebSocket-Accept does not answer the WebSocket handshake's key."
        case .extensions(let value):
            "The server uses a WebSocket extension that was not offered, or in a way that was not: “\(excerpt(value))”."
        case .unofferedProtocol(let value):
            "The server chose a WebSocket protocol that was not offered: “\(excerpt(value))”."
        case .noHash: "The machine's policy forbids SHA-1, which the WebSocket handshake needs."
        }
    }

    private func excerpt(_ value: String) -> String { Grammar.excerpt(Array(value.utf8)) }
}

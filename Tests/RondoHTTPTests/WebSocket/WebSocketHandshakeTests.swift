import Foundation
import RondoHTTP
import Testing

@Suite struct WebSocketHandshakeTests {
    // MARK: The request

    @Test func `WS-2 the request has the handshake's fields beside its own`() throws {
        var handshake = WebSocketHandshake(protocols: ["chat", "superchat"])
        var fields = HeaderFields([("Host", "a.example"), ("Origin", "http://b.example"), ("Cookie", "a=b")])
        try handshake.addFields(to: &fields)
        #expect(
            fields.map { "\($0.name): \($0.value)" } == [
                "Host: a.example", "Origin: http://b.example", "Cookie: a=b", "Upgrade: websocket",
                "Connection: Upgrade", "Sec-WebSocket-Key: \(handshake.key)", "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Protocol: chat, superchat",
                "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
            ])
    }

    @Test func `WS-2 the request's own handshake fields are replaced, except for its protocols`() throws {
        var handshake = WebSocketHandshake(offersCompression: false)
        var fields = HeaderFields([
            ("upgrade", "h2c"), ("connection", "close"), ("sec-websocket-key", "mine"),
            ("Sec-WebSocket-Version", "8"), ("Sec-WebSocket-Extensions", "x-mine"),
            ("Sec-WebSocket-Protocol", "mqtt, wamp"),
        ])
        try handshake.addFields(to: &fields)
        #expect(fields["Upgrade"] == "websocket" && fields["Connection"] == "Upgrade")
        #expect(fields["Sec-WebSocket-Key"] == handshake.key && fields["Sec-WebSocket-Version"] == "13")
        #expect(fields["Sec-WebSocket-Extensions"] == nil)
        #expect(fields["Sec-WebSocket-Protocol"] == "mqtt, wamp")
        #expect(fields.count == 5)
        let head = response(to: handshake, adding: [("Sec-WebSocket-Protocol", "wamp")])
        #expect(try handshake.agreement(in: head).subprotocol == "wamp")
    }

    @Test func `WS-2 each key is fresh and has 16 bytes`() {
        let keys = (0..<100).map { _ in WebSocketHandshake().key }
        #expect(Set(keys).count == 100)
        #expect(keys.allSatisfy { Data(base64Encoded: $0)?.count == 16 })
    }

    @Test(arguments: ["", "two words", "a,b", "a\r\nX: y", "é"])
    func `WS-2 a protocol that is no token is refused`(_ name: String) {
        var handshake = WebSocketHandshake(protocols: [name])
        var fields = HeaderFields()
        #expect(throws: WebSocketHandshakeError.invalidProtocol(name)) {
            try handshake.addFields(to: &fields)
        }
        #expect(fields.isEmpty)
    }

    @Test func `WS-2 a handshake that offers a protocol twice is refused`() {
        var handshake = WebSocketHandshake(protocols: ["a", "b", "a"])
        var fields = HeaderFields()
        #expect(throws: WebSocketHandshakeError.invalidProtocol("a")) { try handshake.addFields(to: &fields) }
    }

    // MARK: The response

    @Test func `WS-4 the key of RFC 6455 1.3 has the accept value given there`() {
        #expect(WebSocketHandshake.accept(for: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }

    @Test func `WS-4 a response that answers the request opens the connection`() throws {
        let handshake = WebSocketHandshake()
        #expect(try handshake.agreement(in: response(to: handshake)) == WebSocketHandshake.Agreement())
        let loose = response(
            to: handshake,
            [
                "Upgrade": "WebSocket", "Connection": "keep-alive, uPGRADE", "Sec-WebSocket-Extensions": "",
            ])
        #expect(try handshake.agreement(in: loose) == WebSocketHandshake.Agreement())
    }

    @Test(
        arguments: [
            (["Upgrade": nil], WebSocketHandshakeError.upgrade), (["Upgrade": "h2c"], .upgrade),
            (["Upgrade": "websockets"], .upgrade), (["Connection": nil], .connection),
            (["Connection": "close"], .connection), (["Sec-WebSocket-Accept": nil], .accept),
            (["Sec-WebSocket-Accept": ""], .accept),
            (["Sec-WebSocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="], .accept),
            (["Sec-WebSocket-Protocol": "chat"], .unofferedProtocol("chat")),
            (["Sec-WebSocket-Extensions": "x-webkit-deflate-frame"], .extensions("x-webkit-deflate-frame")),
        ] as [([String: String?], WebSocketHandshakeError)])
    func `WS-4 a response with one field wrong opens nothing`(
        _ changes: [String: String?], _ error: WebSocketHandshakeError
    ) {
        let handshake = WebSocketHandshake()
        #expect(throws: error) { try handshake.agreement(in: response(to: handshake, changes)) }
        #expect(!"\(error)".isEmpty)
    }

    @Test(arguments: [100, 200, 204, 301, 401, 403, 426, 500])
    func `WS-4 another status than 101 opens nothing`(_ status: Int) {
        let handshake = WebSocketHandshake()
        let head = ResponseHead(status: status, fields: response(to: handshake).fields)
        #expect(throws: WebSocketHandshakeError.status(status)) { try handshake.agreement(in: head) }
    }

    @Test func `WS-4 an accept that is repeated opens nothing`() {
        let handshake = WebSocketHandshake()
        let accept = WebSocketHandshake.accept(for: handshake.key) ?? ""
        let head = response(to: handshake, adding: [("Sec-WebSocket-Accept", accept)])
        #expect(throws: WebSocketHandshakeError.accept) { try handshake.agreement(in: head) }
    }

    @Test func `WS-4 one of the offered protocols may be chosen, letter by letter`() throws {
        let handshake = WebSocketHandshake(protocols: ["chat", "v2.chat"])
        func chosen(_ values: String...) throws -> String? {
            let fields = values.map { ("Sec-WebSocket-Protocol", $0) }
            return try handshake.agreement(in: response(to: handshake, adding: fields)).subprotocol
        }
        #expect(try chosen() == nil)
        #expect(try chosen("v2.chat") == "v2.chat")
        for values in ["Chat", "chat, v2.chat", "", "other"] {
            #expect(throws: WebSocketHandshakeError.unofferedProtocol(values)) { try chosen(values) }
        }
        #expect(throws: WebSocketHandshakeError.unofferedProtocol("chat, chat")) {
            try chosen("chat", "chat")
        }
    }

    // MARK: permessage-deflate

    @Test(arguments: agreements)
    func `WS-23 the server's answer is kept to`(_ answer: String, _ expected: WebSocketCompression) throws {
        let handshake = WebSocketHandshake()
        let head = response(to: handshake, adding: [("Sec-WebSocket-Extensions", answer)])
        #expect(try handshake.agreement(in: head).compression == expected)
    }

    @Test(arguments: [
        "permessage-deflate; unknown", "permessage-deflate; server_no_context_takeover=1",
        "permessage-deflate; client_no_context_takeover; client_no_context_takeover",
        "permessage-deflate; server_max_window_bits", "permessage-deflate; client_max_window_bits",
        "permessage-deflate; server_max_window_bits=7", "permessage-deflate; server_max_window_bits=16",
        "permessage-deflate; server_max_window_bits=08", "permessage-deflate; client_max_window_bits=+9",
        "permessage-deflate; client_max_window_bits=ten", "permessage-deflate; client_max_window_bits=",
        "permessage-deflate; client_max_window_bits=9; client_max_window_bits=9",
        "permessage-deflate=1", "permessage-deflate; permessage-deflate", "permessage-deflate;",
        "permessage-deflate, permessage-deflate", "permessage-deflate, x-other", "x-other", ";",
        "permessage-bzip2",
    ])
    func `WS-23 a parameter that is unknown, doubled or out of range fails the handshake`(_ answer: String) {
        let handshake = WebSocketHandshake()
        let head = response(to: handshake, adding: [("Sec-WebSocket-Extensions", answer)])
        let error = #expect(throws: WebSocketHandshakeError.self) { try handshake.agreement(in: head) }
        guard case .extensions = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `WS-23 nothing is agreed on unless it was offered, and answered`() throws {
        let silent = WebSocketHandshake(offersCompression: false)
        let answer = [("Sec-WebSocket-Extensions", "permessage-deflate")]
        #expect(throws: WebSocketHandshakeError.extensions("permessage-deflate")) {
            try silent.agreement(in: response(to: silent, adding: answer))
        }
        let offering = WebSocketHandshake()
        #expect(try offering.agreement(in: response(to: offering)).compression == nil)
    }

    // MARK: Inside

    private func response(
        to handshake: WebSocketHandshake, _ changes: [String: String?] = [:],
        adding more: [(String, String)] = []
    ) -> ResponseHead {
        var fields = HeaderFields([
            ("Upgrade", "websocket"), ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", WebSocketHandshake.accept(for: handshake.key) ?? ""),
        ])
        for (name, value) in changes {
            if let value { fields.set(name: name, value: value) } else { fields.remove(name) }
        }
        for (name, value) in more { fields.append(name: name, value: value) }
        return ResponseHead(status: 101, fields: fields)
    }

    private static func agreed(_ change: (inout WebSocketCompression) -> Void) -> WebSocketCompression {
        var agreed = WebSocketCompression()
        change(&agreed)
        return agreed
    }

    static let agreements: [(String, WebSocketCompression)] = [
        ("permessage-deflate", WebSocketCompression()),
        ("permessage-deflate; server_no_context_takeover", agreed { $0.server.keepsContext = false }),
        ("permessage-deflate;client_no_context_takeover", agreed { $0.client.keepsContext = false }),
        ("permessage-deflate; server_max_window_bits=8", agreed { $0.server.windowBits = 8 }),
        ("permessage-deflate; client_max_window_bits=\"15\"", WebSocketCompression()),
        (
            "permessage-deflate ; client_max_window_bits = 9 ; server_max_window_bits=10; "
                + "server_no_context_takeover; client_no_context_takeover",
            agreed {
                ($0.client.windowBits, $0.server.windowBits) = (9, 10)
                ($0.client.keepsContext, $0.server.keepsContext) = (false, false)
            }
        ),
    ]
}

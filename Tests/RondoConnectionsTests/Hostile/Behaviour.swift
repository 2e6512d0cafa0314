import Rondo
import RondoTestSupport
import Testing

/// Something that a server does, and what has to come of it.
struct Behaviour: Sendable, CustomTestStringConvertible {
    /// The end of a load. A failure may come after the response and a part of its body.
    enum Outcome: Sendable, Equatable, CustomStringConvertible {
        case gets(Int, String)
        case fails(URLError.Code)

        var description: String {
            switch self {
            case .gets(let status, let body): "\(status) “\(body)”"
            case .fails(let code): "fails with \(code.rawValue)"
            }
        }
    }

    /// The server's act after its words.
    enum Ending: Sendable {
        /// Nothing: the client has to end this.
        case holds
        /// Closes its side.
        case closes
        /// Breaks the connection off. What it has said may be lost with it.
        case resets
        /// Says the last words over and over, until the client goes.
        case repeats(String)
    }

    let testDescription: String
    let outcome: Outcome
    let method: String
    /// Whether the connection may serve another request afterwards; nil: it does not matter.
    let isKept: Bool?
    let serve: @Sendable (TestPeer) throws -> Void

    init(
        _ name: String, _ outcome: Outcome, method: String = "GET", isKept: Bool? = nil,
        serve: @escaping @Sendable (TestPeer) throws -> Void
    ) {
        testDescription = name
        self.outcome = outcome
        self.method = method
        self.isKept = isKept
        self.serve = serve
    }

    /// A server that reads the request, says something and ends in some way.
    init(
        _ name: String, _ outcome: Outcome, method: String = "GET", isKept: Bool? = nil,
        _ ending: Ending = .holds, says bytes: [UInt8]
    ) {
        self.init(name, outcome, method: method, isKept: isKept) { peer in
            _ = try peer.readRequest()
            try peer.send(bytes)
            switch ending {
            case .holds: break
            case .closes: peer.finish()
            case .resets: return peer.reset()
            case .repeats(let words): while true { try peer.send(words) }
            }
            // A second request on a connection that may be kept.
            _ = try peer.readRequest()
            try peer.respond(body: "again")
            peer.waitForEnd()
        }
    }

    init(
        _ name: String, _ outcome: Outcome, method: String = "GET", isKept: Bool? = nil, _ ending: Ending,
        _ text: String
    ) {
        self.init(name, outcome, method: method, isKept: isKept, ending, says: Array(text.utf8))
    }

    init(
        _ name: String, _ outcome: Outcome, method: String = "GET", isKept: Bool? = nil, _ text: String
    ) {
        self.init(name, outcome, method: method, isKept: isKept, .holds, text)
    }

    /// A 200 with these fields, each with its line end, and this body.
    static func ok(
        _ name: String, _ outcome: Outcome, isKept: Bool? = nil, _ ending: Ending = .holds,
        fields: String = "", body: String = ""
    ) -> Behaviour {
        Behaviour(name, outcome, isKept: isKept, ending, "HTTP/1.1 200 OK\r\n\(fields)\r\n\(body)")
    }

    /// A chunked 200; the body is written as it is sent, chunk sizes and all.
    static func chunked(
        _ name: String, _ outcome: Outcome, isKept: Bool? = nil, _ ending: Ending = .holds, body: String
    ) -> Behaviour {
        ok(name, outcome, isKept: isKept, ending, fields: "Transfer-Encoding: chunked\r\n", body: body)
    }

    // MARK: - Happening

    /// Lets it happen, and looks at what comes of it.
    func check(_ configure: @escaping @Sendable (URLConnection) -> Void = { _ in }) throws {
        let server = try TestServer(serve: serve)
        defer { server.stop() }
        var request = URLRequest(url: server.url("/x"))
        request.httpMethod = method
        let recorder = try load(request) { connection in
            connection.configuration.cache = nil
            configure(connection)
        }
        #expect(Self.outcome(of: recorder) == outcome, "\(recorder.calls)")
        // What is broken is not held open, and nor is what cannot serve another request.
        let ends = [
            Outcome.fails(.cannotParseResponse), .fails(.badServerResponse), .fails(.networkConnectionLost),
        ]
        if isKept == false || ends.contains(outcome) {
            try waitFor("the end of the connection") { server.served == 0 ? () : nil }
        }
        guard let isKept else { return }
        let before = server.accepted
        if isKept {
            #expect(try load(server.url("/again")).text == "again")
            #expect(server.accepted == before)
        } else {
            // The next one has a connection of its own.
            try load(request) { $0.configuration.cache = nil }
            #expect(server.accepted > before)
        }
    }

    static func outcome(of recorder: Recorder) -> Outcome? {
        if let error = recorder.error { return .fails(error.code) }
        guard recorder.calls.last == "finish", let status = recorder.response?.statusCode else { return nil }
        return .gets(status, recorder.text)
    }
}

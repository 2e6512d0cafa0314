import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Both ends of connections in one process, so many of them that a leak in one would be seen.
@Suite(.timeLimit(.minutes(5))) struct TLSMemoryTests {
    /// The two ends of a handshake, and how it went.
    struct Pair {
        let client: TLSEngine
        let server: TLSEngine
        private let sockets: [Socket]

        init(client: TLSSettings, server: TLSSettings, port: Int = 0) throws {
            var ends: [Int32] = [-1, -1]
            try #require(socketpair(AF_UNIX, closeOnExec, 0, &ends) == 0)
            sockets = try ends.map { end throws(SocketError) in try Socket(adopting: end) }
            self.client = try TLSEngine(
                context: .shared(for: client), descriptor: ends[0], hostName: "localhost", port: port)
            self.server = try TLSEngine(
                context: .shared(for: server), descriptor: ends[1], hostName: "the client")
        }

        /// Both inside another two, whose handshake is done.
        init(client: TLSSettings, server: TLSSettings, inside outer: Pair) throws {
            sockets = outer.sockets
            self.client = try TLSEngine(
                context: .shared(for: client), descriptor: -1, hostName: "localhost", through: outer.client)
            self.server = try TLSEngine(
                context: .shared(for: server), descriptor: -1, hostName: "the client", through: outer.server)
        }

        /// Turns until both are done; either may throw.
        func handshake(_ answer: (TLSEngine.Question) -> Void = { _ in }) throws {
            var isDone = [false, false]
            while isDone != [true, true] {
                for (index, engine) in [client, server].enumerated() where !isDone[index] {
                    switch try engine.handshake() {
                    case .done: isDone[index] = true
                    case .wantsRead, .wantsWrite: break
                    case .waits: engine.takeQuestion(whenDecided: {}).map(answer)
                    }
                }
            }
        }

        /// Bytes in both directions, and an orderly end.
        func talk() throws {
            var buffer = [UInt8](repeating: 0, count: 100)
            for (from, to) in [(client, server), (server, client)] {
                let bytes: [UInt8] = [1, 2, 3]
                #expect(try bytes.withUnsafeBytes { try from.write($0) } == .bytes(3))
                #expect(try buffer.withUnsafeMutableBytes { try to.read(into: $0) } == .bytes(3))
            }
            #expect(client.shutdown() == .done)
            #expect(try buffer.withUnsafeMutableBytes { try server.read(into: $0) } == .end)
            #expect(server.shutdown() == .done)
        }
    }

    private static func accepting(_ question: TLSEngine.Question) {
        switch question {
        case .trust(let trust): trust.accept()
        case .identity(let request): request.useDefault()
        }
    }

    /// Every kind of handshake once: good, resumed, asked, refused, dropped in the middle.
    private static func round(_ port: Int, _ version: TLSSettings.Version) throws {
        let certificates = TestCertificates.shared
        let identity = try TLSIdentity(
            chainFile: certificates.path(.client), privateKeyFile: certificates.keyPath)
        let client = TLSSettings.test {
            $0.identity = identity
            $0.maximumVersion = version
            $0.alpn = ["h2"]
            $0.revocationLists = [.file(certificates.revocationListPath)]
        }
        let server = try TLSServerTests.settings {
            $0.clientCertificates = .required
            $0.alpn = ["h2"]
        }
        let good = try Pair(client: client, server: server, port: port)
        try good.handshake()
        try good.talk()
        #expect(good.client.information.applicationProtocol == "h2")
        let asked = try Pair(client: client, server: server)
        asked.client.ask(forTrust: true, forIdentity: true)
        asked.server.ask(forTrust: true, forIdentity: false)
        try asked.handshake(accepting)
        try asked.talk()
        var expired = server
        expired.identity = try TLSIdentity(
            chainFile: certificates.path(.expired), privateKeyFile: certificates.keyPath)
        let refused = try Pair(client: client, server: expired)
        #expect(throws: TLSError.self) { try refused.handshake() }
        let dropped = try Pair(client: client, server: server)
        dropped.client.ask(forTrust: true, forIdentity: false)
        _ = try? dropped.client.handshake()
        _ = try? dropped.server.handshake()
        _ = try? dropped.client.handshake()
    }

    @Test(arguments: [TLSSettings.Version.tls12, .tls13])
    func `our client and our server understand each other`(version: TLSSettings.Version) throws {
        try Self.round(0, version)
    }

    @Test func `a session of our server is taken up by our client`() throws {
        let port = 1_000_000
        for turn in 0..<4 {
            let pair = try Pair(client: .test, server: TLSServerTests.settings(), port: port)
            try pair.handshake()
            try pair.talk()
            #expect(pair.client.isResumed == (turn > 0))
            #expect(pair.server.isResumed == (turn > 0))
        }
    }

    @Test func `a thousand handshakes leave nothing behind`() async {
        await #expect(processExitsWith: .success) {
            // What is kept once and for all: contexts, caches of OpenSSL's, sessions to their limit.
            for _ in 0..<30 {
                for version in [TLSSettings.Version.tls12, .tls13] { try Self.round(1, version) }
            }
            let before = try memoryInUse()
            for _ in 0..<150 {
                for version in [TLSSettings.Version.tls12, .tls13] { try Self.round(1, version) }
            }
            let after = try memoryInUse()
            // 1,200 handshakes: one leaked certificate in each would be 1,200,000 bytes or more.
            precondition(after - before < 800_000, "\(before) bytes before, \(after) after")
        }
    }
}

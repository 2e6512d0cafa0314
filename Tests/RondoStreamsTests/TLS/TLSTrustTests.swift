import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import RondoTesting
import Testing

/// Questions in the middle of a handshake, and when they are answered.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct TLSTrustTests {
    /// A client of `openssl s_server` that asks whether to trust; what it says when it is done.
    private func connect(
        _ kind: TestCertificates.Kind, _ settings: TLSSettings = .test, _ options: [String] = [],
        answer: @escaping (TLSTrust) -> Void
    ) throws -> BlockingTLSClient {
        let (server, port) = try OpenSSLServer.start(kind, options)
        let client = try BlockingTLSClient(port: port, settings: settings, keeping: server)
        client.engine.ask(forTrust: true, forIdentity: false)
        try client.handshake { question in
            if case .trust(let trust) = question { answer(trust) }
        }
        try client.exchangeLine()
        return client
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `a wrong certificate can be accepted`(version: String) throws {
        let client = try connect(.expired, .test, [version]) { trust in
            #expect(trust.host == "localhost")
            #expect(!trust.isTrusted)
            #expect(trust.problems.map(\.kind) == [.expired])
            #expect(trust.explanation?.contains("expired on 2021-01-01") == true)
            #expect(trust.certificates.map(\.subject) == ["CN=localhost"])
            #expect(trust.chain.map(\.subject) == ["CN=localhost", "CN=Rondo Test Authority"])
            trust.accept()
            trust.reject()
        }
        #expect(client.engine.certificateProblem?.kind == .expired)
    }

    @Test func `the trust handler gets every problem of the certificate`() throws {
        let authority = TestCertificates.shared.strangerPath
        _ = try connect(.wrongHost, .test { $0.certificateAuthorities = [.file(authority)] }) { trust in
            #expect(trust.problems.map(\.kind) == [.unknownIssuer, .hostNameMismatch])
            trust.accept()
        }
        _ = try connect(.good) { trust in
            #expect(trust.isTrusted)
            #expect(trust.problems.isEmpty)
            #expect(trust.explanation == nil)
            trust.useDefault()
        }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `a right certificate can be rejected`(version: String) throws {
        let error = try #require(throws: TLSError.self) {
            try connect(.good, .test, [version]) { $0.reject() }
        }
        guard case .certificate(let problem) = error.reason else { throw error }
        #expect(problem.kind == .rejected)
        #expect(
            error.description == "the certificate of localhost (CN=localhost) was rejected by this program")
    }

    @Test(arguments: [true, false])
    func `by default, and without an answer, the settings decide`(answers: Bool) throws {
        let error = try #require(throws: TLSError.self) {
            // Let go of when the call returns.
            try connect(.expired) { trust in if answers { trust.useDefault() } }
        }
        guard case .certificate(let problem) = error.reason else { throw error }
        #expect(problem.kind == .expired)
    }

    // MARK: - On a run loop

    @Test func `a trust handler may be answered later by another thread, and the loop goes on`() throws {
        let (server, port) = try OpenSSLServer.start(.expired)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let clock = ManualClock(advancesAutomatically: false)
            clock.attach(to: loop)
            var configuration = SocketChannel.Configuration(host: "localhost", port: Int(port), tls: .test)
            configuration.openingLimit = 5
            let talk = Conversation(SocketChannel(configuration))
            let box = Mutex<TLSTrust?>(nil)
            talk.channel.handlers.onTrust = { trust in box.withLock { $0 = trust } }
            talk.open(in: loop)
            try loop.run { box.withLock { $0 != nil } }
            let calls = Mutex(0)
            let other = RunLoop.Source { calls.withLock { $0 += 1 } }
            loop.add(other, forMode: .default)
            for turn in 1...20 {
                other.signal()
                try loop.run { calls.withLock { $0 } == turn }
            }
            other.invalidate()
            // The time that the program takes is not the peer's.
            clock.advance(by: 6)
            loop.pass()
            let waiting = "\(talk.channel.isOpen) \(talk.words.last ?? "")"
            let trust = Handover(value: box.withLock { $0 })
            box.withLock { $0 = nil }
            Thread.detachNewThread { trust.value?.accept() }
            try loop.run { talk.channel.isOpen || talk.failure != nil }
            talk.say("hello\n")
            try loop.run { talk.text == "olleh\n" }
            return [waiting] + talk.words.filter { $0 != "readable" }.suffix(2)
        }
        #expect(findings == ["false connected", "secured", "open"])
    }

    private struct Handover: Sendable {
        let value: TLSTrust?
    }

    @Test func `a channel that is closed while it waits does not mind the answer`() throws {
        let (server, port) = try OpenSSLServer.start(.good)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let talk = Conversation(port, host: "localhost", tls: .test)
            var trust: TLSTrust?
            talk.channel.handlers.onTrust = { trust = $0 }
            talk.open(in: loop)
            try loop.run { trust != nil }
            talk.channel.close()
            trust?.accept()
            loop.add(Port(), forMode: .default)
            loop.pass()
            return [talk.words.last ?? "none", "\(talk.channel.isOpen)"]
        }
        #expect(findings == ["connected", "false"])
    }

    @Test func `the settings' handler is called on the loop's thread with no lock held`() throws {
        let (server, port) = try OpenSSLServer.start(.expired)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let (input, output) = streamsToHost(port, host: "localhost")
            let log = EventLog()
            let thread = pthread_self()
            let settings = TLSSettings.test {
                $0.trustHandler = TLSTrustHandler { trust in
                    log.note("\(pthread_equal(thread, pthread_self()) != 0) \(trust.problems.map(\.kind))")
                    trust.accept()
                }
            }
            #expect(input.setProperty(settings as AnyObject, forKey: .tlsSettingsKey))
            input.open()
            output.open()
            // Waits in a private mode, where the handler is called as well.
            _ = output.writeAll(Array("ab\n".utf8))
            return [String(decoding: input.bytes().1, as: UTF8.self)] + log.entries
        }
        #expect(findings == ["ba\n", "true \([CertificateProblem.Kind.expired])"])
    }

    /// Asks a stream when it goes.
    ///
    /// `@unchecked Sendable`: one thread has it.
    private final class Asker: @unchecked Sendable {
        private let stream: InputStream
        private let log: EventLog

        init(_ stream: InputStream, _ log: EventLog) { (self.stream, self.log) = (stream, log) }

        deinit { log.note("\(stream.property(forKey: .socketRemotePortNumberKey) ?? 0 as NSNumber)") }
    }

    private static func outputWithAsker(_ log: EventLog) -> OutputStream {
        let (input, output) = streamsToHost(7, host: "localhost")
        let asker = Asker(input, log)
        let settings = TLSSettings.test { settings in
            settings.trustHandler = TLSTrustHandler { _ in withExtendedLifetime(asker) {} }
        }
        _ = output.setProperty(settings as AnyObject, forKey: .tlsSettingsKey)
        return output
    }

    @Test(arguments: ["closed", "secured otherwise"])
    func `objects that only a trust handler holds are released with no lock held`(connection: String) throws {
        let log = EventLog()
        let findings = try onStreamThread { loop in
            let output = Self.outputWithAsker(log)
            output.open()
            log.note("now")
            if connection == "closed" {
                output.close()
            } else {
                _ = output.setProperty(TLSSettings.test { _ in } as AnyObject, forKey: .tlsSettingsKey)
            }
            log.note("then")
            return []
        }
        #expect(findings == [] && log.entries == ["now", "7", "then"])
    }

    @Test func `a handler may close its own stream`() throws {
        let (server, port) = try OpenSSLServer.start(.good)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let (input, output) = streamsToHost(port, host: "localhost")
            let streams = Streams(input: input, output: output)
            let isClosed = Mutex(false)
            let settings = TLSSettings.test {
                $0.trustHandler = TLSTrustHandler { _ in
                    streams.input.close()
                    streams.output.close()
                    isClosed.withLock { $0 = true }
                }
            }
            _ = input.setProperty(settings as AnyObject, forKey: .tlsSettingsKey)
            input.schedule(in: loop, forMode: .default)
            input.open()
            output.open()
            try loop.run { isClosed.withLock { $0 } }
            return ["\(input.streamStatus == .closed)"]
        }
        #expect(findings == ["true"])
    }

    /// `@unchecked Sendable`: used on one thread.
    private struct Streams: @unchecked Sendable {
        let input: InputStream
        let output: OutputStream
    }

    // MARK: - The server's question

    @Test(arguments: [true, false])
    func `a server decides about a client`(accepts: Bool) throws {
        let listener = try TestListener()
        let certificates = TestCertificates.shared
        let client = try TestServerProcess([
            "openssl", "s_client", "-connect", "127.0.0.1:\(listener.port)", "-cert",
            certificates.path(.expired), "-key", certificates.keyPath, "-quiet",
        ])
        defer { client.terminate() }
        let settings = try TLSServerTests.settings { $0.clientCertificates = .required }
        let server = try BlockingTLSClient(accepted: listener.accept(), settings: settings)
        server.engine.ask(forTrust: true, forIdentity: false)
        var shown: [TLSCertificate] = []
        let handshake = {
            try server.handshake { question in
                guard case .trust(let trust) = question else { return }
                shown = trust.certificates
                #expect(trust.problems.map(\.kind) == [.expired])
                if accepts { trust.accept() } else { trust.useDefault() }
            }
        }
        if accepts {
            try handshake()
            client.tell("hello")
            #expect(try server.read().1 == Array("hello\n".utf8))
        } else {
            let error = try #require(throws: TLSError.self) { try handshake() }
            guard case .certificate(let problem) = error.reason else { throw error }
            #expect(problem.kind == .expired)
        }
        #expect(shown.first?.subject == "CN=localhost")
    }

    // MARK: - Identities

    private static var demanding: [String] {
        ["-Verify", "1", "-verify_return_error", "-CAfile", TestCertificates.shared.authorityPath]
    }

    private func showing(
        _ version: String, _ settings: TLSSettings = .test,
        answer: @escaping (TLSIdentityRequest) throws -> Void
    ) throws {
        let (server, port) = try OpenSSLServer.start(.good, Self.demanding + [version])
        defer { server.terminate() }
        let client = try BlockingTLSClient(port: port, settings: settings)
        client.engine.ask(forTrust: false, forIdentity: true)
        try client.handshake { question in
            if case .identity(let request) = question { try? answer(request) }
        }
        try client.exchangeLine()
    }

    private var identity: TLSIdentity {
        get throws {
            let certificates = TestCertificates.shared
            return try TLSIdentity(
                chainFile: certificates.path(.client), privateKeyFile: certificates.keyPath)
        }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `a server that asks gets an identity that was chosen for it`(version: String) throws {
        let identity = try identity
        try showing(version) { request in
            #expect(request.host == "localhost")
            #expect(request.issuers == ["CN=Rondo Test Authority"])
            #expect(request.encodedIssuers.map(\.isEmpty) == [false])
            #expect(request.accepts(identity))
            request.use(identity)
        }
        try showing(version, .test { $0.identity = identity }) { $0.useDefault() }
        // Dropped, which is the default as well.
        try showing(version, .test { $0.identity = identity }) { _ in }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `a server that asks in vain refuses`(version: String) throws {
        let identity = try identity
        for settings in [TLSSettings.test, .test { $0.identity = identity }] {
            let error = try #require(throws: TLSError.self) {
                try showing(version, settings) { $0.useNone() }
            }
            guard case .certificateRequired = error.reason else { throw error }
        }
    }

    @Test func `an identity may be chosen later, on a run loop`() throws {
        let (server, port) = try OpenSSLServer.start(.good, Self.demanding)
        defer { server.terminate() }
        let identity = try identity
        let findings = try onStreamThread { loop in
            let talk = Conversation(port, host: "localhost", tls: .test)
            var request: TLSIdentityRequest?
            talk.channel.handlers.onIdentityRequest = { request = $0 }
            talk.open(in: loop)
            try loop.run { request != nil }
            loop.pass()
            let waiting = talk.channel.isOpen
            request?.use(identity)
            try loop.run { talk.channel.isOpen || talk.failure != nil }
            talk.say("hello\n")
            try loop.run { talk.text == "olleh\n" || talk.failure != nil }
            return ["\(waiting)", talk.text]
        }
        #expect(findings == ["false", "olleh\n"])
    }
}

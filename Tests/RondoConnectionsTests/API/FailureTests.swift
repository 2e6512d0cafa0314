import Rondo
import RondoTestSupport
import Testing

/// Everything that goes wrong in reality: each ends in the right code, with a message for people.
enum Failure: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case unknownHost, unknownHostByItsForm, refusedPort
    case expiredCertificate, notYetValidCertificate, selfSignedCertificate, wrongHostCertificate
    case untrustedCertificate
    case oldTLS, noTLS, closedInHandshake
    case truncatedLength, truncatedChunks, truncatedHead, truncatedTLS, resetInBody
    case garbage, twoLengths, badChunk, badField, closedAtOnce, closedUnread, resetAtOnce, silence,
        silenceInHandshake

    var testDescription: String { rawValue }

    struct Outcome {
        let error: URLError?
        let url: URL
        let calls: [String]
    }

    var expected: Set<URLError.Code> {
        switch self {
        // Without a name server the look-up fails in place of its answer.
        case .unknownHost: [.cannotFindHost, .dnsLookupFailed]
        case .unknownHostByItsForm: [.cannotFindHost]
        case .refusedPort: [.cannotConnectToHost]
        case .expiredCertificate: [.serverCertificateHasBadDate]
        case .notYetValidCertificate: [.serverCertificateNotYetValid]
        case .selfSignedCertificate, .wrongHostCertificate: [.serverCertificateUntrusted]
        case .untrustedCertificate: [.serverCertificateHasUnknownRoot]
        case .oldTLS, .noTLS, .closedInHandshake: [.secureConnectionFailed]
        case .truncatedLength, .truncatedChunks, .truncatedHead, .truncatedTLS, .resetInBody, .closedAtOnce,
            .closedUnread, .resetAtOnce:
            [.networkConnectionLost]
        case .garbage, .badChunk, .badField: [.cannotParseResponse]
        // Well formed, and without sense.
        case .twoLengths: [.badServerResponse]
        case .silence, .silenceInHandshake: [.timedOut]
        }
    }

    /// The cause, which the message names besides the host.
    var cause: String {
        switch self {
        case .unknownHost, .unknownHostByItsForm: "name"
        case .refusedPort: "Connection refused"
        case .expiredCertificate: "expired"
        case .notYetValidCertificate: "not valid before 2090"
        case .selfSignedCertificate: "itself"
        case .wrongHostCertificate: "elsewhere.invalid"
        case .untrustedCertificate: "issue"
        case .oldTLS: "version"
        case .noTLS: "not TLS"
        case .closedInHandshake: "closed"
        case .truncatedLength: "4 of the 100 bytes"
        case .truncatedChunks, .truncatedTLS: "end had not come"
        case .truncatedHead: "middle of the response's head"
        case .resetInBody: "ECONNRESET"
        case .garbage: "does not answer in HTTP"
        case .twoLengths: "two lengths"
        case .badChunk: "chunk"
        case .badField: "Secret"
        case .closedAtOnce: "without an answer"
        // FIN or RST, as the request was there already or not.
        case .closedUnread: "connection"
        case .resetAtOnce: "ECONNRESET"
        case .silence, .silenceInHandshake: "0.3 s"
        }
    }

    /// The delegate's calls before the failure.
    var callsBefore: [String] {
        switch self {
        case .truncatedLength, .truncatedChunks, .truncatedTLS, .resetInBody, .badChunk:
            ["response 200", "data"]
        default: []
        }
    }

    /// The layer below knows the cause, and it is handed up.
    var hasUnderlyingError: Bool? {
        switch self {
        case .silence, .silenceInHandshake: false
        // Whichever layer notices first.
        case .closedUnread: nil
        default: true
        }
    }

    // MARK: - Making it happen

    func happen() throws -> Outcome {
        switch self {
        case .unknownHost: return try Self.load("http://nosuch.invalid/x")
        case .unknownHostByItsForm:
            return try Self.load("http://\(String(repeating: "a", count: 64)).invalid/x")
        case .refusedPort:
            let port = try RefusedPort()
            return try withExtendedLifetime(port) { try Self.load("http://127.0.0.1:\(port.port)/x") }
        case .expiredCertificate: return try Self.loadFromOpenSSL(.expired)
        case .notYetValidCertificate: return try Self.loadFromOpenSSL(.notYetValid)
        case .selfSignedCertificate: return try Self.loadFromOpenSSL(.selfSigned)
        case .wrongHostCertificate: return try Self.loadFromOpenSSL(.wrongHost)
        case .untrustedCertificate: return try Self.loadFromOpenSSL(.untrusted)
        case .oldTLS: return try Self.loadFromOpenSSL(.good, ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"])
        case .noTLS:
            return try Self.load(scheme: "https") { peer in
                try peer.send("220 mail.example ready\r\n")
                peer.finish()
                peer.waitForEnd()
            }
        case .closedInHandshake: return try Self.load(scheme: "https") { _ in }
        case .truncatedLength: return try answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        case .truncatedChunks:
            return try answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
        case .truncatedHead: return try answer("HTTP/1.1 200 OK\r\nContent-Le")
        case .truncatedTLS:
            let (server, port) = try Stranger.pythonTLS(
                .good,
                """
                tls.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\nhalf")
                os.close(tls.detach())
                """)
            defer { server.terminate() }
            return try Self.load("https://localhost:\(port)/x")
        case .resetInBody:
            return try Self.load { peer in
                _ = try peer.readRequest()
                try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
                // A reset overtakes what was not read yet; so it waits for the delegate.
                try Self.halfWasRead.value.wait()
                peer.reset()
            }
        case .garbage: return try answer("\u{1}\u{2}garbage\r\n\r\n")
        case .twoLengths:
            return try answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nhalf")
        case .badChunk:
            return try answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nxyz\r\n")
        case .badField: return try answer("HTTP/1.1 200 OK\r\nSecret : x\r\n\r\n")
        case .closedAtOnce: return try Self.load { peer in _ = try peer.readRequest() }
        case .closedUnread: return try Self.load { _ in }
        case .resetAtOnce:
            return try Self.load { peer in
                _ = try peer.readRequest()
                peer.reset()
            }
        case .silence: return try Self.load(timeout: 0.3) { peer in peer.waitForEnd() }
        case .silenceInHandshake:
            return try Self.load(scheme: "https", timeout: 0.3) { peer in peer.waitForEnd() }
        }
    }

    private static let halfWasRead = Box(Latch())

    private func answer(_ text: String) throws -> Outcome {
        try Self.load { peer in
            _ = try peer.readRequest()
            try peer.send(text)
            peer.finish()
            peer.waitForEnd()
        }
    }

    private static func loadFromOpenSSL(_ kind: TestCertificates.Kind, _ options: [String] = []) throws
        -> Outcome
    {
        let (server, port) = try OpenSSLPages.start(kind, options)
        defer { server.terminate() }
        return try load("https://localhost:\(port)/x")
    }

    private static func load(
        scheme: String = "http", timeout: TimeInterval = 50,
        serve: @escaping @Sendable (TestPeer) throws -> Void
    ) throws -> Outcome {
        let server = try TestServer(serve: serve)
        defer { server.stop() }
        return try load("\(scheme)://localhost:\(server.port)/x", timeout: timeout)
    }

    private static func load(_ text: String, timeout: TimeInterval = 50) throws -> Outcome {
        let url = url(text)
        let latch = Latch()
        halfWasRead.value = latch
        let recorder = Recorder { call, _ in if call == .data { latch.open() } }
        var request = URLRequest(url: url)
        request.timeoutInterval = timeout
        try RondoConnectionsTests.load(request, recorder: recorder) { $0.trustTestAuthority() }
        return Outcome(error: recorder.error, url: url, calls: recorder.calls)
    }
}

@Suite(.timeLimit(.minutes(5)), .leavesNoConnections, .serialized) struct FailureTests {
    @Test(arguments: Failure.allCases)
    func `UC-59 each failure ends in the right code and a message that names host and cause`(
        failure: Failure
    ) throws {
        let outcome = try failure.happen()
        let error = try #require(outcome.error, "\(outcome.calls)")
        #expect(failure.expected.contains(error.code), "\(error)")
        #expect(outcome.calls == failure.callsBefore + ["fail \(error.errorCode)"])
        let message = error.localizedDescription
        #expect(message.contains(outcome.url.host ?? "no host"))
        #expect(message.contains(failure.cause))

        let asNSError = error as NSError
        #expect(asNSError.domain == NSURLErrorDomain)
        #expect(asNSError.userInfo[NSURLErrorFailingURLErrorKey] as? URL == outcome.url)
        #expect(
            asNSError.userInfo["NSErrorFailingURLStringKey"] as? String == outcome.url.absoluteString)
        #expect(error.failingURL == outcome.url)
        if let expected = failure.hasUnderlyingError {
            #expect((asNSError.userInfo[NSUnderlyingErrorKey] is NSError) == expected)
        }
    }

    @Test func `UC-59 the errno of a refused connection is the underlying error`() throws {
        let error = try #require(try Failure.refusedPort.happen().error as NSError?)
        let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError
        #expect(cause?.domain == NSPOSIXErrorDomain)
        #expect(cause?.code == Int(ECONNREFUSED))
    }

    /// In a process of its own, because other tests open and close descriptors meanwhile.
    @Test func `no failure leaves a descriptor or a mode that is not empty`() async {
        await #expect(processExitsWith: .success) {
            func all() throws {
                for failure in Failure.allCases {
                    let outcome = try failure.happen()
                    precondition(outcome.error != nil, "\(failure): \(outcome.calls)")
                }
                URLConnection.closeIdleConnections()
            }
            // What is opened once a process: certificates, OpenSSL's files, the resolver; some of it late.
            try makeWhatStays()
            try all()
            try all()
            let before = try OpenDescriptors()
            try all()
            try before.waitUntilOthersAreClosed()
        }
    }

    /// Success leaves nothing either, once idle connections are closed.
    @Test func `no load leaves a descriptor once idle connections are closed`() async {
        await #expect(processExitsWith: .success) {
            func all() throws {
                let server = try TestServer.answering { request in request.target }
                for number in 0..<5 {
                    let recorder = try load(server.url("/\(number)"))
                    precondition(recorder.text == "/\(number)", "\(recorder.calls)")
                    let cancelled = Recorder { _, connection in connection.cancel() }
                    try load(server.url("/\(number)"), recorder: cancelled)
                }
                URLConnection.closeIdleConnections()
                server.stop()
            }
            try makeWhatStays()
            try all()
            let before = try OpenDescriptors()
            try all()
            try before.waitUntilOthersAreClosed()
        }
    }
}

import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// Challenges by disposition, of sessions and of tasks.
@Suite(.timeLimit(.minutes(2)), .serialized, .leavesNoConnections) struct ChallengeTests {
    typealias Verdict = (URLSession.AuthChallengeDisposition, URLCredential?)

    /// Notes what it is asked, and the end.
    private class Ending: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        // `@unchecked Sendable` because the class is open: nothing in it changes.
        let log = EventLog()
        let answer: @Sendable (URLAuthenticationChallenge) -> Verdict
        let body = Box(Data())

        init(_ answer: @escaping @Sendable (URLAuthenticationChallenge) -> Verdict) { self.answer = answer }

        func note(_ level: String, _ challenge: URLAuthenticationChallenge) {
            let method = challenge.protectionSpace.authenticationMethod.replacingOccurrences(
                of: "NSURLAuthenticationMethod", with: "")
            log.note("\(level) \(method) \(challenge.previousFailureCount)")
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            log.note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
            completionHandler(.allow)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            body.value += data
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            log.note("complete \((error as? URLError)?.errorCode ?? 0)")
        }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler:
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) ->
                Void
        ) {
            note("session", challenge)
            let verdict = answer(challenge)
            completionHandler(verdict.0, verdict.1)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler:
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) ->
                Void
        ) {
            note("task", challenge)
            let verdict = answer(challenge)
            completionHandler(verdict.0, verdict.1)
        }
    }

    /// The response to a CONNECT is a head alone, whose connection is gone when the delegate decides about it.
    @Test
    func `UC-48 US-45 a proxy's 407 is the result also if the delegate decides later about the response`()
        throws
    {
        let proxy = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send(
                "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"r\"\r\nContent-Length: 3\r\n\r\nwho")
            peer.waitForEnd()
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connection.proxy = .by(
            StreamProxy(.httpConnect, host: "127.0.0.1", port: Int(proxy.port)))
        let notes = Notes()
        let decide = Box<[@Sendable (URLSession.ResponseDisposition) -> Void]>([])
        notes.answerResponses { _, handler in decide.mutate { $0.append(handler) } }
        let session = URLSession(configuration: configuration, delegate: notes, delegateQueue: nil)
        session.dataTask(with: try #require(URL(string: "https://host.invalid/"))).resume()
        let handler = try waitFor("the question") { decide.value.first }
        #expect(notes.calls == ["response 407"])
        decide.value = []
        handler(.allow)
        try waitFor("the end") { notes.completed == 1 ? () : nil }
        #expect(notes.calls == ["response 407", "complete"])
        session.invalidateAndCancel()
    }

    /// Has the method of tasks alone.
    private final class TaskOnly: NSObject, URLSessionDataDelegate, Sendable {
        let log = EventLog()

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            log.note("task \(challenge.protectionSpace.authenticationMethod)")
            return (.performDefaultHandling, nil)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            log.note("complete \((error as? URLError)?.errorCode ?? 0)")
        }
    }

    private static let good = "Basic " + Data("user:pass".utf8).base64EncodedString()
    private static let user = URLCredential(user: "user", password: "pass", persistence: .none)

    private static func server(
        _ schemes: [String] = ["Basic realm=\"r\""], status: Int = 401
    ) throws -> TestServer {
        try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.value("Authorization") == Self.good {
                    try peer.respond(body: "in")
                } else {
                    try peer.respond(
                        "\(status) No", schemes.map { "WWW-Authenticate: \($0)" }, body: "out")
                }
            }
        }
    }

    private static func run(
        _ url: URL, _ configuration: URLSessionConfiguration = .ephemeral,
        _ answer: @escaping @Sendable (URLAuthenticationChallenge) -> Verdict
    ) throws -> [String] {
        let delegate = Ending(answer)
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        session.dataTask(with: url).resume()
        try waitFor("the end") { delegate.log.entries.last?.hasPrefix("complete") ?? false ? () : nil }
        session.invalidateAndCancel()
        return delegate.log.entries
    }

    @Test func `US-55 US-56 challenges of HTTP go to the task's method, and each disposition has its effect`()
        throws
    {
        let server = try Self.server()
        #expect(
            try Self.run(server.url()) { _ in (.useCredential, Self.user) }
                == ["task HTTPBasic 0", "response 200", "complete 0"])
        #expect(
            try Self.run(server.url()) { _ in (.useCredential, nil) }
                == ["task HTTPBasic 0", "response 401", "complete 0"])
        #expect(
            try Self.run(server.url()) { _ in (.performDefaultHandling, nil) }
                == ["task HTTPBasic 0", "response 401", "complete 0"])
        #expect(
            try Self.run(server.url()) { _ in (.cancelAuthenticationChallenge, nil) }
                == ["task HTTPBasic 0", "complete -999"])
        #expect(
            try Self.run(server.url()) { challenge in
                challenge.sender?.cancel(challenge)
                return (.performDefaultHandling, nil)
            } == ["task HTTPBasic 0", "complete -999"])
        #expect(
            try Self.run(server.url()) { _ in (.rejectProtectionSpace, nil) }
                == ["task HTTPBasic 0", "response 401", "complete 0"])
    }

    private final class Refusing: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { true }
        override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
        override func startLoading() {
            client?.urlProtocol(self, didFailWithError: URLError(.userCancelledAuthentication))
        }
        override func stopLoading() {}
    }

    @Test func `US-14 US-56 a protocol's own error of a cancelled challenge is passed on`() throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [Refusing.self]
        let calls = try Self.run(try #require(URL(string: "refused://host/")), configuration) { _ in
            (.performDefaultHandling, nil)
        }
        #expect(calls == ["complete -1012"])
    }

    private enum Mine: Error, Equatable { case first(Int) }

    private final class FailingInItsOwnWay: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { true }
        override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
        override func startLoading() { client?.urlProtocol(self, didFailWithError: Mine.first(3)) }
        override func stopLoading() {}
    }

    @Test
    func `US-81 a protocol's own Swift error keeps its type, and is the cause of a URLError that is thrown`()
        async throws
    {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [FailingInItsOwnWay.self]
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        let url = try #require(URL(string: "mine://host/"))
        let handed = await withCheckedContinuation { done in
            session.dataTask(with: url) { _, _, error in done.resume(returning: error as? Mine) }.resume()
        }
        #expect(handed == .first(3))
        let thrown = await #expect(throws: URLError.self) { _ = try await session.data(from: url) }
        #expect(thrown?.userInfo[NSUnderlyingErrorKey] as? Mine == .first(3))
    }

    @Test func `US-56 rejectProtectionSpace asks about the next protection space`() throws {
        let server = try Self.server(["Digest realm=\"d\", nonce=\"n\"", "Basic realm=\"b\""])
        let calls = try Self.run(server.url()) { challenge in
            challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic
                ? (.useCredential, Self.user) : (.rejectProtectionSpace, nil)
        }
        #expect(calls == ["task HTTPDigest 0", "task HTTPBasic 0", "response 200", "complete 0"])
    }

    @Test func `US-57 after a hundred refused credentials the response is the result`() throws {
        let server = try TestServer { peer in
            var number = 0
            while true {
                _ = try peer.readRequest()
                number += 1
                try peer.respond(
                    "401 No", ["WWW-Authenticate: Basic realm=\"\(number)\""], body: "out")
            }
        }
        let calls = try Self.run(server.url()) { _ in (.useCredential, Self.user) }
        #expect(calls.count == 102)
        #expect(calls.suffix(2) == ["response 401", "complete 0"])
        #expect(server.requests.count == 101)
    }

    @Test func `US-57 failures are counted, and default handling takes the configuration's credential`()
        throws
    {
        let server = try Self.server()
        let calls = try Self.run(server.url()) { challenge in
            challenge.previousFailureCount < 2
                ? (.useCredential, URLCredential(user: "user", password: "no", persistence: .none))
                : (.useCredential, Self.user)
        }
        #expect(
            calls == [
                "task HTTPBasic 0", "task HTTPBasic 1", "task HTTPBasic 2", "response 200", "complete 0",
            ])
        let configuration = URLSessionConfiguration.ephemeral
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: Int(server.port), protocol: "http", realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        configuration.urlCredentialStorage?.setDefaultCredential(
            URLCredential(user: "user", password: "pass", persistence: .forSession), for: space)
        let proposed = Box<String?>(nil)
        #expect(
            try Self.run(server.url(), configuration) { challenge in
                proposed.value = challenge.proposedCredential?.user
                return (.performDefaultHandling, nil)
            } == ["task HTTPBasic 0", "response 200", "complete 0"])
        #expect(proposed.value == "user")
        // Rule US-13: without a storage it is not looked for.
        configuration.urlCredentialStorage = nil
        #expect(
            try Self.run(server.url(), configuration) { _ in (.performDefaultHandling, nil) }
                == ["task HTTPBasic 0", "response 401", "complete 0"])
    }

    @Test func `US-55 server trust goes to the session's method, each disposition with its effect`() throws {
        let (server, port) = try OpenSSLPages.start()
        defer { server.terminate() }
        let target = try #require(URL(string: "https://localhost:\(port)/"))
        let trusting = URLSessionConfiguration.ephemeral
        trusting.trustTestAuthority()
        #expect(
            try Self.run(target, trusting) { _ in (.performDefaultHandling, nil) }
                == ["session ServerTrust 0", "response 200", "complete 0"])
        let calls = try Self.run(target) { _ in (.performDefaultHandling, nil) }
        #expect(calls.first == "session ServerTrust 0")
        #expect(calls.last?.hasPrefix("complete -120") == true)
        #expect(
            try Self.run(target) { challenge in
                (.useCredential, challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) })
            } == ["session ServerTrust 0", "response 200", "complete 0"])
        #expect(
            try Self.run(target, trusting) { _ in (.cancelAuthenticationChallenge, nil) }
                == ["session ServerTrust 0", "complete -999"])
        #expect(
            try Self.run(target, trusting) { challenge in
                challenge.sender?.cancel(challenge)
                return (.performDefaultHandling, nil)
            } == ["session ServerTrust 0", "complete -999"])
        #expect(
            try Self.run(target, trusting) { _ in (.rejectProtectionSpace, nil) }
                == ["session ServerTrust 0", "complete -1202"])
    }

    @Test func `US-55 server trust goes to the task's method if the session's is not implemented`() throws {
        let (server, port) = try OpenSSLPages.start()
        defer { server.terminate() }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.trustTestAuthority()
        let delegate = TaskOnly()
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        session.dataTask(with: try #require(URL(string: "https://localhost:\(port)/"))).resume()
        try waitFor("the end") { delegate.log.entries.count == 2 ? () : nil }
        #expect(delegate.log.entries == ["task NSURLAuthenticationMethodServerTrust", "complete 0"])
        session.invalidateAndCancel()
    }

    @Test
    func
        `US-58 a verdict on a server holds for the session's later tasks on that connection, and for no other`()
        throws
    {
        let (server, port) = try pythonTLSServer()
        defer { server.terminate() }
        let target = try #require(URL(string: "https://localhost:\(port)/"))
        let delegates = (0..<2).map { _ in
            Ending { challenge in
                (.useCredential, challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) })
            }
        }
        for delegate in delegates {
            let session = URLSession(
                configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            for count in 1...2 {
                session.dataTask(with: target).resume()
                try waitFor("an end") {
                    delegate.log.entries.count { $0.hasPrefix("complete") } == count ? () : nil
                }
            }
            session.invalidateAndCancel()
            #expect(
                delegate.log.entries == [
                    "session ServerTrust 0", "response 200", "complete 0", "response 200", "complete 0",
                ])
        }
        #expect(delegates.map { String(decoding: $0.body.value, as: UTF8.self) } == ["00", "11"])
    }

    /// A task's own delegate without a method.
    private final class Silent: NSObject, URLSessionTaskDelegate {}

    @Test func `US-58 the session's verdict holds for tasks, too, whose own delegate answers no challenge`()
        async throws
    {
        let (server, port) = try pythonTLSServer()
        defer { server.terminate() }
        let target = try #require(URL(string: "https://localhost:\(port)/"))
        let delegate = Ending { challenge in
            (.useCredential, challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) })
        }
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        var bodies = ""
        for _ in 1...3 {
            let (body, _) = try await session.data(from: target, delegate: Silent())
            bodies += String(decoding: body, as: UTF8.self)
        }
        // The server answers with the number of the connection.
        #expect(bodies == "000")
        #expect(delegate.log.entries == ["session ServerTrust 0"])
    }

    /// A task's own delegate that accepts each server by the session's method.
    private class Accepting: NSObject, URLSessionTaskDelegate {
        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler:
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let trust = challenge.protectionSpace.serverTrust
            completionHandler(
                trust == nil ? .performDefaultHandling : .useCredential,
                trust.map { URLCredential(trust: $0) })
        }
    }

    /// What a class lacks is known to the process from its first challenge on.
    private final class AcceptingUnknown: Accepting {}
    private final class AcceptingUnknownBesideSession: Accepting {}

    @Test(arguments: [false, true], [false, true])
    func `US-58 the verdict of a task's own delegate holds for no other task`(
        hasSessionDelegate: Bool, isKnown: Bool
    ) async throws {
        let (server, port) = try pythonTLSServer()
        defer { server.terminate() }
        let target = try #require(URL(string: "https://localhost:\(port)/"))
        let delegate = hasSessionDelegate ? Ending { _ in (.performDefaultHandling, nil) } : nil
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        if isKnown {
            // After a 401 it is known that the class lacks the methods of tasks.
            let refusing = try Self.server()
            _ = try await session.data(from: refusing.url(), delegate: Accepting())
        }
        let own =
            isKnown ? Accepting() : hasSessionDelegate ? AcceptingUnknownBesideSession() : AcceptingUnknown()
        let (body, _) = try await session.data(from: target, delegate: own)
        #expect(body == Data("0".utf8))
        let error = await #expect(throws: URLError.self) { _ = try await session.data(from: target) }
        #expect((-1206 ... -1200).contains(error?.errorCode ?? 0))
        #expect(delegate?.log.entries.contains("session ServerTrust 0") ?? true)
    }

    @Test(arguments: ["TLSv1_2", "TLSv1_3"])
    func `UC-59 a server that wants a certificate fails the load with -1206`(version: String) async throws {
        let (server, port) = try demandingServer(version)
        defer { server.terminate() }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.trustTestAuthority()
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        let target = try #require(URL(string: "https://127.0.0.1:\(port)/"))
        let error = await #expect(throws: URLError.self) { _ = try await session.data(from: target) }
        #expect(error?.code == .clientCertificateRequired)
    }

    @Test func `UC-59 the alert of a server that wants a certificate counts more than the write that fails`()
        async throws
    {
        let (server, port) = try demandingServer()
        defer { server.terminate() }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.trustTestAuthority()
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        var request = URLRequest(url: try #require(URL(string: "https://127.0.0.1:\(port)/")))
        request.httpMethod = "POST"
        // More than the buffers of both sockets hold, so that the write fails before the alert is read.
        let body = Data(count: 32 << 20)
        for _ in 1...10 {
            let error = await #expect(throws: URLError.self) {
                _ = try await session.upload(for: request, from: body)
            }
            #expect(error?.code == .clientCertificateRequired)
        }
    }
}

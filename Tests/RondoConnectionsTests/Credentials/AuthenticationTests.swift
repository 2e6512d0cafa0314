import Rondo
import RondoMutex
import RondoTestSupport
import RondoTesting
import Testing

@testable import RondoConnections

/// Gets challenges by the method of today.
private final class Answering: NSObject, Recording, Sendable {
    let recorder = Recorder()
    let challenges = Box<[String]>([])
    private let answer: @Sendable (URLAuthenticationChallenge) -> Void

    init(_ answer: @escaping @Sendable (URLAuthenticationChallenge) -> Void) { self.answer = answer }

    func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge) {
        let space = challenge.protectionSpace
        let method = space.authenticationMethod.replacingOccurrences(
            of: "NSURLAuthenticationMethodHTTP", with: "")
        let text =
            "\(method) \(space.realm ?? "-") \(challenge.previousFailureCount) "
            + "\(challenge.proposedCredential?.user ?? "-")"
        challenges.mutate { $0.append(text) }
        answer(challenge)
    }

    func connection(_ connection: URLConnection, didReceive challenge: URLAuthenticationChallenge) {
        Issue.record("the older method was called")
    }

    func connection(
        _ connection: URLConnection, canAuthenticateAgainstProtectionSpace space: URLProtectionSpace
    ) -> Bool {
        Issue.record("the older method was called")
        return false
    }
}

/// Gets challenges by the older methods.
private final class Legacy: NSObject, URLConnectionDataDelegate, Sendable {
    let log = EventLog()
    private let wants: Bool
    private let answer: @Sendable (URLAuthenticationChallenge) -> Void

    init(wants: Bool = true, _ answer: @escaping @Sendable (URLAuthenticationChallenge) -> Void) {
        self.wants = wants
        self.answer = answer
    }

    func connection(
        _ connection: URLConnection, canAuthenticateAgainstProtectionSpace space: URLProtectionSpace
    ) -> Bool {
        log.note("can \(space.realm ?? "-")?")
        return wants
    }

    func connection(_ connection: URLConnection, didReceive challenge: URLAuthenticationChallenge) {
        log.note("challenge \(challenge.previousFailureCount)")
        answer(challenge)
    }

    func connection(_ connection: URLConnection, didCancel challenge: URLAuthenticationChallenge) {
        log.note("cancelled")
    }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        log.note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
    }

    func connectionDidFinishLoading(_ connection: URLConnection) { log.note("finish") }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        log.note("fail \((error as? URLError)?.errorCode ?? 0)")
    }
}

/// Challenges and credentials, and which delegate is asked for them. (The storages are the process's.)
@Suite(.timeLimit(.minutes(5)), .serialized, .leavesNoConnections) struct AuthenticationTests {
    private static let good = "Basic " + Data("user:pass".utf8).base64EncodedString()

    /// Wants Basic, in a realm of its own for each test.
    private static func server(realm: String = "r", status: String = "401 Unauthorized") throws -> TestServer
    {
        try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.target == "/away" {
                    try peer.respond("302 Found", ["Location: /in"])
                } else if request.value("Authorization") == Self.good {
                    try peer.respond(body: "in")
                } else {
                    try peer.respond(status, ["WWW-Authenticate: Basic realm=\"\(realm)\""], body: "out")
                }
            }
        }
    }

    private static func user(
        _ name: String = "user", _ password: String = "pass",
        persistence: URLCredential.Persistence = .none
    ) -> URLCredential {
        URLCredential(user: name, password: password, persistence: persistence)
    }

    private static func run(_ url: URL, _ delegate: any URLConnectionDelegate & Sendable) throws {
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            _ = URLConnection(request: URLRequest(url: url), delegate: delegate)
            return loop.runOut()
        }
        #expect(ended == .finished)
    }

    // MARK: - Whom to ask

    @Test func `UC-44 the method of today gets every challenge, and the older ones none`() throws {
        let server = try Self.server()
        let delegate = Answering { challenge in
            challenge.sender?.use(Self.user(), for: challenge)
        }
        try Self.run(server.url(), delegate)
        #expect(delegate.challenges.value == ["Basic r 0 -"])
        #expect(delegate.recorder.calls == ["response 200", "data", "finish"])
        #expect(delegate.recorder.text == "in")
    }

    @Test func `UC-44 a challenge can be answered on a delegate queue`() throws {
        let server = try Self.server()
        let delegate = Answering { challenge in
            challenge.sender?.use(Self.user(), for: challenge)
        }
        let connection = URLConnection(
            request: URLRequest(url: server.url()), delegate: delegate, startImmediately: false)
        connection?.setDelegateQueue(OperationQueue())
        connection?.start()
        try waitFor("the end") { delegate.recorder.isDone ? () : nil }
        #expect(delegate.recorder.text == "in")
    }

    /// Has the method of today and the older ones, and cancels.
    private final class Cancelling: NSObject, URLConnectionDataDelegate, Sendable {
        let log = EventLog()

        func connection(
            _ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge
        ) {
            log.note("challenge")
            challenge.sender?.cancel(challenge)
        }

        func connection(
            _ connection: URLConnection, canAuthenticateAgainstProtectionSpace space: URLProtectionSpace
        ) -> Bool {
            log.note("can?")
            return true
        }

        func connection(_ connection: URLConnection, didReceive challenge: URLAuthenticationChallenge) {
            log.note("older challenge")
        }

        func connection(_ connection: URLConnection, didCancel challenge: URLAuthenticationChallenge) {
            log.note("cancelled")
        }

        func connection(_ connection: URLConnection, didReceive response: URLResponse) {
            log.note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        }

        func connection(_ connection: URLConnection, didFailWithError error: any Error) {
            log.note("fail \((error as? URLError)?.errorCode ?? 0)")
        }
    }

    @Test func `UC-44 a delegate with the method of today is not told by an older one that it has cancelled`()
        throws
    {
        let server = try Self.server()
        let delegate = Cancelling()
        try Self.run(server.url(), delegate)
        #expect(delegate.log.entries == ["challenge", "fail -1012"])
    }

    @Test func `UC-48 a 407 where there is no proxy is a response, and no delegate is asked`() throws {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond(
                    "407 Proxy Authentication Required", ["Proxy-Authenticate: Basic realm=\"proxy\""],
                    body: "who?")
            }
        }
        let delegate = Answering { challenge in challenge.sender?.use(Self.user(), for: challenge) }
        try Self.run(url("http://user:pass@127.0.0.1:\(server.port)/"), delegate)
        #expect(delegate.challenges.value == [])
        #expect(delegate.recorder.calls == ["response 407", "data", "finish"])
        #expect(server.requests.map { $0.value("Proxy-Authorization") } == [nil])
    }

    @Test func `UC-45 a delegate that cannot authenticate leaves it to the default handling`() throws {
        let server = try Self.server(realm: "legacy")
        let delegate = Legacy(wants: false) { _ in Issue.record("it was asked") }
        try Self.run(server.url(), delegate)
        #expect(delegate.log.entries == ["can legacy?", "response 401", "finish"])
    }

    /// Has the older method, and not the question before it.
    private final class Unasked: NSObject, URLConnectionDataDelegate, Sendable {
        let log = EventLog()

        func connection(_ connection: URLConnection, didReceive challenge: URLAuthenticationChallenge) {
            log.note("challenge")
            challenge.sender?.use(AuthenticationTests.user(), for: challenge)
        }

        func connection(_ connection: URLConnection, didReceive response: URLResponse) {
            log.note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        }
    }

    @Test func `UC-45 a delegate without canAuthenticateAgainstProtectionSpace is shown the challenge`()
        throws
    {
        let server = try Self.server()
        let delegate = Unasked()
        try Self.run(server.url(), delegate)
        #expect(delegate.log.entries == ["challenge", "response 200"])
    }

    @Test func `UC-46 the older method comes only if the URL holds no credential that works`() throws {
        let server = try Self.server(realm: "u")
        let right = Legacy { _ in Issue.record("it was asked") }
        try Self.run(url("http://user:pass@127.0.0.1:\(server.port)/"), right)
        #expect(right.log.entries == ["can u?", "response 200", "finish"])
        let wrong = Legacy { challenge in
            #expect(challenge.proposedCredential?.user == "who")
            challenge.sender?.use(Self.user(), for: challenge)
        }
        try Self.run(url("http://who:pass@127.0.0.1:\(server.port)/"), wrong)
        #expect(wrong.log.entries == ["can u?", "can u?", "challenge 1", "response 200", "finish"])
    }

    // MARK: - The answer

    @Test func `UC-47 the answer may come later, from anywhere, and the loop is free meanwhile`() throws {
        let server = try Self.server()
        let clock = ManualClock(advancesAutomatically: false)
        let held = Box<Held?>(nil)
        let delegate = Answering { challenge in
            held.value = Held(challenge: challenge)
            RunLoop.currentLoop().stop()
        }
        try onLoopThread { loop in
            clock.attach(to: loop)
            var request = URLRequest(url: server.url())
            request.timeoutInterval = 60
            _ = URLConnection(request: request, delegate: delegate)
            #expect(loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false) == .stopped)
            // The loop serves others, and the delegate's time is not the server's.
            let ticks = Box(0)
            let timer = Timer(timeInterval: 60, repeats: true) { _ in ticks.mutate { $0 += 1 } }
            loop.add(timer, forMode: .default)
            loop.runWhileTimePasses(by: clock)
            #expect(ticks.value == 5)
            timer.invalidate()
            #expect(delegate.recorder.calls == [])
            let answering = LoopThread { _ in
                let challenge = held.value?.challenge
                challenge?.sender?.use(Self.user(), for: challenge!)
                // A second answer does nothing.
                challenge?.sender?.cancel(challenge!)
                held.value = nil
            }
            loop.runOut()
            _ = try? answering.value()
        }
        #expect(delegate.recorder.calls == ["response 200", "data", "finish"])
    }

    /// A challenge on its way to another thread.
    ///
    /// `@unchecked Sendable`: the thread that hands the challenge over does not use it again.
    private struct Held: @unchecked Sendable {
        let challenge: URLAuthenticationChallenge
    }

    @Test func `UC-47 a challenge that is let go without an answer gets the default handling`() throws {
        let server = try Self.server()
        let delegate = Answering { _ in }
        try Self.run(server.url(), delegate)
        #expect(delegate.recorder.calls == ["response 401", "data", "finish"])
    }

    @Test func `UC-48 without a credential the response to the challenge is the result`() throws {
        let server = try Self.server()
        let delegate = Answering { $0.sender?.continueWithoutCredential(for: $0) }
        try Self.run(server.url(), delegate)
        #expect(delegate.recorder.calls == ["response 401", "data", "finish"])
        #expect(delegate.recorder.text == "out")
        #expect(server.requests.count == 1)
    }

    enum Declining: CaseIterable {
        case continuing, rejecting, defaultHandling, releasing
    }

    /// Reading stops for the question, and goes on when the call has returned.
    @Test(arguments: Declining.allCases)
    func `UC-48 the body of a 401 may come after the call that declines, and the connection is kept`(
        _ declining: Declining
    ) throws {
        let hasReturned = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send(
                "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"late\"\r\nContent-Length: 3\r\n\r\n"
            )
            try hasReturned.wait()
            try peer.send("out")
            while true { try peer.respond(body: try peer.readRequest().target) }
        }
        let delegate = Answering { challenge in
            RunLoop.currentLoop().perform { hasReturned.open() }
            switch declining {
            case .continuing: challenge.sender?.continueWithoutCredential(for: challenge)
            case .rejecting: challenge.sender?.rejectProtectionSpaceAndContinue(with: challenge)
            case .defaultHandling: challenge.sender?.performDefaultHandling(for: challenge)
            case .releasing: break
            }
        }
        try Self.run(server.url(), delegate)
        #expect(delegate.challenges.value == ["Basic late 0 -"])
        #expect(delegate.recorder.calls == ["response 401", "data", "finish"])
        #expect(delegate.recorder.text == "out")
        #expect(try load(server.url("/next")).text == "/next")
        #expect(server.accepted == 1)
    }

    @Test func `UC-48 cancelling the challenge fails the load`() throws {
        let server = try Self.server(realm: "c")
        let delegate = Answering { $0.sender?.cancel($0) }
        try Self.run(server.url(), delegate)
        #expect(delegate.recorder.calls == ["fail -1012"])
        let legacy = Legacy { $0.sender?.cancel($0) }
        try Self.run(server.url(), legacy)
        #expect(legacy.log.entries == ["can c?", "challenge 0", "cancelled", "fail -1012"])
    }

    @Test func `UC-17 cancel while a challenge is open ends it all`() throws {
        let server = try Self.server()
        let held = Box<Held?>(nil)
        let delegate = Answering { challenge in held.value = Held(challenge: challenge) }
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            let connection = URLConnection(request: URLRequest(url: server.url()), delegate: delegate)
            #expect(loop.run { held.value != nil })
            connection?.cancel()
            let challenge = held.value?.challenge
            challenge?.sender?.use(Self.user(), for: challenge!)
            return loop.runOut()
        }
        #expect(ended == .finished)
        #expect(delegate.recorder.calls == [])
    }

    // MARK: - Without a delegate

    @Test func `UC-49 a delegate without challenge methods leaves the URL's credential to be tried`() throws {
        let server = try Self.server()
        #expect(try load(url("http://user:pass@127.0.0.1:\(server.port)/")).text == "in")
        #expect(try load(url("http://user:wrong@127.0.0.1:\(server.port)/")).calls.first == "response 401")
        #expect(try load(server.url()).calls.first == "response 401")
    }

    @Test func `UC-62 a synchronous request authenticates from the URL, else the 401 is the response`() throws
    {
        let server = try Self.server()
        try onLoopThread { _ in
            for (text, status) in [("user:pass@", 200), ("", 401)] {
                var response: URLResponse?
                let request = URLRequest(url: url("http://\(text)127.0.0.1:\(server.port)/"))
                _ = try? URLConnection.sendSynchronousRequest(request, returning: &response)
                #expect((response as? HTTPURLResponse)?.statusCode == status)
            }
        }
    }

    @Test func `UC-62 a synchronous request authenticates from the storage`() throws {
        let server = try Self.server(realm: "synchronous")
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: Int(server.port), protocol: "http", realm: "synchronous",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        URLCredentialStorage.shared.setDefaultCredential(Self.user(persistence: .forSession), for: space)
        try onLoopThread { _ in
            var response: URLResponse?
            let data = try? URLConnection.sendSynchronousRequest(
                URLRequest(url: server.url()), returning: &response)
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            #expect(data == Data("in".utf8))
        }
    }

    // MARK: - Failures

    @Test func `UC-50 a rejected credential gives a new challenge that counts it`() throws {
        let server = try Self.server()
        let delegate = Answering { challenge in
            let password = challenge.previousFailureCount == 2 ? "pass" : "wrong"
            let name = challenge.previousFailureCount == 2 ? "user" : "u\(challenge.previousFailureCount)"
            challenge.sender?.use(Self.user(name, password), for: challenge)
        }
        try Self.run(server.url(), delegate)
        #expect(delegate.challenges.value == ["Basic r 0 -", "Basic r 1 u0", "Basic r 2 u1"])
        #expect(delegate.recorder.calls == ["response 200", "data", "finish"])
    }

    /// The credential of the URL is tried in each realm; there could be no end of them.
    @Test(arguments: [
        "Basic realm=\"%\"", "Digest realm=\"%\", nonce=\"n\"",
        "Digest realm=\"%\", nonce=\"n%\", stale=true",
    ])
    func `UC-49 a server that asks in another realm each time is left`(challenge: String) throws {
        let server = try TestServer { peer in
            for number in 0... {
                _ = try peer.readRequest()
                let text = challenge.replacingOccurrences(of: "%", with: "\(number)")
                try peer.respond("401 Unauthorized", ["WWW-Authenticate: \(text)"], body: "out")
            }
        }
        let recorder = try load(url("http://user:pass@127.0.0.1:\(server.port)/"))
        #expect(recorder.calls == ["response 401", "data", "finish"])
        #expect(server.requests.count == 17)
    }

    @Test func `UC-52 a 401 without WWW-Authenticate, or with a scheme of the program's own, is a response`()
        throws
    {
        let server = try TestServer { peer in
            while true {
                let fields =
                    try peer.readRequest().target == "/bearer" ? ["WWW-Authenticate: Bearer realm=\"b\""] : []
                try peer.respond("401 Unauthorized", fields, body: "out")
            }
        }
        for path in ["/", "/bearer"] {
            let delegate = Answering { _ in }
            try Self.run(server.url(path), delegate)
            #expect(delegate.challenges.value == [])
            #expect(delegate.recorder.calls == ["response 401", "data", "finish"])
        }
    }

    // MARK: - Storage

    @Test func `UC-51 a permanent credential outlives the process in the file that the program names`() throws
    {
        let server = try Self.server(realm: "permanent")
        let directory = try Stranger.Directory()
        let file = URL(fileURLWithPath: directory.path + "/credentials")
        defer { try? URLConnection.PermanentCredentials.keep(in: nil) }
        try URLConnection.PermanentCredentials.keep(in: file)
        for persistence in [URLCredential.Persistence.forSession, .permanent] {
            let delegate = Answering { $0.sender?.use(Self.user(persistence: persistence), for: $0) }
            try Self.run(server.url(), delegate)
            #expect(delegate.recorder.text == "in")
            PersistedCredentials.flush()
            let isKept = FileManager.default.fileExists(atPath: file.path)
            #expect(isKept == (persistence == .permanent))
            if !isKept { Self.forgetStored(realm: "permanent") }
        }
        // Other users may not read it.
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        // As if the program had ended and begun again.
        Self.forgetStored(realm: "permanent")
        try URLConnection.PermanentCredentials.keep(in: nil)
        #expect(try load(server.url()).response?.statusCode == 401)
        try URLConnection.PermanentCredentials.keep(in: file)
        #expect(try load(server.url()).response?.statusCode == 200)
        try URLConnection.PermanentCredentials.forgetAll()
        #expect(try load(server.url()).response?.statusCode == 401)
        try URLConnection.PermanentCredentials.keep(in: file)
        #expect(try load(server.url()).response?.statusCode == 401)
        // What is no such file is said, and left alone.
        try Data("[{}]".utf8).write(to: file)
        #expect(throws: (any Error).self) { try URLConnection.PermanentCredentials.keep(in: file) }
    }

    @Test func `UC-51 a file that cannot be written is told of, and no load fails by it`() throws {
        let server = try Self.server(realm: "unwritten")
        let directory = try Stranger.Directory()
        // No folder yet: root may write anywhere else.
        let folder = URL(fileURLWithPath: directory.path + "/folder")
        try Data().write(to: folder)
        let file = folder.appendingPathComponent("credentials")
        defer { try? URLConnection.PermanentCredentials.keep(in: nil) }
        let told = Box<[CocoaError]>([])
        try URLConnection.PermanentCredentials.keep(in: file) { error in
            if let error = error as? CocoaError { told.mutate { $0.append(error) } }
        }
        let logIn = {
            let delegate = Answering { $0.sender?.use(Self.user(persistence: .permanent), for: $0) }
            try Self.run(server.url(), delegate)
            #expect(delegate.recorder.text == "in")
            PersistedCredentials.flush()
            Self.forgetStored(realm: "unwritten")
        }
        for _ in 0..<2 { try logIn() }
        // Once, however often it fails.
        #expect(told.value.count == 1)
        let error = try #require(told.value.first)
        #expect(error.code == .fileWriteUnknown)
        #expect(error.filePath == file.path)
        #expect((error.underlying as? NSError)?.code == Int(ENOTDIR))
        #expect(error.localizedDescription.contains(file.path))
        // What was to be forgotten may still be in a file.
        #expect(throws: CocoaError.self) { try URLConnection.PermanentCredentials.forgetAll() }
        try logIn()
        // The next one that is kept brings along what the file lacks.
        try FileManager.default.removeItem(at: folder)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        try logIn()
        #expect(try Data(contentsOf: file).count > 2)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["credentials"])
        try URLConnection.PermanentCredentials.forgetAll()
        #expect(try Data(contentsOf: file).count == 2)
        // It is told of again, since it was written meanwhile.
        try FileManager.default.removeItem(at: folder)
        try Data().write(to: folder)
        try logIn()
        #expect(told.value.count == 2)
        #expect(throws: CocoaError.self) { try URLConnection.PermanentCredentials.forgetAll() }
    }

    @Test func `UC-48 a proxy's 407 does not say that the server's password is right`() throws {
        let proxy = try TestServer { peer in
            while true {
                let isKnown = try peer.readRequest().value("Authorization") != nil
                try peer.respond(
                    isKnown ? "407 Proxy Authentication Required" : "401 Unauthorized",
                    [
                        isKnown
                            ? "Proxy-Authenticate: Basic realm=\"p\""
                            : "WWW-Authenticate: Basic realm=\"unproved\""
                    ],
                    body: "who?")
            }
        }
        let delegate = Answering { challenge in
            if challenge.protectionSpace.isProxy() {
                challenge.sender?.continueWithoutCredential(for: challenge)
            } else {
                challenge.sender?.use(Self.user(persistence: .forSession), for: challenge)
            }
        }
        try onLoopThread { loop in
            let connection = URLConnection(
                request: URLRequest(url: url("http://unproved.test/")), delegate: delegate,
                startImmediately: false)
            connection?.configuration.proxy = .by(
                StreamProxy(.httpConnect, host: "127.0.0.1", port: Int(proxy.port)))
            connection?.start()
            loop.runOut()
        }
        #expect(delegate.recorder.response?.statusCode == 407)
        #expect(!URLCredentialStorage.shared.allCredentials.keys.contains { $0.host == "unproved.test" })
    }

    private static func forgetStored(realm: String) {
        let storage = URLCredentialStorage.shared
        for (space, credentials) in storage.allCredentials where space.realm == realm {
            for credential in credentials.values { storage.remove(credential, for: space) }
        }
    }

    @Test(arguments: [URLCredential.Persistence.none, .forSession, .permanent])
    func `UC-51 a stored credential answers later challenges of its space`(
        persistence: URLCredential.Persistence
    ) throws {
        let realm = "storage \(persistence.rawValue)"
        let server = try Self.server(realm: realm)
        let delegate = Answering { $0.sender?.use(Self.user(persistence: persistence), for: $0) }
        try Self.run(server.url(), delegate)
        #expect(delegate.recorder.text == "in")
        let status = persistence == .none ? 401 : 200
        // Without a delegate it is used in silence; the delegate gets it as proposed.
        #expect(try load(server.url()).response?.statusCode == status)
        let next = Answering { $0.sender?.performDefaultHandling(for: $0) }
        try Self.run(server.url(), next)
        #expect(next.challenges.value == ["Basic \(realm) 0 \(persistence == .none ? "-" : "user")"])
        #expect(next.recorder.response?.statusCode == status)
        // The older method is not needed (rule UC-46).
        let legacy = Legacy { $0.sender?.continueWithoutCredential(for: $0) }
        try Self.run(server.url(), legacy)
        #expect(legacy.log.count(of: "challenge 0") == (persistence == .none ? 1 : 0))
    }

    @Test func `UC-51 a password that a server has answered with 503 is not stored, with 200 it is`() throws {
        let answer = Box("503 Service Unavailable")
        let server = try TestServer { peer in
            while true {
                if try peer.readRequest().value("Authorization") == nil {
                    try peer.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"busy\""])
                } else {
                    try peer.respond(answer.value, body: "text")
                }
            }
        }
        let delegate = Answering { $0.sender?.use(Self.user(persistence: .forSession), for: $0) }
        try Self.run(server.url(), delegate)
        #expect(delegate.recorder.calls == ["response 503", "data", "finish"])
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: Int(server.port), protocol: "http", realm: "busy",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        #expect(StoredCredentials.shared.defaultCredential(for: space) == nil)
        answer.value = "200 OK"
        let next = Answering { $0.sender?.use(Self.user(persistence: .forSession), for: $0) }
        try Self.run(server.url(), next)
        #expect(next.recorder.calls == ["response 200", "data", "finish"])
        let stored = try #require(StoredCredentials.shared.defaultCredential(for: space))
        #expect(stored.user == "user" && stored.password == "pass")
        StoredCredentials.shared.remove(stored, for: space)
    }

    @Test func `UC-51 a server that names ever new realms fills the storage to a limit`() throws {
        let storage = URLCredentialStorage.shared
        func space(_ realm: String) -> URLProtectionSpace {
            URLProtectionSpace(
                host: "many-realms.test", port: 80, protocol: "http", realm: realm,
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        }
        func realms() -> Set<String> {
            Set(storage.allCredentials.keys.filter { $0.host == "many-realms.test" }.compactMap(\.realm))
        }
        defer {
            for (space, credentials) in storage.allCredentials where space.host == "many-realms.test" {
                for credential in credentials.values { storage.remove(credential, for: space) }
            }
        }
        let limit = CredentialList.maximumPerServer
        let user = Self.user(persistence: .forSession)
        // What the program has stored itself stays, though a load stores it once more.
        storage.setDefaultCredential(user, for: space("own"))
        StoredCredentials.shared.store(user, for: space("own"))
        for index in 0..<limit { StoredCredentials.shared.store(user, for: space("r\(index)")) }
        #expect(realms().count == limit + 1)
        // One that is stored again is the newest.
        StoredCredentials.shared.store(user, for: space("r0"))
        for index in limit..<limit + 5 { StoredCredentials.shared.store(user, for: space("r\(index)")) }
        #expect(realms() == Set(["own", "r0"] + (6..<limit + 5).map { "r\($0)" }))
        let long = URLCredential(
            user: String(repeating: "u", count: CredentialList.maximumEntrySize), password: "p",
            persistence: .forSession)
        StoredCredentials.shared.store(long, for: space("long"))
        #expect(StoredCredentials.shared.defaultCredential(for: space("long")) == nil)
    }

    /// Wants nothing of the storage.
    private final class Private: NSObject, URLConnectionDataDelegate, Sendable {
        let statuses = Box<[Int]>([])
        let proposed = Box<[String?]>([])

        func connectionShouldUseCredentialStorage(_ connection: URLConnection) -> Bool { false }

        func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)
        {
            proposed.mutate { $0.append(challenge.proposedCredential?.user) }
            challenge.sender?.use(
                AuthenticationTests.user(persistence: .forSession), for: challenge)
        }

        func connection(_ connection: URLConnection, didReceive response: URLResponse) {
            statuses.mutate { $0.append((response as? HTTPURLResponse)?.statusCode ?? 0) }
        }
    }

    @Test func `UC-43 a load without the credential storage neither reads nor writes it`() throws {
        let server = try Self.server(realm: "private")
        for _ in 0..<2 {
            let delegate = Private()
            try Self.run(server.url(), delegate)
            #expect(delegate.statuses.value == [200])
            #expect(delegate.proposed.value == [nil])
        }
        #expect(try load(server.url()).response?.statusCode == 401)
        // Nor what another program has left there.
        try Self.run(server.url(), Answering { $0.sender?.use(Self.user(persistence: .forSession), for: $0) })
        #expect(try load(server.url()).response?.statusCode == 200)
        let delegate = Private()
        try Self.run(server.url(), delegate)
        #expect(delegate.proposed.value == [nil])
    }

    // MARK: - Schemes

    @Test func `UC-47 the strongest scheme comes first, and rejecting it goes on to the next`() throws {
        let server = try TestServer { peer in
            while true {
                if try peer.readRequest().value("Authorization") == Self.good {
                    try peer.respond(body: "in")
                } else {
                    try peer.respond(
                        "401 Unauthorized",
                        [
                            "WWW-Authenticate: Basic realm=\"b\", Bearer",
                            "WWW-Authenticate: Digest realm=\"d\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256",
                        ], body: "out")
                }
            }
        }
        let delegate = Answering { challenge in
            if challenge.protectionSpace.realm == "d" {
                challenge.sender?.rejectProtectionSpaceAndContinue(with: challenge)
            } else {
                challenge.sender?.use(Self.user(), for: challenge)
            }
        }
        try Self.run(server.url(), delegate)
        #expect(delegate.challenges.value == ["Digest d 0 -", "Basic b 0 -"])
        #expect(delegate.recorder.text == "in")
        let nobody = Answering { $0.sender?.rejectProtectionSpaceAndContinue(with: $0) }
        try Self.run(server.url(), nobody)
        #expect(nobody.challenges.value == ["Digest d 0 -", "Basic b 0 -"])
        #expect(nobody.recorder.calls == ["response 401", "data", "finish"])
    }

    /// A stranger's reckoning of RFC 7616, with a nonce that is good for one request.
    private static func digestServer(_ algorithm: String, hash: String) throws -> (TestServerProcess, UInt16)
    {
        let script = """
            import hashlib, http.server, re, sys, threading
            algorithm, name = sys.argv[1:]
            H = lambda s: hashlib.new(name, s.encode()).hexdigest()
            nonces, sessions = [0], {}
            class Handler(http.server.BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                def log_message(self, *arguments): pass
                def do_GET(self):
                    given = self.headers.get("Authorization", "")
                    p = {k: v.strip('"') for k, v in re.findall(r'(\\w+)=("[^"]*"|[^",]+)', given)}
                    current = f"nonce{nonces[0]}"
                    status, fields, body = 401, [], b"out"
                    if given:
                        a1 = H("user:d:pass")
                        if algorithm.endswith("-sess"): a1 = H(
                            f"{a1}:{sessions.setdefault(p['cnonce'], p['nonce'])}:{p['cnonce']}")
                        a2 = H(f"GET:{self.path}")
                        good = p["uri"] == self.path and p["response"] == H(
                            f"{a1}:{p['nonce']}:{p['nc']}:{p['cnonce']}:{p['qop']}:{a2}")
                        if good and p["nonce"] == current:
                            status, body = 200, b"in"
                            nonces[0] += 1
                            fields.append(("Authentication-Info", f'nextnonce="nonce{nonces[0]}"'))
                    if self.path == "/away" and status == 200:
                        status = 302
                        fields.append(("Location", "/in"))
                    if status == 401:
                        stale = ', stale=true' if given and good else ""
                        fields.append(("WWW-Authenticate",
                            f'Digest realm="d", nonce="{current}", qop="auth", algorithm={algorithm}{stale}'))
                    self.send_response(status)
                    for k, v in fields: self.send_header(k, v)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            print("PORT", server.server_address[1], flush=True)
            server.serve_forever()
            """
        let server = try TestServerProcess(["python3", "-c", script, algorithm, hash])
        return (server, try server.port(after: "PORT "))
    }

    @Test(arguments: [("MD5", "md5"), ("SHA-256", "sha256"), ("SHA-256-sess", "sha256")])
    func `RFC 7616 Digest with a stranger, with nextnonce and stale nonces`(algorithm: String, hash: String)
        throws
    {
        let (server, port) = try Self.digestServer(algorithm, hash: hash)
        let delegate = Answering { $0.sender?.use(Self.user(persistence: .forSession), for: $0) }
        try Self.run(url("http://127.0.0.1:\(port)/away?x=1"), delegate)
        #expect(delegate.recorder.text == "in")
        // The redirect took the next nonce: it was asked once.
        try Self.run(url("http://127.0.0.1:\(port)/away"), delegate)
        #expect(
            delegate.recorder.calls == ["response 200", "data", "finish", "response 200", "data", "finish"])
        #expect(delegate.challenges.value == ["Digest d 0 -", "Digest d 0 user"])
        server.terminate()
    }

    // MARK: - With the rest

    @Test func `UC-39 a challenge after the body asks for a new stream`() throws {
        let server = try Self.server()
        let asked = Box(0)
        let delegate = Giving { asked.mutate { $0 += 1 } }
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            var request = URLRequest(url: server.url())
            request.httpMethod = "POST"
            request.httpBodyStream = InputStream(data: Data("body".utf8))
            _ = URLConnection(request: request, delegate: delegate)
            return loop.runOut()
        }
        #expect(ended == .finished)
        #expect(asked.value == 1)
        #expect(server.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["body", "again"])
    }

    private final class Giving: NSObject, URLConnectionDataDelegate, Sendable {
        private let onAsk: @Sendable () -> Void
        init(onAsk: @escaping @Sendable () -> Void) { self.onAsk = onAsk }

        func connection(_ connection: URLConnection, needNewBodyStream request: URLRequest) -> InputStream? {
            onAsk()
            return InputStream(data: Data("again".utf8))
        }

        func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)
        {
            challenge.sender?.use(AuthenticationTests.user(), for: challenge)
        }
    }

    @Test func `UC-42 an upload that waits for the go-ahead sends its body once, after the challenge`() throws
    {
        let server = try TestServer { peer in
            while true {
                let head = try peer.readHead()
                if head.value("Authorization") == nil {
                    try peer.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"e\""])
                    return peer.waitForEnd()
                }
                try peer.send("HTTP/1.1 100 Continue\r\n\r\n")
                try peer.respond(body: String(decoding: try peer.readBody(of: head), as: UTF8.self))
            }
        }
        let delegate = Answering { $0.sender?.use(Self.user(), for: $0) }
        try onLoopThread { loop in
            var request = URLRequest(url: server.url())
            request.httpMethod = "POST"
            request.httpBodyStream = InputStream(data: Data("once".utf8))
            request.setValue("100-continue", forHTTPHeaderField: "Expect")
            let connection = URLConnection(request: request, delegate: delegate, startImmediately: false)
            connection?.configuration.goAheadTimeout = 60
            connection?.start()
            loop.runOut()
        }
        #expect(delegate.recorder.text == "once")
    }

    @Test func `UC-33 a credential for a challenge is not sent to another origin`() throws {
        let other = try Self.server(realm: "other")
        let server = try TestServer { peer in
            while true {
                if try peer.readRequest().value("Authorization") == nil {
                    try peer.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"first\""])
                } else {
                    try peer.respond("302 Found", ["Location: \(other.url("/there").absoluteString)"])
                }
            }
        }
        let delegate = Answering { challenge in
            if challenge.protectionSpace.realm == "first" {
                challenge.sender?.use(Self.user(), for: challenge)
            } else {
                challenge.sender?.continueWithoutCredential(for: challenge)
            }
        }
        try Self.run(server.url(), delegate)
        #expect(delegate.challenges.value == ["Basic first 0 -", "Basic other 0 -"])
        #expect(other.requests.allSatisfy { $0.value("Authorization") == nil })
        // Within the origin it goes along without being asked for.
        let inside = try Self.server(realm: "inside")
        let next = Answering { $0.sender?.use(Self.user(), for: $0) }
        try Self.run(inside.url("/away"), next)
        #expect(next.recorder.text == "in")
    }
}

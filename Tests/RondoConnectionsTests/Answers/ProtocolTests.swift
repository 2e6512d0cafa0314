import Rondo
import RondoMutex
import RondoTestSupport
import RondoTesting
import Testing

@testable import RondoConnections

/// A protocol of a program's own: `rondo-test://script`, whose host says what it does.
private final class ScriptedProtocol: URLProtocol {
    static let log = EventLog()
    static let threads = Box<[String: String]>([:])

    override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "rondo-test" }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest {
        var canonical = request
        canonical.url = URL(string: request.url?.absoluteString.lowercased() ?? "")
        return canonical
    }

    private var script: String { request.url?.host ?? "" }
    private var path: String { request.url?.path ?? "" }

    /// The thread of the start, by script and path.
    static let starters = Box<[String: UInt]>([:])

    override func startLoading() {
        Self.starters.mutate { [key = script + path] in $0[key] = UInt(pthread_self()) }
        let loop = RunLoop.currentLoop()
        let isLoader = loop == RunLoop.loader
        let (script, path) = (script, path)
        Self.threads.mutate { $0[script + path] = isLoader ? "loader" : loop.currentMode?.rawValue ?? "-" }
        guard let client, let url = request.url else { return }
        switch script {
        case "text":
            respond("text/plain")
            client.urlProtocol(self, didLoad: Data("one,".utf8))
            client.urlProtocol(self, didLoad: Data("two".utf8))
            client.urlProtocolDidFinishLoading(self)
        case "redirect":
            let response = URLResponse(
                url: url, mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
            let next = URLRequest(url: URL(string: "rondo-test://text\(path)")!)
            client.urlProtocol(self, wasRedirectedTo: next, redirectResponse: response)
            client.urlProtocol(self, didLoad: Data("of the redirect".utf8))
            client.urlProtocolDidFinishLoading(self)
        case "fails": client.urlProtocol(self, didFailWithError: NSError(domain: "mine", code: 7))
        case "empty": client.urlProtocolDidFinishLoading(self)
        case "asks":
            let space = URLProtectionSpace(
                host: "asks", port: 0, protocol: nil, realm: "r", authenticationMethod: nil)
            let sender = Sender { [weak self] answer in
                guard let self else { return }
                respond("text/plain")
                client.urlProtocol(self, didLoad: Data(answer.utf8))
                client.urlProtocolDidFinishLoading(self)
            }
            client.urlProtocol(
                self,
                didReceive: URLAuthenticationChallenge(
                    protectionSpace: space, proposedCredential: nil, previousFailureCount: 0,
                    failureResponse: nil, error: nil, sender: sender))
        case "nested":
            let inner = URLRequest(url: URL(string: "rondo-test://text\(path)")!)
            // An error becomes another text than the one that the test expects.
            let data = try? URLConnection.sendSynchronousRequest(inner, returning: nil)
            respond("text/plain")
            client.urlProtocol(self, didLoad: data ?? Data("no answer".utf8))
            client.urlProtocolDidFinishLoading(self)
        case "twice":
            respond("text/plain")
            client.urlProtocol(self, didLoad: Data("first,".utf8))
            respond("text/html")
            client.urlProtocol(self, didLoad: Data("second".utf8))
            client.urlProtocolDidFinishLoading(self)
        case "waits":
            respond("text/plain")
            client.urlProtocol(self, didLoad: Data("begun".utf8))
        default: break
        }
    }

    override func stopLoading() {
        let isElsewhere = Self.starters.value[script + path].map { $0 != UInt(pthread_self()) } ?? false
        Self.log.note("\(isElsewhere ? "elsewhere " : "")stop \(script)\(path)")
        // What comes late is ignored.
        client?.urlProtocol(self, didLoad: Data("late".utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    private func respond(_ type: String) {
        guard let url = request.url else { return }
        let response = URLResponse(url: url, mimeType: type, expectedContentLength: -1, textEncodingName: nil)
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    }

    /// Says which answer it got.
    // `@unchecked Sendable`: used by one load at a time.
    private final class Sender: NSObject, URLAuthenticationChallengeSender, @unchecked Sendable {
        private let take: (String) -> Void
        init(take: @escaping (String) -> Void) { self.take = take }
        func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
            take("use \(credential.user ?? "")")
        }
        func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { take("without") }
        func cancel(_ challenge: URLAuthenticationChallenge) { take("cancel") }
        func performDefaultHandling(for challenge: URLAuthenticationChallenge) { take("default") }
        func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) { take("reject") }
    }
}

/// Accepts what `ScriptedProtocol` accepts, for one host.
private final class LaterProtocol: URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "later" }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url else { return }
        let response = URLResponse(url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data("later".utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}

/// A delegate that takes any response.
private final class Taker: NSObject, URLConnectionDataDelegate, Sendable {
    let log = EventLog()
    let body = Box(Data())
    let error = Box<NSError?>(nil)
    let filename = Box<String?>(nil)
    let user: String?
    let refuses: Bool

    init(user: String? = nil, refuses: Bool = false) { (self.user, self.refuses) = (user, refuses) }

    var text: String { String(decoding: body.value, as: UTF8.self) }

    func connection(
        _ connection: URLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
    ) -> URLRequest? {
        log.note(
            "willSend \(request.url?.absoluteString ?? "") \(response == nil ? "canonical" : "redirect")")
        return refuses && response != nil ? nil : request
    }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        log.note("response \(response.mimeType ?? "-") \(response.expectedContentLength)")
        filename.value = response.suggestedFilename
    }

    func connection(_ connection: URLConnection, didReceive data: Data) {
        body.mutate { $0.append(data) }
        if log.entries.last != "data" { log.note("data") }
    }

    func connectionDidFinishLoading(_ connection: URLConnection) { log.note("finish") }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        self.error.value = error as NSError
        log.note("fail \((error as NSError).domain) \((error as NSError).code)")
    }

    func connection(_ connection: URLConnection, didReceive challenge: URLAuthenticationChallenge) {
        if let user {
            challenge.sender?.use(
                URLCredential(user: user, password: "", persistence: .none), for: challenge)
        } else {
            challenge.sender?.performDefaultHandling(for: challenge)
        }
    }
}

/// Leaves the challenge to the test, and stops the loop.
private final class Leaving: NSObject, URLConnectionDataDelegate, Sendable {
    /// A challenge that the test answers.
    ///
    /// `@unchecked Sendable`: the delegate puts the challenge here and does not use it again.
    struct Held: @unchecked Sendable {
        let challenge: URLAuthenticationChallenge
    }

    let log = EventLog()
    let body = Box(Data())
    let held = Box<Held?>(nil)

    func connection(_ connection: URLConnection, didReceive challenge: URLAuthenticationChallenge) {
        held.value = Held(challenge: challenge)
        RunLoop.currentLoop().stop()
    }

    func connection(_ connection: URLConnection, didReceive data: Data) { body.mutate { $0.append(data) } }
    func connectionDidFinishLoading(_ connection: URLConnection) { log.note("finish") }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        log.note("fail \((error as NSError).code)")
    }
}

/// Loads that are no load from a server.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections, .serialized) struct ProtocolTests {
    private static func registered<Result>(_ body: () throws -> Result) rethrows -> Result {
        URLProtocol.registerClass(ScriptedProtocol.self)
        defer { URLProtocol.unregisterClass(ScriptedProtocol.self) }
        return try body()
    }

    private static func run(_ text: String, _ delegate: Taker, in mode: RunLoop.Mode = .default) throws {
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            let connection = URLConnection(
                request: URLRequest(url: url(text)), delegate: delegate, startImmediately: false)
            connection?.schedule(in: loop, forMode: mode)
            connection?.start()
            return loop.runOut(mode)
        }
        #expect(ended == .finished)
    }

    @Test func `UC-64 canHandle follows what is registered now`() {
        let request = URLRequest(url: url("rondo-test://text/"))
        #expect(!URLConnection.canHandle(request))
        Self.registered { #expect(URLConnection.canHandle(request)) }
        #expect(!URLConnection.canHandle(request))
        for text in ["http://h/", "https://h/", "file:///x", "data:,x"] {
            #expect(URLConnection.canHandle(URLRequest(url: url(text))))
        }
    }

    @Test func `UC-65 the protocol that was registered last is asked first`() throws {
        try Self.registered {
            URLConnection.registerProtocol(LaterProtocol.self)
            defer { URLConnection.unregisterProtocol(LaterProtocol.self) }
            let (later, other) = (Taker(), Taker())
            try Self.run("rondo-test://later/", later)
            try Self.run("rondo-test://text/order", other)
            #expect(later.text == "later")
            #expect(other.text == "one,two")
        }
    }

    @Test
    func `UC-66 a protocol's messages reach the delegate in order, under the connection's schedule`() throws {
        try Self.registered {
            let taker = Taker()
            try Self.run("rondo-test://TEXT/a", taker, in: .work)
            #expect(
                taker.log.entries == [
                    "willSend rondo-test://text/a canonical", "response text/plain -1", "data", "finish",
                ])
            #expect(taker.text == "one,two")
            #expect(ScriptedProtocol.threads.value["text/a"] == "work")
            #expect(ScriptedProtocol.log.count(of: "stop text/a") == 1)
        }
    }

    @Test func `UC-23 a second response neither repeats nor withdraws data`() throws {
        try Self.registered {
            let taker = Taker()
            try Self.run("rondo-test://twice/", taker)
            #expect(
                taker.log.entries == [
                    "response text/plain -1", "data", "response text/html -1", "data", "finish",
                ])
            #expect(taker.text == "first,second")
        }
    }

    @Test func `UC-66 a protocol runs on the loader for a synchronous request`() throws {
        try Self.registered {
            try onLoopThread { _ in
                let request = URLRequest(url: url("rondo-test://text/sync"))
                let data = try? URLConnection.sendSynchronousRequest(request, returning: nil)
                #expect(data == Data("one,two".utf8))
            }
            #expect(ScriptedProtocol.threads.value["text/sync"] == "loader")
        }
    }

    @Test func `UC-66 a protocol's redirects are followed, or refused with their own response`() throws {
        try Self.registered {
            let taker = Taker()
            try Self.run("rondo-test://redirect/r", taker)
            #expect(
                taker.log.entries == [
                    "willSend rondo-test://text/r redirect", "response text/plain -1", "data", "finish",
                ])
            #expect(taker.text == "one,two")
            let refusing = Taker(refuses: true)
            try Self.run("rondo-test://redirect/s", refusing)
            #expect(refusing.text == "of the redirect")
            #expect(refusing.log.entries.last == "finish")
        }
    }

    @Test func `UC-66 a protocol's error is passed on, and its end without a response is an error`() throws {
        try Self.registered {
            let (failing, empty) = (Taker(), Taker())
            try Self.run("rondo-test://fails/", failing)
            #expect(failing.log.entries == ["fail mine 7"])
            try Self.run("rondo-test://empty/", empty)
            #expect(empty.log.entries == ["fail NSURLErrorDomain -1011"])
        }
    }

    @Test func `UC-66 a protocol's challenges are answered to its own sender`() throws {
        try Self.registered {
            let (knowing, asking) = (Taker(user: "me"), Taker())
            try Self.run("rondo-test://asks/1", knowing)
            #expect(knowing.text == "use me")
            try Self.run("rondo-test://asks/2", asking)
            #expect(asking.text == "default")
            // There is no answer to it.
            try onLoopThread { _ in
                let request = URLRequest(url: url("rondo-test://asks/3"))
                let data = try? URLConnection.sendSynchronousRequest(request, returning: nil)
                #expect(data == Data("without".utf8))
            }
        }
    }

    @Test func `UC-47 UC-66 the time in which its challenge waits for an answer is not idle time`() throws {
        try Self.registered {
            let (clock, delegate) = (ManualClock(advancesAutomatically: false), Leaving())
            try onLoopThread { loop in
                clock.attach(to: loop)
                var request = URLRequest(url: url("rondo-test://asks/later"))
                request.timeoutInterval = 5
                _ = URLConnection(request: request, delegate: delegate)
                #expect(loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false) == .stopped)
                loop.runWhileTimePasses(by: clock)
                #expect(delegate.log.entries == [])
                guard let challenge = delegate.held.value?.challenge else {
                    Issue.record("there was no challenge")
                    return
                }
                challenge.sender?.use(
                    URLCredential(user: "me", password: "", persistence: .none), for: challenge)
                delegate.held.value = nil
                loop.runOut()
            }
            #expect(delegate.log.entries == ["finish"])
            #expect(delegate.body.value == Data("use me".utf8))
        }
    }

    @Test func `UC-66 cancel stops a protocol, and its later messages are ignored`() throws {
        try Self.registered {
            let taker = Taker()
            let ended = try onLoopThread { loop -> RunLoop.RunResult in
                let connection = URLConnection(
                    request: URLRequest(url: url("rondo-test://waits/w")), delegate: taker)
                #expect(loop.run { taker.text == "begun" })
                connection?.cancel()
                return loop.runOut()
            }
            #expect(ended == .finished)
            #expect(taker.text == "begun")
            #expect(taker.log.entries.last == "data")
            #expect(ScriptedProtocol.log.count(of: "stop waits/w") == 1)
        }
    }

    @Test func `UC-66 another thread's cancel stops it on the thread on which it was started`() throws {
        try Self.registered {
            let (taker, stop) = (Taker(), Latch())
            let request = URLRequest(url: url("rondo-test://waits/other"))
            let connection = try #require(
                URLConnection(request: request, delegate: taker, startImmediately: false))
            let running = LoopThread { loop in
                connection.schedule(in: loop, forMode: .default)
                connection.start()
                while !stop.isOpen { loop.runInVain(for: 0) }
                return loop.runOut()
            }
            try waitFor("a byte") { taker.text == "begun" ? () : nil }
            // The delegate's method has returned when a later block is performed.
            let returned = Latch()
            try running.loop.perform { returned.open() }
            try returned.wait()
            connection.cancel()
            try waitFor("the stop") {
                ScriptedProtocol.log.entries.contains { $0.hasSuffix("stop waits/other") } ? () : nil
            }
            stop.open()
            #expect(try running.value() == .finished)
            #expect(ScriptedProtocol.log.count(of: "stop waits/other") == 1)
        }
    }

    @Test func `UC-66 the messages of a protocol are taken in order, whenever they come`() {
        let request = URLRequest(url: url("rondo-test://waits/order"))
        let bridge = ProtocolBridge(ScriptedProtocol.self, request: request, on: nil) {}
        let source = ScriptedProtocol(request: request, cachedResponse: nil, client: bridge)
        var taken: [UInt8] = []
        func take() -> Bool {
            guard case .data(let data)? = bridge.next() else { return false }
            taken += data
            return true
        }
        for number in 0..<100 as Range<UInt8> {
            bridge.urlProtocol(source, didLoad: Data([number]))
            if number % 3 == 2 { #expect(take()) }
        }
        while take() {}
        #expect(taken == Array(0..<100))
        bridge.stop()
    }

    @Test func `UC-66 releasing a message may call the client again`() throws {
        let request = URLRequest(url: url("rondo-test://waits/release"))
        let bridge = ProtocolBridge(ScriptedProtocol.self, request: request, on: nil) {}
        let source = ScriptedProtocol(request: request, cachedResponse: nil, client: bridge)
        let memory = try #require(malloc(1000))
        let isReleased = Box(false)
        bridge.urlProtocol(
            source,
            didLoad: Data(
                bytesNoCopy: memory, count: 1000,
                deallocator: .custom { pointer, _ in
                    free(pointer)
                    bridge.urlProtocol(source, didLoad: Data())
                    isReleased.value = true
                }))
        bridge.stop()
        #expect(isReleased.value)
        #expect(bridge.next() == nil)
    }

    /// A protocol that says more than its load takes, or goes on when it was stopped, takes no memory for it.
    @Test func `UC-66 messages of a protocol after its end are dropped, and so is more than a gibibyte`()
        throws
    {
        let piece = Data(count: 1 << 26)
        for isStopped in [true, false] {
            let bridge = ProtocolBridge(
                ScriptedProtocol.self, request: URLRequest(url: url("rondo-test://waits/bridge")), on: nil
            ) {}
            if isStopped { bridge.stop() }
            let source = ScriptedProtocol(
                request: URLRequest(url: url("rondo-test://waits/bridge")), cachedResponse: nil,
                client: bridge)
            for _ in 0..<(isStopped ? 1 : 17) { bridge.urlProtocol(source, didLoad: piece) }
            if isStopped {
                #expect(bridge.next() == nil)
            } else {
                guard case .fail(let error)? = bridge.next() else {
                    Issue.record("all of it was taken")
                    return
                }
                #expect((error as? URLError)?.errorCode == -1103)
                #expect(bridge.next() == nil)
                // The load has failed by that, and its protocol has to hear that it is to stop.
                bridge.stop()
            }
            #expect(ScriptedProtocol.log.count(of: "stop waits/bridge") == (isStopped ? 1 : 2))
        }
    }

    // MARK: - Files

    @Test func `UC-64 a file is loaded whole, by its URL`() throws {
        let directory = try Stranger.Directory()
        try directory.write(Data(longText(400_000).utf8), to: "a b.txt")
        try directory.write(Data(), to: "empty.bin")
        let taker = Taker()
        let file = URL(fileURLWithPath: directory.path + "/a b.txt")
        try Self.run(file.absoluteString, taker)
        #expect(taker.log.entries == ["response text/plain 400000", "data", "finish"])
        #expect(taker.body.value == Data(longText(400_000).utf8))
        let empty = Taker()
        try Self.run(URL(fileURLWithPath: directory.path + "/empty.bin").absoluteString, empty)
        #expect(empty.log.entries == ["response application/octet-stream 0", "finish"])
    }

    @Test(arguments: [("/nowhere/x", -1100), ("/tmp", -1101), ("/dev/null", -3001)])
    func `UC-59 a file that cannot be loaded says why`(path: String, code: Int) throws {
        let taker = Taker()
        try Self.run("file://\(path)", taker)
        #expect(taker.log.entries == ["fail NSURLErrorDomain \(code)"])
        #expect(taker.error.value?.localizedDescription.contains(path) == true)
    }

    // MARK: - data:

    @Test(
        arguments: [
            ("data:,a%20b", "text/plain", "US-ASCII", "a b"),
            ("data:,%+F%-0", "text/plain", "US-ASCII", "%+F%-0"),
            ("data:text/html;charset=utf-8,%3Cp%3E", "text/html", "utf-8", "<p>"),
            ("data:;base64,aGk=", "text/plain", "US-ASCII", "hi"),
            ("DATA:TEXT/x;BASE64,aGk", "text/x", nil, "hi"), ("data:,x#y", "text/plain", "US-ASCII", "x"),
            ("data:a/b,", "a/b", nil, ""),
        ] as [(String, String, String?, String)])
    func `RFC 2397 a data URL is its own content`(text: String, type: String, charset: String?, body: String)
    {
        let content = DataURL(text)
        #expect(content?.mimeType == type)
        #expect(content?.charset == charset)
        #expect(content?.data == Data(body.utf8))
    }

    /// "Forgiving-base64 decode" of the Infra standard, which forgives whitespace and padding that is left out.
    @Test(
        arguments: [
            ("QQ==", "A"), ("QQ", "A"), ("Q%51%3D=", "A"), (" Q\tQ%0A==%0C", "A"), ("QUI=", "AB"),
            ("QUI", "AB"), ("QUJD", "ABC"),
            ("", ""), ("QR==", "A"), ("%", nil), ("Q", nil), ("A", nil), ("=", nil), ("====", nil),
            ("A===", nil),
            ("AA=A", nil), ("QQ=", nil), ("QQ===", nil), ("QQ==QQ==", nil), ("QUJD====", nil), ("Q-_Q", nil),
            ("QQ%00", nil),
            ("QUJ%01D", nil), ("QUJ!", nil), ("QU%C3%A9", nil),
        ] as [(String, String?)])
    func `RFC 2397 malformed base64 is an error`(content: String, expected: String?) throws {
        #expect(DataURL("data:;base64,\(content)")?.data == expected.map { Data($0.utf8) })
        #expect(DataURL("data:text/plain; Base64 ,\(content)")?.data == expected.map { Data($0.utf8) })
        guard expected == nil, !content.contains("%") else { return }
        let recorder = try load(url("data:;base64,\(content)"))
        #expect(recorder.calls == ["fail -1000"])
    }

    @Test func `RFC 2397 a data URL is loaded like any other`() throws {
        #expect(DataURL("data:nothing") == nil)
        let taker = Taker()
        try Self.run("data:text/plain,hello", taker)
        #expect(taker.log.entries == ["response text/plain 5", "data", "finish"])
        #expect(taker.text == "hello")
        // It has no name but that of its type (rule UC-26).
        #expect(taker.filename.value == "unknown.txt")
    }
}

/// Apart from the others, because the loader's loop keeps the mode of a synchronous request, and that mode's epoll set.
@Suite(.timeLimit(.minutes(5)), .serialized) struct LoaderProtocolTests {
    @Test func `UC-60 UC-66 a protocol on the loader can wait for a request that another protocol answers`()
        async throws
    {
        URLProtocol.registerClass(ScriptedProtocol.self)
        defer { URLProtocol.unregisterClass(ScriptedProtocol.self) }
        let (data, _) = try await URLConnection.data(for: URLRequest(url: url("rondo-test://nested/loader")))
        #expect(data == Data("one,two".utf8))
        for key in ["nested/loader", "text/loader"] {
            #expect(ScriptedProtocol.threads.value[key] == "loader")
        }
    }
}

import Rondo
import RondoMutex
import RondoTestSupport
import Testing

@Suite(.timeLimit(.minutes(2)), .serialized, .leavesNoConnections) struct LimitTests {
    /// A server whose answers wait.
    private static func waitingServer(_ go: Latch) throws -> TestServer {
        try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                try go.wait()
                try peer.respond(body: request.target)
            }
        }
    }

    private static func oneConnection() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.default
        configuration.httpMaximumConnectionsPerHost = 1
        return configuration
    }

    @Test func `US-39 tasks that wait for a connection get it by priority, and with equal priority in order`()
        throws
    {
        let go = Latch()
        let server = try Self.waitingServer(go)
        let notes = Notes()
        let session = URLSession(
            configuration: Self.oneConnection(), delegate: notes, delegateQueue: nil)
        session.dataTask(with: server.url("/first")).resume()
        try waitFor("the first") { server.requests.count == 1 ? () : nil }
        let tasks = ["a", "low", "b", "high", "changed"].map {
            session.dataTask(with: server.url("/\($0)"))
        }
        tasks[1].priority = URLSessionTask.lowPriority
        tasks[3].priority = URLSessionTask.highPriority
        for task in tasks { task.resume() }
        try waitFor("all to wait") { tasks.allSatisfy { $0.whyNotDelivering.reason == .waits } ? () : nil }
        tasks[4].priority = 5
        #expect(tasks[4].priority == 1)
        // The change reaches the waiting loads in a pass of the loop, which then sleeps.
        try waitFor("the loop to sleep") { RunLoop.loader.isWaiting ? () : nil }
        go.open()
        try waitFor("the ends") { notes.completed == 6 ? () : nil }
        #expect(
            server.requests.map(\.target) == ["/first", "/changed", "/high", "/a", "/b", "/low"])
        session.invalidateAndCancel()
    }

    @Test func `US-30 a task that is suspended while it waits for a connection lets the others pass`() throws
    {
        let go = Latch()
        let server = try Self.waitingServer(go)
        let notes = Notes()
        let session = URLSession(
            configuration: Self.oneConnection(), delegate: notes, delegateQueue: nil)
        let tasks = ["first", "suspended", "last"].map { session.dataTask(with: server.url("/\($0)")) }
        tasks[0].resume()
        try waitFor("the first") { server.requests.count == 1 ? () : nil }
        for task in tasks { task.resume() }
        try waitFor("both to wait") {
            tasks[1...].allSatisfy { $0.whyNotDelivering.reason == .waits } ? () : nil
        }
        tasks[1].suspend()
        go.open()
        try waitFor("the other ends") { notes.completed == 2 ? () : nil }
        #expect(server.requests.map(\.target) == ["/first", "/last"])
        #expect(tasks[1].state == .suspended)
        tasks[1].resume()
        try waitFor("its end") { notes.completed == 3 ? () : nil }
        #expect(server.requests.map(\.target) == ["/first", "/last", "/suspended"])
        session.invalidateAndCancel()
    }

    @Test func `US-39 priorities also count across hosts if the process has no connection left`() async {
        // In a process of its own, because other tests' connections count, too.
        await #expect(processExitsWith: .success) {
            let go = Latch()
            let order = Box<[String]>([])
            let servers = try (0..<3).map { number in
                try TestServer { peer in
                    let request = try peer.readRequest()
                    order.mutate { $0.append("\(number)\(request.target)") }
                    try go.wait()
                    try peer.respond("200 OK", ["Connection: close"], body: "")
                }
            }
            let notes = Notes()
            let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
            URLConnection.limits.connections = 1
            session.dataTask(with: servers[0].url("/first")).resume()
            try waitFor("the first") { order.value.count == 1 ? () : nil }
            let waiting: [(server: Int, name: String, priority: Float)] = [
                (0, "a", 0.5), (1, "low", 0.25), (2, "high", 0.75), (1, "b", 0.5), (0, "high", 0.75),
            ]
            let tasks = waiting.map { session.dataTask(with: servers[$0.server].url("/\($0.name)")) }
            for (task, wait) in zip(tasks, waiting) {
                task.priority = wait.priority
                task.resume()
            }
            try waitFor("all to wait") {
                tasks.allSatisfy { $0.whyNotDelivering.reason == .waits } ? () : nil
            }
            go.open()
            try waitFor("the ends") { notes.completed == 6 ? () : nil }
            let served = order.value
            precondition(
                served == ["0/first", "2/high", "0/high", "0/a", "1/b", "1/low"], served.description)
            session.invalidateAndCancel()
        }
    }

    @Test func `US-72 kept connections serve only their session, and are closed when it is invalidated`()
        throws
    {
        let server = try echoServer()
        let notes = Notes()
        let sessions = (0..<2).map { _ in
            URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        }
        for (number, session) in [0, 0, 1].map({ ($0, sessions[$0]) }).enumerated() {
            session.1.dataTask(with: server.url()).resume()
            try waitFor("an end") { notes.completed == number + 1 ? () : nil }
        }
        #expect(server.accepted == 2)
        #expect(server.served == 2)
        sessions[0].finishTasksAndInvalidate()
        try waitFor("its connection to close") { server.served == 1 ? () : nil }
        sessions[1].invalidateAndCancel()
        try waitFor("the other to close") { server.served == 0 ? () : nil }
    }

    @Test func `US-72 the shared session has the connections of URLConnection`() throws {
        let server = try echoServer()
        try onLoopThread { loop in
            _ = URLConnection(request: URLRequest(url: server.url()), delegate: nil)
            loop.runOut()
        }
        let done = Latch()
        URLSession.shared.dataTask(with: server.url()) { _, _, _ in done.open() }.resume()
        try done.wait()
        #expect(server.accepted == 1)
    }

    @Test func `US-9 invalidation has no effect on the shared session`() throws {
        let server = try echoServer()
        URLSession.shared.invalidateAndCancel()
        URLSession.shared.finishTasksAndInvalidate()
        #expect(URLSession.shared.delegate == nil)
        let done = Latch()
        let task = URLSession.shared.dataTask(with: server.url()) { _, _, _ in done.open() }
        task.resume()
        try done.wait()
        #expect(task.error == nil)
    }

    @Test func `US-78 after flush requests use new connections, and its handler is called in order`() throws {
        let server = try echoServer()
        let notes = Notes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        session.dataTask(with: server.url()).resume()
        try waitFor("an end") { notes.completed == 1 ? () : nil }
        let log = EventLog()
        session.flush { log.note("flushed \(OperationQueue.current === session.delegateQueue)") }
        session.getAllTasks { log.note("listed \($0.count)") }
        try waitFor("the list") { log.entries.count == 2 ? () : nil }
        #expect(log.entries == ["flushed true", "listed 0"])
        session.dataTask(with: server.url()).resume()
        try waitFor("an end") { notes.completed == 2 ? () : nil }
        #expect(server.accepted == 2)
        session.invalidateAndCancel()
    }

    @Test func `US-78 stored values are in the files when flush calls its handler`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        let cache = URLConnection.Cache(
            memoryCapacity: 1 << 20, diskCapacity: 1 << 20, diskPath: folder.path)
        let url = try #require(URL(string: "http://localhost/page"))
        let response = try #require(
            HTTPURLResponse(
                url: url, statusCode: 200, httpVersion: "HTTP/1.1",
                headerFields: ["Cache-Control": "max-age=100"]))
        let found = Box(false)
        let log = EventLog()
        try onLoopThread { loop in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCache = cache
            let session = URLSession(configuration: configuration, delegate: nil, runLoop: loop)
            cache.storeCachedResponse(
                CachedURLResponse(response: response, data: Data("kept by flush".utf8)),
                for: URLRequest(url: url))
            session.flush {
                log.note("flushed")
                let files = (try? FileManager.default.subpathsOfDirectory(atPath: folder.path)) ?? []
                found.value = files.contains { name in
                    let bytes = try? Data(contentsOf: folder.appendingPathComponent(name))
                    return bytes?.range(of: Data("kept by flush".utf8)) != nil
                }
            }
            session.getAllTasks { _ in log.note("listed") }
            loop.runOut()
        }
        #expect(log.entries == ["flushed", "listed"])
        #expect(found.value)
    }

    @Test func `US-78 reset empties cookies, cache and credentials`() throws {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                try peer.respond(
                    "200 OK", ["Set-Cookie: a=b", "Cache-Control: max-age=100"],
                    body: request.value("Cookie") ?? "none")
            }
        }
        let configuration = URLSessionConfiguration.ephemeral
        let credential = URLCredential(user: "u", password: "p", persistence: .forSession)
        let space = URLProtectionSpace(
            host: "h", port: 80, protocol: "http", realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        configuration.urlCredentialStorage?.set(credential, for: space)
        let session = URLSession(configuration: configuration)
        func load() throws -> String {
            let (text, _) = try session.load(URLRequest(url: server.url()))
            return text
        }
        #expect(try load() == "none")
        #expect(try load() == "none")
        #expect(server.requests.count == 1, "the second comes from the cache")
        #expect(configuration.httpCookieStorage?.cookies?.count == 1)
        let done = Latch()
        session.reset { done.open() }
        try done.wait()
        #expect(configuration.httpCookieStorage?.cookies?.isEmpty == true)
        #expect(configuration.urlCredentialStorage?.allCredentials.isEmpty == true)
        #expect(try load() == "none")
        #expect(server.requests.count == 2)
        #expect(server.accepted == 2)
        session.invalidateAndCancel()
    }

    @Test func `US-78 UC-51 reset forgets the credentials in the program's file`() async {
        // In a process of its own, because it empties the shared storage.
        await #expect(processExitsWith: .success) {
            let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            defer { try? FileManager.default.removeItem(at: file) }
            let kept = """
                [{"host": "h", "port": 80, "scheme": "http", "realm": "r", "user": "u", "password": "p",
                "method": "\(NSURLAuthenticationMethodHTTPBasic)"}]
                """
            try Data(kept.utf8).write(to: file)
            try URLConnection.PermanentCredentials.keep(in: file)
            precondition(URLCredentialStorage.shared.allCredentials.count == 1)
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCredentialStorage = .shared
            let done = Latch()
            URLSession(configuration: configuration).reset { done.open() }
            try done.wait()
            precondition(URLCredentialStorage.shared.allCredentials.isEmpty)
            let left = String(decoding: try Data(contentsOf: file), as: UTF8.self)
            precondition(left == "[]", left)
        }
    }

    @Test func `US-78 flush does not make the shared cookie storage`() async {
        // In a process of its own, where no code has asked for that storage.
        await #expect(processExitsWith: .success) {
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            setenv("XDG_DATA_HOME", folder.path, 1)
            let session = URLSession(configuration: .default)
            let done = Latch()
            session.flush { done.open() }
            try done.wait()
            // The folder for its file would be made before it.
            let found = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            precondition(found.isEmpty, "\(found)")
        }
    }

    // MARK: - Connectivity

    /// No route of TCP leads there: connecting fails with ENETUNREACH on any machine.
    private static func nowhere() throws -> URL { try #require(URL(string: "http://255.255.255.255/")) }

    @Test func `US-70 without a route a task waits, tells the delegate once, and its resource timeout runs`()
        throws
    {
        let configuration = URLSessionConfiguration.default
        configuration.connection.proxy = .direct
        for waits in [false, true] {
            configuration.waitsForConnectivity = waits
            // The shorter time does not count while the task waits for a network.
            configuration.timeoutIntervalForRequest = waits ? 0.5 : 30
            configuration.timeoutIntervalForResource = waits ? 2 : 30
            let delegate = ConnectivityNotes()
            let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
            let task = session.dataTask(with: try Self.nowhere())
            task.resume()
            if waits {
                try waitFor("the call") { delegate.log.entries.first == "waiting" ? () : nil }
            }
            try waitFor("the end") { task.state == .completed ? () : nil }
            try waitFor("the call") { delegate.log.entries.last?.hasPrefix("complete") ?? false ? () : nil }
            #expect(delegate.log.entries == (waits ? ["waiting", "complete -1001"] : ["complete -1009"]))
            session.invalidateAndCancel()
        }
    }

    @Test func `US-70 a task that waits can be cancelled, and a refusal fails at once`() throws {
        let configuration = URLSessionConfiguration.default
        configuration.connection.proxy = .direct
        configuration.waitsForConnectivity = true
        let delegate = ConnectivityNotes()
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        let task = session.dataTask(with: try Self.nowhere())
        task.resume()
        try waitFor("the call") { delegate.log.entries == ["waiting"] ? () : nil }
        #expect(task.whyNotDelivering.description.contains("network"))
        task.cancel()
        try waitFor("the end") { delegate.log.entries.count == 2 ? () : nil }
        let refused = try RefusedPort()
        session.dataTask(with: try #require(URL(string: "http://127.0.0.1:\(refused.port)/"))).resume()
        try waitFor("the end") { delegate.log.entries.count == 3 ? () : nil }
        #expect(delegate.log.entries == ["waiting", "complete -999", "complete -1004"])
        session.invalidateAndCancel()
    }

    @Test(arguments: [false, true])
    func `US-70 US-89 a stream task waits for a route, too, and tells the delegate once`(
        cancels: Bool
    ) throws {
        let (nowhere, delegate) = (try Self.nowhere(), ConnectivityNotes())
        let host = try #require(nowhere.host)
        let entries = try onHeldLoop { loop, clock -> [String] in
            let configuration = URLSessionConfiguration.default
            configuration.connection.proxy = .direct
            configuration.waitsForConnectivity = true
            configuration.timeoutIntervalForResource = 100
            let session = URLSession(configuration: configuration, delegate: delegate, runLoop: loop)
            let task = session.streamTask(withHostName: host, port: 80)
            task.resume()
            loop.passUntil { !delegate.log.entries.isEmpty }
            loop.perform { #expect(task.whyNotDelivering.description.contains("network")) }
            loop.runInVain(for: 0)
            loop.pass(31, by: clock)
            for _ in 1...10 { loop.runInVain(for: 0) }
            // It has tried again, and waits for another half minute.
            let left = loop.nextTimerDate(forMode: .default)?.timeIntervalSince(clock.date) ?? 0
            #expect(abs(left - 30) < 1)
            let entries = delegate.log.entries
            if cancels { task.cancel() } else { loop.pass(70, by: clock) }
            loop.runOut()
            return entries
        }
        #expect(entries == ["waiting"])
        #expect(delegate.log.entries == ["waiting", cancels ? "complete -999" : "complete -1001"])
    }

    // MARK: - Explanations

    @Test func `US-90 a task says why it makes no call`() throws {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.target == "/silent" { return peer.waitForEnd() }
                try peer.respond(body: "done")
            }
        }
        let sentences = try onLoopThread { loop -> [String] in
            let notes = Notes(on: loop)
            let kept = Box<[@Sendable (URLSession.ResponseDisposition) -> Void]>([])
            notes.answerResponses { _, handler in kept.value.append(handler) }
            let session = URLSession(
                configuration: Self.oneConnection(), delegate: notes, runLoop: loop, modes: [.work])
            var said = [session.whyNotDelivering.description]
            let task = session.dataTask(with: server.url("/asked"))
            said.append(task.whyNotDelivering.description)
            task.resume()
            said.append(task.whyNotDelivering.description)
            task.suspend()
            said.append(task.whyNotDelivering.description)
            task.resume()
            loop.runInVain(.other)
            said.append(session.whyNotDelivering.description)
            loop.run(.work) { kept.value.count == 1 }
            for handler in kept.value { handler(.allow) }
            kept.value = []
            loop.run(.work) { notes.completed == 1 }
            said.append(task.whyNotDelivering.description)
            loop.runOut(.work)
            return said
        }
        let words = [
            "no task", "not resumed", "never been run", "suspended", "task 1: scheduled in work", "ended",
        ]
        #expect(sentences.count == words.count)
        for (sentence, word) in zip(sentences, words) {
            #expect(sentence.contains(word), "\(sentence): \(word)")
        }
    }

    /// Keeps the handler of each challenge, and may answer through the challenge's sender instead.
    private final class Keeping: NSObject, URLSessionDataDelegate, Sendable {
        typealias Handler = @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        let kept = Box<[Handler]>([])
        let isComplete = Box(false)
        private let usesSender: Bool

        init(usesSender: Bool = false) { self.usesSender = usesSender }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping Handler
        ) {
            kept.mutate { $0.append(completionHandler) }
            guard usesSender else { return }
            let credential = URLCredential(user: "user", password: "pass", persistence: .none)
            challenge.sender?.use(credential, for: challenge)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            isComplete.value = true
        }
    }

    @Test func `US-90 a task whose challenge a delegate keeps waits for that answer`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("401 No", ["WWW-Authenticate: Basic realm=\"r\""])
            _ = try peer.readRequest()
            peer.waitForEnd()
        }
        let delegate = Keeping()
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        let task = session.dataTask(with: server.url())
        task.resume()
        let handler = try waitFor("the challenge") { delegate.kept.value.first }
        try waitFor("the sentence about the answer") {
            let sentence = task.whyNotDelivering.description
            return sentence.contains("urlSession(_:task:didReceive:completionHandler:)") ? () : nil
        }
        delegate.kept.value = []
        handler(.useCredential, URLCredential(user: "user", password: "pass", persistence: .none))
        try waitFor("the sentence about the server") {
            task.whyNotDelivering.description == "it waits for the server" ? () : nil
        }
        session.invalidateAndCancel()
        try waitFor("the end") { delegate.isComplete.value ? () : nil }
    }

    @Test func `US-90 a task whose challenge was answered through its sender waits for the server`() throws {
        let hasCredential = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("401 No", ["WWW-Authenticate: Basic realm=\"r\""])
            _ = try peer.readRequest()
            hasCredential.open()
            peer.waitForEnd()
        }
        let delegate = Keeping(usesSender: true)
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        let task = session.dataTask(with: server.url())
        task.resume()
        try hasCredential.wait()
        try waitFor("the sentence about the server") {
            task.whyNotDelivering.description == "it waits for the server" ? () : nil
        }
        #expect(delegate.kept.value.count == 1)
        session.invalidateAndCancel()
        try waitFor("the end") { delegate.isComplete.value ? () : nil }
        // It retains the task, whose session has the delegate.
        delegate.kept.value = []
    }

    @Test func `US-90 a task whose delegate has released its handler does not wait for the answer`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
            peer.waitForEnd()
        }
        let notes = Notes()
        notes.answerResponses { _, _ in }
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let task = session.dataTask(with: server.url())
        task.resume()
        try waitFor("a part of the body") { notes.body.isEmpty ? nil : () }
        try waitFor("the sentence about the server") {
            task.whyNotDelivering.description == "it waits for the server" ? () : nil
        }
        session.invalidateAndCancel()
        try waitFor("the end") { notes.completed == 1 ? () : nil }
    }
}

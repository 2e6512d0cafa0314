import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// A delegate that writes down what a task with an async function tells it.
private final class Watcher: NSObject, URLSessionDataDelegate, Sendable {
    private let state = Mutex<[String]>([])
    var calls: [String] { state.withLock { $0 } }

    private func note(_ call: String) {
        state.withLock { if call != "data" || $0.last != call { $0.append(call) } }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        note("redirect")
        completionHandler(request)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note("data")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note("complete")
    }
}

/// A delegate that writes down the identifiers of the tasks that were made.
private final class Creations: NSObject, URLSessionTaskDelegate, Sendable {
    let identifiers = Box<[Int]>([])

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
        identifiers.mutate { $0.append(task.taskIdentifier) }
    }
}

@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct AsyncSessionTests {
    private static func server() throws -> TestServer {
        try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                switch request.target {
                case "/old": try peer.respond("302 Found", ["Location: /new"])
                case "/missing": try peer.respond("404 Not Found", body: "no")
                case "/half":
                    try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
                    return
                case "/body": try peer.respond(body: "\(request.method) \(request.body.count)")
                case "/never": return peer.waitForEnd()
                default: try peer.respond(body: "\(request.method) \(request.target)")
                }
            }
        }
    }

    /// The code of what `load` throws; nil: it threw nothing, or something else.
    private static func failure(_ load: () async throws -> Void) async -> URLError.Code? {
        do {
            try await load()
            return nil
        } catch {
            return (error as? URLError)?.code
        }
    }

    @Test func `US-81 data(for:) and data(from:) return body and last response, or throw a URLError`()
        async throws
    {
        let server = try Self.server()
        let session = URLSession(configuration: .ephemeral)
        let (data, response) = try await session.data(for: URLRequest(url: server.url("/old")))
        #expect(data == Data("GET /new".utf8))
        #expect(response.url == server.url("/new"))
        let (body, missing) = try await session.data(from: server.url("/missing"))
        #expect((missing as? HTTPURLResponse)?.statusCode == 404)
        #expect(body == Data("no".utf8))
        let lost = await Self.failure { _ = try await session.data(from: server.url("/half")) }
        #expect(lost == .networkConnectionLost)
        let refused = await Self.failure {
            _ = try await session.bytes(from: #require(URL(string: "http://127.0.0.1:1/")))
        }
        #expect(refused == .cannotConnectToHost)
    }

    @Test func `US-81 upload(for:from:) and upload(for:fromFile:) send data and files`() async throws {
        let server = try Self.server()
        let session = URLSession(configuration: .ephemeral)
        var request = URLRequest(url: server.url("/body"))
        request.httpMethod = "PUT"
        let body = Data(repeating: 0x61, count: 300_000)
        let (answer, _) = try await session.upload(for: request, from: body)
        #expect(answer == Data("PUT 300000".utf8))
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try body.write(to: file)
        let (same, _) = try await session.upload(for: request, fromFile: file)
        #expect(same == answer)
        try FileManager.default.removeItem(at: file)
        let missing = await Self.failure { _ = try await session.upload(for: request, fromFile: file) }
        #expect(missing == .fileDoesNotExist)
    }

    @Test func `US-81 download(for:) leaves the file to the caller`() async throws {
        let server = try Self.server()
        let session = URLSession(configuration: .ephemeral)
        let (file, response) = try await session.download(from: server.url("/file"))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        #expect(try Data(contentsOf: file) == Data("GET /file".utf8))
        try FileManager.default.removeItem(at: file)
        let unusable = await Self.failure { _ = try await session.download(resumeFrom: Data("no".utf8)) }
        #expect(unusable == .unsupportedURL)
        let load = Task { () -> URLError.Code? in
            withUnsafeCurrentTask { $0?.cancel() }
            return await Self.failure { _ = try await session.download(from: server.url("/file")) }
        }
        #expect(await load.value == .cancelled)
    }

    @Test func `US-81 download(resumeFrom:) continues a cancelled download`() async throws {
        let (sent, content) = (Latch(), String(repeating: "0123456789", count: 40_000))
        let server = try TestServer { peer in
            let request = try peer.readRequest()
            let head = "Content-Type: text/plain\r\nETag: \"a\"\r\nAccept-Ranges: bytes\r\n"
            let bytes = Array(content.utf8)
            if let range = request.value("Range") {
                let begin = Int(range.dropFirst("bytes=".count).dropLast()) ?? 0
                try peer.send(
                    "HTTP/1.1 206 Partial Content\r\n\(head)Content-Length: \(bytes.count - begin)\r\n"
                        + "Content-Range: bytes \(begin)-\(bytes.count - 1)/\(bytes.count)\r\n\r\n")
                try peer.send(Array(bytes[begin...]))
            } else {
                try peer.send("HTTP/1.1 200 OK\r\n\(head)Content-Length: \(bytes.count)\r\n\r\n")
                try peer.send(Array(bytes[..<200_000]))
                sent.open()
                peer.waitForEnd()
            }
        }
        let session = URLSession(configuration: .ephemeral)
        let task = session.downloadTask(with: server.url())
        task.resume()
        try await becomes("a part") { sent.isOpen && task.countOfBytesReceived > 100_000 }
        let resumeData = try #require(await task.cancelByProducingResumeData())
        let (file, _) = try await session.download(resumeFrom: resumeData)
        #expect(try Data(contentsOf: file) == Data(content.utf8))
        try FileManager.default.removeItem(at: file)
        #expect(server.requests.count == 2 && server.requests.last?.value("Range") != nil)
    }

    @Test func `US-81 in a session on a run loop an async function makes progress only while the mode runs`()
        async throws
    {
        let server = try Self.server()
        let (ran, mayRun) = (Latch(), Latch())
        let thread = LoopThread { loop in
            loop.runInVain(.other)
            ran.open()
            do { try mayRun.wait() } catch { Issue.record(error) }
            loop.keepAlive(in: .work)
            loop.runOut(.work)
        }
        let loop = try thread.loop
        let session = URLSession(configuration: .ephemeral, delegate: nil, runLoop: loop, modes: [.work])
        async let loaded = session.data(from: server.url("/loop"))
        try ran.wait()
        #expect(server.requests.isEmpty)
        mayRun.open()
        let (data, _) = try await loaded
        #expect(data == Data("GET /loop".utf8))
        loop.stop()
        try thread.value()
    }

    @Test func `US-81 an async function fails if the thread of its session's loop has ended`() async throws {
        let server = try Self.server()
        let session = try onLoopThread { loop in
            URLSession(configuration: .ephemeral, delegate: nil, runLoop: loop)
        }
        #expect(await Self.failure { _ = try await session.data(from: server.url()) } == .cancelled)
        #expect(await Self.failure { _ = try await session.bytes(from: server.url()) } == .cancelled)
        session.finishTasksAndInvalidate()
        #expect(await Self.failure { _ = try await session.data(from: server.url()) } == .cancelled)
        #expect(server.accepted == 0)
    }

    @Test func `US-75 in an invalid session an async function throws cancelled`() async throws {
        let server = try Self.server()
        let session = URLSession(configuration: .ephemeral)
        session.invalidateAndCancel()
        #expect(await Self.failure { _ = try await session.data(from: server.url()) } == .cancelled)
        #expect(await Self.failure { _ = try await session.bytes(from: server.url()) } == .cancelled)
        #expect(server.accepted == 0)
    }

    @Test func `US-82 a task that is cancelled throws at once, also while no mode of its loop runs`()
        async throws
    {
        let server = try Self.server()
        let mayEnd = Latch()
        let thread = LoopThread { _ in do { try mayEnd.wait() } catch { Issue.record(error) } }
        let loop = try thread.loop
        let session = URLSession(configuration: .ephemeral, delegate: nil, runLoop: loop)
        for usesBytes in [false, true] {
            let load = Task { () -> URLError.Code? in
                await Self.failure {
                    if usesBytes {
                        _ = try await session.bytes(from: server.url())
                    } else {
                        _ = try await session.data(from: server.url())
                    }
                }
            }
            load.cancel()
            #expect(await load.value == .cancelled)
        }
        #expect(server.accepted == 0)
        mayEnd.open()
        try thread.value()
    }

    @Test func `US-82 cancelling the Swift task ends the load, and the server is told`() async throws {
        let (asked, ended) = (Latch(), Latch())
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            asked.open()
            peer.waitForEnd()
            ended.open()
        }
        let session = URLSession(configuration: .ephemeral)
        let load = Task { await Self.failure { _ = try await session.data(from: server.url()) } }
        try await becomes("a request") { asked.isOpen }
        load.cancel()
        #expect(await load.value == .cancelled)
        try await becomes("the end") { ended.isOpen }
        #expect(await session.allTasks.isEmpty)
    }

    @Test func `US-78 US-80 reset and flush return after the handlers before them`() async throws {
        let session = URLSession(configuration: .ephemeral)
        let log = EventLog()
        session.getAllTasks { _ in log.note("before reset") }
        await session.reset()
        log.note("reset")
        session.getAllTasks { _ in log.note("before flush") }
        await session.flush()
        #expect(log.entries == ["before reset", "reset", "before flush"])
    }

    @Test func `US-61 an upload from resume data fails`() async throws {
        let session = URLSession(configuration: .ephemeral)
        let code = await Self.failure { _ = try await session.upload(resumeFrom: Data("data".utf8)) }
        #expect(code == .unsupportedURL)
    }

    @Test func `US-82 a task that was cancelled before sends nothing`() async throws {
        let server = try Self.server()
        let session = URLSession(configuration: .ephemeral)
        let load = Task { () -> [URLError.Code?] in
            withUnsafeCurrentTask { $0?.cancel() }
            return [
                await Self.failure { _ = try await session.data(from: server.url()) },
                await Self.failure { _ = try await session.bytes(from: server.url()) },
            ]
        }
        #expect(await load.value == [.cancelled, .cancelled])
        // What would have been sent is before this.
        _ = try await session.data(from: server.url("/other"))
        #expect(server.requests.map(\.target) == ["/other"])
    }

    @Test func `US-83 the task's delegate gets the data calls too, the session's gets none of them`()
        async throws
    {
        let server = try Self.server()
        let (own, ofSession) = (Watcher(), Watcher())
        let session = URLSession(configuration: .ephemeral, delegate: ofSession, delegateQueue: nil)
        let (data, _) = try await session.data(from: server.url("/old"), delegate: own)
        #expect(data == Data("GET /new".utf8))
        #expect(own.calls == ["redirect", "data"])
        #expect(ofSession.calls == [])
        _ = try await session.data(from: server.url("/old"))
        #expect(ofSession.calls == ["redirect"])
        let (bytes, _) = try await session.bytes(from: server.url("/old"), delegate: own)
        var text: [UInt8] = []
        for try await byte in bytes { text.append(byte) }
        #expect(text == Array("GET /new".utf8))
        #expect(own.calls == ["redirect", "data", "redirect", "data"])
        session.invalidateAndCancel()
    }

    @Test func `US-83 the delegate that is handed in is told that the task was made, if it has the method`()
        async throws
    {
        let server = try Self.server()
        let (own, ofSession) = (Creations(), Creations())
        let session = URLSession(configuration: .ephemeral, delegate: ofSession, delegateQueue: nil)
        _ = try await session.data(from: server.url(), delegate: own)
        #expect(own.identifiers.value == [1] && ofSession.identifiers.value == [])
        _ = try await session.data(from: server.url(), delegate: Watcher())
        #expect(own.identifiers.value == [1] && ofSession.identifiers.value == [2])
        session.invalidateAndCancel()
    }

    @Test func `US-83 a download's delegate gets its progress, and the function returns the file`()
        async throws
    {
        let server = try Self.server()
        let delegate = TransferNotes()
        let session = URLSession(configuration: .ephemeral)
        let (file, _) = try await session.download(from: server.url("/new"), delegate: delegate)
        defer { try? FileManager.default.removeItem(at: file) }
        #expect(try Data(contentsOf: file) == Data("GET /new".utf8))
        #expect(delegate.calls == ["wrote"])
        session.invalidateAndCancel()
    }
}

/// The shared session stays: here nothing is counted.
@Suite(.timeLimit(.minutes(2))) struct SharedSessionTests {
    @Test func `US-81 the shared session has the async functions too`() async throws {
        let server = try echoServer()
        let (data, _) = try await URLSession.shared.data(from: server.url("/shared"))
        #expect(data == Data("GET /shared 0".utf8))
        let (bytes, _) = try await URLSession.shared.bytes(from: server.url("/again"))
        var lines: [String] = []
        for try await line in bytes.lines { lines.append(line) }
        #expect(lines == ["GET /again 0"])
        server.stop()
    }
}

extension RunLoop {
    fileprivate func keepAlive(in mode: Mode) { add(Port(), forMode: mode) }
}

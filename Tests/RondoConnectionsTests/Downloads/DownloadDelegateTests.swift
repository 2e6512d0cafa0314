import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// Bodies that go to a file (rule UC-67).
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct DownloadDelegateTests {
    private final class Downloader: NSObject, URLConnectionDownloadDelegate, Sendable {
        private struct State {
            var calls: [String] = []
            var totals: [Int64] = []
            var expected: Set<Int64> = []
            var path: String?
            var content: Data?
        }

        private let state = Mutex(State())
        private let atEnd: @Sendable (URL) -> Void

        init(atEnd: @escaping @Sendable (URL) -> Void = { _ in }) { self.atEnd = atEnd }

        var calls: [String] { state.withLock { $0.calls } }
        var totals: [Int64] { state.withLock { $0.totals } }
        var expected: Set<Int64> { state.withLock { $0.expected } }
        var path: String { state.withLock { $0.path } ?? "" }
        var content: Data? { state.withLock { $0.content } }

        func connection(
            _ connection: URLConnection, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
            expectedTotalBytes: Int64
        ) {
            state.withLock { state in
                if state.calls.last != "wrote" { state.calls.append("wrote") }
                #expect((state.totals.last ?? 0) + bytesWritten == totalBytesWritten)
                state.totals.append(totalBytesWritten)
                state.expected.insert(expectedTotalBytes)
            }
        }

        func connectionDidResumeDownloading(
            _ connection: URLConnection, totalBytesWritten: Int64, expectedTotalBytes: Int64
        ) {
            state.withLock { $0.calls.append("resumed \(totalBytesWritten) of \(expectedTotalBytes)") }
        }

        func connectionDidFinishDownloading(_ connection: URLConnection, destinationURL: URL) {
            let content = try? Data(contentsOf: destinationURL)
            state.withLock { state in
                state.calls.append("finish")
                state.path = destinationURL.path
                state.content = content
            }
            atEnd(destinationURL)
        }

        func connection(_ connection: URLConnection, didFailWithError error: any Error) {
            state.withLock { $0.calls.append("fail \((error as? URLError)?.errorCode ?? 0)") }
        }
    }

    private static func download(
        _ url: URL, _ delegate: Downloader, queue: OperationQueue? = nil
    ) throws {
        try onLoopThread { loop in
            let connection = URLConnection(
                request: URLRequest(url: url), delegate: delegate, startImmediately: false)
            if let queue { connection?.setDelegateQueue(queue) }
            connection?.start()
            if queue == nil { loop.runOut() }
        }
        if queue != nil {
            try waitFor("the end of a download") {
                delegate.calls.last.map { $0 == "finish" || $0.hasPrefix("fail") } == true ? () : nil
            }
        }
    }

    /// Files of downloads that lie about.
    private static var leftovers: Set<String> {
        let folder = FileManager.default.temporaryDirectory.path
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return Set(names.filter { $0.hasPrefix("rondo-download-") && $0.count == 15 + 36 })
    }

    @Test(arguments: [true, false])
    func `UC-67 the body goes to a file, which exists during the last callback only`(byQueue: Bool) throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: longText(300_000))
            peer.waitForEnd()
        }
        let delegate = Downloader()
        try Self.download(server.url(), delegate, queue: byQueue ? OperationQueue() : nil)
        #expect(delegate.calls == ["wrote", "finish"])
        #expect(delegate.content == Data(longText(300_000).utf8))
        #expect(delegate.totals.last == 300_000)
        #expect(delegate.expected == [300_000])
        #expect(!delegate.path.isEmpty)
        try waitFor("the file's removal") {
            FileManager.default.fileExists(atPath: delegate.path) ? nil : ()
        }
    }

    @Test func `UC-67 a file that was moved in the callback stays`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "kept")
            peer.waitForEnd()
        }
        let target = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: target) }
        let delegate = Downloader { file in
            do {
                try FileManager.default.moveItem(at: file, to: target)
            } catch {
                Issue.record("not moved: \(error)")
            }
        }
        try Self.download(server.url(), delegate)
        #expect(try Data(contentsOf: target) == Data("kept".utf8))
    }

    @Test func `UC-67 an unknown length is 0, and an empty body gives an empty file`() throws {
        let server = try TestServer { peer in
            switch try peer.readRequest().target {
            case "/empty": try peer.respond()
            default: try peer.send("HTTP/1.1 200 OK\r\n\r\nuntil the end")
            }
            peer.finish()
            peer.waitForEnd()
        }
        let delegate = Downloader()
        try Self.download(server.url(), delegate)
        #expect(delegate.content == Data("until the end".utf8))
        #expect(delegate.expected == [0])
        let other = Downloader()
        try Self.download(server.url("/empty"), other)
        #expect(other.calls == ["finish"])
        #expect(other.content == Data())
    }

    @Test func `UC-67 the length of decoded content is not known, from the cache neither`() throws {
        let coded = try #require(Data(base64Encoded: "H4sIAAAAAAACAyvJSFVIzs8rSc0rAQBznWdrCwAAAA=="))
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\nContent-Encoding: gzip\r\n"
                    + "Content-Length: \(coded.count)\r\n\r\n")
            try peer.send(Array(coded))
            peer.waitForEnd()
        }
        let cache = URLConnection.Cache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let recorder = try load(server.url()) { $0.configuration.cache = cache }
        #expect(recorder.text == "the content")
        let delegate = Downloader()
        let request = URLRequest(url: server.url())
        try onLoopThread { loop in
            let connection = URLConnection(request: request, delegate: delegate, startImmediately: false)
            connection?.configuration.cache = cache
            connection?.start()
            loop.runOut()
        }
        #expect(delegate.content == Data("the content".utf8))
        #expect(delegate.expected == [0])
        #expect(server.requests.count == 1)
    }

    @Test func `UC-67 no file is left by a failure or a cancel`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        }
        let before = Self.leftovers
        let delegate = Downloader()
        try Self.download(server.url(), delegate)
        #expect(delegate.calls == ["wrote", "fail -1005"])
        let cancelling = Canceller()
        try onLoopThread { loop in
            _ = URLConnection(request: URLRequest(url: server.url()), delegate: cancelling)
            loop.runOut()
        }
        #expect(cancelling.log.entries == ["wrote"])
        // Other tests have files as well, for a while.
        try waitFor("the files' removal") { Self.leftovers.subtracting(before).isEmpty ? () : nil }
    }

    /// Breaks off at first; then it has the rest, or another file.
    private static func breaking(changes: Bool) throws -> TestServer {
        let text = longText(300_000)
        return try TestServer { peer in
            let request = try peer.readRequest()
            guard let range = request.value("Range"), let first = Int(range.dropFirst(6).dropLast()) else {
                try peer.send(
                    "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 300000\r\n\r\n" + text.prefix(100_000))
                return
            }
            #expect(request.value("If-Range") == "\"a\"")
            if changes {
                try peer.respond("200 OK", ["ETag: \"b\""], body: text)
            } else {
                try peer.respond(
                    "206 Partial Content", ["Content-Range: bytes \(first)-299999/300000"],
                    body: String(text.dropFirst(first)))
            }
            peer.waitForEnd()
        }
    }

    @Test func `UC-71 a file that breaks off goes on where it stopped, if it is still the same`() throws {
        let delegate = Downloader()
        try Self.download(try Self.breaking(changes: false).url(), delegate)
        #expect(delegate.calls == ["wrote", "resumed 100000 of 300000", "wrote", "finish"])
        #expect(delegate.content == Data(longText(300_000).utf8))
        let other = Downloader()
        try Self.download(try Self.breaking(changes: true).url(), other)
        #expect(other.calls == ["wrote", "fail -1005"])
    }

    /// The first response has no length, and breaks off after 100 bytes.
    @Test(arguments: [
        ("bytes 100-199/200", 200, ["wrote", "resumed 100 of 200", "wrote", "finish"]),
        ("bytes 100-199/200", 140, ["wrote", "resumed 100 of 200", "wrote", "fail -1005"]),
        ("bytes 100-149/*", 150, ["wrote", "fail -1005"]),
    ])
    func `UC-71 a rest completes the file only with the length that it names`(
        range: String, end: Int, calls: [String]
    ) throws {
        let text = longText(200)
        let server = try TestServer { peer in
            let isForRest = try peer.readRequest().value("Range") != nil
            let part = isForRest ? text.prefix(end).dropFirst(100) : text.prefix(100)
            let status = isForRest ? "206 Part\r\nContent-Range: \(range)" : "200 OK"
            try peer.send(
                "HTTP/1.1 \(status)\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "\(String(part.utf8.count, radix: 16))\r\n\(part)\r\n")
            guard isForRest else { return }
            try peer.send("0\r\n\r\n")
            peer.waitForEnd()
        }
        let delegate = Downloader()
        try Self.download(server.url(), delegate)
        #expect(delegate.calls == calls)
        #expect(delegate.content == (calls.last == "finish" ? Data(text.utf8) : nil))
    }

    /// `@unchecked Sendable`: the storage has a lock of its own.
    private final class Cookies: @unchecked Sendable {
        let storage = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: UUID().uuidString)

        init() { storage.cookieAcceptPolicy = .always }

        var names: Set<String> { Set((storage.cookies ?? []).map(\.name)) }
    }

    @Test func `UC-57 the rest of a file is asked for with cookies, and those that it brings are stored`()
        throws
    {
        let text = longText(300_000)
        let server = try TestServer { peer in
            let request = try peer.readRequest()
            if request.value("Range") == nil {
                try peer.send(
                    "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nSet-Cookie: first=1\r\nContent-Length: 300000\r\n\r\n"
                        + text.prefix(100_000))
                return
            }
            try peer.respond(
                "206 Partial Content",
                ["Content-Range: bytes 100000-299999/300000", "Set-Cookie: rest=1"],
                body: String(text.dropFirst(100_000)))
            peer.waitForEnd()
        }
        let (delegate, cookies) = (Downloader(), Cookies())
        try onLoopThread { loop in
            let connection = URLConnection(
                request: URLRequest(url: server.url()), delegate: delegate, startImmediately: false)
            connection?.configuration.cookieStorage = cookies.storage
            connection?.start()
            loop.runOut()
        }
        #expect(delegate.calls.last == "finish")
        #expect(server.requests.last?.value("Cookie") == "first=1")
        #expect(cookies.names == ["first", "rest"])
    }

    /// Cancels at the first bytes.
    private final class Canceller: NSObject, URLConnectionDownloadDelegate, Sendable {
        let log = EventLog()

        func connection(
            _ connection: URLConnection, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
            expectedTotalBytes: Int64
        ) {
            log.note("wrote")
            connection.cancel()
        }

        func connectionDidFinishDownloading(_ connection: URLConnection, destinationURL: URL) {
            log.note("finish")
        }
    }
}

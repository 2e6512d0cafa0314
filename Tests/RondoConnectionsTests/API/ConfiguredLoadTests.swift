import Rondo
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Async loads and the class methods with settings of their own, and what a task can do with a body.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct ConfiguredLoadTests {
    /// Trusts the tests' authority, and keeps nothing.
    private static var configuration: URLConnection.Configuration {
        var configuration = URLConnection.Configuration()
        configuration.tls.certificateAuthorities = [.file(TestCertificates.shared.authorityPath)]
        configuration.cache = nil
        configuration.cookieStorage = nil
        return configuration
    }

    private static let page = Data(WebServer.page.utf8)

    private static func inFolder(_ body: (URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "rondo-configured-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // A temporary folder that cannot be removed does not fail the test.
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder)
    }

    @Test func `UC-60 each load of a task trusts the authority that its configuration names`() async throws {
        let server = try WebServer.nginx()
        let target = server.url("/page.txt", secure: true)
        await #expect(throws: URLError.self) { try await URLConnection.data(from: target) }
        let (data, _) = try await URLConnection.data(from: target, configuration: Self.configuration)
        #expect(data == Self.page)

        let (bytes, _) = try await URLConnection.bytes(from: target, configuration: Self.configuration)
        var pieces: [Data] = []
        for try await chunk in bytes.chunks { pieces.append(chunk) }
        #expect(pieces.reduce(Data(), +) == Self.page && !pieces.contains { $0.isEmpty })

        try await Self.inFolder { folder in
            let file = folder.appendingPathComponent("page.txt")
            try Data("an older one".utf8).write(to: file)
            let response = try await URLConnection.download(
                from: target, to: file, configuration: Self.configuration)
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            #expect(try Data(contentsOf: file) == Self.page)
        }
    }

    @Test func `UC-62 and UC-63 the class methods trust the authority that their configuration names`() throws
    {
        let server = try WebServer.nginx()
        let request = URLRequest(url: server.url("/page.txt", secure: true))
        // On a thread that ends: a request makes the loop of its thread, and one of the tests' pool would keep it.
        let data = try LoopThread { _ in
            #expect(throws: URLError.self) {
                try URLConnection.sendSynchronousRequest(request, returning: nil)
            }
            return try? URLConnection.sendSynchronousRequest(
                request, returning: nil, configuration: Self.configuration)
        }.value()
        #expect(data == Self.page)

        let result = Box<Data?>(nil)
        let done = Latch()
        URLConnection.sendAsynchronousRequest(
            request, queue: OperationQueue(), configuration: Self.configuration
        ) { _, data, _ in
            result.value = data
            done.open()
        }
        try done.wait()
        #expect(result.value == Self.page)
    }

    @Test func `UC-20 lines come without their ends, empty ones too, however the body is cut`() async throws {
        let text = Array("one\r\ntwo\n\n\r\nfünf\nlast".utf8)
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                let size = Int(request.target.dropFirst()) ?? 1
                try peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(text.count)\r\n\r\n")
                for begin in stride(from: 0, to: text.count, by: size) {
                    try peer.send(Array(text[begin..<min(begin + size, text.count)]))
                }
            }
        }
        for size in [1, 2, 3, 7, 100] {
            let (bytes, _) = try await URLConnection.bytes(from: server.url("/\(size)"))
            var lines: [String] = []
            for try await line in bytes.lines(keepingEmpty: true) { lines.append(line) }
            #expect(lines == ["one", "two", "", "", "fünf", "last"])
        }
    }

    /// What a piece has of further bytes, characters or lines is there at once: no other work of the actor comes between.
    @Test @MainActor func `UC-20 iteration leaves the actor only to wait for bytes`() async throws {
        let server = try TestServer.answering { _ in "a\nb\nc\n" }
        func readsOn<Elements: AsyncSequence>(_ elements: Elements) async throws -> Bool {
            var iterator = elements.makeAsyncIterator()
            _ = try await iterator.next(isolation: #isolation)
            let hasRun = Box(false)
            let other = Task { @MainActor in hasRun.value = true }
            _ = try await iterator.next(isolation: #isolation)
            let isFirst = !hasRun.value
            while try await iterator.next(isolation: #isolation) != nil {}
            await other.value
            return isFirst
        }
        #expect(try await readsOn(URLConnection.bytes(from: server.url()).0))
        #expect(try await readsOn(URLConnection.bytes(from: server.url()).0.characters))
        #expect(try await readsOn(URLConnection.bytes(from: server.url()).0.unicodeScalars))
        #expect(try await readsOn(URLConnection.bytes(from: server.url()).0.lines))
    }

    @Test func `UC-20 a line that never ends is an error`() async throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\n\r\n")
            let piece = [UInt8](repeating: 0x61, count: 1 << 20)
            while true { try peer.send(piece) }
        }
        let (bytes, _) = try await URLConnection.bytes(from: server.url())
        do {
            for try await _ in bytes.lines { Issue.record("a line") }
            Issue.record("it must fail")
        } catch let error as URLError {
            #expect(error.code == .dataLengthExceedsMaximum)
        }
    }

    @Test func `UC-37 an upload of a task tells how far it is`() async throws {
        let server = try TestServer { peer in
            let request = try peer.readRequest()
            try peer.respond(body: "\(request.body.count)")
        }
        let body = Data(repeating: 0x61, count: 3_000_000)
        var request = URLRequest(url: server.url())
        request.httpMethod = "PUT"
        let seen = Box<[URLConnection.TransferProgress]>([])
        let (data, _) = try await URLConnection.upload(for: request, from: body) { progress in
            seen.mutate { $0.append(progress) }
        }
        #expect(data == Data("3000000".utf8))
        let counts = seen.value.map(\.bytes)
        #expect(counts == counts.sorted() && counts.last == 3_000_000)
        #expect(seen.value.allSatisfy { $0.total == 3_000_000 })
    }

    @Test func `UC-68 a download of a task tells how far it is, and an error status leaves the file alone`()
        async throws
    {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.target == "/missing" {
                    try peer.respond("404 Not Found", body: "no")
                } else {
                    try peer.respond(body: longText(1_000_000))
                }
            }
        }
        try await Self.inFolder { folder in
            let file = folder.appendingPathComponent("file")
            let seen = Box<[URLConnection.TransferProgress]>([])
            try await URLConnection.download(from: server.url("/file"), to: file) { progress in
                seen.mutate { $0.append(progress) }
            }
            #expect(seen.value.last?.bytes == 1_000_000 && seen.value.last?.total == 1_000_000)
            do {
                try await URLConnection.download(from: server.url("/missing"), to: file)
                Issue.record("it must fail")
            } catch let error as URLError {
                #expect(error.code == .badServerResponse)
                #expect(error.localizedDescription.contains("404"))
            }
            #expect(try Data(contentsOf: file).count == 1_000_000)
        }
    }

    @Test func `UC-70 a download whose task is cancelled leaves no file`() async throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
            peer.waitForEnd()
        }
        try await Self.inFolder { folder in
            let file = folder.appendingPathComponent("file")
            let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
            let task = Task {
                try await URLConnection.download(from: server.url(), to: file) { _ in arrival.yield() }
            }
            for await _ in arrived { break }
            task.cancel()
            await #expect(throws: URLError.self) { try await task.value }
            try waitFor("the file to go") { FileManager.default.fileExists(atPath: file.path) ? nil : () }
        }
    }

    @Test func `six connections go to one server at a time unless another number is set`() {
        #expect(URLConnection.Limits().connectionsPerServer == 6)
    }
}

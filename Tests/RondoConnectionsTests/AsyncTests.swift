import Rondo
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Loads for tasks.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct AsyncTests {
    private static func server() throws -> TestServer {
        try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                switch request.target {
                case "/old": try peer.respond("302 Found", ["Location: /new"])
                case "/missing": try peer.respond("404 Not Found", body: "no")
                case "/long": try peer.respond(body: longText(3_000_000))
                case "/half":
                    try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
                    return
                case "/never": return peer.waitForEnd()
                default:
                    try peer.respond(
                        body: "\(request.method) \(String(decoding: request.body, as: UTF8.self))")
                }
            }
        }
    }

    @Test func `UC-60 data(for:) returns the body and the last response`() async throws {
        let server = try Self.server()
        let (data, response) = try await URLConnection.data(for: URLRequest(url: server.url("/old")))
        #expect(data == Data("GET ".utf8))
        #expect(response.url == server.url("/new"))
        let (body, missing) = try await URLConnection.data(from: server.url("/missing"))
        #expect((missing as? HTTPURLResponse)?.statusCode == 404)
        #expect(body == Data("no".utf8))
    }

    @Test func `UC-60 data(for:) throws what failed`() async throws {
        let request = URLRequest(url: url("http://127.0.0.1:1/"))
        await #expect(throws: URLError.self) { try await URLConnection.data(for: request) }
        await #expect(throws: URLError.self) { try await URLConnection.data(from: url("nonsense:")) }
    }

    @Test func `UC-60 upload(for:from:) sends the body that it is given`() async throws {
        let server = try Self.server()
        var request = URLRequest(url: server.url())
        request.httpMethod = "PUT"
        request.httpBody = Data("not this".utf8)
        let (data, _) = try await URLConnection.upload(for: request, from: Data("this".utf8))
        #expect(data == Data("PUT this".utf8))
    }

    @Test func `UC-17 a cancelled task cancels its load`() async throws {
        let server = try Self.server()
        for way in ["data", "bytes", "upload"] {
            let count = server.requests.count
            let task = Task {
                let url = server.url("/never")
                switch way {
                case "data": _ = try await URLConnection.data(from: url)
                case "bytes": _ = try await URLConnection.bytes(from: url)
                default:
                    var request = URLRequest(url: url)
                    request.httpMethod = "PUT"
                    _ = try await URLConnection.upload(for: request, from: Data("body".utf8))
                }
            }
            try await becomes("the request") { server.requests.count > count }
            task.cancel()
            do {
                try await task.value
                Issue.record("it must fail")
            } catch let error as URLError {
                #expect(error.code == .cancelled)
            }
            // It is the load that ends, and not the waiting alone.
            try await becomes("the end of the connection") { server.served == 0 }
        }
        // Before it has begun, as well.
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await URLConnection.data(from: server.url("/never"))
        }
        await #expect(throws: URLError.self) { try await task.value }
    }

    @Test func `UC-17 of a load whose task was cancelled before nothing is left`() async {
        let isGone = await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            weak var left: InputStream?
            do {
                let stream = InputStream(data: Data("body".utf8))
                left = stream
                var request = URLRequest(url: url("http://127.0.0.1:1/"))
                request.httpMethod = "PUT"
                request.httpBodyStream = stream
                _ = try await URLConnection.data(for: request)
                Issue.record("it must fail")
            } catch {
                #expect((error as? URLError)?.code == .cancelled)
            }
            // The connection would hold it by its request.
            return left == nil
        }.value
        #expect(isGone)
    }

    @Test func `UC-20 bytes(for:) gives the body byte by byte`() async throws {
        let server = try Self.server()
        let (bytes, response) = try await URLConnection.bytes(from: server.url("/long"))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        var collected: [UInt8] = []
        for try await byte in bytes { collected.append(byte) }
        #expect(collected == Array(longText(3_000_000).utf8))
    }

    @Test func `UC-21 bytes(for:) throws where the body breaks off`() async throws {
        let server = try Self.server()
        let (bytes, _) = try await URLConnection.bytes(from: server.url("/half"))
        var text = ""
        do {
            for try await byte in bytes { text.unicodeScalars.append(Unicode.Scalar(byte)) }
            Issue.record("it must fail")
        } catch let error as URLError {
            #expect(error.code == .networkConnectionLost)
        }
        #expect(text == "half")
    }

    @Test func `UC-12 bytes that are not taken hold the server back`() async throws {
        let ended = Latch()
        let server = try TestServer { peer in
            defer { ended.open() }
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\n\r\n")
            let piece = [UInt8](repeating: 0x61, count: 1 << 20)
            while true { try peer.send(piece) }
        }
        do {
            let (bytes, _) = try await URLConnection.bytes(from: server.url())
            let source = bytes.handle.source
            try await becomes("a full buffer") { source.waitingBytes > ByteSource.pausesAbove }
            // Too short a look would let a broken behaviour pass, and never fail a right one.
            for _ in 0..<20_000 { sched_yield() }
            #expect(source.waitingBytes <= ByteSource.maximumWaitingBytes)
            var iterator = bytes.makeAsyncIterator()
            for _ in 0..<1_000_000 { #expect(try await iterator.next() == 0x61) }
        }
        // The program has let go of the sequence: the load is over, and the server is told.
        try await becomes("the end") { ended.isOpen }
    }
}

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

    @Test func `UC-17 a load whose task was cancelled before leaves nothing behind`() async {
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

    /// A body in two pieces, each too long to be joined with another one, and its lines, of which one is in both.
    private static let pieces = ["\(lines[0])\nb", "b\n\(lines[2])"]
    private static let lines = [
        String(repeating: "a", count: ReceiveBuffer.inPlaceThreshold), "bb",
        String(repeating: "c", count: ReceiveBuffer.inPlaceThreshold),
    ]

    /// The bytes of that body, when both pieces wait for the task.
    private static func waitingPieces() async throws -> URLConnection.Bytes {
        let length = pieces.joined().utf8.count
        let isFirstThere = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n\(Self.pieces[0])")
            try isFirstThere.wait()
            try peer.send(Self.pieces[1])
            peer.waitForEnd()
        }
        let (bytes, _) = try await URLConnection.bytes(from: server.url())
        let source = bytes.handle.source
        try await becomes("the first piece") { source.waitingBytes == Self.pieces[0].utf8.count }
        isFirstThere.open()
        try await becomes("the second piece") { source.waitingBytes == length }
        return bytes
    }

    @Test func `UC-20 two pieces that have come before the first is asked for come in order`() async throws {
        var chunks: [Data] = []
        for try await chunk in try await Self.waitingPieces().chunks { chunks.append(chunk) }
        // Not in the expectations: a difference of long texts takes for ever to print.
        let isWhole = chunks.reduce(Data(), +) == Data(Self.pieces.joined().utf8)
        #expect(isWhole)
        #expect(chunks.count >= 2)
        var lines: [String] = []
        for try await line in try await Self.waitingPieces().lines { lines.append(line) }
        let areWhole = lines == Self.lines
        #expect(areWhole)
    }

    @Test func `UC-17 a task that is cancelled between two pieces gets an error in place of the second`()
        async throws
    {
        let bytes = try await Self.waitingPieces()
        let ofChunks = await Task { () -> URLError.Code? in
            var chunks = bytes.chunks.makeAsyncIterator()
            do {
                let first = try await chunks.next() ?? Data()
                #expect(first.first == UInt8(ascii: "a"))
                withUnsafeCurrentTask { $0?.cancel() }
                _ = try await chunks.next()
                return nil
            } catch { return (error as? URLError)?.code }
        }.value
        #expect(ofChunks == .cancelled)
        // The begun line is no line.
        let others = try await Self.waitingPieces()
        let ofLines = await Task { () -> URLError.Code? in
            var lines = others.lines.makeAsyncIterator()
            do {
                let first = try await lines.next()
                #expect(first?.count == ReceiveBuffer.inPlaceThreshold)
                withUnsafeCurrentTask { $0?.cancel() }
                _ = try await lines.next()
                return nil
            } catch { return (error as? URLError)?.code }
        }.value
        #expect(ofLines == .cancelled)
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

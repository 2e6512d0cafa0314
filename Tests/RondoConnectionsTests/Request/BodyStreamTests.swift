import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// A delegate that gives new body streams, and writes down what it is told as a `Recorder` does.
final class Uploader: NSObject, Recording, Sendable {
    let recorder = Recorder()
    let asked = Box(0)
    private let give: @Sendable () -> InputStream?

    init(give: @escaping @Sendable () -> InputStream?) { self.give = give }

    func connection(_ connection: URLConnection, needNewBodyStream request: URLRequest) -> InputStream? {
        asked.mutate { $0 += 1 }
        return give()
    }

    func connection(
        _ connection: URLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
    ) -> URLRequest? {
        recorder.connection(connection, willSend: request, redirectResponse: response)
    }

    func connection(
        _ connection: URLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
        totalBytesExpectedToWrite: Int
    ) {
        recorder.connection(
            connection, didSendBodyData: bytesWritten, totalBytesWritten: totalBytesWritten,
            totalBytesExpectedToWrite: totalBytesExpectedToWrite)
    }
}

/// A stream of a user's own that has its bytes only later, and cannot tell when.
final class LateStream: Foundation.InputStream {
    /// How often it was asked for bytes that were not there.
    private(set) var emptyAnswers = 0
    private var pieces: [[UInt8]?]
    private var status = Status.notOpen

    /// - Parameter pieces: Nil: nothing there when it is asked.
    init(_ pieces: [[UInt8]?]) {
        self.pieces = pieces
        super.init(data: Data())
    }

    override func open() { status = .open }
    override func close() { status = .closed }
    override var streamStatus: Status { status }
    override var streamError: (any Error)? { nil }

    override var hasBytesAvailable: Bool {
        guard let first = pieces.first else { return false }
        if first == nil {
            pieces.removeFirst()
            emptyAnswers += 1
        }
        return first != nil
    }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
        guard case .some(.some(let piece)) = pieces.first else { return 0 }
        let count = min(len, piece.count)
        for index in 0..<count { buffer[index] = piece[index] }
        pieces.removeFirst()
        if count < piece.count { pieces.insert(Array(piece[count...]), at: 0) }
        if pieces.isEmpty { status = .atEnd }
        return count
    }
}

/// Request bodies that come from a stream.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct BodyStreamTests {
    /// Streams are handed from the test to its loop's thread.
    struct Handed<Value>: @unchecked Sendable {
        let value: Value
    }

    private static func echo() throws -> TestServer {
        try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                switch request.target {
                case "/307": try peer.respond("307 Temporary Redirect", ["Location: /target"])
                case "/303": try peer.respond("303 See Other", ["Location: /target"])
                default: try peer.respond(body: String(request.body.count))
                }
            }
        }
    }

    private static func post(
        _ url: URL, _ stream: Foundation.InputStream, method: String = "POST", fields: [String: String] = [:]
    ) -> URLRequest {
        var request = URLRequest(url: url)
        request.httpMethod = method
        request.httpBodyStream = stream
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }

    private static func run(_ request: URLRequest, _ delegate: any URLConnectionDelegate & Sendable) throws {
        let handed = Handed(value: request)
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            _ = URLConnection(request: handed.value, delegate: delegate)
            return loop.runOut()
        }
        #expect(ended == .finished)
    }

    // MARK: - How it is sent

    @Test func `UC-35 a stream goes in chunks, or with the length that the request names`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        let body = Data(longText(300_000).utf8)
        try Self.run(Self.post(server.url(), InputStream(data: body)), recorder)
        try Self.run(
            Self.post(server.url(), InputStream(data: body), fields: ["Content-Length": "300000"]), recorder)
        #expect(recorder.text == "300000300000")
        #expect(server.requests.map { $0.value("Transfer-Encoding") } == ["chunked", nil])
        #expect(server.requests.map { $0.value("Content-Length") } == [nil, "300000"])
        #expect(server.requests.allSatisfy { $0.body == body })
    }

    @Test func `UC-36 a form is sent as it is given`() throws {
        let server = try Self.echo()
        var request = URLRequest(url: server.url())
        request.httpMethod = "POST"
        request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
        request.httpBody = Data("a=%20+b&c=\u{e4}".utf8)
        try load(request)
        #expect(server.requests.first?.method == "POST")
        #expect(server.requests.first?.value("Content-Type") == "application/x-www-form-urlencoded")
        #expect(server.requests.first?.body == request.httpBody)
    }

    @Test func `UC-35 setting one kind of body clears the other`() {
        var request = URLRequest(url: url("http://host/"))
        request.httpBodyStream = InputStream(data: Data([1]))
        request.httpBody = Data([2])
        #expect(request.httpBodyStream == nil)
        request.httpBodyStream = InputStream(data: Data([1]))
        #expect(request.httpBody == nil)
    }

    @Test func `UC-35 an empty stream is an empty body`() throws {
        let server = try Self.echo()
        for stream in [InputStream(data: Data()), Foundation.InputStream(data: Data())] {
            let recorder = Recorder()
            try Self.run(Self.post(server.url(), stream), recorder)
            #expect(recorder.text == "0")
        }
    }

    @Test func `UC-37 files, Foundation's own streams, and those of a user are sent whole`() throws {
        let server = try Self.echo()
        let directory = try Stranger.Directory()
        let body = Data(longText(300_000).utf8)
        try body.write(to: URL(fileURLWithPath: directory.path + "/file"))
        let late = LateStream([nil, Array("a".utf8), nil, nil, Array(longText(200_000).utf8), nil, [0x62]])
        let streams: [(Foundation.InputStream?, Int)] = [
            (InputStream(fileAtPath: directory.path + "/file"), 300_000),
            (Foundation.InputStream(fileAtPath: directory.path + "/file"), 300_000),
            (Foundation.InputStream(data: body), 300_000), (late, 200_002),
        ]
        for (stream, count) in streams {
            let recorder = Recorder()
            try Self.run(Self.post(server.url(), try #require(stream)), recorder)
            #expect(recorder.text == String(count))
        }
    }

    /// Notes when it is opened, read and closed.
    private final class NotingStream: InputStream {
        let log = EventLog()

        override func open() {
            log.note("open")
            super.open()
        }

        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
            log.note("read")
            return super.read(buffer, maxLength: len)
        }

        override func close() {
            log.note("close")
            super.close()
        }
    }

    @Test func `UC-37 the stream is opened, read and closed under the connection's own schedule`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        let stream = NotingStream(data: Data("body".utf8))
        let handed = Handed(value: (Self.post(server.url(), stream), stream))
        try onLoopThread { loop in
            let (request, stream) = handed.value
            let connection = URLConnection(request: request, delegate: recorder, startImmediately: false)
            connection?.schedule(in: loop, forMode: .work)
            connection?.start()
            loop.runInVain(.default)
            #expect(stream.log.entries == [])
            loop.runOut(.work)
            #expect(stream.log.entries.first == "open")
            #expect(stream.log.entries.last == "close")
            #expect(stream.streamStatus == .closed)
        }
        #expect(recorder.text == "4")
    }

    @Test func `UC-37 a file that is not there fails the load`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        let stream = try #require(InputStream(fileAtPath: "/nowhere/at/all"))
        try Self.run(Self.post(server.url(), stream), recorder)
        #expect(recorder.calls == ["fail -1021"])
        let cause = recorder.error?.userInfo[NSUnderlyingErrorKey] as? NSError
        #expect(cause?.code == Int(ENOENT))
    }

    @Test func `UC-39 a body that is shorter than announced is not sent again over another connection`()
        throws
    {
        let server = try TestServer.answering { request in request.method }
        #expect(try load(server.url()).text == "GET")
        let uploader = Uploader { nil }
        let request = Self.post(
            server.url(), InputStream(data: Data("short".utf8)), method: "PUT",
            fields: ["Content-Length": "10"])
        try Self.run(request, uploader)
        #expect(uploader.recorder.calls.last == "fail -1021")
        let sentence = uploader.recorder.error?.localizedDescription ?? ""
        #expect(sentence.contains("10"), "\(sentence)")
        #expect(uploader.asked.value == 0)
        #expect(server.accepted == 1)
    }

    // MARK: - While it is being written

    @Test func `UC-38 a bound pair feeds a body of any size while it is sent`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        let feeder = Feeder(left: 5_000_000)
        try onLoopThread { loop in
            var (input, output): (InputStream?, OutputStream?) = (nil, nil)
            Stream.getBoundStreams(withBufferSize: 4096, inputStream: &input, outputStream: &output)
            guard let input, let output else { return }
            output.delegate = feeder
            output.schedule(in: loop, forMode: .default)
            output.open()
            _ = URLConnection(request: Self.post(server.url(), input), delegate: recorder)
            loop.runOut()
        }
        #expect(recorder.text == "5000000")
    }

    /// Writes a piece for each space, and closes.
    private final class Feeder: NSObject, StreamDelegate, Sendable {
        private let left: Box<Int>

        init(left: Int) { self.left = Box(left) }

        func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
            guard eventCode == .hasSpaceAvailable, let output = aStream as? OutputStream else { return }
            guard left.value > 0 else { return output.close() }
            let piece = [UInt8](repeating: 0x61, count: min(1000, left.value))
            let count = output.write(piece, maxLength: piece.count)
            left.mutate { $0 -= max(0, count) }
        }
    }

    @Test func `UC-38 a stream that is not ready is waited for, and never taken as the end`() throws {
        let (first, second) = (Latch(), Latch())
        let server = try TestServer { peer in
            let head = try peer.readHead()
            #expect(try peer.readChunk() == Data("one".utf8))
            first.open()
            #expect(try peer.readChunk() == Data("two".utf8))
            second.open()
            #expect(try peer.readChunk() == nil)
            try peer.respond(body: head.method)
            peer.waitForEnd()
        }
        let recorder = Recorder()
        let pair = Handed(value: Self.boundPair())
        let writer = LoopThread { _ in
            pair.value.1.open()
            _ = pair.value.1.write(Array("one".utf8), maxLength: 3)
            first.waitOrRecord()
            _ = pair.value.1.write(Array("two".utf8), maxLength: 3)
            second.waitOrRecord()
            pair.value.1.close()
        }
        try Self.run(Self.post(server.url(), pair.value.0), recorder)
        try writer.value()
        #expect(recorder.text == "POST")
    }

    private static func boundPair() -> (InputStream, OutputStream) {
        var (input, output): (InputStream?, OutputStream?) = (nil, nil)
        Stream.getBoundStreams(withBufferSize: 4096, inputStream: &input, outputStream: &output)
        guard let input, let output else { fatalError("no pair") }
        return (input, output)
    }

    @Test func `UC-38 a load that ends early closes the pair, and its writer learns of it`() throws {
        let server = try TestServer { peer in
            _ = try peer.readHead()
            try peer.respond("413 Content Too Large", ["Connection: close"], body: "too much")
            peer.finish()
            peer.waitForEnd()
        }
        let recorder = Recorder()
        let pair = Handed(value: Self.boundPair())
        let writer = LoopThread { _ in
            let output = pair.value.1
            output.open()
            let piece = [UInt8](repeating: 1, count: 4096)
            while output.write(piece, maxLength: piece.count) > 0 {}
            return true
        }
        try Self.run(Self.post(server.url(), pair.value.0), recorder)
        #expect(recorder.calls.filter { $0 != "sent" } == ["response 413", "data", "finish"])
        #expect(try writer.value())
    }

    // MARK: - Lengths

    @Test func `UC-35 a stream that ends before its Content-Length fails the load`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        let stream = InputStream(data: Data("short".utf8))
        try Self.run(Self.post(server.url(), stream, fields: ["Content-Length": "10"]), recorder)
        #expect(recorder.calls.last == "fail -1021")
        #expect(recorder.error?.localizedDescription.contains("5 bytes") == true)
        #expect(server.requests.isEmpty)
    }

    @Test func `UC-35 a stream that is longer than its Content-Length fails the load`() throws {
        let server = try TestServer { peer in
            _ = try peer.readHead()
            peer.waitForEnd()
        }
        let recorder = Recorder()
        let stream = InputStream(data: Data("too long".utf8))
        try Self.run(Self.post(server.url(), stream, fields: ["Content-Length": "3"]), recorder)
        #expect(recorder.calls == ["fail -1021"])
    }

    @Test func `UC-35 a body is complete with its Content-Length, though its stream stays open`() throws {
        let server = try Self.echo()
        let recorder = Recorder()
        let (input, output) = Self.boundPair()
        output.open()
        _ = output.write(Array("12345".utf8), maxLength: 5)
        try Self.run(Self.post(server.url(), input, fields: ["Content-Length": "5"]), recorder)
        #expect(recorder.text == "5")
        output.close()
    }

    // MARK: - Again

    @Test func `UC-39 a redirect that keeps the body asks for a new stream`() throws {
        let server = try Self.echo()
        let uploader = Uploader { InputStream(data: Data("again".utf8)) }
        try Self.run(Self.post(server.url("/307"), InputStream(data: Data("first".utf8))), uploader)
        #expect(uploader.asked.value == 1)
        #expect(server.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["first", "again"])
        #expect(
            uploader.recorder.calls == [
                "sent", "willSend 307 \(server.url("/target"))", "sent", "response 200", "data", "finish",
            ])
    }

    @Test func `UC-39 nil for a new stream fails the load of a class that is met for the first time`() throws
    {
        let server = try Self.echo()
        let delegate = StreamRefuser<BodyStreamTests>()
        try Self.run(Self.post(server.url("/307"), InputStream(data: Data("body".utf8))), delegate)
        #expect(delegate.log.entries == ["asked", "fail -1021"])
        #expect(server.requests.map(\.target) == ["/307"])
    }

    @Test func `UC-39 nil for a new stream fails the load`() throws {
        let server = try Self.echo()
        let uploader = Uploader { nil }
        try Self.run(Self.post(server.url("/307"), InputStream(data: Data("first".utf8))), uploader)
        #expect(uploader.recorder.calls.last == "fail -1021")
        #expect(server.requests.count == 1)
    }

    @Test func `UC-39 a redirect that drops the body asks for nothing`() throws {
        let server = try Self.echo()
        let uploader = Uploader { InputStream(data: Data("again".utf8)) }
        try Self.run(Self.post(server.url("/303"), InputStream(data: Data("first".utf8))), uploader)
        #expect(uploader.asked.value == 0)
        #expect(server.requests.map(\.method) == ["POST", "GET"])
        #expect(server.requests.last?.value("Transfer-Encoding") == nil)
    }

    @Test(arguments: [5, 200_000, 3_000_000])
    func `UC-40 a body is kept and sent again if the delegate lacks needNewBodyStream`(length: Int) throws {
        let server = try Self.echo()
        let recorder = Recorder()
        let body = Data(longText(length).utf8)
        try Self.run(Self.post(server.url("/307"), InputStream(data: body)), recorder)
        #expect(recorder.text == String(length))
        #expect(server.requests.map(\.body) == [body, body])
    }

    @Test func `UC-40 a redirect in the middle of a bound pair goes on behind what was kept`() throws {
        let redirected = Latch()
        let server = try TestServer { peer in
            let head = try peer.readHead()
            if head.target == "/" {
                _ = try peer.readChunk()
                try peer.respond("307 Temporary Redirect", ["Location: /target"])
                peer.waitForEnd()
            } else {
                redirected.open()
                let body = try peer.readBody(of: head)
                try peer.respond(body: String(decoding: body, as: UTF8.self))
                peer.waitForEnd()
            }
        }
        let recorder = Recorder()
        let pair = Handed(value: Self.boundPair())
        let writer = LoopThread { _ in
            pair.value.1.open()
            _ = pair.value.1.write(Array("before, ".utf8), maxLength: 8)
            redirected.waitOrRecord()
            _ = pair.value.1.write(Array("after".utf8), maxLength: 5)
            pair.value.1.close()
        }
        try Self.run(Self.post(server.url(), pair.value.0), recorder)
        try writer.value()
        #expect(recorder.text == "before, after")
    }

    @Test func `UC-39 a body on a kept connection that is dead is sent again on another`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "kept")
            // The next request finds it dead, once it was sent.
            guard peer.number == 0 else { return peer.waitForEnd() }
            _ = try peer.readHead()
            peer.reset()
        }
        let recorder = Recorder()
        let handed = Handed(value: InputStream(data: Data("body".utf8)))
        try onLoopThread { loop in
            _ = URLConnection(request: URLRequest(url: server.url("/first")), delegate: Recorder())
            loop.runOut()
            let request = Self.post(server.url("/second"), handed.value, method: "PUT")
            _ = URLConnection(request: request, delegate: recorder)
            loop.runOut()
        }
        #expect(recorder.text == "kept")
        #expect(server.requests.last?.body == Data("body".utf8))
        #expect(server.accepted == 2)
    }

    // MARK: - Progress

    @Test
    func `UC-41 progress counts the body, falls back when it is sent again, and may not know the total`()
        throws
    {
        let server = try Self.echo()
        let recorder = Recorder()
        try Self.run(Self.post(server.url("/307"), InputStream(data: Data(count: 400_000))), recorder)
        let totals = recorder.sent.map { $0[1] }
        #expect(recorder.sent.allSatisfy { $0[2] == -1 })
        #expect(totals.last == 400_000)
        #expect(totals != totals.sorted())
        #expect(recorder.sent.reduce(0) { $0 + $1[0] } == 800_000)
        let other = Recorder()
        try Self.run(
            Self.post(
                server.url(), InputStream(data: Data(count: 9)), fields: ["Content-Length": "9"]), other)
        #expect(other.sent == [[9, 9, 9]])
    }

    /// Three thousand reports of sent bytes wait for the queue as one.
    @Test
    func
        `UC-12 UC-36 an upload whose progress waits for the delegate queue gets its response when it is told`()
        throws
    {
        let hasRead = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            hasRead.open()
            try peer.respond(body: "ok")
            peer.waitForEnd()
        }
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        queue.isSuspended = true
        let uploader = Uploader { nil }
        let handed = Handed(value: Self.post(server.url(), LateStream((0..<3_000).map { _ in [65] })))
        let result = try onLoopThread { loop -> RunLoop.RunResult in
            let connection = URLConnection(request: handed.value, delegate: uploader)
            connection?.setDelegateQueue(queue)
            loop.run { hasRead.isOpen }
            queue.isSuspended = false
            return loop.runOut()
        }
        #expect(result == .finished)
        #expect(uploader.recorder.calls.last == "finish")
    }
}

import Rondo
import RondoTestSupport
import Testing

import class Rondo.URLSession

@testable import RondoConnections
@testable import RondoSessions

@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct AsyncBytesTests {
    /// Answers `/N` with `text` in pieces of N bytes.
    private static func server(of text: [UInt8]) throws -> TestServer {
        try TestServer { peer in
            while true {
                let size = Int(try peer.readRequest().target.dropFirst()) ?? 1
                try peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(text.count)\r\n\r\n")
                for begin in stride(from: 0, to: text.count, by: size) {
                    try peer.send(Array(text[begin..<min(begin + size, text.count)]))
                }
            }
        }
    }

    /// A server that sends without end.
    private static func endless(_ ended: Latch = Latch()) throws -> TestServer {
        try TestServer { peer in
            defer { ended.open() }
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\n\r\n")
            let piece = [UInt8](repeating: 0x61, count: 1 << 20)
            while true { try peer.send(piece) }
        }
    }

    private func collect<Elements: AsyncSequence>(_ elements: Elements) async throws -> [Elements.Element] {
        var all: [Elements.Element] = []
        for try await element in elements { all.append(element) }
        return all
    }

    /// The code of what the elements end with; nil: with nothing, or another error.
    private func failure<Elements: AsyncSequence>(of elements: Elements) async -> URLError.Code? {
        do {
            for try await _ in elements {}
            return nil
        } catch {
            return (error as? URLError)?.code
        }
    }

    @Test func `US-84 bytes(for:) returns with the response; the body follows byte by byte`() async throws {
        let mayGoOn = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
            try mayGoOn.wait()
            try peer.send("body")
        }
        let (bytes, response) = try await URLSession(configuration: .ephemeral).bytes(from: server.url())
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        #expect(bytes.task.originalRequest?.url == server.url())
        #expect(bytes.task.state == .running)
        mayGoOn.open()
        #expect(try await collect(bytes) == Array("body".utf8))
    }

    @Test(arguments: [false, true])
    func `US-84 at most 256 KiB wait for the reader, then the server is held back`(hasDelegate: Bool)
        async throws
    {
        let ended = Latch()
        let server = try Self.endless(ended)
        let session = URLSession(
            configuration: .ephemeral, delegate: hasDelegate ? Notes() : nil, delegateQueue: nil)
        do {
            let (bytes, _) = try await session.bytes(from: server.url())
            let source = bytes.bytes.handle.source
            try await becomes("a full buffer") { source.waitingBytes > ByteSource.pausesAbove }
            // Too short a look would let a broken behaviour pass, and never fail a right one.
            for _ in 0..<20_000 { sched_yield() }
            if !hasDelegate { #expect(source.waitingBytes <= ByteSource.maximumWaitingBytes) }
            #expect(
                source.waitingBytes <= ByteSource.maximumWaitingBytes + QueuedCalls.maximumWaitingBytes)
            var iterator = bytes.makeAsyncIterator()
            for _ in 0..<1_000_000 { #expect(try await iterator.next() == 0x61) }
        }
        try await becomes("the end: the sequence was let go") { ended.isOpen }
        session.invalidateAndCancel()
    }

    @Test func `US-84 cancelling the Swift task that iterates cancels the load`() async throws {
        let ended = Latch()
        let server = try TestServer { peer in
            defer { ended.open() }
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\n\r\na")
            peer.waitForEnd()
        }
        let (bytes, _) = try await URLSession(configuration: .ephemeral).bytes(from: server.url())
        let first = Latch()
        let reader = Task { () -> URLError.Code? in
            do {
                for try await _ in bytes { first.open() }
                return nil
            } catch { return (error as? URLError)?.code }
        }
        try await becomes("a byte") { first.isOpen }
        reader.cancel()
        #expect(await reader.value == .cancelled)
        try await becomes("the end") { ended.isOpen }
    }

    @Test func `US-85 lines end at eight line ends, and empty ones are left out, however the body is cut`()
        async throws
    {
        let text = "one\r\ntwo\n\n\r\nfünf\rsix\u{B}seven\u{C}eight\u{85}nine\u{2028}ten\u{2029}\u{2028}€\r"
        let server = try Self.server(of: Array(text.utf8))
        let session = URLSession(configuration: .ephemeral)
        for size in [1, 2, 3, 7, 100] {
            let (bytes, _) = try await session.bytes(from: server.url("/\(size)"))
            #expect(
                try await collect(bytes.lines) == [
                    "one", "two", "fünf", "six", "seven", "eight", "nine", "ten", "€",
                ])
            let (again, _) = try await session.bytes(from: server.url("/\(size)"))
            #expect(
                try await collect(again.lines(keepingEmpty: true)) == [
                    "one", "two", "", "", "fünf",
                    "six\u{B}seven\u{C}eight\u{85}nine\u{2028}ten\u{2029}\u{2028}€",
                ])
        }
    }

    @Test func `US-85 a line comes as soon as its end is there`() async throws {
        let mayGoOn = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\ndata: a\r")
            try mayGoOn.wait()
            try peer.send("\n\r\nb")
        }
        let (bytes, _) = try await URLSession(configuration: .ephemeral).bytes(from: server.url())
        var lines = bytes.lines(keepingEmpty: true).makeAsyncIterator()
        #expect(try await lines.next() == "data: a")
        mayGoOn.open()
        #expect(try await lines.next() == "")
        #expect(try await lines.next() == "b")
        #expect(try await lines.next() == nil)
        #expect(try await lines.next() == nil)
    }

    @Test
    func `US-85 characters and scalars are whole, however the body is cut; invalid UTF-8 becomes U+FFFD`()
        async throws
    {
        let family = "\u{1F469}\u{200D}\u{1F467}"
        let text = "a\u{301}\r\n\(family)€\u{1F1E9}\u{1F1EA}z"
        let broken = Array(text.utf8) + [0xFF, 0x62, 0xE2, 0x82]
        let server = try Self.server(of: broken)
        let session = URLSession(configuration: .ephemeral)
        let whole = String(decoding: broken, as: UTF8.self)
        #expect(whole.hasSuffix("z\u{FFFD}b\u{FFFD}"))
        for size in [1, 2, 3, 5, 100] {
            let (bytes, _) = try await session.bytes(from: server.url("/\(size)"))
            #expect(try await collect(bytes.characters) == Array(whole))
            let (again, _) = try await session.bytes(from: server.url("/\(size)"))
            #expect(try await collect(again.unicodeScalars) == Array(whole.unicodeScalars))
            let (connection, _) = try await URLConnection.bytes(from: server.url("/\(size)"))
            #expect(try await collect(connection.characters) == Array(whole))
        }
    }

    @Test func `US-85 a line or a character that never ends is an error`() async throws {
        let session = URLSession(configuration: .ephemeral)
        let ended = Latch()
        let (bytes, _) = try await session.bytes(from: Self.endless(ended).url())
        #expect(await failure(of: bytes.lines) == .dataLengthExceedsMaximum)
        try await becomes("the end of the load") { ended.isOpen }
        let marks = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\n\r\na")
            let piece = [UInt8](String(repeating: "\u{301}", count: 1 << 19).utf8)
            while true { try peer.send(piece) }
        }
        let (accents, _) = try await session.bytes(from: marks.url())
        #expect(await failure(of: accents.characters) == .dataLengthExceedsMaximum)
    }

    @Test func `US-85 a line may have the maximum length, and one byte more is an error`() {
        var splitter = LineSplitter(keepsEmpty: false, maximumLength: 4)
        splitter.add(Data("\n1234\n12345\n".utf8))
        #expect(splitter.next() == .line("1234"))
        #expect(splitter.next() == .tooLong)
        splitter = LineSplitter(keepsEmpty: false, maximumLength: 4)
        splitter.add(Data("1234".utf8))
        #expect(splitter.next() == .nothing)
        splitter.add(Data("5".utf8))
        #expect(splitter.next() == .tooLong)
    }

    /// As of chunks of a byte each: every piece has an object of its own otherwise.
    @Test func `US-84 US-87 small pieces that wait are joined, and come in order`() async throws {
        let source = ByteSource(url: nil)
        let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
        for byte in bytes { source.received(Data([byte])) }
        source.finished()
        var (found, pieces) = (Data(), 0)
        while let piece = try await source.next() {
            found += piece
            pieces += 1
        }
        #expect(found == Data(bytes))
        #expect(pieces <= 10)
    }

    @Test func `US-84 tasks that read at the same time get a piece each, or the end`() async throws {
        let source = ByteSource(url: nil)
        let readers = (0..<3).map { _ in Task { try await source.next() } }
        while source.readerCount < 3 { await Task.yield() }
        for piece in ["a", "b"] { source.received(Data(piece.utf8)) }
        source.finished()
        var found: [Data?] = []
        for reader in readers { found.append(try await reader.value) }
        #expect(Set(found) == [Data("a".utf8), Data("b".utf8), nil])
    }

    @Test func `US-84 a cancelled task does not take the bytes that it has lost for the end of the body`()
        async
    {
        let source = ByteSource(url: nil)
        source.received(Data("abc".utf8))
        source.finished()
        let reader = Task { () -> URLError.Code? in
            withUnsafeCurrentTask { $0?.cancel() }
            do {
                _ = try await source.next()
                return nil
            } catch { return (error as? URLError)?.code }
        }
        #expect(await reader.value == .cancelled)
    }
}

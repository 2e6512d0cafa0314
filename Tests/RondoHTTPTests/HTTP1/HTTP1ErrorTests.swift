// Responses that are to be refused, by the table: whole, byte by byte and at every split the same error.

import RondoHTTP
import Testing

@Suite struct HTTP1ErrorTests {
    @Test(arguments: malformedHeads + ambiguousLengths + malformedChunks + truncations)
    func `a faulty response is refused the same however it arrives`(_ message: Message) throws {
        try message.hearInEveryWay { #expect($0 == message.expected) }
    }

    @Test(arguments: limits)
    func `a limit holds however the response arrives`(_ message: Message) throws {
        try message.hearInEveryWay { #expect($0 == message.expected) }
    }

    @Test func `garbage without a line end is refused when enough has come to quote it`() throws {
        var listener = try Listener()
        let garbage = Array(String(repeating: "\u{15}\u{3}", count: 40).utf8)
        let outcome = listener.hear([garbage[...]], .inPlace, ended: false)
        let excerpt = String(repeating: #"\x15\x03"#, count: 20) + "…"
        #expect(outcome.error == .peer(.invalidStatusLine(excerpt: excerpt)))
    }

    @Test func `bytes before any request are unsolicited`() throws {
        var codec = QueuedCodec()
        #expect(try codec.nextEvent() == .needMoreData)
        codec.receive("HTTP/1.1 408 Timeout\r\n\r\n".utf8)
        let error = HTTP1Error.peer(.unsolicitedBytes(excerpt: #"HTTP/1.1 408 Timeout\x0D\x0A\x0D\x0A"#))
        #expect(throws: error) { try codec.nextEvent() }
        #expect(throws: error) { try codec.nextEvent() }
        var output: [UInt8] = []
        try codec.send(head: .get, body: .none, into: &output)
        #expect(throws: error) { try codec.nextEvent() }
    }

    @Test func `the end before any request closes`() throws {
        var codec = QueuedCodec()
        codec.receiveEnd()
        #expect(try codec.nextEvent() == .closed)
    }

    @Test func `a value that is refused is not quoted`() throws {
        var listener = try Listener()
        let response = Array("HTTP/1.1 200 OK\r\nSet-Cookie: secret\0\r\n\r\n".utf8)
        let error = try #require(listener.hear([response[...]], .queue, ended: false).error)
        #expect(!error.description.contains("secret"))
        #expect(error.description.contains("Set-Cookie"))
        #expect(error.description.contains("0x00"))
    }

    @Test func `RFC 9110 5.5 NUL is refused in a value, and no other byte but a line end's`() throws {
        for byte in UInt8.min...UInt8.max where byte != 0x0A && byte != 0x0D {
            var listener = try Listener()
            let response = Array("HTTP/1.1 204 x\r\nA: b".utf8) + [byte] + Array("c\r\n\r\n".utf8)
            let outcome = listener.hear([response[...]], .inPlace, ended: false)
            #expect(outcome.error == (byte == 0 ? .peer(.invalidFieldValue(name: "A", byte: byte)) : nil))
            guard byte != 0 else { continue }
            // Nothing is lost, and nothing put in its place.
            #expect(outcome.head?.fields["A"] == "b\(Unicode.Scalar(byte))c")
        }
    }

    /// Values are looked at eight bytes at a time.
    @Test func `NUL is refused wherever it stands in a value, and ends no other's`() throws {
        for (length, place) in (1...26).flatMap({ length in (0..<length).map { (length, $0) } }) {
            for byte in [0x00, 0x01, 0x09, 0x1F, 0x20, 0x7E, 0x7F, 0x80, 0xA0, 0xFF] as [UInt8] {
                var value = [UInt8](repeating: UInt8(ascii: "v"), count: length)
                value[place] = byte
                var listener = try Listener()
                let response = Array("HTTP/1.1 204 x\r\nA:".utf8) + value + Array("\r\n\r\n".utf8)
                let outcome = listener.hear([response[...]], .inPlace, ended: false)
                #expect(
                    outcome.error == (byte == 0 ? .peer(.invalidFieldValue(name: "A", byte: byte)) : nil),
                    "byte \(byte) at \(place) of \(length)")
                let isBlank = byte == 0x09 || byte == 0x20
                let isAtEnd = place == 0 || place == length - 1
                guard byte != 0, !(isBlank && isAtEnd) else { continue }
                #expect(outcome.head?.fields["A"]?.unicodeScalars.count == length)
            }
        }
    }
}

private let ok = "HTTP/1.1 200 OK\r\n"

private let malformedHeads: [Message] = [
    Message(
        "not HTTP", "SSH-2.0-OpenSSH_9.2\r\n", failsWith: .invalidStatusLine(excerpt: "SSH-2.0-OpenSSH_9.2")),
    Message(
        "HTTP/0.9", "<html>\u{7}</html>\n", failsWith: .invalidStatusLine(excerpt: #"<html>\x07</html>"#)),
    Message("lower case", "http/1.1 200 OK\r\n", failsWith: .invalidStatusLine(excerpt: "http/1.1 200 OK")),
    Message(
        "no digit", "HTTP/1.x 200 OK\r\n", failsWith: .invalidStatusLine(excerpt: "HTTP/1.x 200 OK")),
    Message(
        "long version", "HTTP/1.10 200 OK\r\n", failsWith: .invalidStatusLine(excerpt: "HTTP/1.10 200 OK")),
    Message("HTTP/2", "HTTP/2.0 200 OK\r\n", failsWith: .unsupportedVersion(major: 2, minor: 0)),
    Message("HTTP/0.9 by name", "HTTP/0.9 200\r\n", failsWith: .unsupportedVersion(major: 0, minor: 9)),
    Message("no status", "HTTP/1.1\r\n", failsWith: .invalidStatusLine(excerpt: "HTTP/1.1")),
    Message("short status", "HTTP/1.1 20\r\n", failsWith: .invalidStatusLine(excerpt: "HTTP/1.1 20")),
    Message("long status", "HTTP/1.1 2000\r\n", failsWith: .invalidStatusLine(excerpt: "HTTP/1.1 2000")),
    Message("signed status", "HTTP/1.1 +20\r\n", failsWith: .invalidStatusLine(excerpt: "HTTP/1.1 +20")),
    Message("status below 100", "HTTP/1.1 099\r\n", failsWith: .invalidStatusLine(excerpt: "HTTP/1.1 099")),
    Message(
        "two spaces", "HTTP/1.1  200 OK\r\n", failsWith: .invalidStatusLine(excerpt: "HTTP/1.1  200 OK")),
    Message(
        "a control character in the reason", "HTTP/1.1 200 O\0K\r\n",
        failsWith: .invalidStatusLine(excerpt: #"HTTP/1.1 200 O\x00K"#)),
    Message(
        "a bare CR in the reason", "HTTP/1.1 200 O\rK\r\n",
        failsWith: .invalidStatusLine(excerpt: #"HTTP/1.1 200 O\x0DK"#)),
    Message(
        "RFC 9112 5.1 whitespace before the colon", ok + "A : b\r\n\r\n",
        failsWith: .invalidFieldLine(excerpt: "A : b")),
    Message("no colon", ok + "A b\r\nC: d\r\n\r\n", failsWith: .invalidFieldLine(excerpt: "A b")),
    Message("no name", ok + ": b\r\n\r\n", failsWith: .invalidFieldLine(excerpt: ": b")),
    Message("a name that is no token", ok + "A(: b\r\n\r\n", failsWith: .invalidFieldLine(excerpt: "A(: b")),
    Message(
        "a name that is not ASCII", ok + "Ä: b\r\n\r\n",
        failsWith: .invalidFieldLine(excerpt: #"\xC3\x84: b"#)),
    Message(
        "RFC 9112 2.2 whitespace before the first field", ok + " A: b\r\n\r\n",
        failsWith: .invalidFieldLine(excerpt: " A: b")),
    Message(
        "NUL in a value", ok + "A: b\0\r\n\r\n", failsWith: .invalidFieldValue(name: "A", byte: 0)),
    Message("a bare CR in a value", ok + "A: b\rC: d\r\n\r\n", failsWith: .invalidLineEnd(.header)),
    Message("a bare CR before a line end", ok + "A: b\r\r\n\r\n", failsWith: .invalidLineEnd(.header)),
    Message("a bare CR in a name", ok + "\rA: b\r\n\r\n", failsWith: .invalidLineEnd(.header)),
    Message(
        "101 that was not asked for", "HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n",
        failsWith: .unexpectedSwitchingProtocols),
]

private let ambiguousLengths: [Message] = [
    Message(
        "RFC 9112 6.3 both Content-Length and Transfer-Encoding",
        ok + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        failsWith: .contentLengthWithTransferEncoding),
    Message(
        "RFC 9112 6.3 conflicting lengths in one field", ok + "Content-Length: 5, 6\r\n\r\n",
        failsWith: .conflictingContentLengths(5, 6)),
    Message(
        "RFC 9112 6.3 conflicting lengths in two fields",
        ok + "Content-Length: 5\r\ncontent-length: 6\r\n\r\n", failsWith: .conflictingContentLengths(5, 6)),
    Message("no length", ok + "Content-Length:\r\n\r\n", failsWith: .invalidContentLength("")),
    Message("a missing length", ok + "Content-Length: 5,\r\n\r\n", failsWith: .invalidContentLength("")),
    Message("plus", ok + "Content-Length: +5\r\n\r\n", failsWith: .invalidContentLength("+5")),
    Message("minus", ok + "Content-Length: -5\r\n\r\n", failsWith: .invalidContentLength("-5")),
    Message("0x", ok + "Content-Length: 0x5\r\n\r\n", failsWith: .invalidContentLength("0x5")),
    Message("two words", ok + "Content-Length: 5 5\r\n\r\n", failsWith: .invalidContentLength("5 5")),
    Message(
        "2^63", ok + "Content-Length: 9223372036854775808\r\n\r\n",
        failsWith: .invalidContentLength("9223372036854775808")),
    Message(
        "Transfer-Encoding in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        failsWith: .transferEncodingInHTTP10),
    Message(
        "unknown coding", ok + "Transfer-Encoding: gzip\r\n\r\n",
        failsWith: .unsupportedTransferCoding("gzip")),
    Message(
        "unknown coding before chunked", ok + "Transfer-Encoding: gzip, chunked\r\n\r\n",
        failsWith: .unsupportedTransferCoding("gzip")),
    Message(
        "chunked is not the last", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
        failsWith: .unsupportedTransferCoding("identity")),
    Message(
        "chunked twice", ok + "Transfer-Encoding: chunked, chunked\r\n\r\n",
        failsWith: .unsupportedTransferCoding("chunked")),
    Message(
        "almost chunked", ok + "Transfer-Encoding: xchunked\r\n\r\n",
        failsWith: .unsupportedTransferCoding("xchunked")),
    Message(
        "no coding", ok + "Transfer-Encoding:\r\n\r\n", failsWith: .unsupportedTransferCoding("")),
    Message(
        "no coding, of several", ok + "Transfer-Encoding: , ,\r\n\r\n",
        failsWith: .unsupportedTransferCoding("")),
]

private func chunked(
    _ name: String, _ body: String, ended: Bool = false, hears heard: [Heard] = [],
    limits: HTTP1Limits = HTTP1Limits(), _ fault: HTTP1Error.Peer
) -> Message {
    Message(
        name, ok + "Transfer-Encoding: chunked\r\n\r\n" + body, ended: ended, limits: limits,
        hears: [.response(200, length: nil)] + heard, failsWith: fault)
}

private let malformedChunks: [Message] = [
    chunked("empty size", "\r\nhello", .invalidChunk(.missingSize(byte: 0x0D))),
    chunked("only an extension", ";a\r\n", .invalidChunk(.missingSize(byte: 0x3B))),
    chunked("space before the size", " 5\r\nhello", .invalidChunk(.missingSize(byte: 0x20))),
    chunked("plus", "+5\r\nhello", .invalidChunk(.missingSize(byte: 0x2B))),
    chunked("minus", "-5\r\nhello", .invalidChunk(.missingSize(byte: 0x2D))),
    chunked("0x", "0x5\r\nhello", .invalidChunk(.invalidSize(byte: 0x78))),
    chunked("space inside the size", "1 0\r\n", .invalidChunk(.invalidSize(byte: 0x30))),
    chunked("underscore", "1_0\r\n", .invalidChunk(.invalidSize(byte: 0x5F))),
    chunked("no hexadecimal digit", "g\r\n", .invalidChunk(.missingSize(byte: 0x67))),
    chunked("2^63", "8000000000000000\r\n", .invalidChunk(.sizeTooLarge)),
    chunked("2^64 and 5", "10000000000000005\r\n", .invalidChunk(.sizeTooLarge)),
    chunked("bare LF after a size", "5\nhello", .invalidChunk(.invalidLineEnd)),
    chunked("bare CR after a size", "5\rhello", .invalidChunk(.invalidLineEnd)),
    chunked("bare LF after an extension", "5;a\nhello", .invalidChunk(.invalidLineEnd)),
    chunked("bare CR in an extension", "5;a\rb\r\n", .invalidChunk(.invalidLineEnd)),
    chunked("NUL in an extension", "5;a\0\r\n", .invalidChunk(.invalidExtension(byte: 0))),
    chunked(
        "a chunk longer than its size", "2\r\nokay\r\n", hears: [.body("ok")],
        .invalidChunk(.missingLineEndAfterData(byte: 0x61))),
    chunked(
        "bare LF after a chunk", "2\r\nok\n0\r\n", hears: [.body("ok")],
        .invalidChunk(.missingLineEndAfterData(byte: 0x0A))),
    chunked(
        "bare CR after a chunk", "2\r\nok\r0\r\n", hears: [.body("ok")],
        .invalidChunk(.missingLineEndAfterData(byte: 0x30))),
    chunked("bare LF after the last chunk", "0\r\n\n", .invalidLineEnd(.trailer)),
    chunked("bare LF in a trailer", "0\r\nA: b\n\r\n", .invalidLineEnd(.trailer)),
    chunked("bare CR in a trailer", "0\r\nA: b\rc\r\n\r\n", .invalidLineEnd(.trailer)),
    chunked("a malformed trailer", "0\r\nA b\r\n\r\n", .invalidFieldLine(excerpt: "A b")),
    chunked("NUL in a trailer", "0\r\nA: \0\r\n\r\n", .invalidFieldValue(name: "A", byte: 0)),
]

private let truncations: [Message] = [
    Message("nothing", "", ended: true, failsWith: .closedBeforeResponse),
    Message("an empty line", "\r\n", ended: true, failsWith: .closedBeforeResponse),
    Message("half an empty line", "\r", ended: true, failsWith: .closedBeforeResponse),
    Message(
        "only an interim response", "HTTP/1.1 100 Continue\r\n\r\n", ended: true,
        hears: [.informational(100)], failsWith: .closedBeforeFinalResponse),
    Message("in the status line", "HTTP/1.1 2", ended: true, failsWith: .truncatedHead(received: 10)),
    Message(
        "garbage without a line end", "\u{15}\u{3}\u{3}", ended: true,
        failsWith: .invalidStatusLine(excerpt: #"\x15\x03\x03"#)),
    Message("after the status line", ok, ended: true, failsWith: .truncatedHead(received: 17)),
    Message("in a field", ok + "A: b", ended: true, failsWith: .truncatedHead(received: 21)),
    Message("before the empty line", ok + "A: b\r\n\r", ended: true, failsWith: .truncatedHead(received: 24)),
    Message(
        "before the body", ok + "Content-Length: 5\r\n\r\n", ended: true,
        hears: [.response(200, length: 5)], failsWith: .truncatedBody(expected: 5, received: 0)),
    Message(
        "in the body", ok + "Content-Length: 5\r\n\r\nhell", ended: true,
        hears: [.response(200, length: 5), .body("hell")],
        failsWith: .truncatedBody(expected: 5, received: 4)),
    chunked("before the first chunk", "", ended: true, .truncatedBody(expected: nil, received: 0)),
    chunked(
        "in a chunk", "5\r\nhel", ended: true, hears: [.body("hel")],
        .truncatedBody(expected: nil, received: 3)),
    chunked(
        "after a chunk", "2\r\nok\r\n", ended: true, hears: [.body("ok")],
        .truncatedBody(expected: nil, received: 2)),
    chunked(
        "before the trailers", "2\r\nok\r\n0\r\n", ended: true, hears: [.body("ok")],
        .truncatedBody(expected: nil, received: 2)),
    chunked(
        "in the trailers", "2\r\nok\r\n0\r\nA: b\r\n", ended: true, hears: [.body("ok")],
        .truncatedBody(expected: nil, received: 2)),
]

private func limited(_ change: (inout HTTP1Limits) -> Void) -> HTTP1Limits {
    var limits = HTTP1Limits()
    change(&limits)
    return limits
}

/// Each limit reached and exceeded by one.
private let limits: [Message] = [
    Message(
        "a status line within the limit", "HTTP/1.1 204 12345\r\n\r\n",
        limits: limited { $0.maximumStatusLineLength = 18 }, hears: [.response(204, length: 0), .end]),
    Message(
        "a status line too long", "HTTP/1.1 204 123456\r\n\r\n",
        limits: limited { $0.maximumStatusLineLength = 18 }, failsWith: .exceeded(.statusLineLength(18))),
    Message(
        "a status line without end", "HTTP/1.1 204 123456789012345678901234567890",
        limits: limited { $0.maximumStatusLineLength = 18 }, failsWith: .exceeded(.statusLineLength(18))),
    Message(
        "garbage is called garbage and not too long", String(repeating: "x", count: 50) + "\r\n",
        limits: limited { $0.maximumStatusLineLength = 18 },
        failsWith: .invalidStatusLine(excerpt: String(repeating: "x", count: 40) + "…")),
    Message(
        "a head within the limit", "HTTP/1.1 204 x\r\nA: b\r\n\r\n",
        limits: limited { $0.maximumHeadSize = 24 }, hears: [.response(204, length: 0), .end]),
    Message(
        "a head too large", "HTTP/1.1 204 x\r\nA: bc\r\n\r\n",
        limits: limited { $0.maximumHeadSize = 24 }, failsWith: .exceeded(.headSize(24))),
    Message(
        "a head without end", "HTTP/1.1 204 x\r\nA: bcdefghijk",
        limits: limited { $0.maximumHeadSize = 24 }, failsWith: .exceeded(.headSize(24))),
    Message(
        "as many fields as allowed", "HTTP/1.1 204 x\r\nA: b\r\nA: c\r\n\r\n",
        limits: limited { $0.maximumFieldCount = 2 }, hears: [.response(204, length: 0), .end]),
    Message(
        "too many fields", "HTTP/1.1 204 x\r\nA: b\r\nA: c\r\nA: d\r\n\r\n",
        limits: limited { $0.maximumFieldCount = 2 }, failsWith: .exceeded(.fieldCount(2))),
    Message(
        "as many interim responses as allowed",
        "HTTP/1.1 100 x\r\n\r\nHTTP/1.1 102 x\r\n\r\nHTTP/1.1 204 x\r\n\r\n",
        limits: limited { $0.maximumInformationalResponses = 2 },
        hears: [.informational(100), .informational(102), .response(204, length: 0), .end]),
    Message(
        "too many interim responses",
        "HTTP/1.1 100 x\r\n\r\nHTTP/1.1 102 x\r\n\r\nHTTP/1.1 103 x\r\n\r\n",
        limits: limited { $0.maximumInformationalResponses = 2 },
        hears: [.informational(100), .informational(102)], failsWith: .exceeded(.informationalResponses(2))),
    Message(
        "as many empty lines as allowed", "\r\n\r\nHTTP/1.1 204 x\r\n\r\n",
        limits: limited { $0.maximumEmptyLines = 2 }, hears: [.response(204, length: 0), .end]),
    Message(
        "too many empty lines", "\r\n\r\n\r\nHTTP/1.1 204 x\r\n\r\n",
        limits: limited { $0.maximumEmptyLines = 2 }, failsWith: .exceeded(.emptyLines(2))),
    Message(
        "chunk lines within the limit",
        ok + "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0;a=b\r\n\r\n",
        limits: limited { $0.maximumChunkLineLength = 5 },
        hears: [.response(200, length: nil), .body("ok"), .end]),
    chunked(
        "a chunk line too long by its extension", "2;a=bc\r\n",
        limits: limited { $0.maximumChunkLineLength = 5 }, .exceeded(.chunkLineLength(5))),
    chunked(
        "a chunk line too long by its zeros", "000002\r\n",
        limits: limited { $0.maximumChunkLineLength = 5 }, .exceeded(.chunkLineLength(5))),
    chunked(
        "a chunk line too long by its padding", "2     ",
        limits: limited { $0.maximumChunkLineLength = 5 }, .exceeded(.chunkLineLength(5))),
    Message(
        "trailers within the limit", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n",
        limits: limited { $0.maximumTrailerSize = 8 },
        hears: [.response(200, length: nil), .trailers(["A: b"]), .end]),
    chunked(
        "trailers too large", "0\r\nA: bc\r\n\r\n",
        limits: limited { $0.maximumTrailerSize = 8 }, .exceeded(.trailerSize(8))),
    chunked(
        "too many trailers", "0\r\nA: b\r\nA: b\r\n\r\n",
        limits: limited { $0.maximumFieldCount = 1 }, .exceeded(.fieldCount(1))),
]

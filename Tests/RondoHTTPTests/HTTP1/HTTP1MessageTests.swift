// Responses that are to be read, by the table: whole, byte by byte, at every split, and with trailing data.

import RondoHTTP
import Testing

@Suite struct HTTP1MessageTests {
    @Test(arguments: messages)
    func `a response is the same however it arrives`(_ message: Message) throws {
        try message.hearInEveryWay { #expect($0 == message.expected) }
    }

    /// Nothing has asked for bytes after a complete response on a kept connection: the response stands, the connection
    /// does not.
    @Test(arguments: messages.filter { $0.expected.isReusable })
    func `bytes after a complete response end the connection and spare the response`(
        _ message: Message
    ) throws {
        for trailing in ["H", "HTTP/1.1 200 OK\r\n\r\n", "\r\n"] {
            var longer = message
            longer.bytes += trailing.utf8
            try longer.hearInEveryWay { outcome in
                #expect(outcome.heard == message.expected.heard)
                #expect(!outcome.isReusable)
                guard case .peer(.unsolicitedBytes) = outcome.error else {
                    Issue.record("heard \(outcome)")
                    return
                }
            }
        }
    }

    @Test(arguments: messages.filter { $0.expected.isReusable })
    func `the next response on the same connection is read as the first was`(_ message: Message) throws {
        var listener = try Listener(message.request, limits: message.limits)
        let first = listener.hear([message.bytes[...]], .inPlace, ended: false)
        try listener.startNextCycle(message.request)
        let second = listener.hear(message.bytes.indices.map { message.bytes[$0...$0] }, .queue, ended: false)
        #expect(first == second)
        #expect(second.isReusable)
    }

    /// Returns the head that a connection reads from `bytes` after a request.
    private func heads(_ bytes: String, of codec: inout QueuedCodec) throws -> ResponseHead? {
        var output: [UInt8] = []
        try codec.send(head: .get, body: .none, into: &output)
        try codec.sendEnd(into: &output)
        #expect(!output.isEmpty)
        codec.receive(Array(bytes.utf8)[...])
        guard case .response(let head, _) = try codec.nextEvent() else { return nil }
        return head
    }

    @Test func `shared heads contain none that is too large to be remembered`() throws {
        var shared = HTTP1Codec.RecentHeadPair()
        weak var large: ResponseHead?
        do {
            var codec = QueuedCodec()
            let filling = String(repeating: "x", count: ResponseHead.maximumRemembered)
            let text = "HTTP/1.1 200 OK\r\nA: \(filling)\r\nContent-Length: 0\r\n\r\n"
            let head = try #require(try heads(text, of: &codec))
            large = head
            _ = codec.base.share(&shared, head)
        }
        withExtendedLifetime(shared) { #expect(large == nil) }
    }

    @Test func `connections that have read the same share one copy of it`() throws {
        func text(_ date: String) -> String {
            "HTTP/1.1 200 OK\r\nDate: \(date)\r\nContent-Length: 0\r\n\r\n"
        }
        func next(_ text: String, _ codec: inout QueuedCodec) throws -> ResponseHead {
            let head = try #require(try heads(text, of: &codec))
            let end = try codec.nextEvent()
            let isNext = codec.startNextCycle()
            #expect(end == .end && isNext)
            return head
        }
        var shared = HTTP1Codec.RecentHeadPair()
        var (first, second) = (QueuedCodec(), QueuedCodec())
        for date in ["0", "1", "2"] {
            let head = try next(text(date), &first)
            let same = try next(text(date), &second)
            #expect(head !== same && head == same)
            #expect(first.base.hasUnsharedHeads && second.base.hasUnsharedHeads)
            let held = [first.base.share(&shared, head), second.base.share(&shared, same)]
            #expect(held.allSatisfy { $0 === head })
            // They know it now, and have nothing new.
            let again = [try next(text(date), &first), try next(text(date), &second)]
            #expect(again.allSatisfy { $0 === head })
            #expect(!first.base.hasUnsharedHeads && !second.base.hasUnsharedHeads)
        }
        // A head that is too large to be remembered stays what it is, and takes the place of none.
        let filling = String(repeating: "x", count: ResponseHead.maximumRemembered)
        let large = try next(text(filling), &first)
        let held = first.base.share(&shared, large)
        #expect(held === large)
        var third = QueuedCodec()
        third.base.recentHeads = shared
        let known = try [next(text("2"), &second), next(text("2"), &third)]
        #expect(known[0] === known[1])
    }

    @Test func `a connection that begins with the heads of another reads the same head as the same object`()
        throws
    {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        var first = QueuedCodec()
        let head = try #require(try heads(text, of: &first))
        var second = QueuedCodec()
        second.base.recentHeads = first.base.recentHeads
        #expect(try heads(text, of: &second) === head)
        var third = QueuedCodec()
        third.base.recentHeads = second.base.recentHeads
        let other = try #require(try heads(text.replacing("200 OK", with: "404 No"), of: &third))
        #expect(other.status == 404)
    }

    @Test func `bytes after a response that closes the connection are dropped`() throws {
        let response = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nokHTTP/1.1"
        try Message("", response, hears: [.response(200, length: 2), .body("ok"), .end], reusable: false)
            .hearInEveryWay {
                #expect($0.heard.last == .end && $0.error == nil && !$0.isReusable)
            }
    }

    @Test func `a head is given with its version, reason and fields as they came`() throws {
        var listener = try Listener()
        let response = "HTTP/1.0 404 Not  Found\r\nb: 2\r\nA:1 \t\r\nEmpty:\r\nb:\t3, 4\r\n\r\n"
        let head = try #require(listener.hear([Array(response.utf8)[...]], .inPlace, ended: false).head)
        #expect(head.version == .http10)
        #expect(head.reason == "Not  Found")
        #expect(
            head.fields.map { "\($0.name)=\($0.value)" } == ["b=2", "A=1", "Empty=", "b=3, 4"])
        #expect(head.fields["B"] == "2, 3, 4")
    }

    @Test func `RFC 9112 5.2 a fold is one space, with the blanks around it`() throws {
        for folded in [
            "one\r\n two", "one \r\n\t \r\n two\r\n ", "\r\n one\n two", "one\r\n\ttwo", "one\t\r\n\t\ttwo\t",
            "\r\n\tone\r\n \r\n\t\r\n two\r\n\t\r\n ", "\t\r\n\tone\n\ttwo",
        ] {
            var listener = try Listener()
            let response = "HTTP/1.1 204 x\r\nA: \(folded)\r\nB: 3\r\n\r\n"
            let head = try #require(listener.hear([Array(response.utf8)[...]], .queue, ended: false).head)
            #expect(head.fields["a"] == "one two")
            #expect(head.fields["b"] == "3")
        }
        // Blanks without a line end stay what they are, and a value of nothing but folds is empty.
        for (folded, value) in [("a \t b\r\n c\t d", "a \t b c\t d"), ("\r\n \r\n\t", "")] {
            var listener = try Listener()
            let response = "HTTP/1.1 204 x\r\nA:\(folded)\r\nB: 3\r\n 4\r\n\r\n"
            let head = try #require(listener.hear([Array(response.utf8)[...]], .queue, ended: false).head)
            #expect(head.fields["a"] == value)
            #expect(head.fields["b"] == "3 4")
        }
    }

    @Test func `RFC 9112 4 a control character in the reason does no harm`() throws {
        var listener = try Listener()
        let response = "HTTP/1.1 204 O\u{1B}[31mK\u{7F}\r\n\r\n"
        let head = try #require(listener.hear([Array(response.utf8)[...]], .queue, ended: false).head)
        #expect(head.reason == "O\u{1B}[31mK\u{7F}")
    }

    @Test func `a reason that is no UTF-8 is read as ISO 8859-1, as values are`() throws {
        for reason in [Array("caf".utf8) + [0xE9], Array("café".utf8)] {
            var listener = try Listener()
            let bytes = Array("HTTP/1.1 204 ".utf8) + reason + Array("\r\n\r\n".utf8)
            let head = try #require(listener.hear([bytes[...]], .queue, ended: false).head)
            #expect(head.reason == "café")
        }
    }

    @Test func `values that are no UTF-8 are read as ISO 8859-1`() throws {
        var listener = try Listener()
        let bytes = Array("HTTP/1.1 204 x\r\nA: caf".utf8) + [0xE9] + Array("\r\nB: café\r\n\r\n".utf8)
        let head = try #require(listener.hear([bytes[...]], .queue, ended: false).head)
        #expect(head.fields["a"] == "café")
        #expect(head.fields["b"] == "café")
    }

    @Test func `a piece of a body is handed out where it lies, without waiting for the rest`() throws {
        var codec = HTTP1Codec()
        var output: [UInt8] = []
        try codec.send(head: .get, body: .none, into: &output)
        let input = Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\nabc".utf8)
        try input.withUnsafeBytes { buffer in
            var consumed = 0
            _ = try codec.nextEvent(from: buffer, consumed: &consumed)
            let start = input.count - 3
            #expect(
                try codec.nextEvent(from: buffer, consumed: &consumed)
                    == .body(start..<input.count))
            #expect(consumed == input.count)
            #expect(try codec.nextEvent(from: buffer, consumed: &consumed) == .needMoreData)
        }
    }

    @Test func `a response may come before its request is complete`() throws {
        var codec = QueuedCodec()
        var output: [UInt8] = []
        try codec.send(head: .request("POST"), body: .length(5), into: &output)
        codec.receive("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n".utf8)
        guard case .response(let head, bodyLength: 0) = try codec.nextEvent() else {
            Issue.record("no response")
            return
        }
        #expect(head.status == 413)
        #expect(try codec.nextEvent() == .end)
        #expect(try codec.nextEvent() == .paused)
        #expect(!codec.canBeReused)
        try "hello".withUTF8Bytes { try codec.send(body: $0, into: &output) }
        try codec.sendEnd(into: &output)
        #expect(codec.canBeReused)
    }

    @Test func `the end of a kept connection is no error`() throws {
        var listener = try Listener()
        let response = Array("HTTP/1.1 204 x\r\n\r\n".utf8)
        #expect(listener.hear([response[...]], .inPlace, ended: false).isReusable)
        let outcome = listener.hear([], .inPlace, ended: true)
        #expect(outcome.isClosed && !outcome.isReusable && outcome.error == nil)
    }

    @Test func `whether anything has come is known for each request`() throws {
        var listener = try Listener()
        #expect(!listener.codec.base.hasReceivedAnyByteOfResponse)
        _ = listener.hear([Array("H".utf8)[...]], .queue, ended: false)
        #expect(listener.codec.base.hasReceivedAnyByteOfResponse)
        _ = listener.hear([Array("TTP/1.1 204 x\r\n\r\n".utf8)[...]], .queue, ended: false)
        try listener.startNextCycle()
        #expect(!listener.codec.base.hasReceivedAnyByteOfResponse)
    }
}

extension String {
    func withUTF8Bytes(_ body: (UnsafeRawBufferPointer) throws -> Void) rethrows {
        try Array(utf8).withUnsafeBytes(body)
    }
}

/// Named by what they show.
private let messages: [Message] = [
    Message(
        "Content-Length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        hears: [.response(200, length: 5), .body("hello"), .end]),
    Message(
        "no body by length", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        hears: [.response(200, length: 0), .end]),
    Message(
        "equal lengths in one field", "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
        hears: [.response(200, length: 5), .body("hello"), .end]),
    Message(
        "equal lengths in two fields",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\ncontent-length:\t02 \r\n\r\nok",
        hears: [.response(200, length: 2), .body("ok"), .end]),
    Message(
        "chunked",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n00b\r\n, you there\r\n0\r\n\r\n",
        hears: [.response(200, length: nil), .body("hello, you there"), .end]),
    Message(
        "RFC 9110 5.6.1.2: chunked beside empty elements",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: , chunked ,\r\nTransfer-Encoding:\r\n\r\n"
            + "2\r\nok\r\n0\r\n\r\n",
        hears: [.response(200, length: nil), .body("ok"), .end]),
    Message(
        "chunked, empty", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        hears: [.response(200, length: nil), .end]),
    Message(
        "chunked with extensions, padding and trailers",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding:\tchunked\r\n\r\n"
            + "2;a=\"b;\";c\r\nok\r\n3 ; d\r\nnow\r\n1  \r\n!\r\n000;last\r\nA: 1\r\nB: 2\r\n 3\r\n\r\n",
        hears: [
            .response(200, length: nil), .body("oknow!"), .trailers(["A: 1", "B: 2 3"]), .end,
        ]),
    Message(
        "until the connection closes", "HTTP/1.1 200 OK\r\n\r\nhello", ended: true,
        hears: [.response(200, length: nil), .body("hello"), .end], reusable: false),
    Message(
        "nothing until the connection closes", "HTTP/1.0 200 OK\r\n\r\n", ended: true,
        hears: [.response(200, length: nil), .end], reusable: false),
    Message(
        "interim responses",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 x\r\n\r\n",
        hears: [.informational(100), .informational(103, ["Link: </a>"]), .response(204, length: 0), .end]),
    Message(
        "an interim response has no body",
        "HTTP/1.1 102 x\r\nContent-Length: 9\r\n\r\nHTTP/1.1 204 x\r\n\r\n",
        hears: [.informational(102, ["Content-Length: 9"]), .response(204, length: 0), .end]),
    Message(
        "204 has no body", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
        hears: [.response(204, length: 0), .end]),
    Message(
        "304 has no body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n",
        hears: [.response(304, length: 0), .end]),
    Message(
        "HEAD has no body", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", to: .head,
        hears: [.response(200, length: 0), .end]),
    Message(
        "CONNECT becomes a tunnel", "HTTP/1.1 200 Made\r\nContent-Length: 3\r\n\r\n\u{16}\u{3}\u{1}",
        to: .connect, hears: [.response(200, length: 0), .switched(leftover: "\u{16}\u{3}\u{1}")],
        reusable: false),
    Message(
        "CONNECT refused", "HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno", to: .connect,
        hears: [.response(407, length: 2), .body("no"), .end]),
    Message(
        "Upgrade", "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\nxyz", to: .upgrade,
        hears: [.response(101, length: 0), .switched(leftover: "xyz")], reusable: false),
    Message(
        "Upgrade declined", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", to: .upgrade,
        hears: [.response(200, length: 1), .body("x"), .end]),
    Message(
        "HTTP/1.0 closes", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
        hears: [.response(200, length: 1), .body("x"), .end], reusable: false),
    Message(
        "HTTP/1.0 kept", "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx",
        hears: [.response(200, length: 1), .body("x"), .end]),
    Message(
        "HTTP/1.1 closes", "HTTP/1.1 200 OK\r\nConnection: a, Close\r\nContent-Length: 1\r\n\r\nx",
        hears: [.response(200, length: 1), .body("x"), .end], reusable: false),
    Message(
        "close wins over keep-alive",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
        hears: [.response(200, length: 1), .body("x"), .end], reusable: false),
    Message(
        "the request wanted the connection closed", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        to: .request("GET", [("Connection", "close")]),
        hears: [.response(200, length: 1), .body("x"), .end], reusable: false),
    Message(
        "closed after a complete response", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", ended: true,
        hears: [.response(200, length: 1), .body("x"), .end], reusable: false),
    Message(
        "no reason and no space before it", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
        hears: [.response(200, length: 0), .end]),
    Message(
        "an empty reason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
        hears: [.response(200, length: 0), .end]),
    Message(
        "a later version of HTTP/1", "HTTP/1.9 200 OK\r\nContent-Length: 0\r\n\r\n",
        hears: [.response(200, length: 0), .end]),
    Message(
        "an unknown status", "HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n",
        hears: [.response(999, length: 0), .end]),
    Message(
        "lines of a head that end in LF", "HTTP/1.1 200 OK\nContent-Length: 2\nA: b\r\n\nok",
        hears: [.response(200, length: 2), .body("ok"), .end]),
    Message(
        "empty lines before the status line", "\r\n\n\r\n\r\nHTTP/1.1 204 x\r\n\r\n",
        hears: [.response(204, length: 0), .end]),
]

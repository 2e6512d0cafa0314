import RondoHTTP
import Testing

@Suite struct HTTP1WriterTests {
    /// Sends one request and returns its bytes as text.
    private func sent(
        _ head: RequestHead, _ framing: RequestBodyFraming, pieces: [String] = [],
        trailers: HeaderFields = HeaderFields()
    ) throws -> String {
        var codec = QueuedCodec()
        var output: [UInt8] = []
        try codec.send(head: head, body: framing, into: &output)
        for piece in pieces {
            try piece.withUTF8Bytes { try codec.send(body: $0, into: &output) }
        }
        try codec.sendEnd(trailers: trailers, into: &output)
        return String(decoding: output, as: UTF8.self)
    }

    private func post(_ fields: [(String, String)] = []) -> RequestHead {
        RequestHead(method: "POST", target: "/a?b", fields: HeaderFields(fields + [("host", "a.example")]))
    }

    @Test func `RFC 9110 7.2 Host comes first, the other fields in order`() throws {
        let head = post([("B", "1"), ("A", "2"), ("b", "")])
        #expect(
            try sent(head, .none) == "POST /a?b HTTP/1.1\r\nhost: a.example\r\nB: 1\r\nA: 2\r\nb: \r\n\r\n")
    }

    @Test func `fields that were checked are checked again when they have changed`() throws {
        var checked = HeaderFields([("Host", "a"), ("B", "1")])
        checked.check()
        func send(_ fields: HeaderFields) throws {
            _ = try sent(RequestHead(method: "GET", target: "/", fields: fields), .none)
        }
        try send(checked)
        let changes: [(inout HeaderFields) -> Void] = [
            { $0.append(name: "C", value: "x\r\ny") }, { $0.set(name: "b", value: "x\ny") },
            { $0.append(HeaderFields([("C", "x\0y")])) }, { $0.append(name: "C d", value: "x") },
        ]
        for change in changes {
            var fields = checked
            change(&fields)
            #expect(throws: HTTP1Error.self) { try send(fields) }
            // What is wrong is not made good by being looked at.
            fields.check()
            #expect(throws: HTTP1Error.self) { try send(fields) }
        }
    }

    @Test func `a head that is sent again is the same, and no other is taken for it`() throws {
        var checked = HeaderFields([("Host", "a"), ("B", "1")])
        checked.check()
        var changed = checked
        changed.set(name: "B", value: "2")
        changed.check()
        let heads: [(RequestHead, RequestBodyFraming, String)] = [
            (
                RequestHead(method: "GET", target: "/", fields: checked), .none,
                "GET / HTTP/1.1\r\nHost: a\r\nB: 1\r\n"
            ),
            (
                RequestHead(method: "GET", target: "/b", fields: checked), .none,
                "GET /b HTTP/1.1\r\nHost: a\r\nB: 1\r\n"
            ),
            (
                RequestHead(method: "DELETE", target: "/", fields: checked), .none,
                "DELETE / HTTP/1.1\r\nHost: a\r\nB: 1\r\n"
            ),
            (
                RequestHead(method: "GET", target: "/", fields: changed), .none,
                "GET / HTTP/1.1\r\nHost: a\r\nB: 2\r\n"
            ),
            (
                RequestHead(method: "GET", target: "/", fields: checked), .length(0),
                "GET / HTTP/1.1\r\nHost: a\r\nB: 1\r\nContent-Length: 0\r\n"
            ),
        ]
        for first in heads {
            for (head, framing, text) in [first, first] + heads + heads.reversed() {
                #expect(try sent(head, framing) == text + "\r\n")
            }
        }
        // To what is there already, too.
        var output = Array("x".utf8)
        for _ in 0..<3 {
            var codec = HTTP1Codec()
            try codec.send(head: heads[0].0, body: .none, into: &output)
        }
        let text = heads[0].2 + "\r\n"
        #expect(String(decoding: output, as: UTF8.self) == "x" + text + text + text)
    }

    @Test func `what a head says of its response and its connection is known when it is sent again, too`()
        throws
    {
        for _ in 0..<3 {
            var fields = HeaderFields([("Host", "a"), ("Connection", "close")])
            fields.check()
            for method in ["HEAD", "HEAD", "GET", "GET"] {
                var codec = QueuedCodec()
                var output: [UInt8] = []
                let head = RequestHead(method: method, target: "/", fields: fields)
                try codec.send(head: head, body: .none, into: &output)
                try codec.sendEnd(into: &output)
                codec.receive(Array("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n".utf8))
                guard case .response = try codec.nextEvent() else {
                    Issue.record("no response")
                    return
                }
                if method == "GET" {
                    guard case .needMoreData = try codec.nextEvent() else {
                        Issue.record("the body is not waited for")
                        return
                    }
                    codec.receive(Array("abc".utf8))
                    _ = try codec.nextEvent()
                }
                guard case .end = try codec.nextEvent() else {
                    Issue.record("no end")
                    return
                }
                let canGoOn = codec.startNextCycle()
                #expect(!canGoOn)
            }
        }
    }

    @Test func `a line end is found in a value of whatever length, at whatever place`() throws {
        for count in 1...20 {
            for place in 0..<count {
                for byte in 0...0x7F as ClosedRange<UInt8> {
                    var value = [UInt8](repeating: 0x61, count: count)
                    value[place] = byte
                    let fields = HeaderFields([("Host", "a"), ("B", String(decoding: value, as: UTF8.self))])
                    let head = RequestHead(method: "GET", target: "/", fields: fields)
                    if [0x00, 0x0A, 0x0D].contains(byte) {
                        #expect(throws: HTTP1Error.local(.invalidFieldValue(name: "B"))) {
                            try sent(head, .none)
                        }
                    } else {
                        _ = try sent(head, .none)
                    }
                }
            }
        }
    }

    @Test func `fields are written as they stand, however they came to stand there`() throws {
        var fields = HeaderFields([("Host", "a"), ("B", "1")])
        fields.append(HeaderFields([("C", "2"), ("D", "")]))
        let start = "GET / HTTP/1.1\r\n"
        func written() throws -> String {
            try sent(RequestHead(method: "GET", target: "/", fields: fields), .none)
        }
        #expect(try written() == start + "Host: a\r\nB: 1\r\nC: 2\r\nD: \r\n\r\n")
        #expect(fields["c"] == "2" && fields["D"] == "" && fields.count == 4)
        fields.set(name: "b", value: "longer")
        #expect(try written() == start + "Host: a\r\nB: longer\r\nC: 2\r\nD: \r\n\r\n")
        fields.remove("c")
        fields.append(name: "E", value: "3")
        #expect(try written() == start + "Host: a\r\nB: longer\r\nD: \r\nE: 3\r\n\r\n")
        fields.set(name: "Host", value: "b")
        #expect(try written() == start + "Host: b\r\nB: longer\r\nD: \r\nE: 3\r\n\r\n")
    }

    @Test func `a body of known length is sent as it is, with one Content-Length`() throws {
        let first = "POST /a?b HTTP/1.1\r\nhost: a.example\r\n"
        #expect(
            try sent(post(), .length(5), pieces: ["he", "", "llo"]) == first
                + "Content-Length: 5\r\n\r\nhello")
        #expect(try sent(post(), .length(0)) == first + "Content-Length: 0\r\n\r\n")
        #expect(
            try sent(post([("content-length", "2")]), .length(2), pieces: ["ok"])
                == first + "content-length: 2\r\n\r\nok")
    }

    @Test func `a body in chunks, where an empty piece is no end`() throws {
        let first = "POST /a?b HTTP/1.1\r\nhost: a.example\r\n"
        #expect(
            try sent(post(), .chunked, pieces: ["hello", "", String(repeating: "x", count: 16)])
                == first
                + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n10\r\nxxxxxxxxxxxxxxxx\r\n0\r\n\r\n")
        #expect(
            try sent(post([("TRANSFER-ENCODING", "Chunked")]), .chunked, trailers: HeaderFields([("A", "b")]))
                == first + "TRANSFER-ENCODING: Chunked\r\n\r\n0\r\nA: b\r\n\r\n")
    }

    @Test func `a piece can be framed without being copied`() throws {
        var codec = HTTP1Codec()
        var output: [UInt8] = []
        try codec.send(head: post(), body: .chunked, into: &output)
        let frame = try codec.frame(bodyOf: 65536)
        #expect(frame.prefix == Array("10000\r\n".utf8))
        #expect(frame.suffix == Array("\r\n".utf8))
        let nothing = try codec.frame(bodyOf: 0)
        #expect(nothing.prefix.isEmpty && nothing.suffix.isEmpty)

        var other = HTTP1Codec()
        try other.send(head: post(), body: .length(3), into: &output)
        let none = try other.frame(bodyOf: 3)
        #expect(none.prefix.isEmpty && none.suffix.isEmpty)
        #expect(throws: HTTP1Error.local(.bodyTooLong(declared: 3, attempted: 4))) {
            try other.frame(bodyOf: 1)
        }
    }

    @Test(arguments: [
        (RequestHead(method: "", target: "/"), HTTP1Error.Local.invalidMethod("")),
        (RequestHead(method: "GE T", target: "/"), .invalidMethod("GE T")),
        (RequestHead(method: "GET\r\n", target: "/"), .invalidMethod("GET\r\n")),
        (RequestHead(method: "GET", target: ""), .invalidTarget("")),
        (RequestHead(method: "GET", target: "/a b"), .invalidTarget("/a b")),
        (RequestHead(method: "GET", target: "/\r\nA: b"), .invalidTarget("/\r\nA: b")),
        (RequestHead(method: "GET", target: "/\u{7F}"), .invalidTarget("/\u{7F}")),
        (RequestHead(method: "GET", target: "/ä"), .invalidTarget("/ä")),
        (RequestHead(method: "GET", target: "/"), .missingHost),
        (.request("GET", [("HOST", "b")]), .repeatedHost),
        (.request("GET", [("", "b")]), .invalidFieldName("")),
        (.request("GET", [("A b", "c")]), .invalidFieldName("A b")),
        (.request("GET", [("A:", "c")]), .invalidFieldName("A:")),
        (.request("GET", [("Ä", "c")]), .invalidFieldName("Ä")),
        (.request("GET", [("A", "b\nC: d")]), .invalidFieldValue(name: "A")),
        (.request("GET", [("A", "b\rC: d")]), .invalidFieldValue(name: "A")),
        (.request("GET", [("A", "b\0")]), .invalidFieldValue(name: "A")),
        (.request("GET", [("Content-Length", "5")]), .framingMismatch(field: "Content-Length")),
        (.request("GET", [("Transfer-Encoding", "chunked")]), .framingMismatch(field: "Transfer-Encoding")),
    ])
    func `an invalid request is refused before a byte is written`(
        _ head: RequestHead, _ fault: HTTP1Error.Local
    ) throws {
        var codec = HTTP1Codec()
        var output: [UInt8] = [1]
        #expect(throws: HTTP1Error.local(fault)) {
            try codec.send(head: head, body: .none, into: &output)
        }
        #expect(output == [1])
        #expect(throws: HTTP1Error.local(fault), "an error is a state never left") {
            try codec.send(head: .get, body: .none, into: &output)
        }
        #expect(throws: HTTP1Error.local(fault)) { try codec.sendEnd(into: &output) }
        #expect(output == [1])
        #expect(!codec.canBeReused)
    }

    @Test(arguments: [
        ([("Content-Length", "5")], RequestBodyFraming.length(6), "Content-Length"),
        ([("Content-Length", "5"), ("Content-Length", "5")], .length(5), "Content-Length"),
        ([("Content-Length", "5")], .chunked, "Content-Length"),
        ([("Transfer-Encoding", "chunked")], .length(5), "Transfer-Encoding"),
        ([("Transfer-Encoding", "gzip, chunked")], .chunked, "Transfer-Encoding"),
    ])
    func `framing fields that contradict the body are refused`(
        _ fields: [(String, String)], _ framing: RequestBodyFraming, _ name: String
    ) throws {
        #expect(throws: HTTP1Error.local(.framingMismatch(field: name))) { try sent(post(fields), framing) }
    }

    @Test func `a body has the length that was declared`() throws {
        #expect(throws: HTTP1Error.local(.invalidLength(-1))) { try sent(post(), .length(-1)) }
        #expect(throws: HTTP1Error.local(.bodyTooLong(declared: 3, attempted: 4))) {
            try sent(post(), .length(3), pieces: ["ab", "cd"])
        }
        #expect(throws: HTTP1Error.local(.bodyTooShort(declared: 3, sent: 2))) {
            try sent(post(), .length(3), pieces: ["ab"])
        }
        #expect(throws: HTTP1Error.local(.bodyTooLong(declared: 0, attempted: 1))) {
            try sent(post(), .none, pieces: ["a"])
        }
    }

    @Test func `RFC 9110 6.5.1 trailers follow chunks only and decide nothing`() throws {
        let trailer = HeaderFields([("A", "b")])
        #expect(throws: HTTP1Error.local(.trailersWithoutChunks)) {
            try sent(post(), .none, trailers: trailer)
        }
        for name in ["Content-Length", "transfer-encoding", "Host", "Trailer"] {
            #expect(throws: HTTP1Error.local(.forbiddenTrailer(name))) {
                try sent(post(), .chunked, trailers: HeaderFields([(name, "1")]))
            }
        }
        #expect(throws: HTTP1Error.local(.invalidFieldValue(name: "A"))) {
            try sent(post(), .chunked, trailers: HeaderFields([("A", "\r\n\r\nGET")]))
        }
    }

    @Test func `the parts of a request are refused when sent out of turn`() throws {
        func fault(_ move: HTTP1Error.Move, _ phase: HTTP1Error.Phase) -> HTTP1Error {
            .local(.outOfTurn(move, during: phase))
        }
        var output: [UInt8] = []
        var idle = HTTP1Codec()
        #expect(throws: fault(.end, .idle)) { try idle.sendEnd(into: &output) }
        idle = HTTP1Codec()
        #expect(throws: fault(.body, .idle)) { try idle.frame(bodyOf: 1) }

        var body = HTTP1Codec()
        try body.send(head: .get, body: .none, into: &output)
        var complete = body
        #expect(throws: fault(.head, .body)) { try body.send(head: .get, body: .none, into: &output) }

        try complete.sendEnd(into: &output)
        var (second, third) = (complete, complete)
        #expect(throws: fault(.head, .complete)) { try complete.send(head: .get, body: .none, into: &output) }
        #expect(throws: fault(.body, .complete)) { try second.frame(bodyOf: 1) }
        #expect(throws: fault(.end, .complete)) { try third.sendEnd(into: &output) }
    }

    @Test func `a cycle cannot begin before the last one is over, which can be asked at any time`() throws {
        var codec = QueuedCodec()
        var output: [UInt8] = []
        func begins() -> Bool { codec.startNextCycle() }
        #expect(!begins())
        try codec.send(head: .get, body: .none, into: &output)
        try codec.sendEnd(into: &output)
        #expect(!begins())
        codec.receive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no".utf8)
        let head = ResponseHead(
            status: 200, reason: "OK", fields: HeaderFields([("Content-Length", "2")]))
        #expect(try codec.nextEvent() == .response(head, bodyLength: 2))
        #expect(try codec.nextEvent() == .body(0..<1))
        #expect(codec.bytes == Array("o".utf8)[...])
        #expect(!begins())
        codec.receive("k".utf8)
        #expect(try codec.nextEvent() == .body(0..<1))
        #expect(codec.bytes == Array("k".utf8)[...])
        #expect(try codec.nextEvent() == .end)
        #expect(begins())
        try codec.send(head: .get, body: .none, into: &output)
    }

    @Test func `every HTTP1Error is described by a sentence`() {
        let errors: [HTTP1Error] = [
            .peer(.closedBeforeResponse), .peer(.closedBeforeFinalResponse),
            .peer(.truncatedHead(received: 3)),
            .peer(.truncatedBody(expected: 5, received: 3)),
            .peer(.truncatedBody(expected: nil, received: 3)),
            .peer(.invalidStatusLine(excerpt: "x")), .peer(.unsupportedVersion(major: 2, minor: 0)),
            .peer(.exceeded(.headSize(5))), .peer(.invalidChunk(.sizeTooLarge)),
            .peer(.conflictingContentLengths(5, 6)), .peer(.unsupportedTransferCoding("gzip")),
            .peer(.unsupportedTransferCoding("Chunked")), .local(.missingHost),
            .local(.outOfTurn(.end, during: .idle)),
        ]
        for error in errors {
            #expect(error.description.hasSuffix("."))
            #expect(error.description.first?.isUppercase == true)
        }
        #expect(
            HTTP1Error.peer(.unsupportedTransferCoding("Chunked")).description
                == "The response applies the transfer coding “Chunked” more than once.")
        #expect(
            HTTP1Error.peer(.truncatedBody(expected: 5, received: 3)).description
                == "The server closed the connection after 3 of the 5 bytes of the body.")
    }
}

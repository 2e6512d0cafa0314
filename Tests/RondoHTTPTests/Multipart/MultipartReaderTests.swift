import Foundation
import RondoHTTP
import Testing

@Suite struct MultipartReaderTests {
    /// Events as text, pieces of data joined: `[A: b]data|` for each part, `.` at the end.
    private func read(_ body: String, boundary: String = "b", pieces: [Range<Int>]? = nil) throws -> String {
        var reader = MultipartReader(boundary: boundary)
        let bytes = Array(body.utf8)
        var rest = (pieces ?? [0..<bytes.count])[...]
        var text = ""
        while true {
            switch try reader.next() {
            case .part(let fields):
                text += "[" + fields.map { "\($0.name): \($0.value)" }.joined(separator: ", ") + "]"
            case .data(let data):
                #expect(!data.isEmpty)
                text += String(decoding: data, as: UTF8.self)
            case .partEnd: text += "|"
            case .needMoreData:
                if let next = rest.popFirst() { reader.receive(bytes[next]) } else { reader.receiveEnd() }
            case .end: return text + "."
            }
        }
    }

    private static let bodies = [
        // Two parts, by the letter.
        ("--b\r\nA: 1\r\n\r\none\r\n--b\r\nA: 2\r\n\r\ntwo\r\n--b--\r\n", "[A: 1]one|[A: 2]two|."),
        // Text before, after, and padding.
        ("before\r\n--b \t\r\n\r\none\r\n--b-- \r\nafter\r\n--b\r\n\r\nno", "[]one|."),
        ("\r\n--b\r\n\r\none\r\n--b--", "[]one|."),
        // Content that looks like a delimiter, or is full of line ends.
        ("--b\r\n\r\n--bc\r\n--b-\r\n --b\r\nx--b\r\n--b--", "[]--bc\r\n--b-\r\n --b\r\nx--b|."),
        ("--b\r\n\r\n\r\n\r\n\r\n--b\r\n\r\n\n\n\r\n--b--", "[]\r\n\r\n|[]\n\n|."),
        ("--b\r\n\r\n\r\r\r\n--b--", "[]\r\r|."),
        ("--b\r\n\r\n\r\n-\r\n--\r\n--c\r\n--b--", "[]\r\n-\r\n--\r\n--c|."),
        // Empty parts, with and without a line for their nothing.
        ("--b\r\nA: 1\r\n\r\n\r\n--b\r\n\r\n--b--", "[A: 1]|[]|."),
        // Lines that end in LF alone.
        ("--b\nA: 1\n\none\n--b\nA: 2\n\ntwo\n--b--\n", "[A: 1]one|[A: 2]two|."),
        // The end without a closing delimiter, in every place.
        ("--b\r\n\r\none\r\n--b\r\n\r\ntwo", "[]one|[]two|."), ("--b\r\n\r\none\r\n--b\r\n", "[]one|."),
        ("--b\r\n\r\none\r\n--b", "[]one|."), ("--b\r\n\r\none\r\n--b\r\nA: 1", "[]one|."),
        ("--b\r\n\r\none\r\n", "[]one\r\n|."), ("--b\r\n\r\none\r\n--", "[]one\r\n--|."),
        ("--b\r\n\r\none\r", "[]one\r|."), ("--b\r\n\r\n", "[]|."),
        // No part at all.
        ("", "."), ("nothing", "."), ("--b--", "."), ("--b", "."), ("\r\n", "."), ("-", "."),
    ]

    @Test(arguments: bodies)
    func `RFC 2046 5.1 parts are told apart, whole and byte by byte`(
        _ body: String, _ expected: String
    ) throws {
        let count = body.utf8.count
        #expect(try read(body) == expected)
        #expect(try read(body, pieces: (0..<count).map { $0..<$0 + 1 }) == expected)
        for cut in 0...count {
            #expect(try read(body, pieces: [0..<cut, cut..<count]) == expected, "cut at \(cut)")
        }
    }

    @Test func `a boundary with the hyphens in it is found in both ways`() throws {
        let body = "--x\r\n\r\none\r\n--x\r\n\r\ntwo\r\n--x--"
        #expect(try read(body, boundary: "--x") == "[]one|[]two|.")
        let strict = body.replacingOccurrences(of: "--x", with: "----x")
        #expect(try read(strict, boundary: "--x") == "[]one|[]two|.")
    }

    @Test func `bytes are handed out as they come, but for what may be a delimiter`() throws {
        var reader = MultipartReader(boundary: "b")
        reader.receive(Array("--b\r\n\r\none\r\n--".utf8))
        #expect(try reader.next() == .part(HeaderFields()))
        #expect(try reader.next() == .data(Data("one".utf8)))
        #expect(try reader.next() == .needMoreData)
        reader.receive(Array("x".utf8))
        #expect(try reader.next() == .data(Data("\r\n--x".utf8)))
        reader.receive(Array("\r\n--b\r\n".utf8))
        #expect(try reader.next() == .partEnd)
        #expect(try reader.next() == .needMoreData)
    }

    @Test(arguments: [
        ("multipart/x-mixed-replace; boundary=abc", "abc"),
        ("Multipart/X-Mixed-Replace;boundary=\"a b\"; x=y", "a b"),
        ("multipart/x-mixed-replace; BOUNDARY=--abc", "--abc"),
        ("multipart/x-mixed-replace; ; boundary=abc", "abc"),
        ("multipart/x-mixed-replace;x;boundary=abc;", "abc"),
        ("multipart/x-mixed-replace; boundary; boundary=; boundary=abc", "abc"),
        ("text/plain, multipart/x-mixed-replace; boundary=abc", "abc"),
        ("multipart/x-mixed-replace; boundary=\"a,b\", x", "a,b"),
        ("multipart/x-mixed-replace; boundary=abc, text/plain", nil),
        ("multipart/mixed; boundary=abc", nil), ("multipart/x-mixed-replace", nil),
        ("multipart/x-mixed-replace; boundary=", nil), ("multipart/x-mixed-replaced; boundary=abc", nil),
        ("multipart/x-mixed-replace; boundary=" + String(repeating: "a", count: 257), nil),
        ("text/plain; boundary=abc", nil), ("", nil),
    ])
    func `UC-22 only multipart x-mixed-replace is split, by its boundary`(
        _ type: String, _ expected: String?
    ) {
        #expect(MultipartReader.boundary(ofMixedReplace: type) == expected)
    }

    @Test func `a part's header is limited and has to be one`() throws {
        for head in [String(repeating: "a", count: 65_537), "A:" + String(repeating: " ", count: 70_000)] {
            #expect(throws: MultipartReader.Failure.headTooLarge(65_536)) { try read("--b\r\n" + head) }
        }
        for head in ["A B: c\r\n\r\n", ": c\r\n\r\n", "no field\r\n\r\n", "A: \0\r\n\r\n"] {
            #expect(throws: MultipartReader.Failure.self) { try read("--b\r\n" + head) }
        }
        let many = String(repeating: "A: b\r\n", count: 101)
        #expect(throws: MultipartReader.Failure.self) { try read("--b\r\n" + many + "\r\n") }
    }

    @Test func `a multipart reader keeps few bytes, whatever comes`() throws {
        // A delimiter that never ends, and line ends without number.
        for (start, piece) in [("\r\n--b", "  "), ("", "\r\n"), ("", "\r\n--"), ("", "x--b\t")] {
            var reader = MultipartReader(boundary: "b")
            reader.receive(Array("--b\r\n\r\nx\(start)".utf8))
            var received = 1 + start.utf8.count
            var delivered = 0
            for _ in 0..<1_000 {
                reader.receive(Array(piece.utf8))
                received += piece.utf8.count
                while true {
                    let event = try reader.next()
                    if case .data(let data) = event { delivered += data.count }
                    if event == .needMoreData { break }
                }
                #expect(received - delivered < 400)
            }
        }
    }

    @Test func `a multipart reader gives random content unchanged, wherever it is cut`() throws {
        var random = SystemRandomNumberGenerator()
        let delimiter = #/\n--b(--|[ ]*\r?\n)/#.matchingSemantics(.unicodeScalar)
        let alphabet = Array("\r\n-b x".utf8)
        for _ in 0..<300 {
            let content = (0..<Int.random(in: 0...30, using: &random)).map { _ in
                alphabet.randomElement(using: &random) ?? 0
            }
            let text = String(decoding: content, as: UTF8.self)
            // Content with a delimiter in it is another message.
            if ("\n" + text + "\r\n").contains(delimiter) { continue }
            let body = "--b\r\n\r\n\(text)\r\n--b--"
            let cut = Int.random(in: 0...body.utf8.count, using: &random)
            let pieces = [0..<cut, cut..<body.utf8.count]
            #expect(try Array(read(body, pieces: pieces).utf8) == Array("[]\(text)|.".utf8))
        }
    }
}

import Testing

@testable import RondoHTTP

/// A head that is known must be found only where it stands, whole and as it was.
@Suite struct RecentResponseHeadTests {
    private static let line = "HTTP/1.1 200 OK\r\n"
    private static let section = "Date: Sun\r\nETag: \"a-1\"\r\nContent-Length: 2\r\n\r\n"
    private static let text = line + section

    /// Has heard `text`, as a connection reads it.
    private func remembering(_ text: String = Self.text, lineSize: Int = Self.line.utf8.count) throws
        -> RecentResponseHead
    {
        let head = try head(of: text)
        var remembered = RecentResponseHead()
        Array(text.utf8).withUnsafeBytes { remembered.note(head, of: $0, lineSize: lineSize) }
        return remembered
    }

    private func head(of text: String) throws -> ResponseHead {
        var listener = try Listener()
        return try #require(listener.hear([Array(text.utf8)[...]], .inPlace, ended: false).head)
    }

    private func find(_ text: String, in remembered: RecentResponseHead) -> (ResponseHead, Int)? {
        Array(text.utf8).withUnsafeBytes { remembered.find(in: $0) }
    }

    @Test func `a remembered head is found at the beginning, whatever bytes follow`() throws {
        let remembered = try remembering()
        for rest in ["", "ok", "\r\n", Self.text] {
            let (head, size) = try #require(find(Self.text + rest, in: remembered))
            #expect(size == Self.text.utf8.count)
            #expect(try head == self.head(of: Self.text))
        }
        #expect(find("\r\n" + Self.text, in: remembered) == nil)
    }

    @Test func `a head that differs in a byte anywhere is not taken for the remembered one`() throws {
        let remembered = try remembering()
        let bytes = Array(Self.text.utf8)
        for index in bytes.indices {
            var other = bytes
            other[index] ^= 1
            #expect(other.withUnsafeBytes { remembered.find(in: $0) == nil })
        }
    }

    @Test func `an incomplete head is not found`() throws {
        let remembered = try remembering()
        let bytes = Array(Self.text.utf8)
        for count in bytes.indices {
            #expect(bytes[..<count].withUnsafeBytes { remembered.find(in: $0) == nil })
        }
    }

    @Test func `the last response head is remembered, with its own status line`() throws {
        var remembered = try remembering()
        for line in ["HTTP/1.1 404 Gone\r\n", "HTTP/1.0 200 OK\r\n", Self.line] {
            let text = line + Self.section
            let head = try head(of: text)
            Array(text.utf8).withUnsafeBytes { remembered.note(head, of: $0, lineSize: line.utf8.count) }
            #expect(try find(text, in: remembered)?.0 == self.head(of: text))
        }
        #expect(find("HTTP/1.0 200 OK\r\n" + Self.section, in: remembered) == nil)
    }

    @Test func `a head without fields is not remembered, nor a large one`() throws {
        let bare = "HTTP/1.1 200 OK\r\n\r\n"
        #expect(find(bare, in: try remembering(bare)) == nil)
        #expect(find(bare, in: RecentResponseHead()) == nil)
        let filling = String(repeating: "x", count: ResponseHead.maximumRemembered - Self.line.utf8.count - 7)
        let largest = Self.line + "A: " + filling + "\r\n\r\n"
        #expect(find(largest, in: try remembering(largest)) != nil)
        let larger = Self.line + "A: x" + filling + "\r\n\r\n"
        #expect(find(larger, in: try remembering(larger)) == nil)
    }

    @Test func `a folded line is not found as it was`() throws {
        let folded = Self.line + "A: one\r\n two\r\n\r\n"
        #expect(find(folded, in: try remembering(folded)) == nil)
        #expect(try head(of: folded).fields["a"] == "one two")
        // What is remembered of it stands for what it looks like, should that come.
        let looksLikeIt = Self.line + "A: one two  \r\n\r\n"
        #expect(try head(of: looksLikeIt).fields["a"] == "one two")
        #expect(try head(of: Self.line + "A: one two wo\r\n\r\n").fields["a"] == "one two wo")
    }

    /// A connection may have to refuse a head that another one has accepted.
    @Test func `a connection refuses a remembered head that exceeds its own limits`() throws {
        var limits = HTTP1Limits()
        limits.maximumFieldCount = 2
        for _ in 0..<2 {
            #expect(try head(of: Self.text).fields.count == 3)
            var listener = try Listener(limits: limits)
            let outcome = listener.hear([Array(Self.text.utf8)[...]], .inPlace, ended: false)
            #expect(outcome.error == .peer(.exceeded(.fieldCount(2))))
        }
    }
}

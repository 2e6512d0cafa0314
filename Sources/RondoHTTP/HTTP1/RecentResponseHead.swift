internal import Glibc

/// The head of the last response that a connection has read, and its bytes. A head of the same bytes need not
/// be parsed again: a server that gets the same request again sends the same one as long as its clock shows
/// the same second. Without this bench-guard's http.request takes some 20 % more instructions.
///
/// It is one reference, which connections that have read the same head can share.
struct RecentResponseHead: Sendable {
    private final class Last: Sendable {
        /// The status line as received, with its line end.
        let line: [UInt8]
        /// Its fields hold the rest of the bytes.
        let head: ResponseHead

        init(_ line: [UInt8], _ head: ResponseHead) { (self.line, self.head) = (line, head) }
    }

    private var last: Last?

    var head: ResponseHead? { last?.head }

    /// The remembered head, if `input` begins with it, and the number of its bytes.
    func find(in input: UnsafeRawBufferPointer) -> (head: ResponseHead, size: Int)? {
        guard let last else { return nil }
        let (lineSize, fieldsSize) = (last.line.count, last.head.fields.bytes.count)
        guard lineSize + fieldsSize <= input.count, let start = input.baseAddress else { return nil }
        // The fields are compared first, since a difference is nearly always in their date.
        let areSame = last.head.fields.bytes.withUnsafeBytes { Self.isEqual($0, start + lineSize) }
        guard areSame, last.line.withUnsafeBytes({ Self.isEqual($0, start) }) else { return nil }
        return (last.head, lineSize + fieldsSize)
    }

    /// Remembers a head.
    ///
    /// - Parameter bytes: The whole head, with a status line of `lineSize` bytes.
    mutating func note(_ head: ResponseHead, of bytes: UnsafeRawBufferPointer, lineSize: Int) {
        // A head without fields is not remembered: no field buffer would hold its empty line.
        guard bytes.count <= ResponseHead.maximumRemembered, !head.fields.isEmpty,
            let start = bytes.baseAddress
        else { return }
        let known = last?.line ?? []
        let isSameLine = known.count == lineSize && known.withUnsafeBytes { Self.isEqual($0, start) }
        last = Last(isSameLine ? known : [UInt8](bytes[..<lineSize]), head)
    }

    /// Whether the other head was read from the same bytes.
    func isSame(as other: RecentResponseHead) -> Bool {
        guard let last, let other = other.last else { return false }
        return last === other || last.line == other.line && last.head.fields.bytes == other.head.fields.bytes
    }

    /// - Parameter other: Memory with at least as many bytes as `bytes`.
    private static func isEqual(_ bytes: UnsafeRawBufferPointer, _ other: UnsafeRawPointer) -> Bool {
        bytes.baseAddress.map { memcmp($0, other, bytes.count) == 0 } ?? true
    }
}

extension ResponseHead {
    /// The most bytes of a head that is remembered in case the next one is the same. The response made of a
    /// larger head need not be remembered either.
    package static let maximumRemembered = 1024
}

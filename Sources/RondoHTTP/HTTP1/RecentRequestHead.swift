/// The head of the last request without a body that a connection has written, and its bytes. An equal head
/// need not be made into bytes again: a program that repeats a request sends the same one. Without this
/// bench-guard's http.request takes some 10 % more instructions.
///
/// Only a head with fields that were checked in advance (`HeaderFields.check()`) is remembered. Many requests
/// share such fields: for example those that a request gets without any doing of the program's.
///
/// It is one reference, which connections that have written the same head can share.
struct RecentRequestHead: Sendable {
    private final class Last: Sendable {
        let head: RequestHead
        let facts: RequestFacts
        let bytes: [UInt8]

        init(_ head: RequestHead, _ facts: RequestFacts, _ bytes: [UInt8]) {
            (self.head, self.facts, self.bytes) = (head, facts, bytes)
        }
    }

    private var last: Last?

    /// The facts and bytes of the remembered head, if it is equal to the wanted one.
    func find(_ wanted: RequestHead, _ body: RequestBodyFraming) -> (facts: RequestFacts, bytes: [UInt8])? {
        guard body == .none, let last, wanted.fields.areCopied(from: last.head.fields),
            wanted.target == last.head.target,
            wanted.method == last.head.method,
            // Strings with equal characters may differ in bytes; with equal counts of bytes these do not,
            // since what was written is ASCII.
            wanted.target.utf8.count == last.head.target.utf8.count,
            wanted.method.utf8.count == last.head.method.utf8.count
        else { return nil }
        return (last.facts, last.bytes)
    }

    /// - Returns: Whether the head is now remembered.
    mutating func note(
        _ head: RequestHead, _ body: RequestBodyFraming, _ facts: RequestFacts, _ bytes: [UInt8]
    ) -> Bool {
        guard body == .none, head.fields.isChecked, bytes.count <= ResponseHead.maximumRemembered else {
            return false
        }
        last = Last(head, facts, bytes)
        return true
    }

    /// Whether the other head was made of the same fields and has the same bytes.
    func isSame(as other: RecentRequestHead) -> Bool {
        guard let last, let other = other.last else { return false }
        return last === other
            || last.head.fields.areCopied(from: other.head.fields) && last.bytes == other.bytes
    }
}

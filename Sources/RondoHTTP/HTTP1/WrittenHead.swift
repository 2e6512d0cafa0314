/// The request's head that was written last on a connection, without a body to come. A program that asks for the same thing
/// again sends the same head again.
///
/// Only a head of fields that were checked before (`HeaderFields.check()`) is remembered: these are shared by many requests,
/// as those are that a request gets without a program's doing.
///
/// One reference, which connections that have written the same can share.
struct WrittenHead: Sendable {
    private final class Last: Sendable {
        let head: RequestHead
        let facts: RequestFacts
        let bytes: [UInt8]

        init(_ head: RequestHead, _ facts: RequestFacts, _ bytes: [UInt8]) {
            (self.head, self.facts, self.bytes) = (head, facts, bytes)
        }
    }

    private var last: Last?

    /// What was written if this is the head.
    func find(_ wanted: RequestHead, _ body: RequestBodyFraming) -> (facts: RequestFacts, bytes: [UInt8])? {
        guard body == .none, let last, wanted.fields.areCopied(from: last.head.fields),
            wanted.target == last.head.target,
            wanted.method == last.head.method,
            // Equal characters may have other bytes; those of what was written have one each.
            wanted.target.utf8.count == last.head.target.utf8.count,
            wanted.method.utf8.count == last.head.method.utf8.count
        else { return nil }
        return (last.facts, last.bytes)
    }

    /// - Returns: Whether it is remembered.
    mutating func note(
        _ head: RequestHead, _ body: RequestBodyFraming, _ facts: RequestFacts, _ bytes: [UInt8]
    ) -> Bool {
        guard body == .none, head.fields.isChecked, bytes.count <= ResponseHead.maximumRemembered else {
            return false
        }
        last = Last(head, facts, bytes)
        return true
    }

    /// The other one was made of the same fields, and has the same bytes.
    func isSame(as other: WrittenHead) -> Bool {
        guard let last, let other = other.last else { return false }
        return last === other
            || last.head.fields.areCopied(from: other.head.fields) && last.bytes == other.bytes
    }
}

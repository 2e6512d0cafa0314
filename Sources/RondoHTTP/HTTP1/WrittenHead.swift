/// The request's head that was written last on a connection, without a body to come. A program that asks for the same thing
/// again sends the same head again.
///
/// Only a head of fields that were checked before (`HeaderFields.check()`) is remembered: these are shared by many requests,
/// as those are that a request gets without a program's doing.
struct WrittenHead: Sendable {
    private var head: RequestHead?
    private var facts = RequestFacts()
    private var bytes: [UInt8] = []

    /// What was written if this is the head.
    func find(_ wanted: RequestHead, _ body: RequestBodyFraming) -> (facts: RequestFacts, bytes: [UInt8])? {
        guard body == .none, let head, wanted.fields.areCopied(from: head.fields),
            wanted.target == head.target,
            wanted.method == head.method,
            // Equal characters may have other bytes; those of what was written have one each.
            wanted.target.utf8.count == head.target.utf8.count,
            wanted.method.utf8.count == head.method.utf8.count
        else { return nil }
        return (facts, bytes)
    }

    mutating func note(
        _ head: RequestHead, _ body: RequestBodyFraming, _ facts: RequestFacts, _ bytes: [UInt8]
    ) {
        guard body == .none, head.fields.isChecked, bytes.count <= ResponseHead.maximumRemembered else {
            return
        }
        (self.head, self.facts, self.bytes) = (head, facts, bytes)
    }
}

internal import RondoMutex

/// The request's head that was written last, without a body to come. A program that asks for the same thing again sends the
/// same head again.
///
/// One for the whole process, and only of fields that were checked before (`HeaderFields.check()`), which are those that many
/// requests share: none that one request alone has, such as a cookie or who asks. (Its target is remembered, as that of the
/// last URL is.)
struct WrittenHead: Sendable {
    static let last = Mutex(WrittenHead())

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

/// The delegates that get a call, in the order in which they are asked for its method: the task's own, then
/// the session's (rule US-40).
///
/// Two optionals in place of an array, which would be allocated for each call of each task.
struct AskedDelegates: Sequence, IteratorProtocol, Sendable {
    private var own: SessionDelegateObject?
    private var ofSession: SessionDelegateObject?

    init(own: SessionDelegateObject?, ofSession: SessionDelegateObject?) {
        (self.own, self.ofSession) = (own, ofSession)
    }

    mutating func next() -> SessionDelegateObject? { own.take() ?? ofSession.take() }
}

/// The decision about a response that may be stored.
enum CacheDecision {
    /// The response may not be stored, or is stored already.
    case nothing
    /// The same response was written less than a second ago, or is about to be written.
    case isWritten
    case write(any ResponseWrite)
}

/// A response that is to be written to a store, which may take some time.
protocol ResponseWrite: Sendable {
    /// Whether the write takes so long that it should be done off the run loops.
    var takesTime: Bool { get }

    /// Writes the response.
    func perform()

    /// Call it once the response is written, or is certain to be written before all later work: loads of the
    /// same response then do not write it again.
    func noteAsWritten()
}

/// How a response is handled that may be stored.
enum CacheDecision {
    /// It is not to be kept, or is kept already.
    case nothing
    /// The same was written less than a second ago, or is about to be.
    case isWritten
    case write(any ResponseWrite)
}

/// A response that is to be written to a store, which may take its time.
protocol ResponseWrite: Sendable {
    /// Whether it should be written off the run loops.
    var takesTime: Bool { get }

    /// Writes the response.
    func perform()

    /// To be called once it is written, or is certain to be written before anything that comes later: loads of the same
    /// response then do not write it again.
    func noteAsWritten()
}

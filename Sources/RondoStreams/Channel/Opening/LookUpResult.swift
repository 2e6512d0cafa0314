internal import RondoMutex

/// Passes the result of a look-up of a name from the resolver's thread to a loop's.
final class LookUpResult: Sendable {
    private let outcome = Mutex<Resolver.Outcome?>(nil)

    /// Whether there is a result that was not taken yet.
    var hasCome: Bool { outcome.withLock { $0 != nil } }

    func put(_ found: Resolver.Outcome) { outcome.withLock { $0 = found } }

    func take() -> Resolver.Outcome? { outcome.withLock { $0.take() } }
}

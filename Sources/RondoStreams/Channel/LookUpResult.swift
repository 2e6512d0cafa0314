internal import RondoMutex

/// Passes the result of a look-up of a name from the resolver's thread to a loop's.
final class LookUpResult: Sendable {
    private let outcome = Mutex<Resolver.Outcome?>(nil)

    func put(_ found: Resolver.Outcome) { outcome.withLock { $0 = found } }

    func take() -> Resolver.Outcome? { outcome.withLock { $0.take() } }
}

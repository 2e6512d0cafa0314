internal import RondoMutex

/// Passes the answer to a look-up of a name from the resolver's thread to a loop's.
final class LookUpAnswer: Sendable {
    private let answer = Mutex<Resolver.Answer?>(nil)

    func put(_ found: Resolver.Answer) { answer.withLock { $0 = found } }

    func take() -> Resolver.Answer? { answer.withLock { $0.take() } }
}

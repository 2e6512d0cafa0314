internal import RondoMutex

/// An answer that is given once, from any thread, perhaps later.
///
/// The handshake reads it; the question object that the program holds sets it.
final class TLSAnswer<Value: Sendable>: Sendable {
    private enum State {
        case open(whenGiven: (@Sendable () -> Void)?)
        case given(Value)
    }

    private let state = Mutex(State.open(whenGiven: nil))

    var value: Value? {
        state.withLock { state in
            if case .given(let value) = state { value } else { nil }
        }
    }

    /// Sets the closure to call when the answer is given. Must be called before the program gets the
    /// question.
    func whenGiven(_ body: @escaping @Sendable () -> Void) {
        state.withLock { state in
            if case .open = state { state = .open(whenGiven: body) }
        }
    }

    /// Sets the answer; only the first call counts.
    func give(_ value: Value) {
        let told = state.withLock { state -> (@Sendable () -> Void)? in
            guard case .open(let whenGiven) = state else { return nil }
            state = .given(value)
            return whenGiven
        }
        told?()
    }
}

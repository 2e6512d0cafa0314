internal import RondoMutex

/// An answer that may come later, from any thread, once.
///
/// The handshake keeps it and looks; the question that the program holds fills it.
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

    /// Sets the closure that is called when the answer is there; before the question is asked.
    func whenGiven(_ body: @escaping @Sendable () -> Void) {
        state.withLock { state in
            if case .open = state { state = .open(whenGiven: body) }
        }
    }

    /// The first answer counts.
    func give(_ value: Value) {
        let told = state.withLock { state -> (@Sendable () -> Void)? in
            guard case .open(let whenGiven) = state else { return nil }
            state = .given(value)
            return whenGiven
        }
        told?()
    }
}

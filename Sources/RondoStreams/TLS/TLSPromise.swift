internal import RondoMutex

/// A value that is set once, from any thread, perhaps later.
///
/// The handshake reads it; the question object that the program holds sets it.
final class TLSPromise<Value: Sendable>: Sendable {
    private enum State {
        case open(onFulfilled: (@Sendable () -> Void)?)
        case set(Value)
    }

    private let state = Mutex(State.open(onFulfilled: nil))

    var value: Value? {
        state.withLock { state in
            if case .set(let value) = state { value } else { nil }
        }
    }

    /// Sets the closure to call when the value is set. Must be called before the program gets the
    /// question.
    func onFulfilled(_ body: @escaping @Sendable () -> Void) {
        state.withLock { state in
            if case .open = state { state = .open(onFulfilled: body) }
        }
    }

    /// Sets the value; only the first call counts.
    func fulfill(_ value: Value) {
        let told = state.withLock { state -> (@Sendable () -> Void)? in
            guard case .open(let onFulfilled) = state else { return nil }
            state = .set(value)
            return onFulfilled
        }
        told?()
    }
}

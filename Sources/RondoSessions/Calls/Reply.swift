internal import RondoCore
internal import RondoMutex

/// The answer that a delegate owes by a completion handler; the first one counts (rule US-26).
///
/// It is alive as long as the handler is: with it goes the hope for an answer.
final class Reply<Value: Sendable>: Sendable {
    private enum State {
        /// The delegate's method has not returned.
        case inCall
        case given(Value)
        /// It has, without an answer.
        case open
        /// It has had its effect.
        case done
    }

    private let state = Mutex(State.inCall)
    /// The method, for the log.
    private let name: String
    private let later: @Sendable (Value?) -> Void

    /// - Parameter later: Takes an answer that comes after the method has returned; nil: none comes. On any thread.
    init(_ name: String, later: @escaping @Sendable (Value?) -> Void) {
        self.name = name
        self.later = later
    }

    deinit {
        guard case .open = state.withLock({ $0 }) else { return }
        Log.sessions.warning("A delegate let the completion handler of \(name) go without calling it.")
        later(nil)
    }

    /// Any thread.
    func give(_ value: Value) {
        let (isLate, isSecond) = state.withLock { state in
            switch state {
            case .inCall:
                state = .given(value)
                return (false, false)
            case .open:
                state = .done
                return (true, false)
            case .given, .done: return (false, true)
            }
        }
        if isLate { later(value) }
        if isSecond {
            Log.sessions.warning("A delegate called the completion handler of \(name) more than once.")
        }
    }

    /// The method has returned.
    ///
    /// - Returns: The answer; nil: it comes later.
    func endCall() -> Value? {
        state.withLock { state in
            guard case .given(let value) = state else {
                state = .open
                return nil
            }
            state = .done
            return value
        }
    }

    /// The method was a default: what it has answered does not count.
    func withdraw() { state.withLock { $0 = .done } }
}

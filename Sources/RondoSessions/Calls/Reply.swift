internal import RondoCore
internal import RondoMutex

/// The reply that a delegate owes through a completion handler. The first one counts (rule US-26).
///
/// Only the completion handler owns it. If the handler is released without a call, `deinit` reports that no
/// reply comes.
final class Reply<Value: Sendable>: Sendable {
    private enum State {
        /// The delegate's method has not returned yet.
        case inCall
        case given(Value)
        /// The method has returned without a reply.
        case open
        /// The reply was passed on, or does not count.
        case done
    }

    private let state = Mutex(State.inCall)
    /// The name of the delegate's method, for the log.
    private let name: String
    private let later: @Sendable (Value?) -> Void

    /// - Parameter later: Gets a reply that comes after the method has returned, or nil if none will
    ///   come. On any thread.
    init(_ name: String, later: @escaping @Sendable (Value?) -> Void) {
        self.name = name
        self.later = later
    }

    deinit {
        guard case .open = state.withLock({ $0 }) else { return }
        Log.sessions.warning(
            "A delegate released the completion handler of \(name) without calling it: call it once.")
        later(nil)
    }

    /// Takes the delegate's reply. Any thread.
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

    /// Notes that the method has returned.
    ///
    /// - Returns: The reply, or nil if it comes later.
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

    /// Discards the reply: the method that gave it was the default implementation.
    func withdraw() { state.withLock { $0 = .done } }
}

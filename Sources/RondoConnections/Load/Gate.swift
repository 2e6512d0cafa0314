internal import RondoCore
internal import RondoMutex

/// The lock of a load, which does not wait: it admits one call at a time, and refuses others. (Events of a
/// connection come to it by way of the protocol `ChannelGate`.)
///
/// A load may be scheduled in several loops, and a callback of its delegate may run the loop again. A call
/// that finds another one inside must not wait, since a delegate may run there for any length of time. It is
/// refused and recorded; the call inside then runs `catchUp` before it leaves.
struct Gate: ~Copyable, Sendable {
    // Not private: otherwise the compiler could not lay out a gate in another file.
    enum State {
        case free
        case taken
        /// Taken, and another call was refused since: the call inside has to catch up.
        case missed
    }

    private let state = Mutex(State.free)

    /// Runs `body` if no other call is inside.
    ///
    /// - Parameters:
    ///   - catchUp: Called afterwards, and again as long as calls were refused meanwhile.
    ///   - onRefusal: Called instead of `body`, if another call is inside; with the gate's lock held.
    func enter(_ body: () -> Void, catchUp: () -> Void, onRefusal: () -> Void = {}) {
        let isOurs = state.withLock { state in
            guard case .free = state else {
                // Inside the lock: the call inside cannot leave before this is done.
                onRefusal()
                state = .missed
                return false
            }
            state = .taken
            return true
        }
        guard isOurs else { return }
        body()
        while true {
            let mustCatchUp = state.withLock { state in
                let wasMissed = state == .missed
                state = wasMissed ? .taken : .free
                return wasMissed
            }
            guard mustCatchUp else { return }
            catchUp()
        }
    }
}

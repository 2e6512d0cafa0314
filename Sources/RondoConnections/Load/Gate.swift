internal import RondoCore
internal import RondoMutex

/// The lock of a load, which does not wait: it admits one call at a time, and refuses others. (Events of a connection
/// come to it by way of the protocol `ChannelGate`.)
///
/// A load may be scheduled in several loops, and a callback of its delegate may run the loop again. A call that finds
/// another one inside must not wait, since a delegate may run there for any length of time. It is refused and
/// recorded; the call inside then runs `catchUp` before it leaves.
struct Gate: ~Copyable, Sendable {
    // Not private: otherwise the compiler could not lay out a gate in another file.
    struct State {
        var isTaken = false
        var wasMissed = false
    }

    private let state = Mutex(State())

    /// Runs `body` if no other call is inside.
    ///
    /// - Parameters:
    ///   - catchUp: Called afterwards, and again as long as calls were refused meanwhile.
    ///   - onRefusal: Called instead of `body`, if another call is inside; with the gate's lock held.
    func enter(_ body: () -> Void, catchUp: () -> Void, onRefusal: () -> Void = {}) {
        let isOurs = state.withLock { state in
            if state.isTaken {
                // Inside the lock: the call inside cannot leave before this is done.
                onRefusal()
                state.wasMissed = true
                return false
            }
            state.isTaken = true
            return true
        }
        guard isOurs else { return }
        body()
        while true {
            let mustCatchUp = state.withLock { state in
                state.isTaken = state.wasMissed
                state.wasMissed = false
                return state.isTaken
            }
            guard mustCatchUp else { return }
            catchUp()
        }
    }
}

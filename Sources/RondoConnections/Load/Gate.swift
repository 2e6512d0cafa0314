internal import RondoCore
internal import RondoMutex

/// Lets one thread at a time into a load.
///
/// A connection may be scheduled in several loops, and a callback may run its loop again. A call that finds
/// another one inside does not wait, since a delegate may be running there for any length of time: it is
/// refused, and leaves a mark; the call inside then catches up before it leaves.
struct Gate: ~Copyable, Sendable {
    // Not private: the compiler cannot lay out a gate in another file then.
    struct State {
        var isTaken = false
        var wasMissed = false
    }

    private let state = Mutex(State())

    /// Runs `body` if no other call is inside.
    ///
    /// - Parameters:
    ///   - catchUp: Called afterwards, and again as long as calls were refused meanwhile.
    ///   - turnedAway: Run instead, if another call is inside.
    func enter(_ body: () -> Void, catchUp: () -> Void, turnedAway: () -> Void = {}) {
        let isOurs = state.withLock { state in
            if state.isTaken {
                // Inside the lock: the call inside cannot leave before this is done.
                turnedAway()
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

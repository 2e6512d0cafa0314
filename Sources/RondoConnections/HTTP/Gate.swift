internal import RondoCore
internal import RondoMutex

/// Lets one thread at a time into a load.
///
/// A connection may be scheduled in several loops, and a callback may run its loop again: whoever comes
/// while another call is inside does not wait (a delegate may be running there, for as long as it likes)
/// but leaves word, and whoever is inside looks again before it leaves.
struct Gate: ~Copyable, Sendable {
    // Not private: the compiler cannot lay out a gate in another file then.
    struct State {
        var isTaken = false
        var wasMissed = false
    }

    private let state = Mutex(State())

    /// Runs `body` if nobody is inside.
    ///
    /// - Parameters:
    ///   - catchUp: Run afterwards, as long as somebody was turned away meanwhile.
    ///   - turnedAway: Run instead, if somebody is inside.
    func enter(_ body: () -> Void, catchUp: () -> Void, turnedAway: () -> Void = {}) {
        let isOurs = state.withLock { state in
            if state.isTaken {
                // Inside the lock: whoever is inside cannot leave before it is done.
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

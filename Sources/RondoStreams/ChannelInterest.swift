internal import RondoCore
internal import Synchronization

/// The part of a channel that any thread may touch: what its descriptors are watched for, and who may enter.
package final class ChannelInterest: Sendable {
    /// Runs its argument, or lets go of it where another thread is inside.
    package typealias Gate = @Sendable (_ body: () -> Void) -> Void

    private struct State {
        var wanted: [RunLoop.Source: RunLoop.Source.Interest] = [:]
        var isSuspended = false
        var gate: Gate = { body in body() }
    }

    private let state = Mutex(State())

    var gate: Gate {
        get { state.withLock { $0.gate } }
        set { state.withLock { $0.gate = newValue } }
    }

    /// Stops watching: somebody was turned away at the gate, and a level-triggered descriptor would bring it
    /// back at once, again and again.
    package func suspend() {
        let sources = state.withLock { state in
            state.isSuspended = true
            return Array(state.wanted.keys)
        }
        for source in sources { source.interest = [] }
    }

    func resume() {
        let wanted = state.withLock { state -> [RunLoop.Source: RunLoop.Source.Interest] in
            defer { state.isSuspended = false }
            return state.isSuspended ? state.wanted : [:]
        }
        for (source, interest) in wanted { source.interest = interest }
    }

    func set(_ interest: RunLoop.Source.Interest, of source: RunLoop.Source) {
        let applies = state.withLock { state in
            state.wanted[source] = interest
            return !state.isSuspended
        }
        if applies { source.interest = interest }
    }

    func remove(_ source: RunLoop.Source) {
        _ = state.withLock { $0.wanted.removeValue(forKey: source) }
    }
}

internal import RondoCore
internal import RondoMutex

/// The part of a channel that any thread may touch: what its descriptors are watched for, and the gate to it.
package final class ChannelInterest: Sendable {
    private struct Wish {
        let source: RunLoop.Source
        var interest: RunLoop.Source.Interest
    }

    private struct State: ~Copyable {
        /// Of the socket, and while connecting, of the attempts that are under way besides.
        var first: Wish?
        var others: [Wish] = []
        var isSuspended = false
        /// Nil: no event is let in.
        var gate: (any ChannelGate)?

        var all: [Wish] { (first.map { [$0] } ?? []) + others }

        /// - Returns: The events to be watched again; nil: it was not suspended.
        mutating func resume() -> [Wish]? {
            defer { isSuspended = false }
            return isSuspended ? all : nil
        }

        mutating func note(_ wish: Wish) {
            if first == nil || first?.source === wish.source {
                first = wish
            } else if let index = others.firstIndex(where: { $0.source === wish.source }) {
                others[index] = wish
            } else {
                others.append(wish)
            }
        }

        mutating func remove(_ source: RunLoop.Source) {
            if first?.source === source {
                first = others.popLast()
            } else {
                others.removeAll { $0.source === source }
            }
        }
    }

    private let state = Mutex(State())

    var gate: (any ChannelGate)? {
        get { state.withLock { $0.gate } }
        set {
            // What the old one holds is released without the lock.
            let old = state.withLock { state in
                defer { state.gate = newValue }
                return state.gate
            }
            withExtendedLifetime(old) {}
        }
    }

    /// Goes through the gate, on whatever thread.
    func enter(_ body: (SocketChannel) -> Void) { gate?.enter(for: self, body) }

    /// Stops watching: an event was turned away at the gate, and a level-triggered descriptor would bring it
    /// back at once, again and again.
    package func suspend() {
        let wishes = state.withLock { state in
            state.isSuspended = true
            return state.all
        }
        for wish in wishes { wish.source.interest = [] }
    }

    /// - Returns: False: it was not suspended.
    func resume() -> Bool { watch(state.withLock { $0.resume() }) }

    /// Removes the gate and resumes.
    ///
    /// - Returns: As of `resume()`.
    func removeGate() -> Bool {
        // What the gate holds is released without the lock.
        let (old, wishes) = state.withLock { state in
            defer { state.gate = nil }
            return (state.gate, state.resume())
        }
        withExtendedLifetime(old) {}
        return watch(wishes)
    }

    private func watch(_ wishes: [Wish]?) -> Bool {
        for wish in wishes ?? [] { wish.source.interest = wish.interest }
        return wishes != nil
    }

    func set(_ interest: RunLoop.Source.Interest, of source: RunLoop.Source) {
        let applies = state.withLock { state in
            state.note(Wish(source: source, interest: interest))
            return !state.isSuspended
        }
        if applies { source.interest = interest }
    }

    func remove(_ source: RunLoop.Source) {
        state.withLock { $0.remove(source) }
    }
}

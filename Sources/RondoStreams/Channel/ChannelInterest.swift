internal import RondoCore
internal import RondoMutex

/// The part of a channel that any thread may use: the events that its descriptors are watched for, and its
/// gate.
///
/// Sources are told under its lock, which comes before theirs: what they are watched for is always what the state says, in
/// whatever order threads come.
package final class ChannelInterest: Sendable {
    private struct WatchedSource {
        let source: RunLoop.Source
        var interest: RunLoop.Source.Interest
    }

    private struct State: ~Copyable {
        /// The channel's socket; while connecting, `others` holds the sockets of further attempts.
        var first: WatchedSource?
        var others: [WatchedSource] = []
        var isSuspended = false
        /// Nil: no event is let in.
        var gate: (any ChannelGate)?

        mutating func suspend() {
            isSuspended = true
            first?.source.interest = []
            for entry in others { entry.source.interest = [] }
        }

        /// - Returns: False if the channel was not suspended.
        mutating func resume() -> Bool {
            guard isSuspended else { return false }
            isSuspended = false
            if let first { first.source.interest = first.interest }
            for entry in others { entry.source.interest = entry.interest }
            return true
        }

        mutating func note(_ entry: WatchedSource) {
            if first == nil || first?.source === entry.source {
                first = entry
            } else if let index = others.firstIndex(where: { $0.source === entry.source }) {
                others[index] = entry
            } else {
                others.append(entry)
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
            // The old gate is released after the lock, because it may run code in its deinit.
            let old = state.withLock { state in
                defer { state.gate = newValue }
                return state.gate
            }
            withExtendedLifetime(old) {}
        }
    }

    /// Goes through the gate, on whatever thread.
    func enter(_ body: (SocketChannel) -> Void) { gate?.enter(for: self, body) }

    /// Stops watching, because the gate has refused an event: a level-triggered descriptor would report it
    /// again at once, over and over.
    ///
    /// - Parameter gate: The gate that has refused it. Nothing is stopped if that has been removed meanwhile: the
    ///   channel's next owner would not resume. Nil: whichever there is.
    package func suspend(if gate: (any ChannelGate)? = nil) {
        state.withLock { state in
            if let gate, state.gate !== gate { return }
            state.suspend()
        }
    }

    /// - Returns: False if the channel was not suspended.
    func resume() -> Bool { state.withLock { $0.resume() } }

    /// Removes the gate and resumes.
    ///
    /// - Returns: As `resume()`.
    func removeGate() -> Bool {
        // The old gate is released after the lock, because it may run code in its deinit.
        let (old, wasSuspended) = state.withLock { state in
            defer { state.gate = nil }
            return (state.gate, state.resume())
        }
        withExtendedLifetime(old) {}
        return wasSuspended
    }

    func set(_ interest: RunLoop.Source.Interest, of source: RunLoop.Source) {
        state.withLock { state in
            state.note(WatchedSource(source: source, interest: interest))
            if !state.isSuspended { source.interest = interest }
        }
    }

    func remove(_ source: RunLoop.Source) {
        state.withLock { $0.remove(source) }
    }
}

internal import RondoMutex

/// The calls that wait for a closure on another thread. They serve the warning that names two threads waiting
/// for each other, and they let the end of a thread end all waits for it, whatever is on its stack. Of the
/// loops only the identity is kept: the calling thread retains the one that it waits for.
enum WaitingCalls {
    struct Call: Sendable {
        fileprivate let number: UInt64
        /// The name of the waiting thread.
        let waiter: String
        fileprivate let waiterLoop: ObjectIdentifier?
        fileprivate let target: ObjectIdentifier
        /// The name of the thread that the call waits for.
        let nameOfTarget: @Sendable () -> String
        fileprivate let threadHasEnded: @Sendable () -> Void
    }

    private struct State {
        var calls: [Call] = []
        var lastNumber: UInt64 = 0
    }

    private static let state = Mutex(State())

    /// Records that the calling thread, whose own loop is `loop`, waits for the loop `target`, until
    /// `end(_:)`.
    static func begin(
        waitingFor target: ObjectIdentifier, named nameOfTarget: @escaping @Sendable () -> String,
        from loop: ObjectIdentifier?, threadHasEnded: @escaping @Sendable () -> Void
    ) -> Call {
        let waiter = SystemThread.nameOfCurrent
        return state.withLock { state in
            state.lastNumber += 1
            let call = Call(
                number: state.lastNumber, waiter: waiter, waiterLoop: loop, target: target,
                nameOfTarget: nameOfTarget, threadHasEnded: threadHasEnded)
            state.calls.append(call)
            return call
        }
    }

    static func end(_ call: Call) {
        state.withLock { state in state.calls.removeAll { $0.number == call.number } }
    }

    /// Ends all waits for the thread of `loop`, which has ended.
    static func threadEnded(of loop: ObjectIdentifier) {
        let calls = state.withLock { state in state.calls.filter { $0.target == loop } }
        for call in calls { call.threadHasEnded() }
    }

    /// The call in which the thread that `call` waits for itself waits; nil if none is known.
    static func targetsCall(of call: Call) -> Call? {
        state.withLock { state in state.calls.first { $0.waiterLoop == call.target } }
    }
}

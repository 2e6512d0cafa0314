internal import RondoMutex

/// The calls that wait for a closure on another thread. They serve the warning that names two threads waiting
/// for each other, and they let the end of a thread end all waits for it, whatever is on its stack.
enum WaitingCalls {
    struct Call: Sendable {
        fileprivate let number: UInt64
        /// The name of the waiting thread.
        let waiter: String
        fileprivate let waiterLoop: ObjectIdentifier?
        let target: RunLoop
        fileprivate let threadHasEnded: @Sendable () -> Void
    }

    private struct State {
        var calls: [Call] = []
        var lastNumber: UInt64 = 0
    }

    private static let state = Mutex(State())

    /// Records that the calling thread waits for `target`, until `end(_:)`.
    static func begin(waitingFor target: RunLoop, threadHasEnded: @escaping @Sendable () -> Void) -> Call {
        let waiter = SystemThread.nameOfCurrent
        let loop = RunLoop.existingLoop.map { ObjectIdentifier($0) }
        return state.withLock { state in
            state.lastNumber += 1
            let call = Call(
                number: state.lastNumber, waiter: waiter, waiterLoop: loop, target: target,
                threadHasEnded: threadHasEnded)
            state.calls.append(call)
            return call
        }
    }

    static func end(_ call: Call) {
        state.withLock { state in state.calls.removeAll { $0.number == call.number } }
    }

    /// Ends all waits for the thread of `loop`, which has ended.
    static func threadEnded(of loop: RunLoop) {
        let calls = state.withLock { state in state.calls.filter { $0.target === loop } }
        for call in calls { call.threadHasEnded() }
    }

    /// The call in which the thread of `call.target` itself waits; nil if none is known.
    static func targetsCall(of call: Call) -> Call? {
        let target = ObjectIdentifier(call.target)
        return state.withLock { state in state.calls.first { $0.waiterLoop == target } }
    }
}

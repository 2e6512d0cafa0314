/// The state machine of a task: calls in, actions out (rules US-28 to US-34).
struct TaskStateMachine {
    private enum Phase {
        /// `resume()` was not called as often as `suspend()`.
        case unresumed
        case resumed
        case canceling
        case completed
    }

    enum Action {
        case nothing
        /// Start the load.
        case start
        /// Stop or continue the load, as `isSuspended` says.
        case applySuspension
        /// Abort the load.
        case abort
        /// Start the task only to abort it: it has no load yet.
        case abortUnresumed
    }

    private var phase = Phase.unresumed
    /// The number of `resume()` calls that are missing. A new task has been suspended once.
    private var suspensions = 1

    /// The thread of the session's run loop has ended first, so that the last call is never made.
    private var hasLostLoop = false

    /// The state as the program sees it.
    enum PublicState {
        case running, suspended, canceling, completed
    }

    var publicState: PublicState {
        switch phase {
        case .unresumed: .suspended
        case .resumed: suspensions > 0 ? .suspended : .running
        case .canceling: .canceling
        case .completed: .completed
        }
    }

    var isSuspended: Bool { if case .resumed = phase { suspensions > 0 } else { false } }
    var isCanceling: Bool { if case .canceling = phase { true } else { false } }
    var isCompleted: Bool { if case .completed = phase { true } else { false } }
    var wasResumed: Bool { if case .unresumed = phase { false } else { true } }
    /// True if the task was resumed, was not cancelled and has not ended.
    var isOutstanding: Bool { if case .resumed = phase { true } else { false } }

    /// True until the last call begins, or cannot be made any more.
    var awaitsLastCall: Bool { !isCompleted && !hasLostLoop }

    /// Notes that the load has left its run loop: after the last call, or because the loop's thread has
    /// ended.
    mutating func loadDidEnd() { hasLostLoop = !isCompleted }

    mutating func suspend() -> Action {
        switch phase {
        case .unresumed:
            suspensions += 1
            return .nothing
        case .resumed:
            suspensions += 1
            return suspensions == 1 ? .applySuspension : .nothing
        case .canceling, .completed: return .nothing
        }
    }

    /// Superfluous calls are not saved up.
    mutating func resume() -> Action {
        switch phase {
        case .unresumed:
            suspensions -= 1
            guard suspensions == 0 else { return .nothing }
            phase = .resumed
            return .start
        case .resumed:
            guard suspensions > 0 else { return .nothing }
            suspensions -= 1
            return suspensions == 0 ? .applySuspension : .nothing
        case .canceling, .completed: return .nothing
        }
    }

    mutating func cancel() -> Action {
        switch phase {
        case .unresumed:
            phase = .canceling
            return .abortUnresumed
        case .resumed:
            phase = .canceling
            return .abort
        case .canceling, .completed: return .nothing
        }
    }

    /// Notes that the last call is about to be made.
    ///
    /// - Returns: False if it was made already.
    mutating func complete() -> Bool {
        guard !isCompleted else { return false }
        phase = .completed
        return true
    }
}

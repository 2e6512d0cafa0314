/// Where a task stands: inputs in, actions out (rules US-28 to US-34).
struct TaskLife {
    private enum Phase {
        /// It was never resumed as often as it was suspended.
        case unresumed
        case resumed
        case canceling
        case completed
    }

    enum Action {
        case nothing
        /// The load begins.
        case start
        /// The load stands still, or goes on: as `isSuspended` says.
        case applySuspension
        /// The load ends.
        case abort
        /// The same of a task that has none: it begins only to end.
        case abortUnresumed
    }

    private var phase = Phase.unresumed
    /// How many more calls of `resume()` it takes. A new task has been suspended once.
    private var suspensions = 1

    /// What the program is shown of it.
    enum Standing {
        case running, suspended, canceling, completed
    }

    var standing: Standing {
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
    /// It was resumed, and was neither cancelled nor has it ended.
    var isOutstanding: Bool { if case .resumed = phase { true } else { false } }

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

    /// Resumes too many are not saved up.
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

    /// The last call is about to be made.
    ///
    /// - Returns: False: it was made already.
    mutating func complete() -> Bool {
        guard !isCompleted else { return false }
        phase = .completed
        return true
    }
}

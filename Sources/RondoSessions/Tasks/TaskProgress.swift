internal import RondoCore

/// The progress of a task, made when it is asked for (rule US-38).
struct TaskProgress {
    private var object: Progress?

    /// The progress; the first call makes it, which shows `values` at first and calls these functions.
    mutating func object(
        showing values: Values, cancel: @escaping @Sendable () -> Void, pause: @escaping @Sendable () -> Void,
        resume: @escaping @Sendable () -> Void
    ) -> Progress {
        if let object { return object }
        // Part of no other progress, unless the program makes it one.
        let new = Progress(parent: nil, userInfo: nil)
        new.cancellationHandler = cancel
        new.isPausable = true
        new.pausingHandler = pause
        new.resumingHandler = resume
        values.show(in: new)
        object = new
        return new
    }

    /// Nil where it was never asked for.
    var current: Progress? { object }

    /// What a progress shows.
    struct Values {
        let completed: Int64
        /// -1: not known.
        let total: Int64

        init(_ counts: TaskCounts, received: Int64, hasResponse: Bool, hasSucceeded: Bool) {
            completed = counts.sent + received
            let isKnown = hasResponse && counts.expectedToReceive >= 0 && counts.expectedToSend >= 0
            // What was decoded or read from a file of this machine may differ from what was announced.
            total =
                hasSucceeded
                ? max(completed, 1) : isKnown ? counts.expectedToSend + counts.expectedToReceive : -1
            self.hasSucceeded = hasSucceeded
        }

        private let hasSucceeded: Bool

        func show(in progress: Progress) {
            progress.totalUnitCount = total
            progress.completedUnitCount = hasSucceeded ? total : completed
        }
    }
}

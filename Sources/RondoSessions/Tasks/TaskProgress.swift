internal import RondoCore
internal import RondoHTTP

/// The `Progress` of a task, made on first use (rule US-38).
struct TaskProgress {
    private var object: Progress?

    /// Returns the progress. The first call makes it, with `values` and with these functions as its handlers.
    mutating func object(
        showing values: Values, cancel: @escaping @Sendable () -> Void, pause: @escaping @Sendable () -> Void,
        resume: @escaping @Sendable () -> Void
    ) -> Progress {
        if let object { return object }
        // Without a parent, unless the program adds it to one.
        let new = Progress(parent: nil, userInfo: nil)
        new.cancellationHandler = cancel
        new.isPausable = true
        new.pausingHandler = pause
        new.resumingHandler = resume
        values.show(in: new)
        object = new
        return new
    }

    /// The progress; nil before the first use.
    var current: Progress? { object }

    /// The unit counts that a progress shows.
    struct Values {
        let completed: Int64
        /// -1 if not known.
        let total: Int64

        init(_ counts: TaskCounts, received: Int64, hasResponse: Bool, hasSucceeded: Bool) {
            completed = counts.sent + received
            let isKnown = hasResponse && counts.expectedToReceive >= 0 && counts.expectedToSend >= 0
            // The size of decoded content, or of a local file, may differ from the announced length.
            total =
                hasSucceeded
                ? max(completed, 1)
                : isKnown ? counts.expectedToSend.clampedSum(counts.expectedToReceive) : -1
            self.hasSucceeded = hasSucceeded
        }

        private let hasSucceeded: Bool

        func show(in progress: Progress) {
            progress.totalUnitCount = total
            progress.completedUnitCount = hasSucceeded ? total : completed
        }
    }
}

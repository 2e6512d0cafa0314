internal import RondoCore
internal import RondoHTTP

/// The `Progress` of a task, made on first use (rule US-38).
struct TaskProgress {
    private var object: Progress?
    /// The task was suspended because the progress is paused.
    private var hasSuspended = false

    /// Returns the progress. The first call makes it, with `values`. It calls `cancel` when it is cancelled,
    /// and `change` when it is paused or resumed.
    mutating func object(
        showing values: Values, cancel: @escaping @Sendable () -> Void,
        change: @escaping @Sendable () -> Void
    ) -> Progress {
        if let object { return object }
        // Without a parent, unless the program adds it to one.
        let new = Progress(parent: nil, userInfo: nil)
        new.cancellationHandler = cancel
        new.isPausable = true
        new.pausingHandler = change
        new.resumingHandler = change
        values.show(in: new)
        object = new
        return new
    }

    /// Notes whether the progress is paused. Foundation reports pausing and resuming on threads of its own,
    /// in any order, and a pausing also if the progress is paused already: so only its state counts.
    ///
    /// - Returns: True if it was paused since the last call, false if it was resumed, nil if nothing has
    ///   changed.
    mutating func takeChange() -> Bool? {
        guard let object, object.isPaused != hasSuspended else { return nil }
        hasSuspended.toggle()
        return hasSuspended
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

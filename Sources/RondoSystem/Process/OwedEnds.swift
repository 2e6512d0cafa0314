internal import RondoCore
internal import RondoMutex

/// The notifications that wait for the loop of a starting thread to run. A thread that starts processes and
/// never runs its loop would keep each of them as long as it lives; so beyond a limit the oldest are dropped.
enum OwedEnds {
    /// The most notifications that may wait, in the whole program.
    static let limit = 1_000

    /// A source that its loop retains.
    private struct Owed {
        weak var source: RunLoop.Source?

        /// True if the notification was not posted, and still can be.
        var isOwed: Bool { source?.isScheduled ?? false }
    }

    private struct State {
        /// In the order of the ends. Notifications that were posted remain until the limit is reached.
        var ends: [Owed] = []
        var hasWarned = false
    }

    private static let state = Mutex(State())

    /// - Parameter source: A signalled source in the default mode of a loop.
    static func add(_ source: RunLoop.Source) {
        let (dropped, warns) = state.withLock { state -> ([RunLoop.Source], Bool) in
            state.ends.append(Owed(source: source))
            guard state.ends.count > limit else { return ([], false) }
            // The source of a posted notification is invalid, and that of an ended thread is in no mode.
            state.ends.removeAll { !$0.isOwed }
            guard state.ends.count > limit else { return ([], false) }
            let excess = state.ends.count - limit
            defer {
                state.ends.removeFirst(excess)
                state.hasWarned = true
            }
            return (state.ends.prefix(excess).compactMap(\.source), !state.hasWarned)
        }
        for source in dropped { source.invalidate() }
        if warns {
            Log.system.warning(
                """
                More than \(limit) processes have ended whose didTerminateNotification waits for the loop of the thread \
                that has started them; the oldest are not posted. Run that loop, set a terminationHandler, or schedule \
                the processes on a loop that runs.
                """)
        }
    }
}

internal import RondoCore
internal import RondoMutex

/// The notifications that wait for the loop of a starting thread to run. A thread that starts processes and
/// never runs its loop would keep each of them as long as it lives; so beyond a limit the oldest are dropped.
enum WaitingNotifications {
    /// The most notifications that may wait, in the whole program.
    static let limit = 1_000

    /// A source that its loop retains.
    private struct Entry {
        weak var source: RunLoop.Source?

        /// True if the notification was not posted, and still can be.
        var canBePosted: Bool { source?.isScheduled ?? false }
    }

    private struct State {
        /// In the order of the ends. Notifications that were posted remain until the limit is reached.
        var entries: [Entry] = []
        var hasWarned = false
    }

    private static let state = Mutex(State())

    /// - Parameter source: A signalled source in the default mode of a loop.
    static func add(_ source: RunLoop.Source) {
        let (dropped, warns) = state.withLock { state -> ([RunLoop.Source], Bool) in
            state.entries.append(Entry(source: source))
            guard state.entries.count > limit else { return ([], false) }
            // The source of a posted notification is invalid, and the source of an ended thread is in no
            // mode.
            state.entries.removeAll { !$0.canBePosted }
            guard state.entries.count > limit else { return ([], false) }
            let excess = state.entries.count - limit
            defer {
                state.entries.removeFirst(excess)
                state.hasWarned = true
            }
            return (state.entries.prefix(excess).compactMap(\.source), !state.hasWarned)
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

internal import Logging
internal import RondoMutex

// The warnings about a loop that has members and has not been run for a while (see `UnservedWatch`), or
// cannot be run any more.

extension RunLoop {
    /// Seconds after which a warning is logged, once for each loop, about members that were scheduled on a
    /// loop that has not been run since; 5 unless set; nil: never. Set it before anything is scheduled.
    /// It names at most eight modes, and for each at most eight sources and eight timers.
    public static var unservedWarningDelay: TimeInterval? {
        get { unservedDelay.withLock { $0 } }
        set { unservedDelay.withLock { $0 = newValue } }
    }

    private static let unservedDelay = Mutex<TimeInterval?>(5)

    /// To be called when a member was added: if the loop does not run, it will be checked again after a
    /// while.
    func warnUnlessRun() {
        guard attention.isUnserved else { return }
        let runs = state.withLock { attention.beginWatching() ? $0.history.count : nil }
        guard let runs, let delay = Self.unservedWarningDelay else { return }
        // If there is no thread for the watch, there is no warning; the next addition tries again.
        if !UnservedWatch.watch(self, sinceRun: runs, delay: delay) { watchWasAbandoned() }
    }
}

extension RunLoop: WatchedLoop {
    func watchWasAbandoned() { attention.endWatching() }

    func warnIfUnserved(sinceRun runs: UInt64, delay: TimeInterval) {
        let (waiting, hasRun, emptyRun) = state.withLock {
            state -> ([ModeState.Waiting], Bool, RunHistory.EmptyRun?) in
            let isUnserved =
                state.isAlive && !attention.isEmbedded && state.history.count == runs
                && state.activations.isEmpty
            let waiting = isUnserved ? state.waiting(intake) : []
            // The loop runs or is empty: members added from now on start a new watch.
            if waiting.isEmpty { attention.endWatching() }
            return (waiting, state.history.count != runs, state.history.lastEmptyRun)
        }
        guard !waiting.isEmpty else {
            // The run made since then may have been the last one.
            if hasRun { warnUnlessRun() }
            return
        }
        let advice =
            emptyRun.map {
                "It \($0.description): run it in a mode that has a source, a timer or a Port, or schedule on a loop that runs."
            } ?? "Run it, or schedule on a loop that runs."
        Log.core.warning(
            """
            The run loop of thread \(threadName ?? "(without a name)") has not been run for \(delay.formatted()) s, \
            and nothing scheduled on it can be served: \(ModeState.Waiting.summary(of: waiting)). \(advice)
            """)
    }
}

extension RunLoop {
    /// Warns, if this is the main loop, of what is lost since the main thread ends before the program.
    func warnOfLostMembers() {
        guard isMain else { return }
        let waiting = state.withLock { $0.waiting(intake) }
        guard !waiting.isEmpty else { return }
        Log.core.warning(
            """
            The main thread ends before the program, its run loop with it, and what is scheduled there is lost: \
            \(ModeState.Waiting.summary(of: waiting)). An asynchronous main gives the main thread away, and so does \
            dispatchMain(): keep main synchronous and run the loop, or schedule on the loop of a RunLoopThread.
            """)
    }
}

extension ModeState {
    /// The members of a mode that is not run.
    struct Waiting {
        let name: RunLoop.Mode
        var sources: [RunLoop.Source] = []
        var timers: [Timer] = []
        var hasBlocks = false
        var notifications = 0

        /// The most modes, and the most labels of a mode's sources and of its timers, that a warning names.
        private static let maximumNamed = 8

        static func summary(of modes: [Waiting]) -> String {
            list(modes.prefix(maximumNamed).map(\.summary), of: modes.count, "mode", separator: "; ")
        }

        /// - Parameter items: The first `maximumNamed` of `count`.
        private static func list(
            _ items: [String], of count: Int, _ word: String, separator: String
        ) -> String {
            let more = count - items.count
            let end = more > 0 ? ["and \(more) more \(word)\(more == 1 ? "" : "s")"] : []
            return (items + end).joined(separator: separator)
        }

        /// For example "default: 2 sources (download), 1 timer". Takes the locks of its members, so it must
        /// not be called under the loop's lock.
        var summary: String {
            let sources = count(sources.count, "source", labels: sources.compactMap(\.label))
            let timers = count(timers.count, "timer", labels: timers.compactMap(\.label))
            let notifications = count(notifications, "notification", labels: [])
            let parts = [sources, timers, hasBlocks ? "blocks" : nil, notifications].compactMap { $0 }
            return "\(name.shortName): \(parts.joined(separator: ", "))"
        }

        private func count(_ number: Int, _ word: String, labels: [String]) -> String? {
            guard number > 0 else { return nil }
            let first = Array(labels.sorted().prefix(Self.maximumNamed))
            let names = Self.list(first, of: labels.count, "label", separator: ", ")
            return "\(number) \(word)\(number == 1 ? "" : "s")\(labels.isEmpty ? "" : " (\(names))")"
        }
    }
}

extension LoopState {
    /// The members of all modes.
    fileprivate mutating func waiting(_ intake: BlockIntake) -> [ModeState.Waiting] {
        collectBlocks(from: intake)
        var waiting = modes.indices.compactMap { self.waiting(inMode: $0) }
        let notifications = countNotifications(named: .common)
        if !commonBlocks.isEmpty || notifications > 0 {
            waiting.append(
                ModeState.Waiting(
                    name: .common, hasBlocks: !commonBlocks.isEmpty, notifications: notifications))
        }
        return waiting + waitingForUnknownModes()
    }

    /// Returns nil if nothing waits in the mode. Observers do not count: they wait for no event.
    private func waiting(inMode index: Int) -> ModeState.Waiting? {
        let mode = modes[index]
        let notifications = countNotifications(named: mode.name)
        guard !mode.sources.isEmpty || mode.timers.count > 0 || !mode.blocks.isEmpty || notifications > 0
        else { return nil }
        return ModeState.Waiting(
            name: mode.name, sources: Array(mode.sources), timers: timers(inMode: index),
            hasBlocks: !mode.blocks.isEmpty, notifications: notifications)
    }

    private func countNotifications(named mode: RunLoop.Mode) -> Int {
        guard let notifications else { return 0 }
        return notifications.count(.asap, named: mode.rawValue)
            + notifications.count(.whenIdle, named: mode.rawValue)
    }

    /// Notifications for modes that the loop does not know, because nothing else was ever added to them.
    private func waitingForUnknownModes() -> [ModeState.Waiting] {
        let unknown = (notifications?.modes ?? []).map { RunLoop.Mode($0) }.filter {
            $0 != .common && existingIndex(of: $0) == nil
        }
        return unknown.map { ModeState.Waiting(name: $0, notifications: countNotifications(named: $0)) }
    }
}

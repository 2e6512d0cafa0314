internal import Logging
internal import RondoMutex

/// The loops that are looked at after a while, until then or until their thread ends, and the thread that does so: it is
/// there as long as there is one to look at.
///
/// A thread of its own and not Dispatch's, which ends the program where descriptors have run out for its timers, and a
/// full machine is where a loop that nobody runs has to be told of.
///
/// A list and no weak references: an object that has ever been referred to weakly counts its references in a
/// slower way for the rest of its life, and a loop is retained in everything that it does.
enum UnservedWarning {
    private struct Look {
        let loop: RunLoop
        let runs: UInt64
        let delay: TimeInterval
        let due: LoopInstant
    }

    private struct State {
        var looks: [Look] = []
        var hasThread = false
    }

    fileprivate static let delay = Mutex<TimeInterval?>(5)
    private static let state = Mutex(State())
    /// Signalled where the thread is to look at `state` again.
    private static let change = DispatchSemaphore(value: 0)

    /// - Returns: False where there is no thread for it.
    fileprivate static func watch(_ loop: RunLoop, sinceRun runs: UInt64, delay: TimeInterval) -> Bool {
        let look = Look(
            loop: loop, runs: runs, delay: delay, due: LoopClock.machineNow.advanced(bySeconds: delay))
        let isFirst = state.withLock { state in
            state.looks.append(look)
            defer { state.hasThread = true }
            return !state.hasThread
        }
        guard isFirst else {
            change.signal()
            return true
        }
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.unserved") { lookAtAll() }
            return true
        } catch {
            // Others may have counted on the thread since.
            let abandoned = state.withLock { state in
                defer { state = State() }
                return state.looks
            }
            for look in abandoned where look.loop !== loop { look.loop.attention.endWatching() }
            return false
        }
    }

    private static func lookAtAll() {
        while true {
            let now = LoopClock.machineNow
            let (due, seconds) = state.withLock { state -> ([Look], Double?) in
                let due = state.looks.filter { $0.due <= now }
                state.looks.removeAll { $0.due <= now }
                let next = state.looks.map(\.due).min()
                if due.isEmpty, next == nil { state.hasThread = false }
                return (due, next.map { $0.seconds(since: now) })
            }
            for look in due { look.loop.warnIfUnserved(sinceRun: look.runs, delay: look.delay) }
            if !due.isEmpty { continue }
            guard let seconds else { return }
            _ = change.wait(timeout: .now() + seconds)
        }
    }

    /// The thread of `loop` has ended.
    static func forget(_ loop: RunLoop) {
        let forgotten = state.withLock { state in
            let forgotten = state.looks.filter { $0.loop === loop }
            state.looks.removeAll { $0.loop === loop }
            return forgotten
        }
        guard !forgotten.isEmpty else { return }
        change.signal()
    }
}

extension RunLoop {
    /// Seconds after which something scheduled on a loop that has not been run since is warned about in the
    /// log, once a loop; nil: never. Set it before anything is scheduled.
    public static var unservedWarningDelay: TimeInterval? {
        get { UnservedWarning.delay.withLock { $0 } }
        set { UnservedWarning.delay.withLock { $0 = newValue } }
    }

    /// Something was added: if the loop does not run, a thread looks again after a while.
    func warnUnlessRun() {
        guard attention.isUnserved else { return }
        let runs = state.withLock { attention.beginWatching() ? $0.runs : nil }
        guard let runs, let delay = Self.unservedWarningDelay else { return }
        // Without a thread for it the warning is left out; what is added next asks for one again.
        if !UnservedWarning.watch(self, sinceRun: runs, delay: delay) { attention.endWatching() }
    }

    fileprivate func warnIfUnserved(sinceRun runs: UInt64, delay: TimeInterval) {
        let (waiting, hasRun) = state.withLock { state -> ([ModeState.Waiting], Bool) in
            var waiting: [ModeState.Waiting] = []
            if state.isAlive, !attention.isEmbedded, state.runs == runs, state.activations.isEmpty {
                state.collectBlocks(from: intake)
                waiting = state.modes.indices.compactMap { state.waiting(inMode: $0) }
                if !state.commonBlocks.isEmpty {
                    waiting.append(ModeState.Waiting(name: .common, hasBlocks: true))
                }
            }
            // It runs, or nothing is left: the next thing that waits in vain is worth a look of its own.
            if waiting.isEmpty { attention.endWatching() }
            return (waiting, state.runs != runs)
        }
        guard !waiting.isEmpty else {
            // It may have been run for the last time.
            if hasRun { warnUnlessRun() }
            return
        }
        Log.core.warning(
            """
            The run loop of thread \(threadName ?? "(without a name)") has not been run for \(delay.formatted()) s, \
            and nothing scheduled on it can be served: \(waiting.map(\.summary).joined(separator: "; ")). Run it, or \
            schedule on a loop that runs.
            """)
    }
}

extension ModeState {
    /// What waits in a mode that is not run.
    struct Waiting {
        let name: RunLoop.Mode
        var sources: [RunLoop.Source] = []
        var timers: [Timer] = []
        var hasBlocks = false

        /// "default: 2 sources (download), 1 timer". Takes the locks of its members, so not under the loop's.
        var summary: String {
            let sources = count(sources.count, "source", labels: sources.compactMap(\.label))
            let timers = count(timers.count, "timer", labels: timers.compactMap(\.label))
            let parts = [sources, timers, hasBlocks ? "blocks" : nil].compactMap { $0 }
            return "\(name.shortName): \(parts.joined(separator: ", "))"
        }

        private func count(_ number: Int, _ word: String, labels: [String]) -> String? {
            guard number > 0 else { return nil }
            let names = labels.isEmpty ? "" : " (\(labels.sorted().joined(separator: ", ")))"
            return "\(number) \(word)\(number == 1 ? "" : "s")\(names)"
        }
    }

}

extension LoopState {
    /// Nil if nothing waits here: observers are called by a run and wait for none.
    fileprivate func waiting(inMode index: Int) -> ModeState.Waiting? {
        let mode = modes[index]
        guard !mode.sources.isEmpty || mode.timers.count > 0 || !mode.blocks.isEmpty else { return nil }
        return ModeState.Waiting(
            name: mode.name, sources: Array(mode.sources), timers: timers(inMode: index),
            hasBlocks: !mode.blocks.isEmpty)
    }
}

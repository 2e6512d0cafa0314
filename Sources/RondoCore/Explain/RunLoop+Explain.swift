internal import Logging
internal import RondoMutex

// Why has a callback not come? Silence is what users of run loops have suffered from most, so everything that
// is scheduled can say it, and a loop that nobody runs is warned about.

/// Why something that is scheduled on run loops does not call back just now.
public struct DeliveryObstacle: Sendable, Equatable, CustomStringConvertible {
    public enum Reason: Sendable, Equatable {
        /// It was invalidated, has ended or was cancelled.
        case invalid
        /// It is in no mode of any loop.
        case notScheduled
        /// The loop has never been run since it was scheduled there, or at all.
        case loopNeverRan
        /// The loop is not running now.
        case loopNotRunning
        /// The loop runs, in a mode that it is not scheduled in.
        case runsInAnotherMode(RunLoop.Mode)
        /// The loop runs in a scheduled mode, but is inside a callback that has not returned.
        case busy
        /// The thread of the loop has ended.
        case threadEnded
        /// It was signalled, and its loop sleeps: nobody has called `wakeUp()` (rule SRC-2).
        case loopNotWoken
        /// It is in a mode and valid, but waits for nothing: its interest is empty.
        case waitsForNothing
        /// Nothing stands in the way: there is nothing to deliver yet.
        case nothingToDeliver
    }

    public let reason: Reason
    /// The same in a sentence for people.
    public let description: String

    package init(reason: Reason, description: String) {
        self.reason = reason
        self.description = description
    }
}

extension RunLoop {
    /// What stands between something in `mode` and its callback, as far as this loop is concerned.
    package func obstacle(inMode mode: Mode) -> DeliveryObstacle {
        let (isAlive, hasRun, running, since, isInCallback, modes) = state.withLock { state in
            (
                state.isAlive, state.hasRun, state.runningMode, state.countedUntil, !attention.isWaiting,
                state.indices(named: mode).map { state.modes[$0].name }
            )
        }
        let place = "scheduled in \(mode.shortName)"
        let thread = threadName.map { "its loop (thread \($0))" } ?? "its loop"
        let seconds = { (instant: LoopInstant) in
            String(format: "%.1f s", LoopClock.now.seconds(since: instant))
        }
        guard isAlive else {
            return DeliveryObstacle(
                reason: .threadEnded, description: "\(place); the thread of its loop has ended")
        }
        guard hasRun else {
            return DeliveryObstacle(
                reason: .loopNeverRan,
                description: "\(place); \(thread) has never been run: run it, in \(mode.shortName)")
        }
        guard let running else {
            return DeliveryObstacle(
                reason: .loopNotRunning,
                description: "\(place); \(thread) has not been running for \(seconds(since))")
        }
        guard modes.contains(running) else {
            return DeliveryObstacle(
                reason: .runsInAnotherMode(running),
                description:
                    "\(place); \(thread) has been running in \(running.shortName) for \(seconds(since))")
        }
        if isInCallback {
            return DeliveryObstacle(
                reason: .busy,
                description: "\(place); \(thread) runs in it, and is busy with a callback just now")
        }
        return DeliveryObstacle(
            reason: .nothingToDeliver,
            description: "\(place); \(thread) waits in \(running.shortName): nothing to deliver yet")
    }

    /// Of several places the one that comes nearest to a delivery.
    package static func obstacle(places: [(loop: RunLoop, mode: Mode)]) -> DeliveryObstacle {
        let found = places.map { $0.loop.obstacle(inMode: $0.mode) }
        return found.first { $0.reason == .nothingToDeliver } ?? found.first { $0.reason == .busy } ?? found
            .last
            ?? DeliveryObstacle(
                reason: .notScheduled, description: "in no mode of any run loop: schedule it")
    }

    static let endedObstacle = DeliveryObstacle(
        reason: .threadEnded, description: "the thread of its loop has ended: schedule it on another loop")

    package static let invalidObstacle = DeliveryObstacle(
        reason: .invalid, description: "it was invalidated or has ended: nothing will come any more")

    /// The name of the loop's thread, as far as it is known.
    var threadName: String? { isMain ? "main" : state.withLock { $0.threadName } }
}

extension Foundation.RunLoop.Mode {
    /// "default" for `kCFRunLoopDefaultMode`: the name that people use.
    package var shortName: String {
        switch self {
        case .default: "default"
        case .common: "the common modes"
        case .tracking: "tracking"
        default: rawValue
        }
    }
}

extension RunLoop.Source {
    /// Why the source has not been served, or has not been served again.
    public var whyNotDelivering: DeliveryObstacle {
        let (isValid, places, threadHasEnded) = state.withLock { state in
            // The common name stands for the modes that it has brought.
            let common = (state.rare?.commonLoops ?? []).map { (loop: $0, mode: RunLoop.Mode.common) }
            let others = state.places.all.filter { !state.isCommon(in: $0.loop) }
            return (
                state.isValid, others.map { (loop: $0.loop, mode: $0.mode) } + common, state.threadHasEnded
            )
        }
        guard isValid else { return RunLoop.invalidObstacle }
        if places.isEmpty && threadHasEnded { return RunLoop.endedObstacle }
        let obstacle = RunLoop.obstacle(places: places)
        guard obstacle.reason == .nothingToDeliver else { return obstacle }
        switch kind {
        case .signalled where isSignalled:
            return DeliveryObstacle(
                reason: .loopNotWoken,
                description: "signalled, but nobody has woken its loop, which sleeps: call its wakeUp()")
        case .descriptor where interest.isEmpty:
            return DeliveryObstacle(
                reason: .waitsForNothing,
                description: "it waits for nothing: its interest is empty")
        default:
            return obstacle
        }
    }
}

extension RunLoop.Observer {
    /// Why the observer has not been called.
    public var whyNotDelivering: DeliveryObstacle {
        let (isValid, loop, threadHasEnded) = state.withLock { ($0.isValid, $0.loop, $0.threadHasEnded) }
        guard isValid else { return RunLoop.invalidObstacle }
        guard let loop else { return threadHasEnded ? RunLoop.endedObstacle : RunLoop.obstacle(places: []) }
        let modes = loop.state.withLock { state in
            state.modes.filter { $0.observers.contains { $0 === self } }.map(\.name)
        }
        return RunLoop.obstacle(places: modes.map { (loop, $0) })
    }
}

extension Timer {
    /// Why the timer has not fired.
    public var whyNotDelivering: DeliveryObstacle {
        let (isValid, places, threadHasEnded) = state.withLock { state in
            // Under both locks: without, the timer might be in another loop by now.
            let places = state.loop.map { loop -> [(loop: RunLoop, mode: RunLoop.Mode)] in
                if state.isCommon { return [(loop: loop, mode: .common)] }
                return loop.state.withLock { loopState in
                    slots.modes.map { (loop: loop, mode: loopState.modes[$0].name) }
                }
            }
            return (state.isValid, places ?? [], state.threadHasEnded)
        }
        guard isValid else { return RunLoop.invalidObstacle }
        if places.isEmpty && threadHasEnded { return RunLoop.endedObstacle }
        let obstacle = RunLoop.obstacle(places: places)
        guard obstacle.reason == .nothingToDeliver else { return obstacle }
        return DeliveryObstacle(
            reason: .nothingToDeliver,
            description:
                "it is not due: it fires in \(String(format: "%.1f s", fireDate.timeIntervalSinceNow))")
    }
}

// MARK: - The loop that nobody runs

extension RunLoop {
    /// Seconds after which something scheduled on a loop that has not been run since is warned about in the
    /// log, once a loop; nil: never. Set it before anything is scheduled.
    public static var unservedWarningDelay: TimeInterval? {
        get { UnservedWarning.delay.withLock { $0 } }
        set { UnservedWarning.delay.withLock { $0 = newValue } }
    }

    /// Something was added: if the loop does not run, somebody looks again after a while.
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
        LoopOwner.log.warning(
            """
            The run loop of thread \(threadName ?? "(without a name)") has not been run for \(delay.formatted()) s, \
            and nothing scheduled on it can be served: \(waiting.map(\.summary).joined(separator: "; ")). Run it, or \
            schedule on a loop that runs.
            """)
    }
}

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

// MARK: - The whole loop

extension RunLoop {
    /// What `debugDescription` says.
    func describeInFull() -> String {
        let now = LoopClock.now
        // Labels and dates have locks of their own: what is in the modes is copied first.
        let (running, isWaiting, modes) = state.withLock { state in
            state.collectBlocks(from: intake)
            return (
                state.activations.map { state.modes[$0.mode].name.shortName }, attention.isWaiting,
                state.modes.enumerated().map { index, mode in
                    (
                        name: mode.name.shortName, isCommon: mode.isCommon, sources: mode.sources,
                        timers: state.timerDates(inMode: index), observers: mode.observers,
                        hasBlocks: !mode.blocks.isEmpty
                    )
                }
            )
        }
        var lines = ["RunLoop of thread \(threadName ?? "(without a name)")"]
        if running.isEmpty {
            lines[0] += ", not running"
        } else {
            lines[0] += ", running in \(running.joined(separator: " > "))\(isWaiting ? ", waiting" : "")"
        }
        for mode in modes {
            lines.append("  \(mode.name)\(mode.isCommon ? " (common)" : "")")
            for source in mode.sources { lines.append("    \(source.summary)") }
            for date in mode.timers {
                let timer = date.timer
                let due = String(format: "%.3f s", date.deadline.seconds(since: now))
                let repeats = timer.timeInterval > 0 ? ", every \(timer.timeInterval.formatted()) s" : ""
                lines.append("    timer\(timer.label.map { " “\($0)”" } ?? ""), due in \(due)\(repeats)")
            }
            for observer in mode.observers {
                let label = observer.label.map { " “\($0)”" } ?? ""
                lines.append(
                    "    observer\(label), order \(observer.order), activities \(observer.activities.names)")
            }
            if mode.hasBlocks { lines.append("    blocks") }
        }
        return lines.joined(separator: "\n")
    }
}

extension RunLoop.Source {
    fileprivate var summary: String {
        let label = self.label.map { " “\($0)”" } ?? ""
        switch kind {
        case .signalled:
            return "source\(label), signalled by hand, order \(order)\(isSignalled ? ", signalled" : "")"
        case .descriptor(let descriptor):
            return "source\(label), descriptor \(descriptor), \(interest.names)"
        }
    }
}

extension RunLoop.Source.Interest {
    fileprivate var names: String {
        switch (contains(.read), contains(.write)) {
        case (true, true): "reading and writing"
        case (true, false): "reading"
        case (false, true): "writing"
        case (false, false): "not watched"
        }
    }
}

extension RunLoop.Activity {
    fileprivate var names: String {
        let names: [(RunLoop.Activity, String)] = [
            (.entry, "entry"), (.beforeTimers, "beforeTimers"), (.beforeSources, "beforeSources"),
            (.beforeWaiting, "beforeWaiting"), (.afterWaiting, "afterWaiting"), (.exit, "exit"),
        ]
        return names.filter { contains($0.0) }.map(\.1).joined(separator: " ")
    }
}

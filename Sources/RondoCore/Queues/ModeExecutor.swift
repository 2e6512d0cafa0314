internal import RondoMutex

// An actor can live on a run loop, in a mode: its jobs run on the loop's thread while the loop runs in that
// mode, and at no other time. Serial and task executor are two types, because a type that is both makes every
// enqueue slower.

extension RunLoop {
    /// The executor of actors that live in `mode` of this loop; the same object at each call.
    ///
    /// A job wakes the loop and runs at a block point of the pass. While jobs wait, the mode is not empty,
    /// but an actor without a job keeps no loop running: add a `Port` for that. A run nested in a job serves
    /// no other job of the same executor, since an actor does one thing at a time. Other callbacks of that
    /// run count as isolated to the actor, since the runtime attributes the thread to the job until the job
    /// returns. Jobs for a loop whose thread has ended never run.
    public func executor(in mode: Mode) -> ModeExecutor {
        state.withLock { state in
            if let known = state.executors[mode] { return known }
            let executor = ModeExecutor(state.isAlive ? self : nil, mode)
            // Kept after the thread has ended too, for an actor that retains only the loop.
            state.executors[mode] = executor
            return executor
        }
    }

    /// An executor for tasks that run in `mode` of this loop; the same object at each call.
    public func taskExecutor(in mode: Mode) -> ModeTaskExecutor {
        state.withLock { state in
            if let known = state.taskExecutors[mode] { return known }
            let executor = ModeTaskExecutor(self, mode)
            if state.isAlive { state.taskExecutors[mode] = executor }
            return executor
        }
    }

    /// Runs an actor's jobs in one mode of a run loop. See `RunLoop.executor(in:)`.
    public final class ModeExecutor: SerialExecutor {
        private struct State {
            var jobs: [UnownedJob] = []
            /// A block that will run the jobs has been performed.
            var isScheduled = false
            /// The number of activations when the jobs began to run; nil while none runs.
            var depth: Int?
            var loop: RunLoop?
        }

        /// The loop; nil once its thread has ended, after which no job runs.
        public var loop: RunLoop? { state.withLock { $0.loop } }
        public let mode: Mode
        private let state: Mutex<State>

        fileprivate init(_ loop: RunLoop?, _ mode: Mode) {
            state = Mutex(State(loop: loop))
            self.mode = mode
        }

        /// Releases the loop. Called when the loop's thread has ended: the loop retains its executors, so the
        /// two would otherwise keep each other alive.
        func releaseLoop() {
            let loop = state.withLock { state in
                defer { state.loop = nil }
                return state.loop
            }
            withExtendedLifetime(loop) {}
        }

        public func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            let mustSchedule = state.withLock { state in
                state.jobs.append(job)
                defer { state.isScheduled = true }
                return !state.isScheduled
            }
            if mustSchedule { schedule() }
        }

        private func schedule() {
            loop?.perform(inModes: [mode]) { [self] in run() }
        }

        /// Runs the jobs that wait now; jobs that they enqueue wait for the next block point.
        private func run() {
            let depth = loop?.depth
            let jobs = state.withLock { state in
                defer { state.jobs = [] }
                state.depth = depth
                return state.jobs
            }
            traced { for job in jobs { job.runSynchronously(on: asUnownedSerialExecutor()) } }
            let mustSchedule = state.withLock { state in
                state.depth = nil
                state.isScheduled = !state.jobs.isEmpty
                return state.isScheduled
            }
            if mustSchedule { schedule() }
        }

        /// Records `jobs` as a call-out of this executor, inside the block's call-out.
        private func traced(_ jobs: () -> Void) {
            guard RunLoop.isTraced, let loop, let running = loop.state.withLock({ $0.activations.last?.mode })
            else { return jobs() }
            Trace.callOut(loop, running, .block, label: traceLabel, of: self, jobs)
        }

        var hasWaitingJobs: Bool { state.withLock { $0.isScheduled && !$0.jobs.isEmpty } }
        /// The label of this executor's jobs in a recording.
        var traceLabel: String { "actors in \(mode.shortName)" }

        /// True inside a job, and inside any other callback of this mode while no job is on the stack, so
        /// that `assumeIsolated` also works in a timer's block.
        private var isIsolating: Bool {
            guard let loop, loop.isCurrent else { return false }
            if let depth = state.withLock({ $0.depth }) { return depth == loop.depth }
            guard let running = loop.currentMode else { return false }
            return loop.modes(named: mode).contains(running)
        }

        public func isIsolatingCurrentContext() -> Bool? {
            // Nil, never false: false would state that the context is not isolated, which cannot be known
            // here.
            isIsolating ? true : nil
        }

        public func checkIsolated() {
            guard !isIsolating else { return }
            guard let loop else {
                fatalError(
                    "This actor lives in mode \(mode.shortName) of a run loop whose thread has ended, and was used "
                        + "on \(SystemThread.nameOfCurrent). Nothing can run it any more.")
            }
            let place =
                !loop.isCurrent
                ? "on \(SystemThread.nameOfCurrent)"
                : loop.currentMode.map { "while that runs in \($0.shortName)" } ?? "while that does not run"
            fatalError(
                "This actor lives in mode \(mode.shortName) of the run loop of "
                    + "\(loop.nameOfItsThreadAndNumber), and was used \(place). Call it with await, or in "
                    + "a callback of that mode.")
        }
    }

    /// Runs tasks in one mode of a run loop. See `RunLoop.taskExecutor(in:)`.
    public final class ModeTaskExecutor: TaskExecutor {
        public let loop: RunLoop
        public let mode: Mode

        fileprivate init(_ loop: RunLoop, _ mode: Mode) {
            self.loop = loop
            self.mode = mode
        }

        public func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            loop.perform(inModes: [mode]) { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
        }
    }

    /// The number of activations that are running, one inside the other.
    var depth: Int { state.withLock { $0.activations.count } }
}

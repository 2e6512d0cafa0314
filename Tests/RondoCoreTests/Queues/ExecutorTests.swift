import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct ExecutorTests {
    @Test func `an actor's jobs run in order, on the loop's thread and in its mode only`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let resident = Resident(loop.executor(in: .work), log)
            for mode in [RunLoop.Mode.work, .other] { loop.add(Port(), forMode: mode) }
            loop.perform(inModes: [.work]) {
                resident.assumeIsolated { $0.spawn(3) }
                loop.poll(.other)
                log.note("other is over")
                loop.poll(.work)
                log.note("work is over")
            }
            loop.poll(.work)
        }
        #expect(
            log.entries == ["other is over", "1 work true", "2 work true", "3 work true", "work is over"])
    }

    @Test func `a job wakes a sleeping loop, and runs once it runs in the mode again`() async throws {
        let log = EventLog()
        let port = Port()
        let thread = LoopThread { loop in
            loop.add(port, forMode: .work)
            loop.add(port, forMode: .other)
            return [loop.runOn(.work), loop.runOn(.other), loop.runOn(.work)]
        }
        let loop = try thread.loop
        let resident = Resident(loop.executor(in: .work), log)
        try loop.waitUntilAsleep()
        await resident.note("first")
        loop.stop()
        try waitFor("the other mode") { loop.currentMode == .other ? () : nil }
        try loop.waitUntilAsleep()
        async let second: Void = resident.note("second")
        // Whether the job was enqueued by now or not, it does not run here.
        loop.perform(inModes: [.other]) { log.note("other") }
        try waitFor("the other block") { log.entries.count == 2 ? () : nil }
        loop.stop()
        await second
        loop.stop()
        #expect(try thread.value() == [.stopped, .stopped, .stopped])
        #expect(log.entries == ["first work true", "other", "second work true"])
    }

    @Test func `an actor in the common modes works in each of them`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let resident = Resident(loop.executor(in: .common), log)
            loop.addCommonMode(.work)
            for mode in [RunLoop.Mode.default, .tracking, .work] {
                loop.addDueTimer("timer", to: log, mode: mode) { resident.assumeIsolated { $0.spawn(1) } }
                loop.poll(mode)
            }
        }
        let modes = [RunLoop.Mode.default, .tracking, .work].map(\.rawValue)
        #expect(log.entries == modes.flatMap { ["timer", "1 \($0) true"] })
    }

    @Test func `assumeIsolated works in a job and in every callback of the mode`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let resident = Resident(loop.executor(in: .work), log)
            let assume = { @Sendable in resident.assumeIsolated { $0.note("assumed") } }
            loop.addDueTimer("timer", to: log, mode: .work, then: assume)
            loop.addSignalled("source", to: log, mode: .work, then: assume)
            let observer = RunLoop.Observer(activities: .exit) { _, _ in assume() }
            loop.add(observer, forMode: .work)
            loop.perform(inModes: [.work]) { resident.assumeIsolated { $0.assumeInAJob() } }
            loop.poll(.work)
        }
        let assumed = "assumed work true"
        #expect(log.entries == ["source", assumed, assumed, "timer", assumed, assumed])
    }

    @Test func `assumeIsolated traps on another thread, and names mode and threads`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let thread = RunLoopThread(name: "the home", mode: .work)
            let resident = Resident(thread.start().executor(in: .work), EventLog())
            try onLoopThread { _ in
                Thread.current.name = "a stranger"
                resident.assumeIsolated { $0.note("never") }
            }
        }
        let text = result?.standardErrorText ?? ""
        #expect(text.contains("lives in mode work of the run loop of thread the home"), "\(text)")
        #expect(text.contains("was used on thread a stranger"), "\(text)")
        #expect(text.contains("Call it with await"), "\(text)")
    }

    @Test func `assumeIsolated traps in another mode, and names both`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try onLoopThread { loop in
                let resident = Resident(loop.executor(in: .work), EventLog())
                loop.perform(inModes: [.other]) { resident.assumeIsolated { $0.note("never") } }
                loop.poll(.other)
            }
        }
        let text = result?.standardErrorText ?? ""
        #expect(text.contains("lives in mode work"), "\(text)")
        #expect(text.contains("while that runs in other"), "\(text)")
    }

    @Test func `assumeIsolated traps while the loop does not run`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try onLoopThread { loop in
                Resident(loop.executor(in: .work), EventLog()).assumeIsolated { $0.note("never") }
            }
        }
        let text = result?.standardErrorText ?? ""
        #expect(text.contains("while that does not run"), "\(text)")
    }

    @Test func `a nested run from inside a job runs no other job of the same executor`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            loop.addCommonMode(.work)
            loop.add(Port(), forMode: .work)
            let resident = Resident(loop.executor(in: .work), log)
            let neighbour = Resident(loop.executor(in: .common), log)
            loop.perform(inModes: [.work]) {
                resident.assumeIsolated { $0.spawnNestedRun(beforeIt: 2) }
                loop.perform(inModes: [.work]) { neighbour.assumeIsolated { $0.spawn(1) } }
            }
            for _ in 1...4 { loop.poll(.work) }
        }
        // The other actor has another executor.
        #expect(
            log.entries == [
                "nested begins", "1 work true", "nested ends", "1 work true", "2 work true",
            ]
                || log.entries == [
                    "nested begins", "nested ends", "1 work true", "2 work true", "1 work true",
                ],
            "\(log.entries)")
    }

    @Test func `jobs that a job makes wait for the next block point`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let resident = Resident(loop.executor(in: .work), log)
            loop.add(Port(), forMode: .work)
            loop.addSignalled("source", to: log, mode: .work)
            loop.perform(inModes: [.work]) { resident.assumeIsolated { $0.spawnMaker() } }
            loop.poll(.work)
        }
        // Block points: (c) the block, (e) the maker, (k) what it made.
        #expect(log.entries == ["source", "maker", "1 work true"])
    }

    @Test func `a task prefers the loop's mode by its executor`() async throws {
        let (thread, loop) = try loopThreadAsleep()
        let place = await Task(executorPreference: loop.taskExecutor(in: .work)) { whereabouts(on: loop) }
            .value
        #expect(place == "work true")
        let inner = await withTaskExecutorPreference(loop.taskExecutor(in: .work)) {
            await asyncWhereabouts(on: loop)
        }
        #expect(inner == "work true")
        loop.stop()
        #expect(try thread.value() == .stopped)
    }

    @Test func `executors are the same objects at each call, one for each mode`() throws {
        try onLoopThread { loop in
            #expect(loop.executor(in: .work) === loop.executor(in: .work))
            #expect(loop.executor(in: .work) !== loop.executor(in: .other))
            #expect(loop.executor(in: .common) !== loop.executor(in: .default))
            #expect(loop.taskExecutor(in: .work) === loop.taskExecutor(in: .work))
            #expect(loop.taskExecutor(in: .work) !== loop.taskExecutor(in: .other))
        }
    }

    /// In a process of its own, since a task that waits for the loop waits for ever.
    @Test func `an actor that keeps its loop, and not the executor, outlives the loop's thread`() async {
        await #expect(processExitsWith: .success) {
            let thread = RunLoopThread(name: "short", mode: .work)
            let tenant = Tenant(of: thread.start())
            await tenant.visit()
            thread.stop()
            thread.join()
            for _ in 1...100 { Task { await tenant.visit() } }
            // Lets other tasks run as often.
            for _ in 1...100 { await Task { await Task.yield() }.value }
        }
    }

    @Test func `a loop whose thread has ended runs no job, and is not kept by its executors`() throws {
        let log = EventLog()
        try {
            let loop = try onLoopThread { loop in
                _ = loop.executor(in: .work)
                _ = loop.taskExecutor(in: .work)
                return loop
            }
            let resident = Resident(loop.executor(in: .work), log)
            // Enqueued here and now, and dropped: no task can be freed that has never run.
            ignoringLeaks {
                _ = Task(executorPreference: loop.taskExecutor(in: .work)) { log.note("job") }
            }
            _ = resident
        }()
        #expect(log.entries == [])
        // A task that never runs keeps its executor, and that its loop; those asked for before the end do
        // not.
        weak var other: RunLoop?
        try {
            let loop = try onLoopThread { loop in
                _ = loop.executor(in: .work)
                _ = loop.taskExecutor(in: .work)
                return loop
            }
            other = loop
        }()
        #expect(other == nil)
    }
}

/// An actor that asks its loop for the executor each time.
private actor Tenant {
    let loop: RunLoop

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.executor(in: .work).asUnownedSerialExecutor()
    }

    init(of loop: RunLoop) {
        self.loop = loop
    }

    func visit() {}
}

/// An actor that lives in a mode of a run loop, and notes where it is called.
private actor Resident {
    private let executor: RunLoop.ModeExecutor
    private let log: EventLog

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(_ executor: RunLoop.ModeExecutor, _ log: EventLog) {
        self.executor = executor
        self.log = log
    }

    func note(_ event: String) { log.note("\(event) \(whereabouts(on: executor.loop!))") }

    /// Makes jobs that note 1 and so on, in this order.
    func spawn(_ count: Int) {
        for number in 1...count { Task { note("\(number)") } }
    }

    /// Makes a job that makes another one.
    func spawnMaker() {
        Task {
            log.note("maker")
            spawn(1)
        }
    }

    /// Makes a job that comes to its own actor from outside.
    func assumeInAJob() {
        Task { assume() }
    }

    private nonisolated func assume() { assumeIsolated { $0.note("assumed") } }

    /// Makes a job that runs the loop, and `count` others behind it.
    func spawnNestedRun(beforeIt count: Int = 0) {
        Task { runNested() }
        if count > 0 { spawn(count) }
    }

    private func runNested() {
        log.note("nested begins")
        executor.loop!.poll(.work)
        executor.loop!.poll(.inner)
        log.note("nested ends")
    }
}

/// The mode that runs, and whether this is the loop's thread.
private func whereabouts(on loop: RunLoop) -> String {
    "\(loop.currentMode?.rawValue ?? "no mode") \(loop.isCurrent)"
}

private func asyncWhereabouts(on loop: RunLoop) async -> String { whereabouts(on: loop) }

import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct RunLoopThreadTests {
    @Test func `RL-60 blocks performed before the stop are run, in order`() {
        let log = EventLog()
        let thread = RunLoopThread(name: "blocks", mode: .work)
        let loop = thread.start()
        for number in 1...20 { thread.perform { log.note("\(number) \(RunLoop.current === loop)") } }
        thread.stop()
        thread.stop()
        thread.join()
        #expect(log.entries == (1...20).map { "\($0) true" })
    }

    @Test func `RL-43 a thread may stop itself, and ignores stops of its loop`() {
        let log = EventLog()
        let thread = RunLoopThread()
        let loop = thread.start()
        thread.perform { loop.stop() }
        thread.perform { log.note("goes on") }
        thread.perform { thread.stop() }
        thread.join()
        #expect(log.entries == ["goes on"])
    }

    @Test func `RL-5 a thread may be stopped while it starts`() {
        for _ in 1...50 {
            let thread = RunLoopThread()
            thread.stop()
            thread.start()
            thread.join()
        }
    }

    @Test func `a block performed after the stop does not keep the thread running`() throws {
        let log = EventLog()
        let thread = RunLoopThread(mode: .work)
        let loop = thread.start()
        let observer = RunLoop.Observer(activities: .exit, repeats: false) { _, _ in
            // After the last blocks of the run that the stop has ended.
            thread.perform { log.note("late") }
        }
        loop.add(observer, forMode: .work)
        thread.perform { log.note("before") }
        thread.stop()
        try joined(thread)
        #expect(log.entries.first == "before")
    }

    @Test func `a stop that a nested run serves ends the thread`() throws {
        let log = EventLog()
        let thread = RunLoopThread(mode: .work)
        let loop = thread.start()
        thread.perform {
            thread.stop()
            log.note("nested \(loop.runOn(.work))")
        }
        try joined(thread)
        #expect(log.entries == ["nested stopped"])
    }

    @Test func `a thread that was stopped before its start ends at once`() throws {
        let thread = RunLoopThread()
        thread.stop()
        thread.start()
        try joined(thread)
        thread.stop()
    }

    @Test func `once the thread has ended, blocks are dropped and released`() throws {
        let log = EventLog()
        let thread = RunLoopThread()
        let loop = thread.start()
        thread.stop()
        thread.join()
        // The loop is emptied a little later.
        try waitFor("the end of the loop") {
            loop.obstacle(inMode: .default).reason == .threadEnded ? () : nil
        }
        weak var weakLog: EventLog?
        do {
            let inner = EventLog()
            weakLog = inner
            thread.perform { inner.note("\(log)") }
        }
        #expect(weakLog == nil)
        #expect(loop.currentMode == nil)
    }

    @Test func `the thread carries its name, as far as Linux keeps it`() throws {
        let thread = RunLoopThread(name: "a name that is long")
        thread.start()
        try waitFor("the name of the thread") {
            let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
            let names = tasks.compactMap {
                try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8)
            }
            return names.contains("a name that is \n") ? () : nil
        }
        #expect(thread.runLoop.debugDescription.hasPrefix("RunLoop of thread a name that is long, "))
        thread.stop()
        thread.join()
        #expect(thread.qualityOfService == .default)
    }

    @Test func `join on the thread itself traps and says so`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let thread = RunLoopThread()
            thread.start()
            thread.perform { thread.join() }
            thread.join()
        }
        let text = result?.standardErrorText ?? ""
        #expect(text.contains("join() was called on the thread that it waits for"), "\(text)")
    }

    @Test func `starting twice traps, and so do the common name and a loop before the start`() async {
        await #expect(processExitsWith: .failure) {
            let thread = RunLoopThread()
            thread.start()
            thread.start()
        }
        await #expect(processExitsWith: .failure) { _ = RunLoopThread(mode: .common) }
        await #expect(processExitsWith: .failure) { _ = RunLoopThread().runLoop }
    }

    @Test func `a stop ends a run that a callback nests in another mode`() throws {
        let thread = RunLoopThread(name: "nesting", mode: .work)
        let loop = thread.start()
        thread.perform {
            loop.add(Port(), forMode: .other)
            loop.runOn(.other)
        }
        try waitFor("the nested run") { loop.currentMode == .other && loop.isWaiting ? () : nil }
        let ended = LoopThread { _ in
            thread.stop()
            thread.join()
        }
        try ended.value()
    }

    @Test func `join returns after the cancel callbacks of the members that were left on the loop`() throws {
        for _ in 1...20 {
            let log = EventLog()
            let thread = RunLoopThread(name: "leaving", mode: .work)
            thread.start().add(
                RunLoop.Source(cancel: { _, _ in log.note("cancel") }, perform: {}), forMode: .work)
            thread.stop()
            thread.join()
            #expect(log.entries == ["cancel"])
        }
    }

    /// In a process of its own: what was on the stack of that thread is never released.
    @Test func `a join returns, too, after a callback has ended the thread`() async {
        await #expect(processExitsWith: .success) {
            let thread = RunLoopThread()
            thread.start()
            thread.perform { Thread.exit() }
            try joined(thread)
            // Without LeakSanitizer's look, which would find that.
            _exit(0)
        }
    }

    /// In a process of its own: other tests open descriptors and threads.
    @Test func `threads that have ended leave neither descriptors nor threads behind`() async {
        await #expect(processExitsWith: .success) {
            makeDispatchTimers()
            let counts = {
                let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
                return [try openDescriptorCount(), threads]
            }
            let round = {
                let log = EventLog()
                let threads = (1...5).map { _ in RunLoopThread() }
                for thread in threads { thread.start() }
                for thread in threads { thread.perform { log.note("ran") } }
                for thread in threads { thread.stop() }
                for thread in threads { thread.join() }
                guard log.entries.count == 5 else { throw NeverCame(description: "\(log.entries)") }
            }
            try round()
            // The last thread is ending.
            try waitFor("one thread") { try? counts()[1] < 5 ? () : nil }
            let before = try counts()
            for _ in 1...10 { try round() }
            try waitFor("the descriptors and threads of before: \(before)") {
                (try? counts()).flatMap { $0[0] <= before[0] && $0[1] <= before[1] ? () : nil }
            }
        }
    }
}

/// `join()`, which a failure here would make wait for ever.
private func joined(_ thread: RunLoopThread) throws {
    let done = Latch()
    Thread.detachNewThread {
        thread.join()
        done.open()
    }
    try done.wait()
}

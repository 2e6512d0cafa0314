import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct ThreadTests {
    /// A thread that does not block a signal for which the program waits takes it, and it ends the process.
    @Test func `a thread of Rondo's own leaves signals to the program's threads`() throws {
        let log = EventLog()
        try onLoopThread { _ in
            var none = sigset_t()
            sigemptyset(&none)
            pthread_sigmask(SIG_SETMASK, &none, nil)
            for blocksSignals in [true, false] {
                let isDone = Latch()
                try? SystemThread.start(name: "test", blocksSignals: blocksSignals) {
                    log.note("\(blockedSignals())")
                    isDone.open()
                }
                isDone.waitOrRecord()
            }
            log.note("\(blockedSignals())")
        }
        #expect(log.entries == ["\([SIGPIPE, SIGTERM])", "[]", "[]"])
    }

    @Test func `RL-6 the end of a thread removes everything from its loop`() throws {
        let log = EventLog()
        weak var weakLoop: RunLoop?
        let source = try {
            let (loop, source) = try onLoopThread { loop in
                let source = RunLoop.Source(
                    cancel: { cancelled, mode in
                        log.note("cancel \(mode.rawValue) \(cancelled === RunLoop.current)")
                    }, perform: { log.note("perform") })
                source.signal()
                for mode in [RunLoop.Mode.work, .other] { loop.add(source, forMode: mode) }
                let token = ReleaseToken(log)
                loop.perform { withExtendedLifetime(token) { log.note("block") } }
                loop.add(Timer(timeInterval: 1000, repeats: true) { _ in }, forMode: .common)
                log.observe(of: loop, in: .common)
                // Its watcher exists, and its callback keeps the loop.
                let pipe = BytePipe()
                loop.add(pipe.source("ready", to: log) { loop.stop() }, forMode: .inner)
                loop.poll(.inner)
                return (loop, source)
            }
            weakLoop = loop
            // A loop whose thread has ended takes nothing more.
            loop.add(source, forMode: .inner)
            loop.perform { log.note("block") }
            loop.stop()
            loop.wakeUp()
            #expect(!loop.contains(source, forMode: .work))
            #expect(!loop.contains(source, forMode: .inner))
            return source
        }()
        #expect(log.entries.sorted() == ["cancel other true", "cancel work true", "released"])
        #expect(source.isValid)
        #expect(weakLoop == nil)
    }

    @Test func `RL-6 a source in two loops leaves the one whose thread ends`() throws {
        let log = EventLog()
        let source = RunLoop.Source(
            cancel: { _, mode in log.note("cancel") }, perform: { log.note("perform") })
        let entries = try onLoopThread { loop in
            loop.add(source, forMode: .work)
            _ = try? onLoopThread { $0.add(source, forMode: .work) }
            source.signal()
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["cancel", "perform"])
    }

    /// In a process of its own: other tests open descriptors.
    @Test func `RL-6 loops of threads that ended leave no descriptor behind`() async {
        await #expect(processExitsWith: .success) {
            try keepsDescriptors {
                let pipe = BytePipe()
                let log = EventLog()
                try onLoopThread { loop in
                    for mode in [RunLoop.Mode.default, .work, .other] {
                        loop.add(pipe.source("ready", to: log), forMode: mode)
                        pipe.write()
                        loop.poll(mode)
                    }
                }
                guard log.entries.count == 3 else { throw NeverCame(description: "the loops have not run") }
            }
        }
    }

    @Test func `TH-5 stopping another loop does not end a worker's run`() throws {
        let worker = LoopThread { loop in
            loop.add(Port(), forMode: .default)
            return loop.runOn()
        }
        let loop = try worker.loop
        try loop.waitUntilAsleep()
        try onLoopThread { _ in RunLoop.current.stop() }
        #expect(loop.isWaiting)
        loop.stop()
        #expect(try worker.value() == .stopped)
    }

    @Test func `TH-7 run() goes on as long as there is a port, also after stops`() throws {
        let log = EventLog()
        let port = Port()
        let worker = LoopThread { loop in
            loop.add(port, forMode: .default)
            loop.run()
            log.note("end")
        }
        let loop = try worker.loop
        for round in 1...5 {
            try loop.waitUntilAsleep()
            loop.perform { log.note("\(round)") }
            loop.stop()
        }
        try waitFor("the blocks") { log.entries.count == 5 ? () : nil }
        loop.perform {
            port.invalidate()
            // So that the pass does not sleep in a mode that is empty now (rule RL-32).
            loop.wakeUp()
        }
        try worker.value()
        #expect(log.entries == ["1", "2", "3", "4", "5", "end"])
    }

    @Test func `TH-8 a port keeps a loader thread's run() alive, without it run() returns`() throws {
        try onLoopThread { loop in loop.run() }
        let log = EventLog()
        let port = Port()
        let done = SourceList()
        let loader = LoopThread { loop in
            loop.add(port, forMode: .default)
            loop.run()
        }
        let loop = try loader.loop
        for round in 1...3 {
            try loop.waitUntilAsleep()
            loop.perform {
                log.note("load")
                done.append(loop.addSignalled("done", to: log, mode: .common))
            }
            try waitFor("the load") { log.count(of: "done") == round ? () : nil }
        }
        loop.perform {
            port.invalidate()
            for source in done.sources { source.invalidate() }
            loop.wakeUp()
        }
        try loader.value()
        #expect(log.entries == ["load", "done", "load", "done", "load", "done"])
    }
}

/// Notes when it is released.
private final class ReleaseToken: Sendable {
    let log: EventLog

    init(_ log: EventLog) { self.log = log }

    deinit { log.note("released") }
}

/// Those of a few signals that the calling thread blocks.
private func blockedSignals() -> [Int32] {
    var mask = sigset_t()
    pthread_sigmask(SIG_BLOCK, nil, &mask)
    return [SIGSEGV, SIGPIPE, SIGTERM, SIGPROF].filter { sigismember(&mask, $0) == 1 }
}

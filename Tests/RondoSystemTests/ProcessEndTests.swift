import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// Tests how the end of a process is told (section PR of the rules).
@Suite(.timeLimit(.minutes(5)), .serialized, .leavesNoChild) struct ProcessEndTests {
    private static let other = RunLoop.Mode("other")

    @Test func `PR-5 in the handler the process does not run, and its status can be read`() throws {
        let seen = Mutex<(isRunning: Bool, status: Int32)?>(nil)
        let process = shell("exit 9")
        process.terminationHandler = { process in
            seen.withLock { $0 = (process.isRunning, process.terminationStatus) }
        }
        launch(process)
        let found = try waitFor("the handler") { seen.withLock { $0 } }
        #expect(!found.isRunning)
        #expect(found.status == 9)
    }

    @Test func `PR-6 the handler is called once, though no loop is run`() throws {
        let calls = EventLog()
        let (process, input) = reader()
        process.terminationHandler = { _ in calls.note(Thread.isMainThread ? "main" : "background") }
        launch(process)
        try input.close()
        try waitFor("the handler") { calls.entries.isEmpty ? nil : () }
        // Waiting runs this thread's loop, which has nothing more to tell.
        waitForEnd(process)
        #expect(calls.entries == ["background"])
    }

    @Test func `PR-6 a handler that is set after the end is called soon`() throws {
        let process = launch(shell("exit 0"))
        waitForEnd(process)
        let calls = EventLog()
        process.terminationHandler = { _ in calls.note("called") }
        try waitFor("the handler") { calls.entries.isEmpty ? nil : () }
        #expect(calls.entries == ["called"])
    }

    @Test func `PR-6 a handler that is replaced is released where its objects can ask the process`() async {
        await #expect(processExitsWith: .success) {
            let process = Process()
            let released = Latch()
            let ask: @Sendable () -> Void = {
                _ = process.isRunning
                released.open()
            }
            process.terminationHandler = { [probe = ReleaseProbe(ask)] _ in withExtendedLifetime(probe) {} }
            process.terminationHandler = nil
            try released.wait()
        }
    }

    @Test func `PR-6 PR-10 a handler that is due when its schedule ends is called in the background`() throws
    {
        let calls = EventLog()
        let process = shell("exit 0")
        process.terminationHandler = { _ in calls.note("called") }
        process.schedule(in: .main, forMode: Self.other)
        launch(process)
        waitForEnd(process)
        process.unschedule(from: .main, forMode: Self.other)
        try waitFor("the handler") { calls.entries.isEmpty ? nil : () }
        #expect(calls.entries == ["called"])
    }

    @Test(arguments: [false, true])
    func `PR-6 PR-10 the handler is called in the background where the thread of its loop ends`(
        beforeChild: Bool
    ) throws {
        let calls = EventLog()
        let (process, input) = reader()
        process.terminationHandler = { _ in calls.note("called") }
        try onLoopThread { loop in
            process.schedule(in: loop, forMode: Self.other)
            if beforeChild { return }
            launchHere(process)
            try? input.close()
            try? waitUntilGone(process.processIdentifier)
        }
        if beforeChild {
            launch(process)
            try input.close()
        }
        try waitFor("the handler") { calls.entries.isEmpty ? nil : () }
        #expect(calls.entries == ["called"])
    }

    @Test
    func
        `PR-7 PR-8 the notification is posted on the starting thread in the default mode, unless there is a handler`()
        throws
    {
        for hasHandler in [false, true] {
            let (early, posted, isOwnThread) = try onLoopThread { loop -> ([String], [String], Bool) in
                let process = shell("exit 3")
                let handled = Latch()
                if hasHandler { process.terminationHandler = { _ in handled.open() } }
                let log = EventLog()
                let isOwnThread = Mutex(true)
                let observer = NotificationCenter.default.addObserver(
                    forName: Process.didTerminateNotification, object: process, queue: nil
                ) { note in
                    let process = note.object as? Process
                    log.note("\(process?.terminationStatus ?? -1) \(process?.isRunning ?? true)")
                    if note.userInfo != nil { log.note("userInfo") }
                    isOwnThread.withLock { $0 = loop.isCurrent }
                    loop.stop()
                }
                defer { NotificationCenter.default.removeObserver(observer) }
                loop.add(Port(), forMode: Self.other)
                launchHere(process)
                do {
                    try waitUntilGone(process.processIdentifier)
                    if hasHandler { try handled.wait() }
                } catch {
                    Issue.record(error)
                }
                _ = loop.run(in: Self.other, for: 0, returnAfterSourceHandled: false)
                let early = log.entries
                // Without a notification there is nothing to run for.
                if hasHandler {
                    _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
                } else {
                    loop.runUntilStopped()
                }
                return (early, log.entries, isOwnThread.withLock { $0 })
            }
            #expect(early == [], "in another mode")
            #expect(posted == (hasHandler ? [] : ["3 false"]))
            #expect(isOwnThread)
        }
    }

    @Test func `PR-8 the loop has something to wait for until the notification was posted`() throws {
        let (process, input) = reader()
        let results = try onLoopThread { loop -> [RunLoop.RunResult] in
            launchHere(process)
            let before = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
            try? input.close()
            let during = loop.run(in: .default, for: testPatience + 5, returnAfterSourceHandled: true)
            let after = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
            return [before, during, after]
        }
        #expect(results == [.timedOut, .handledSource, .finished])
    }

    @Test func `PR-9 the notification comes though the program keeps no reference`() throws {
        let posted = try onLoopThread { loop -> Int32? in
            let seen = Mutex<Int32?>(nil)
            let number: Int32 = {
                let process = launchHere(shell("exit 4"))
                return process.processIdentifier
            }()
            let observer = NotificationCenter.default.addObserver(
                forName: Process.didTerminateNotification, object: nil, queue: nil
            ) { note in
                guard let process = note.object as? Process, process.processIdentifier == number else {
                    return
                }
                seen.withLock { $0 = process.terminationStatus }
                loop.stop()
            }
            defer { NotificationCenter.default.removeObserver(observer) }
            loop.runUntilStopped()
            return seen.withLock { $0 }
        }
        #expect(posted == 4)
    }

    @Test func `PR-10 handler and notification of a scheduled process come there and nowhere else`() throws {
        for hasHandler in [true, false] {
            let log = EventLog()
            let process = shell("exit 0")
            let loops = LoopThread { loop -> [String] in
                loop.add(Port(), forMode: Self.other)
                let note: @Sendable (String) -> Void = { what in
                    log.note("\(what) \(loop.isCurrent) \(loop.currentMode?.rawValue ?? "none")")
                    loop.stop()
                }
                let observer = NotificationCenter.default.addObserver(
                    forName: Process.didTerminateNotification, object: process, queue: nil
                ) { _ in note("notification") }
                defer { NotificationCenter.default.removeObserver(observer) }
                if hasHandler { process.terminationHandler = { _ in note("handler") } }
                process.schedule(in: loop, forMode: Self.other)
                try? onLoopThread { _ in
                    launchHere(process)
                    process.waitUntilExit()
                }
                // In the default mode nothing comes.
                _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
                let early = log.entries
                loop.runUntilStopped(Self.other)
                return early + log.entries
            }
            #expect(try loops.value() == ["\(hasHandler ? "handler" : "notification") true other"])
        }
    }

    @Test
    func `PR-10 the notification of a process that left its schedule comes on the starting thread`() throws {
        let told = try onLoopThread { loop -> [String] in
            let log = EventLog()
            let process = shell("exit 0")
            let observer = NotificationCenter.default.addObserver(
                forName: Process.didTerminateNotification, object: process, queue: nil
            ) { _ in
                log.note(loop.currentMode == .default ? "default" : "elsewhere")
                loop.stop()
            }
            defer { NotificationCenter.default.removeObserver(observer) }
            process.schedule(in: .main, forMode: Self.other)
            launchHere(process)
            try? waitUntilGone(process.processIdentifier)
            process.unschedule(from: .main, forMode: Self.other)
            loop.runUntilStopped()
            return log.entries
        }
        #expect(told == ["default"])
    }

    @Test func `PR-19 a grandchild that keeps an output open delays neither handler nor waitUntilExit`()
        throws
    {
        let (input, output) = (Pipe(), Pipe())
        let ended = Latch()
        let process = shell("exec 3<&0; cat <&3 & exit 0")
        process.standardInput = input
        process.standardOutput = output
        process.terminationHandler = { _ in ended.open() }
        launch(process)
        try ended.wait()
        waitForEnd(process)
        #expect(process.terminationStatus == 0)
        // The grandchild is there, and says what it reads.
        try input.fileHandleForWriting.write(contentsOf: Data("alive".utf8))
        try input.fileHandleForWriting.close()
        #expect(output.fileHandleForReading.readDataToEndOfFile() == Data("alive".utf8))
    }

    @Test func `PR-20 a child that ends while no thread waits leaves no zombie`() throws {
        let numbers = (0..<20).map { _ in launch(shell("exit 0")).processIdentifier }
        for number in numbers { try waitUntilGone(number) }
    }

    @Test func `a process says why it was not told of`() throws {
        let (process, input) = reader()
        #expect(process.whyNotDelivering.reason == .notScheduled)
        try onLoopThread { _ in
            launchHere(process)
            #expect(process.whyNotDelivering.reason == .nothingToDeliver)
        }
        try input.close()
        waitForEnd(process)
    }
}

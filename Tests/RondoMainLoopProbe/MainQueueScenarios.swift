import Rondo
import RondoMutex

// The main queue with nested runs, with modes that become common, and with foreign loops.

/// A block of the main queue that runs the loop in the same mode leaves the queue to the outer run,
/// permanently.
func mainQueueAfterANestedRun() {
    let loop = RunLoop.main
    let log = Log()
    let port = Port()
    loop.add(port, forMode: .default)
    let timer = Timer(timeInterval: 0.01, repeats: false) { _ in
        log.note("timer")
        // The block is added by another thread, while the loop is about to sleep or sleeps.
        Thread.detachNewThread {
            DispatchQueue.main.async { log.note("third") }
            DispatchQueue.main.async {
                log.note("fourth")
                loop.stop()
            }
        }
    }
    DispatchQueue.main.async {
        log.note("outer")
        DispatchQueue.main.async {
            log.note("second")
            loop.add(timer, forMode: .default)
        }
        let result = loop.run(in: .default, for: 0.05, returnAfterSourceHandled: false)
        log.note("nested \(result)")
    }
    let result = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
    expect(result == .stopped, "the outer run serves the queue again: \(result)")
    let expected = ["outer", "nested timedOut", "second", "timer", "third", "fourth"]
    expect(log.entries == expected, "\(log.entries)")
    port.invalidate()
}

/// The main queue counts, and is served, in a mode that becomes common while the loop runs in it.
func mainQueueInAModeThatBecomesCommon() {
    let loop = RunLoop.main
    for comesFromElsewhere in [false, true] {
        let log = Log()
        let mode = RunLoop.Mode("joined \(comesFromElsewhere)")
        let port = Port()
        loop.add(port, forMode: mode)
        DispatchQueue.main.async {
            log.note("queue")
            loop.stop()
        }
        if comesFromElsewhere {
            Thread.detachNewThread {
                while !loop.isWaiting { sched_yield() }
                log.note("common")
                loop.addCommonMode(mode)
            }
        } else {
            loop.perform(inModes: [mode]) {
                log.note("common")
                loop.addCommonMode(mode)
            }
        }
        let result = loop.run(in: mode, for: 60, returnAfterSourceHandled: false)
        expect(result == .stopped, "the queue was served: \(result)")
        expect(log.entries == ["common", "queue"], "\(log.entries)")
        port.invalidate()
    }
}

/// The main actor, the main operation queue and delayed blocks of the main queue, from the main thread and
/// from other threads.
func mainActorAndOperations() {
    let loop = RunLoop.main
    let log = Log()
    let note = { @Sendable (event: String) in
        log.note("\(event) \(Thread.isMainThread)")
        if log.entries.count == 5 { loop.stop() }
    }
    Task { @MainActor in
        note("task")
        await Task.yield()
        note("task again")
    }
    Task.detached {
        await MainActor.run { note("actor") }
        OperationQueue.main.addOperation { note("operation") }
    }
    DispatchQueue.main.asyncAfter(deadline: .now() + 0.05) { note("later") }
    let result = loop.run(in: .tracking, for: 60, returnAfterSourceHandled: false)
    expect(result == .stopped, "all came: \(result)")
    let expected: Set = ["task true", "task again true", "actor true", "operation true", "later true"]
    expect(Set(log.entries) == expected, "\(log.entries)")
}

/// Foundation's main loop drains the main queue, on which a Dispatch source drives Rondo's main loop.
func embeddedInADispatchSource() {
    let loop = RunLoop.main
    let log = Log()
    guard let embedding = try? loop.embed(mode: .default) else { return expect(false, "it can be embedded") }
    let source = DispatchSource.makeReadSource(fileDescriptor: embedding.fileDescriptor, queue: .main)
    source.setEventHandler { embedding.turn() }
    source.activate()

    var ends: [Int32] = [-1, -1]
    expect(pipe(&ends) == 0, "a pipe")
    let (readEnd, writeEnd) = (ends[0], ends[1])
    let signalled = RunLoop.Source { log.note("signalled") }
    let descriptor = RunLoop.Source(fileDescriptor: readEnd, interest: .read) { _, _ in
        var byte: UInt8 = 0
        _ = read(readEnd, &byte, 1)
        log.note("descriptor")
    }
    loop.add(signalled, forMode: .default)
    loop.add(descriptor, forMode: .default)
    loop.add(
        Timer(timeInterval: 0.01, repeats: true) { timer in
            log.note("timer")
            if log.entries.count(where: { $0 == "timer" }) == 3 { timer.invalidate() }
        }, forMode: .default)
    Thread.detachNewThread {
        loop.perform { log.note("block") }
        signalled.signal()
        loop.wakeUp()
        var byte: UInt8 = 1
        _ = write(writeEnd, &byte, 1)
        DispatchQueue.main.async { log.note("queue") }
    }
    let limit = Date(timeIntervalSinceNow: 60)
    while log.entries.count < 7, limit.timeIntervalSinceNow > 0 {
        _ = Foundation.RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.1))
    }
    expect(
        log.entries.sorted() == ["block", "descriptor", "queue", "signalled", "timer", "timer", "timer"],
        "\(log.entries)")
    source.cancel()
    for source in [signalled, descriptor] { source.invalidate() }
    embedding.invalidate()
}

/// An embedded mode that becomes common serves the main queue from then on.
func embeddedModeBecomesCommon() {
    let loop = RunLoop.main
    let log = Log()
    let mode = RunLoop.Mode("late")
    guard let embedding = try? loop.embed(mode: mode) else { return expect(false, "it can be embedded") }
    let drive = { (wanted: Int) in
        var request = pollfd(fd: embedding.fileDescriptor, events: Int16(POLLIN), revents: 0)
        while log.entries.count < wanted, poll(&request, 1, 60_000) > 0 { embedding.turn() }
    }
    loop.perform(inModes: [mode]) { log.note("embedded") }
    drive(1)
    DispatchQueue.main.async { log.note("queue") }
    embedding.turn()
    expect(log.entries == ["embedded"], "not in a mode that is not common: \(log.entries)")
    loop.addCommonMode(mode)
    drive(2)
    Thread.detachNewThread { DispatchQueue.main.async { log.note("later") } }
    drive(3)
    expect(log.entries == ["embedded", "queue", "later"], "\(log.entries)")
    embedding.invalidate()
}

/// A drain of the main queue is a call-out.
func drainIsTraced() {
    let recorder = Recorder()
    RunLoop.instrument = recorder
    DispatchQueue.main.async {}
    _ = RunLoop.main.run(in: .default, for: 60, returnAfterSourceHandled: true)
    RunLoop.instrument = nil
    expect(recorder.drains == 1, "one drain, told once: \(recorder.drains)")
}

private final class Recorder: RunLoop.Instrument {
    private let count = Mutex(0)

    var drains: Int { count.withLock { $0 } }

    func runLoop(_ loop: RunLoop, did event: RunLoopEvent) {
        if event.kind == .mainQueue, loop === RunLoop.main, event.depth == 1 {
            count.withLock { $0 += 1 }
        }
    }
}

/// A notification observer with the main queue: a post on another thread waits for its block.
func observerWithTheMainQueue() {
    let loop = RunLoop.main
    let mine = RunLoop.Mode("mine")
    let log = Log()
    let name = Notification.Name("trap 10")
    let token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: .main) { _ in
        expect(Thread.isMainThread, "the block comes on the main thread")
        log.note("block in \(loop.currentMode?.rawValue ?? "none")")
    }
    loop.add(Port(), forMode: mine)
    let posts = Thread {
        log.note("posting")
        NotificationCenter.default.post(name: name, object: nil)
        log.note("posted")
        loop.perform(inModes: [.default]) { loop.stop() }
    }
    posts.start()
    while log.entries.isEmpty { sched_yield() }
    // In a private mode the main loop does not serve the main queue, and the posting thread waits.
    _ = loop.run(in: mine, for: 0.2, returnAfterSourceHandled: false)
    expect(log.entries == ["posting"], "the post waits: \(log.entries)")
    expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped, "the thread goes on")
    expect(
        log.entries == ["posting", "block in \(RunLoop.Mode.default.rawValue)", "posted"],
        "the block came in a common mode: \(log.entries)")
    NotificationCenter.default.removeObserver(token)
}

/// Deferred work is done before the main queue is drained, whose blocks may take any time.
func deferredWorkBeforeTheMainQueue() {
    let (loop, log) = (RunLoop.main, Log())
    // Work that is a millisecond old is done in any case.
    loop.setTimeSource(StandingClock())
    let ends = (0..<4).map { _ -> [Int32] in
        var ends: [Int32] = [-1, -1]
        expect(pipe(&ends) == 0, "a pipe")
        expect(write(ends[1], "x", 1) == 1, "a byte in it")
        return ends
    }
    for end in ends {
        let source = RunLoop.Source(fileDescriptor: end[0], interest: .read) { source, _ in
            log.note("call")
            source.invalidate()
            expect(loop.deferWork(Work(log, loop)), "work is deferred")
            if log.entries == ["call", "call"] { DispatchQueue.main.async { log.note("queue") } }
        }
        loop.add(source, forMode: .default)
    }
    let result = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
    expect(result == .stopped, "all was done: \(result)")
    let two = ["call", "call", "work", "work"]
    expect(log.entries == two + ["queue"] + two, "\(log.entries)")
    loop.setTimeSource(nil)
}

private final class Work: DeferredWork {
    private let log: Log
    private let loop: RunLoop

    init(_ log: Log, _ loop: RunLoop) { (self.log, self.loop) = (log, loop) }

    func performDeferredWork() -> Bool {
        log.note("work")
        if log.entries.count == 9 { loop.stop() }
        return false
    }
}

private final class StandingClock: LoopTimeSource {
    let now = LoopClock.systemNow

    func loopIsIdle(until instant: LoopInstant) -> Bool { false }
}

/// Three descriptors are ready together, and the callback of the first fills the queue. The runs return after each source,
/// as those of `run()` do, so each of them makes one pass.
func mainQueueBesideReadyDescriptors() {
    let loop = RunLoop.main
    let log = Log()
    let pipes = (0..<3).map { _ in
        var ends: [Int32] = [-1, -1]
        expect(pipe(&ends) == 0, "there is a pipe")
        return (read: ends[0], write: ends[1])
    }
    let sources = pipes.map { ends in
        let descriptor = ends.read
        return RunLoop.Source(fileDescriptor: descriptor, interest: .read) { _, _ in
            var byte: UInt8 = 0
            expect(read(descriptor, &byte, 1) == 1, "the byte is there")
            log.note("source")
            if log.entries.count == 1 { DispatchQueue.main.async { log.note("queue") } }
        }
    }
    for source in sources { loop.add(source, forMode: .default) }
    let fill = { for ends in pipes { expect(write(ends.write, "x", 1) == 1, "a byte is written") } }

    fill()
    while log.entries.count < 4 {
        guard loop.run(mode: .default, before: Date(timeIntervalSinceNow: 60)) else { break }
    }
    expect(log.entries == ["source", "queue", "source", "source"], "run by run: \(log.entries)")

    log.clear()
    fill()
    _ = loop.run(mode: .default, before: Date(timeIntervalSinceNow: 60))
    _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
    expect(log.entries == ["source", "queue", "source"], "a poll pass serves both: \(log.entries)")
    for source in sources { source.invalidate() }
    for ends in pipes {
        close(ends.read)
        close(ends.write)
    }
}

/// Without a run of the main loop, its description and recordings tell that the main queue waits.
func mainQueueWithoutARun() {
    let loop = RunLoop.main
    expect(!holdsBackTheMainQueue(loop), "the queue is empty")
    expect(!loop.debugDescription.contains("main queue"), loop.debugDescription)
    DispatchQueue.main.async {}
    expect(holdsBackTheMainQueue(loop), "its work waits")
    expect(
        loop.debugDescription.hasPrefix(
            "RunLoop of thread main, not running\n  the main queue waits for a common mode to run"),
        loop.debugDescription)
    let calls = [
        DeliveryObstacle.ofCall(waitingFor: OperationQueue.main),
        DeliveryObstacle.ofCall(waitingFor: DispatchQueue.main),
    ]
    for call in calls {
        expect(call.reason == .loopNeverRan, "\(call)")
        expect(
            call.description.hasPrefix("its call waits for the main queue, which the main run loop serves; "),
            "\(call)")
        expect(
            call.description.hasSuffix(
                " has never been run: run it, in one of the common modes, such as default"), "\(call)")
    }
    _ = loop.run(in: .default, for: 60, returnAfterSourceHandled: true)
    expect(!holdsBackTheMainQueue(loop), "it was done")
    expect(!loop.debugDescription.contains("main queue"), loop.debugDescription)
}

/// Work of the main queue does not wait where Dispatch has the main thread, also if the number of the queue's descriptor
/// stands for another file.
func mainQueueOfDispatch() {
    let loop = RunLoop.main
    DispatchQueue.main.async {
        // libdispatch closes the descriptor soon after the main thread has ended.
        while holdsBackTheMainQueue(loop) { _ = poll(nil, 0, 1) }
        DispatchQueue.main.async {}
        for _ in 0..<16 {
            var ends: [Int32] = [-1, -1]
            expect(pipe(&ends) == 0 && write(ends[1], "x", 1) == 1, "a pipe with a byte in it")
        }
        expect(!holdsBackTheMainQueue(loop), "other threads do the work")
        expectToWaitForOthers()
        expect(!loop.debugDescription.contains("main queue"), loop.debugDescription)
        print("given-away holds")
        exit(0)
    }
    expect(holdsBackTheMainQueue(loop), "until then it waits")
    dispatchMain()
}

/// Work of the main queue does not wait while Foundation's main loop runs, but for a run of ours in that loop's callback.
func mainQueueOfFoundation() {
    let loop = RunLoop.main
    DispatchQueue.main.async {
        DispatchQueue.main.async {
            print("foundation holds")
            exit(0)
        }
        expect(!holdsBackTheMainQueue(loop), "Foundation's loop does the work")
        expectToWaitForOthers()
        expect(!loop.debugDescription.contains("main queue"), loop.debugDescription)
        let mine = RunLoop.Mode("mine")
        loop.perform(inModes: [mine]) {
            expect(holdsBackTheMainQueue(loop), "it waits for the nested run")
            let call = DeliveryObstacle.ofCall(waitingFor: DispatchQueue.main)
            expect(call.reason == .runsInAnotherMode(mine), "\(call)")
            loop.stop()
        }
        _ = loop.run(in: mine, for: 60, returnAfterSourceHandled: false)
    }
    expect(holdsBackTheMainQueue(loop), "until then it waits")
    Foundation.RunLoop.main.run()
}

/// A call that waits for the main queue is not told to run the main loop, which does not serve it.
private func expectToWaitForOthers() {
    let call = DeliveryObstacle.ofCall(waitingFor: DispatchQueue.main)
    expect(call.description == "its call waits for the main queue, behind other work", "\(call)")
}

private func holdsBackTheMainQueue(_ loop: RunLoop) -> Bool {
    var members: [Any] = []
    return HeldBackEvent.all(of: loop, keeping: &members).contains { event in
        if case .mainQueue = event.kind { true } else { false }
    }
}

import Rondo
import RondoForeignPackage
import RondoMutex

// Bridge B: Rondo's main loop runs, and Foundation's runs while Rondo's sleeps.

func foundationRunsInASleep() {
    let loop = RunLoop.main
    loop.servesFoundation = true
    let log = Log()
    let ticker = MainActor.assumeIsolated { ForeignTicker() }
    MainActor.assumeIsolated { ticker.start(every: 0.01) { log.note("foreign") } }
    loop.add(Timer(timeInterval: 0.01, repeats: true) { _ in log.note("own") }, forMode: .default)
    runRondo { log.count(of: "foreign") >= 10 && log.count(of: "own") >= 10 }
    MainActor.assumeIsolated { ticker.stop() }

    // Another thread moves a timer to an earlier date.
    nonisolated(unsafe) let far = foundationTimer(after: 3600) { log.note("moved") }
    onAnotherThread {
        while !loop.isWaiting { sched_yield() }
        far.fireDate = Date()
    }
    runRondo { log.entries.contains("moved") }
    // A block does not wake Foundation's loop either, and is called in the next pass.
    onAnotherThread {
        Foundation.RunLoop.main.perform { log.note("performed") }
        DispatchQueue.main.async {}
    }
    runRondo { log.entries.contains("performed") }
    // Foundation's observers: its notification queue posts before it waits.
    let name = Notification.Name("BR-5")
    let token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { _ in
        log.note("posted")
    }
    Foundation.NotificationQueue.default.enqueue(Notification(name: name), postingStyle: .whenIdle)
    runRondo { log.entries.contains("posted") }
    NotificationCenter.default.removeObserver(token)
}

func eventsEndTheSleep() {
    let loop = RunLoop.main
    loop.servesFoundation = true
    foundationTimer(after: 3600) {}
    let log = Log()
    let pipe = WatchedPipe {
        log.note("descriptor")
        loop.stop()
    }
    loop.add(pipe.source, forMode: .default)
    let signalled = RunLoop.Source {
        log.note("signalled")
        loop.stop()
    }
    loop.add(signalled, forMode: .default)
    let kinds: [(String, @Sendable () -> Void)] = [
        ("descriptor", { pipe.write() }), ("signalled", { signalled.signalAndWakeUp() }),
        (
            "block",
            {
                loop.perform {
                    log.note("block")
                    loop.stop()
                }
            }
        ),
        (
            "timer",
            {
                let timer = Timer(timeInterval: 0.005, repeats: false) { _ in
                    log.note("timer")
                    loop.stop()
                }
                loop.add(timer, forMode: .default)
            }
        ), ("stop", { loop.stop() }),
    ]
    for (kind, make) in kinds {
        onAnotherThread {
            while !loop.isWaiting { sched_yield() }
            make()
        }
        let result = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
        expect(result == .stopped, "\(kind) ended the sleep: \(result)")
    }
    expect(log.entries == ["descriptor", "signalled", "block", "timer"], "\(log.entries)")
    // A timer of Rondo's, known before the sleep.
    loop.add(
        Timer(timeInterval: 0.01, repeats: false) { _ in
            log.note("own timer")
            loop.stop()
        }, forMode: .default)
    expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped, "\(log.entries)")
    expect(log.entries.last == "own timer", "\(log.entries)")
    expect(
        loop.run(in: .default, for: 0.02, returnAfterSourceHandled: false) == .timedOut, "the limit ends it")
}

func callbacksEndTheSleep() {
    let loop = RunLoop.main
    loop.servesFoundation = true
    let log = Log()
    let came: @Sendable (String) -> Void = { name in
        log.note(name)
        loop.stop()
    }
    let source = RunLoop.Source { came("signalled") }
    loop.add(source, forMode: .default)
    let changes: [(String, @Sendable () -> Void)] = [
        ("performed", { loop.perform { came("performed") } }),
        ("signalled", { source.signal() }),
        (
            "added",
            { loop.add(Timer(timeInterval: 0, repeats: false) { _ in came("added") }, forMode: .default) }
        ),
        (
            "pipe",
            {
                let pipe = WatchedPipe { came("pipe") }
                loop.add(pipe.source, forMode: .default)
                pipe.write()
            }
        ),
    ]
    for (name, change) in changes {
        foundationTimer(after: 0.01) { change() }
        // A single run with a single sleep: Foundation's timer does not end it.
        let result = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
        expect(result == .stopped && log.entries.last == name, "\(name): \(result) \(log.entries)")
    }
    foundationTimer(after: 0.01) { loop.stop() }
    expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped, "it can be stopped")
    source.invalidate()
}

func drainsAreCounted() {
    let loop = RunLoop.main
    loop.servesFoundation = true
    foundationTimer(after: 3600) {}
    let log = Log()
    onAnotherThread {
        while !loop.isWaiting { sched_yield() }
        DispatchQueue.main.async { log.note("queue") }
    }
    let result = loop.run(in: .default, for: 60, returnAfterSourceHandled: true)
    expect(
        result == .handledSource && log.entries == ["queue"], "a drain is a source: \(result) \(log.entries)")
    // Timers do not count: neither this loop's nor Foundation's.
    loop.add(Timer(timeInterval: 0.01, repeats: false) { _ in log.note("own") }, forMode: .default)
    foundationTimer(after: 0.02) { log.note("foreign") }
    let began = ContinuousClock.now
    expect(loop.run(mode: .default, before: Date(timeIntervalSinceNow: 0.2)), "it has run")
    expect(ContinuousClock.now - began >= .milliseconds(199), "timers have not ended it")
    // If the thread was delayed until the end of the run, they come in another one.
    runRondo { log.entries.count >= 3 }
    expect(log.entries.sorted() == ["foreign", "own", "queue"], "\(log.entries)")

    // Ten thousand blocks are called once each and in order, while this loop has events of its own; each run
    // returns after blocks.
    expectTenThousandBlocks(beside: loop) { runRondo(until: $0) }
    // A run that waits for one block returns after the block, whatever else happens at that moment.
    let pipe = WatchedPipe {}
    loop.add(pipe.source, forMode: .default)
    for round in 0..<300 {
        let isDone = Cell(false)
        onAnotherThread {
            pipe.write()
            DispatchQueue.main.async { isDone.withLock { $0 = true } }
            if round % 2 == 0 { loop.wakeUp() }
        }
        runRondo(slice: 60) { isDone.withLock { $0 } }
    }
}

func sleepsThatAreNotBorrowed() {
    let loop = RunLoop.main
    loop.servesFoundation = true
    let log = Log()
    let ticking = foundationTimer(after: 0.01, repeats: true) { log.note("foreign") }
    loop.add(Timer(timeInterval: 0.02, repeats: false) { _ in log.note("own") }, forMode: .tracking)
    expect(loop.run(in: .tracking, for: 0.1, returnAfterSourceHandled: false) == .timedOut, "tracking runs")
    expect(log.entries == ["own"], "in tracking Foundation's loop stands still: \(log.entries)")
    log.clear()
    // A block of the main queue ends the run, whichever loop drains the queue; first this loop does.
    for drainedBy in ["Rondo", "Foundation"] {
        let block: @Sendable () -> Void = {
            let empty = loop.run(in: .tracking, for: 60, returnAfterSourceHandled: false)
            expect(empty == .finished, "inside a block the queue does not count: \(empty)")
            log.clear()
            loop.add(Timer(timeInterval: 0.05, repeats: false) { _ in log.note("own") }, forMode: .default)
            let nested = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
            log.note("\(nested)")
        }
        if drainedBy == "Rondo" {
            DispatchQueue.main.async(execute: block)
        } else {
            onAnotherThread {
                while !loop.isWaiting { sched_yield() }
                DispatchQueue.main.async(execute: block)
            }
        }
        // Foundation's timer may fire after the block, before the run returns.
        runRondo { log.entries.contains("finished") }
        expect(
            log.entries.prefix(2) == ["own", "finished"],
            "drained by \(drainedBy), Foundation stands still: \(log.entries)")
        log.clear()
        runRondo { log.count(of: "foreign") > 2 }
        log.clear()
    }
    ticking.invalidate()
}

@_silgen_name("_dispatch_get_main_queue_handle_4CF") private func mainQueueDescriptor() -> Int32

func gateIsShut() {
    let loop = RunLoop.main
    loop.servesFoundation = true
    let log = Log()
    let pipe = WatchedPipe { log.note("descriptor") }
    loop.add(pipe.source, forMode: .default)
    // The gate exists after the first sleep.
    _ = loop.run(in: .default, for: 0.02, returnAfterSourceHandled: false)
    pipe.write()
    let mine = RunLoop.Mode("mine")
    loop.add(Timer(timeInterval: 0.2, repeats: false) { _ in }, forMode: mine)
    _ = loop.run(in: mine, for: 60, returnAfterSourceHandled: false)
    var request = pollfd(fd: mainQueueDescriptor(), events: Int16(POLLIN), revents: 0)
    expect(poll(&request, 1, 0) == 0, "a descriptor that stays ready has made no block of the main queue")
    runRondo { log.entries == ["descriptor"] }
}

/// Runs of either loop in callbacks of Foundation's loop, inside a sleep.
func runsInsideASleep() {
    let loop = RunLoop.main
    loop.servesFoundation = true
    let log = Log()
    let pipe = WatchedPipe { log.note("descriptor") }
    loop.add(pipe.source, forMode: .default)
    // This loop runs in a timer of Foundation's: it also sleeps in Foundation's loop there, and serves the
    // main queue.
    foundationTimer(after: 0.01) {
        foundationTimer(after: 0.01) { log.note("inner foreign") }
        DispatchQueue.main.async { log.note("queue") }
        loop.add(
            Timer(timeInterval: 0.05, repeats: false) { _ in
                log.note("own")
                loop.stop()
            }, forMode: .default)
        let result = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
        log.note("\(result)")
        onAnotherThread {
            // The byte is written in the sleep that continues after this callback.
            while !loop.isWaiting { sched_yield() }
            pipe.write()
        }
    }
    runRondo { log.entries.last == "descriptor" }
    expect(
        log.entries.sorted() == ["descriptor", "inner foreign", "own", "queue", "stopped"]
            && log.entries.suffix(2) == ["stopped", "descriptor"], "\(log.entries)")
    log.clear()
    // Foundation's loop runs in a timer of Foundation's: an event of this loop that came meanwhile ends the
    // sleep afterwards.
    let mayEnd = Cell(false)
    foundationTimer(after: 0.01) {
        onAnotherThread {
            pipe.write()
            // Leaves time for the gate to open. If the time is too short, the test shows less but does not
            // fail.
            usleep(50_000)
            DispatchQueue.main.async { mayEnd.withLock { $0 = true } }
        }
        runForeignLoop { mayEnd.withLock { $0 } }
        log.note("inner loop ended")
    }
    runRondo(slice: 60) { log.entries.last == "descriptor" }
    expect(log.entries == ["inner loop ended", "descriptor"], "\(log.entries)")
}

func sleepIsGivenBack() {
    let loop = RunLoop.main
    let log = Log()
    loop.servesFoundation = true
    let ticking = foundationTimer(after: 0.005, repeats: true) {
        log.note("foreign")
        if log.entries.count == 3 { RunLoop.main.servesFoundation = false }
    }
    runRondo { log.entries.count >= 3 }
    expect(
        loop.run(in: .default, for: 0.1, returnAfterSourceHandled: false) == .timedOut, "it goes on by itself"
    )
    expect(
        log.entries.count == 3 && !loop.servesFoundation, "the bridge has ended in a callback: \(log.entries)"
    )
    DispatchQueue.main.async { log.note("queue") }
    runRondo { log.entries.last == "queue" }
    loop.servesFoundation = true
    runRondo { log.count(of: "foreign") > 5 }
    ticking.invalidate()
    // A loop that never sleeps serves Foundation's at intervals.
    log.clear()
    foundationTimer(after: 0.01) { log.note("foreign") }
    let busy = RunLoop.Source {}
    loop.add(busy, forMode: .default)
    let observer = RunLoop.Observer(activities: .beforeSources) { _, _ in busy.signal() }
    loop.add(observer, forMode: .default)
    runRondo { log.entries == ["foreign"] }
}

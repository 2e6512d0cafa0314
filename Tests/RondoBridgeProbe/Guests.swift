import Rondo
import RondoForeignPackage
import RondoMutex

// Bridge A: Foundation's main loop runs, and serves a mode of Rondo's.

func guestIsServed() {
    let loop = RunLoop.main
    let log = Log()
    let pipe = WatchedPipe { log.note("descriptor") }
    let signalled = RunLoop.Source { log.note("signalled") }
    loop.add(pipe.source, forMode: .default)
    loop.add(signalled, forMode: .default)
    // Blocks in the mode before it becomes a guest, and in another mode.
    loop.perform { log.note("early") }
    loop.perform(inModes: [.tracking]) { log.note("tracking") }
    loop.hostInFoundation(mode: .default)
    loop.hostInFoundation(mode: .default)
    loop.add(
        Timer(timeInterval: 0.01, repeats: true) { timer in
            log.note("timer")
            if log.count(of: "timer") == 3 { timer.invalidate() }
        }, forMode: .default)
    let ticker = MainActor.assumeIsolated { ForeignTicker() }
    MainActor.assumeIsolated { ticker.start(every: 0.005) {} }
    onAnotherThread {
        loop.perform { log.note("block") }
        signalled.signalAndWakeUp()
        pipe.write()
    }
    runFoundation { log.entries.count >= 7 && MainActor.assumeIsolated { ticker.ticks } >= 3 }
    expect(
        log.entries.sorted() == ["block", "descriptor", "early", "signalled", "timer", "timer", "timer"],
        "\(log.entries)")
    // A block that this thread adds between two turns is served.
    foundationTimer(after: 0) { loop.perform { log.note("from Foundation") } }
    runFoundation { log.entries.last == "from Foundation" }

    loop.endFoundationBridge()
    loop.perform { log.note("late") }
    runForeignLoop { MainActor.assumeIsolated { ticker.ticks } > 50 }
    expect(!log.entries.contains("late"), "the bridge has ended")
    expect(!log.entries.contains("tracking"), "another mode is no guest")
    loop.hostInFoundation(mode: .tracking)
    runFoundation { log.entries.last == "tracking" }
}

func guestIsNotPolled() {
    let loop = RunLoop.main
    let log = Log()
    let observer = RunLoop.Observer(activities: [.entry, .beforeTimers]) { _, _ in log.note("pass") }
    loop.add(observer, forMode: .default)
    loop.add(Timer(timeInterval: 3600, repeats: false) { _ in }, forMode: .default)
    loop.hostInFoundation(mode: .default)
    foundationTimer(after: 3600) {}
    runForeignLoop { !log.entries.isEmpty }
    _ = Foundation.RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.1))
    log.clear()
    let began = processorTime
    let end = Date(timeIntervalSinceNow: 1)
    var returns = 0
    while end.timeIntervalSinceNow > 0 {
        _ = Foundation.RunLoop.main.run(mode: .default, before: end)
        returns += 1
    }
    expect(log.entries.isEmpty, "an idle guest is not turned: \(log.entries.count)")
    expect(returns <= 2, "nothing wakes Foundation's loop: \(returns)")
    print("an idle second took \(Int((processorTime - began) * 1e6)) µs of processor time")
}

func guestLeavesTheMainQueue() {
    let loop = RunLoop.main
    loop.hostInFoundation(mode: .default)
    let log = Log()
    // A callback in a turn: the main queue waits until the callback has returned.
    loop.perform {
        DispatchQueue.main.async { log.note("queue") }
        let result = loop.run(in: .default, for: 0.02, returnAfterSourceHandled: false)
        log.note("nested \(result)")
    }
    runFoundation { log.entries.count == 2 }
    expect(log.entries == ["nested finished", "queue"], "\(log.entries)")

    // Ten thousand blocks, while the guest has events all the time.
    expectTenThousandBlocks(beside: loop) { runFoundation(until: $0) }
}

func guestHasModesAndObservers() {
    let loop = RunLoop.main
    let log = Log()
    loop.hostInFoundation(mode: .default)
    let observer = RunLoop.Observer(activities: [.entry, .exit]) { _, activity in
        log.note(activity == .entry ? "entry" : "exit")
    }
    loop.add(observer, forMode: .default)
    for name in ["one", "two"] {
        loop.perform { log.note("\(name) in \(loop.currentMode?.rawValue ?? "no mode")") }
        runFoundation { log.count(of: "exit") >= 1 && log.entries.contains { $0.hasPrefix(name) } }
        expect(loop.currentMode == nil, "between turns it is in no mode")
    }
    let mode = RunLoop.Mode.default.rawValue
    let told = log.entries
    expect(told.first == "entry" && told.last == "exit", "\(told)")
    for name in ["one", "two"] {
        guard let index = told.firstIndex(of: "\(name) in \(mode)") else { return expect(false, "\(told)") }
        expect(
            told[index - 1] == "entry" && told[index + 1] == "exit", "each turn enters and leaves: \(told)")
    }
    expect(log.count(of: "entry") == log.count(of: "exit"), "\(told)")
}

/// `@unchecked Sendable`: it is used on the main thread only.
private struct MainThreadSource: @unchecked Sendable {
    let source: any DispatchSourceRead
}

/// A mode becomes a guest in a callback of a run of Rondo's loop.
func guestBeginsInARun() {
    let loop = RunLoop.main
    let log = Log()
    let watched = WatchedPipe { log.note("descriptor") }
    loop.add(watched.source, forMode: .default)
    expect(loop.run(in: .default, for: 0, returnAfterSourceHandled: false) == .timedOut, "it is watched")
    // Ready from now on, so that the guest's source comes to the main queue, which the run drains.
    watched.write()
    var ends: [Int32] = [-1, -1]
    var byte: UInt8 = 1
    expect(pipe(&ends) == 0, "there is a pipe")
    expect(write(ends[1], &byte, 1) == 1, "it takes a byte")
    // Always ready too, and behind the guest's source: its third event comes after the guest's first.
    let marker = MainThreadSource(
        source: DispatchSource.makeReadSource(fileDescriptor: ends[0], queue: .main))
    marker.source.setEventHandler {
        log.note("marker")
        if log.count(of: "marker") == 3 { loop.stop() }
    }
    loop.perform(inModes: [.tracking]) {
        loop.hostInFoundation(mode: .default)
        marker.source.activate()
    }
    let result = loop.run(in: .tracking, for: 60, returnAfterSourceHandled: false)
    marker.source.cancel()
    expect(result == .stopped && !log.entries.contains("descriptor"), "\(result) \(log.entries)")
    runFoundation { log.entries.last == "descriptor" }
}

/// Rondo's loop runs by itself while one of its modes is a guest: in that mode, and in another one.
func guestRunsByItself() {
    let loop = RunLoop.main
    let log = Log()
    loop.hostInFoundation(mode: .default)
    loop.add(
        Timer(timeInterval: 0.01, repeats: false) { _ in
            log.note("timer")
            DispatchQueue.main.async {
                log.note("queue")
                loop.stop()
            }
        }, forMode: .default)
    let result = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
    expect(
        result == .stopped && log.entries == ["timer", "queue"], "it runs as ever: \(result) \(log.entries)")
    // A timer is due in the guest while another mode runs: it waits, and the main queue is not flooded
    // meanwhile.
    let passes = Cell(0)
    let observer = RunLoop.Observer(activities: .beforeTimers) { _, _ in passes.withLock { $0 += 1 } }
    loop.add(observer, forMode: .tracking)
    loop.add(Timer(timeInterval: 0, repeats: false) { _ in log.note("guest") }, forMode: .default)
    let tracking = loop.run(in: .tracking, for: 0.3, returnAfterSourceHandled: false)
    expect(
        tracking == .timedOut && !log.entries.contains("guest"),
        "another mode serves nothing of it: \(log.entries)")
    expect(passes.withLock { $0 } < 20, "the loop slept: \(passes.withLock { $0 }) passes")
    runFoundation { log.entries.contains("guest") }
    // The same from a callback of Foundation's.
    foundationTimer(after: 0) {
        loop.perform {
            log.note("inside")
            loop.stop()
        }
        let result = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
        log.note("\(result)")
    }
    runFoundation { log.entries.suffix(2) == ["inside", "stopped"] }
    loop.perform { log.note("after") }
    runFoundation { log.entries.last == "after" }
}

import Rondo
import RondoForeignPackage
import RondoMutex

// Scenarios that apply to all bridges, and to none.

func otherLoopsStandStill() {
    let loop = RunLoop.main
    let mine = RunLoop.Mode("mine")
    for bridge in ["guest", "sleep", "polls"] {
        switch bridge {
        case "guest": loop.hostInFoundation(mode: .default)
        case "sleep": loop.servesFoundation = true
        default: loop.servesFoundation(in: [.default], atLeastEvery: 0.005)
        }
        let log = Log()
        let own = Timer(timeInterval: 0.01, repeats: true) { _ in log.note("own") }
        loop.add(own, forMode: .default)
        let foreign = foundationTimer(after: 0.01, repeats: true) { log.note("foreign") }
        // Foundation's loop runs in a mode of its own, in a callback of this loop.
        loop.perform {
            log.clear()
            foundationTimer(after: 0.1, mode: mine) { log.note("mine") }
            // A run that was held up until its end may serve nothing.
            while !log.entries.contains("mine") {
                _ = Foundation.RunLoop.main.run(mode: mine, before: Date(timeIntervalSinceNow: 0.15))
            }
            expect(log.entries == ["mine"], "\(bridge): this loop stands still: \(log.entries)")
            log.note("foundation done")
        }
        let runBoth = { (isDone: () -> Bool) in
            if bridge == "guest" { runFoundation(until: isDone) } else { runRondo(until: isDone) }
        }
        runBoth { log.entries.contains("foundation done") }
        // This loop runs in another mode, in a callback of Foundation's.
        foundationTimer(after: 0) {
            log.clear()
            loop.add(Timer(timeInterval: 0.1, repeats: false) { _ in log.note("mine") }, forMode: mine)
            let result = loop.run(in: mine, for: 60, returnAfterSourceHandled: false)
            expect(
                log.entries == ["mine"] && result == .finished,
                "\(bridge): Foundation's stands still: \(log.entries)")
            log.note("rondo done")
        }
        runBoth { log.entries.contains("rondo done") }
        log.clear()
        runBoth { log.count(of: "own") > 2 && log.count(of: "foreign") > 2 }
        own.invalidate()
        foreign.invalidate()
        loop.endFoundationBridge()
    }
}

func bridgesAreOff() {
    let loop = RunLoop.main
    let log = Log()
    let timer = foundationTimer(after: 0.005, repeats: true) { log.note("foreign") }
    _ = loop.run(in: .default, for: 0.05, returnAfterSourceHandled: false)
    expect(log.entries.isEmpty && !loop.servesFoundation, "no bridge at first: \(log.entries)")
    expect(!loop.debugDescription.contains("Foundation"), loop.debugDescription)
    loop.servesFoundation = true
    expect(
        loop.debugDescription.contains("lends its sleep in default to Foundation's run loop"),
        loop.debugDescription)
    loop.servesFoundation = true
    loop.servesFoundation = false
    loop.servesFoundation(in: [.default, .tracking], atLeastEvery: 0.25)
    expect(
        loop.debugDescription.contains("polls Foundation's run loop in default, tracking, every 0.25 s"),
        loop.debugDescription)
    expect(!loop.servesFoundation, "that is the other one")
    loop.endFoundationBridge()
    loop.endFoundationBridge()
    loop.hostInFoundation(mode: .default)
    expect(loop.debugDescription.contains("guest of Foundation's run loop in default"), loop.debugDescription)
    loop.endFoundationBridge()
    expect(!loop.debugDescription.contains("Foundation"), loop.debugDescription)
    _ = loop.run(in: .default, for: 0.05, returnAfterSourceHandled: false)
    expect(log.entries.isEmpty, "and none again: \(log.entries)")
    timer.invalidate()
}

/// Bridges that begin and end leave no descriptor.
func bridgesLeaveNothing() {
    let loop = RunLoop.main
    func descriptors() -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
    }
    func once() {
        loop.servesFoundation = true
        _ = loop.run(in: .default, for: 0.001, returnAfterSourceHandled: false)
        loop.servesFoundation = false
        loop.servesFoundation(in: [.default], atLeastEvery: 0.001)
        _ = loop.run(in: .default, for: 0.001, returnAfterSourceHandled: false)
        loop.endFoundationBridge()
        loop.hostInFoundation(mode: .default)
        loop.perform {}
        _ = Foundation.RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.001))
        loop.endFoundationBridge()
    }
    for _ in 0..<5 { once() }
    let before = descriptors()
    for _ in 0..<100 { once() }
    // Dispatch releases a source on its own threads, and closes its descriptor on the main queue.
    runRondo { descriptors() <= before + 3 }
}

/// Ends the program with a message.
func twoBridges() {
    RunLoop.main.servesFoundation = true
    RunLoop.main.hostInFoundation(mode: .default)
}

func withoutABridge() {
    let loop = RunLoop.main
    let log = Log()
    let ticker = MainActor.assumeIsolated { ForeignTicker() }
    MainActor.assumeIsolated { ticker.start(every: 0.001) { log.note("foreign") } }
    expect(loop.run(in: .default, for: 0.1, returnAfterSourceHandled: false) == .timedOut, "it runs")
    expect(log.entries.isEmpty, "Foundation's timer waits in vain: \(log.entries)")
    expect(
        !loop.debugDescription.contains("timer"),
        "and Rondo's loop does not know it: \(loop.debugDescription)")
}

/// The bridge is requested while no descriptor is left, and works once there are some.
func withoutDescriptors(_ bridge: () -> Void) {
    let loop = RunLoop.main
    let log = Log()
    _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
    foundationTimer(after: 0.01, repeats: true) { log.note("foreign") }
    _ = Foundation.RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.05))
    var limit = rlimit(rlim_cur: 64, rlim_max: 1024)
    expect(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, "there are few descriptors")
    var taken: [Int32] = []
    while case let descriptor = dup(0), descriptor >= 0 { taken.append(descriptor) }
    bridge()
    loop.perform { log.note("own") }
    let isGuest = !loop.servesFoundation
    if isGuest {
        _ = Foundation.RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.05))
        expect(!log.entries.contains("own"), "a guest waits: \(log.entries)")
    } else {
        log.clear()
        runRondo { log.count(of: "foreign") > 3 }
        expect(log.entries.contains("own"), "\(log.entries)")
    }
    for descriptor in taken { close(descriptor) }
    log.clear()
    loop.perform { log.note("own") }
    if isGuest {
        runFoundation { log.count(of: "own") >= 1 }
    } else {
        runRondo { log.count(of: "foreign") > 3 && log.count(of: "own") == 1 }
    }
}

// MARK: - Figures

/// Measures the wake-up of a sleeping loop by a pipe, a timer, and an idle second.
func figures() {
    let loop = RunLoop.main
    let rounds = 1_000
    let done = Cell(0)
    let written = Cell(ContinuousClock.now)
    let late = Cell([Double]())
    let pipe = WatchedPipe {
        let seconds = (ContinuousClock.now - written.withLock { $0 }) / .seconds(1)
        late.withLock { $0.append(seconds) }
        done.withLock { $0 += 1 }
    }
    loop.add(pipe.source, forMode: .default)
    foundationTimer(after: 3600) {}
    func measure(_ name: String, _ run: @escaping (() -> Bool) -> Void) {
        run { true }
        late.withLock { $0 = [] }
        done.withLock { $0 = 0 }
        var cpu = processorTime
        onAnotherThread {
            for round in 1...rounds {
                usleep(300)
                written.withLock { $0 = .now }
                pipe.write()
                while done.withLock({ $0 }) < round { usleep(50) }
            }
        }
        run { done.withLock { $0 } >= rounds }
        let median = late.withLock { $0.sorted()[$0.count / 2] }
        let each = Int((processorTime - cpu) / Double(rounds) * 1e6)
        print(
            "\(name): an event \(Int(median * 1e6)) µs late, with \(each) µs of processor time, the sender's too"
        )
        cpu = processorTime
        let fired = Cell(0)
        let timer = Timer(timeInterval: 0.002, repeats: true) { _ in fired.withLock { $0 += 1 } }
        loop.add(timer, forMode: .default)
        run { fired.withLock { $0 } >= 500 }
        timer.invalidate()
        print("\(name): a timer \(Int((processorTime - cpu) / 500 * 1e6)) µs of processor time")
        cpu = processorTime
        let end = Date(timeIntervalSinceNow: 5)
        run { end.timeIntervalSinceNow <= 0 }
        print("\(name): an idle second \(Int((processorTime - cpu) / 5 * 1e6)) µs of processor time")
    }
    measure("no bridge", runRondo)
    loop.servesFoundation = true
    measure("sleep", runRondo)
    loop.servesFoundation = false
    loop.servesFoundation(in: [.default])
    measure("polls", runRondo)
    loop.endFoundationBridge()
    loop.hostInFoundation(mode: .default)
    measure("guest", runFoundation)
}

private func runRondo(until isDone: () -> Bool) { runRondo(.default, slice: 1, until: isDone) }

import Rondo
import RondoMutex

typealias Scenario = @Sendable ([String]) -> Void

let scenarios: [String: Scenario] = [
    "RL-2": { _ in mainLoopIsOne() }, "RL-3": { _ in mainLoopDoesNotRunByItself() },
    "RL-14": { _ in mainLoopIsNeverEmpty() }, "RL-45": { _ in stoppedInItsFirstLook() },
    "RL-58": { _ in mainQueueSkipsTheWait() },
    "RL-59": { _ in mainQueueIsDrainedByTheMainLoopOnly() }, "TH-1": mainThreadWithoutARun,
    "TH-3": scheduledOnTheMainLoop, "UC-61": synchronousOnTheMainThread, "UC-63": asynchronousToTheMainQueue,
    "US-18": sessionOnTheMainQueue, "TM-29": { _ in wallClockIsSet() },
    "nested": { _ in mainQueueAfterANestedRun() },
    "joined": { _ in mainQueueInAModeThatBecomesCommon() }, "served": { _ in mainActorAndOperations() },
    "embedded": { _ in embeddedInADispatchSource() }, "late": { _ in embeddedModeBecomesCommon() },
    "trap-10": { _ in observerWithTheMainQueue() }, "traced": { _ in drainIsTraced() },
    "full": { _ in mainQueueWithoutADescriptorLeft() }, "RL-52": { _ in deferredWorkBeforeTheMainQueue() },
    "forked": goesOnInAChild, "unasked": { _ in mainLoopIsCurrentUnasked() },
    "US-25": nestedRunOfASessionOnTheMainLoop, "turns": { _ in mainQueueBesideReadyDescriptors() },
    "unserved": { _ in mainQueueWithoutARun() }, "given-away": { _ in mainQueueOfDispatch() },
    "foundation": { _ in mainQueueOfFoundation() }, "killed": { _ in raise(SIGKILL) },
    "left": { _ in scheduledAndLeft() },
]

/// As servers do that leave their terminal: the parent ends at once, and the child has only the thread that forked.
///
/// - Parameter arguments: The name of the recording.
private func goesOnInAChild(_ arguments: [String]) {
    let isRecording = {
        (0..<64).contains { number in
            let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")
            return arguments.contains { path?.hasSuffix($0) ?? false }
        }
    }
    expect(isRecording(), "the parent has the recording open")
    expect(daemon(1, 1) == 0, "there is a child")
    // Should it not end by itself.
    alarm(60)
    expect(!isRecording(), "the child has not")
}

/// The commonest mistake.
private func scheduledAndLeft() {
    let loop = RunLoop.main
    let timer = Timer(timeInterval: 0.01, repeats: true) { _ in }
    timer.label = "tick"
    for mode in [RunLoop.Mode.default, .default, .common] { loop.add(timer, forMode: mode) }
    loop.add(RunLoop.Source {}, forMode: .default)
    loop.perform {}
}

// MARK: - The loop

private func mainLoopIsOne() {
    // Another thread asks for the main loop before this one has asked.
    let elsewhere = onAnotherThread { (RunLoop.main, RunLoop.current) }
    expect(elsewhere.0 === RunLoop.current, "RunLoop.main is the main thread's current loop")
    expect(RunLoop.main === RunLoop.current, "and so it is here")
    expect(elsewhere.1 !== RunLoop.main, "another thread has another one")
}

/// A program that names its loop only as `RunLoop.main` runs it again in the callback of a descriptor.
private func mainLoopIsCurrentUnasked() {
    let loop = RunLoop.main
    let log = Log()
    let mine = RunLoop.Mode("mine")
    var ends: [Int32] = [-1, -1]
    expect(pipe(&ends) == 0, "there is a pipe")
    expect(write(ends[1], "x", 1) == 1, "there is a byte in it")
    let source = RunLoop.Source(fileDescriptor: ends[0], interest: .read) { source, _ in
        loop.perform(inModes: [mine]) { log.note("nested \(RunLoop.servesInOuterRun)") }
        _ = loop.run(in: mine, for: 0, returnAfterSourceHandled: false)
        source.invalidate()
    }
    loop.add(source, forMode: mine)
    _ = loop.run(in: mine, for: 0, returnAfterSourceHandled: false)
    expect(log.entries == ["nested true"], "the loop knows the source on the stack: \(log.entries)")
}

private func mainLoopDoesNotRunByItself() {
    let log = Log()
    onAnotherThread {
        RunLoop.main.perform { log.note("block") }
        RunLoop.main.wakeUp()
        // Time in which the main loop could run, if anything ran it; too little lets a broken behaviour pass, and a right
        // one never fails by it.
        usleep(200_000)
    }
    expect(log.entries == [], "the main loop was not run: \(log.entries)")
    expect(RunLoop.main.currentMode == nil, "it is in no mode")
    _ = RunLoop.main.run(in: .default, for: 0, returnAfterSourceHandled: false)
    expect(log.entries == ["block"], "now it was run: \(log.entries)")
}

private func mainLoopIsNeverEmpty() {
    let loop = RunLoop.main
    let mine = RunLoop.Mode("mine")
    for mode in [RunLoop.Mode.default, .tracking] {
        let result = loop.run(in: mode, for: 0.02, returnAfterSourceHandled: false)
        expect(result == .timedOut, "\(mode.rawValue) is not empty: \(result)")
    }
    expect(loop.run(in: mine, for: 60, returnAfterSourceHandled: false) == .finished, "mine is not common")
    loop.addCommonMode(mine)
    expect(loop.run(in: mine, for: 0.02, returnAfterSourceHandled: false) == .timedOut, "now mine is common")
    expect(loop.run(mode: .default, before: Date(timeIntervalSinceNow: 0.02)), "run(mode:before:) can start")
    let elsewhere = onAnotherThread {
        RunLoop.current.run(in: .default, for: 60, returnAfterSourceHandled: false)
    }
    expect(elsewhere == .finished, "elsewhere the queue does not count: \(elsewhere)")
}

/// In each of its modes the main loop begins to watch the main queue when it first looks: a thread that stops it at that moment
/// is heard. The stop comes a little later in each round, so that some hit the moment.
private func stoppedInItsFirstLook() {
    let loop = RunLoop.main
    let round = Mutex(0)
    // Each mode has a descriptor.
    let rounds = 600
    Thread.detachNewThread {
        for number in 1...rounds {
            spin { round.withLock { $0 } == number }
            // The loop runs from here on: a stop that came before would not count.
            spin { loop.currentMode != nil }
            for _ in 0..<(number % 60) { _ = loop.isWaiting }
            loop.stop()
        }
    }
    for number in 1...rounds {
        let mode = RunLoop.Mode("fresh \(number)")
        loop.addCommonMode(mode)
        round.withLock { $0 = number }
        let result = loop.run(in: mode, for: 20, returnAfterSourceHandled: false)
        expect(result == .stopped, "round \(number): \(result)")
    }
}

/// Waits for another thread without a sleep, which would end too late, but not for longer than that has a processor.
private func spin(until isSo: () -> Bool) {
    var looks = 0
    while !isSo() {
        looks += 1
        if looks > 10_000 { _ = poll(nil, 0, 1) }
    }
}

private func mainQueueSkipsTheWait() {
    let loop = RunLoop.main
    let log = Log()
    let observer = RunLoop.Observer(activities: [.beforeSources, .beforeWaiting, .afterWaiting]) {
        _, activity in
        switch activity {
        case .beforeSources: log.note("pass")
        case .beforeWaiting: log.note("before waiting")
        default: log.note("after waiting")
        }
    }
    loop.add(observer, forMode: .default)
    // In the first pass of an activation the queue is served after the sleep.
    DispatchQueue.main.async {
        log.note("queue")
        loop.stop()
    }
    expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped, "first run")
    expect(log.entries == ["pass", "before waiting", "after waiting", "queue"], "first: \(log.entries)")
    log.clear()
    // From the second pass on it is served first, unless the previous pass has drained it.
    loop.add(
        Timer(timeInterval: 0.01, repeats: false) { _ in
            log.note("timer")
            DispatchQueue.main.async {
                log.note("queue")
                loop.stop()
            }
        }, forMode: .default)
    expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped, "second run")
    let expected = ["pass", "before waiting", "after waiting", "timer", "pass", "queue"]
    expect(log.entries == expected, "second: \(log.entries)")
    observer.invalidate()
}

/// Descriptors run out after the loop has begun to run, and before it checks the main queue.
private func mainQueueWithoutADescriptorLeft() {
    let loop = RunLoop.main
    var ends: [Int32] = [-1, -1]
    expect(pipe(&ends) == 0, "there is a pipe")
    let source = RunLoop.Source(fileDescriptor: ends[0], interest: .read) { _, _ in }
    loop.add(source, forMode: .default)
    _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
    var limit = rlimit(rlim_cur: 64, rlim_max: 64)
    expect(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, "there are few descriptors")
    while dup(0) != -1 {}
    source.invalidate()

    mainQueueSkipsTheWait()
    let log = Log()
    DispatchQueue.main.async { log.note("queue") }
    _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
    expect(log.entries == ["queue"], "a poll pass: \(log.entries)")
}

private func mainQueueIsDrainedByTheMainLoopOnly() {
    let loop = RunLoop.main
    let log = Log()
    let mine = RunLoop.Mode("mine")
    loop.add(Port(), forMode: mine)
    DispatchQueue.main.async { log.note("block") }
    _ = loop.run(in: mine, for: 0.1, returnAfterSourceHandled: false)
    expect(log.entries == [], "a mode that is not common drains nothing: \(log.entries)")
    onAnotherThread {
        RunLoop.current.add(Port(), forMode: .default)
        _ = RunLoop.current.run(in: .default, for: 0.1, returnAfterSourceHandled: false)
    }
    expect(log.entries == [], "another thread's loop drains nothing: \(log.entries)")
    _ = loop.run(in: .tracking, for: 0.1, returnAfterSourceHandled: true)
    expect(log.entries == ["block"], "a common mode drains: \(log.entries)")
    log.clear()

    DispatchQueue.main.async {
        log.note("outer")
        DispatchQueue.main.async { log.note("second") }
        let result = loop.run(in: .default, for: 0.1, returnAfterSourceHandled: false)
        log.note("nested \(result)")
    }
    while log.entries.last != "second" {
        guard loop.run(mode: .default, before: Date(timeIntervalSinceNow: 60)) else { break }
    }
    expect(log.entries == ["outer", "nested finished", "second"], "nested: \(log.entries)")
    log.clear()

    Task { @MainActor in log.note("main actor \(Thread.isMainThread)") }
    OperationQueue.main.addOperation { log.note("operation \(Thread.isMainThread)") }
    while log.entries.count < 2 {
        guard loop.run(mode: .default, before: Date(timeIntervalSinceNow: 60)) else { break }
    }
    expect(Set(log.entries) == ["main actor true", "operation true"], "\(log.entries)")
}

// MARK: - Connections

private func mainThreadWithoutARun(_ arguments: [String]) {
    let log = Log()
    _ = URLConnection(request: request(arguments), delegate: Delegate(log))
    // The thread is alive, but does not run its loop. Time in which a callback could come, if any came; too little of it
    // lets a broken behaviour pass, and a right one never fails by it.
    usleep(300_000)
    expect(log.entries == [], "no callback without a run: \(log.entries)")
    runMainLoop(until: { log.isDone })
    expect(log.entries == ["response default", "data default", "finish default"], "with one: \(log.entries)")
}

private func scheduledOnTheMainLoop(_ arguments: [String]) {
    let log = Log()
    let url = request(arguments)
    onAnotherThread {
        let connection = URLConnection(request: url, delegate: Delegate(log), startImmediately: false)
        connection?.schedule(in: .main, forMode: .tracking)
        connection?.start()
    }
    _ = RunLoop.main.run(in: .default, for: 0.3, returnAfterSourceHandled: false)
    expect(log.entries == [], "not in another mode: \(log.entries)")
    runMainLoop(.tracking, until: { log.isDone })
    expect(log.entries == ["response tracking", "data tracking", "finish tracking"], "\(log.entries)")
}

private func synchronousOnTheMainThread(_ arguments: [String]) {
    let log = Log()
    DispatchQueue.main.async { log.note("main queue") }
    RunLoop.main.add(Timer(timeInterval: 0, repeats: false) { _ in log.note("timer") }, forMode: .common)
    let data = try? URLConnection.sendSynchronousRequest(request(arguments), returning: nil)
    expect(data?.isEmpty == false, "it loads on a main thread whose loop never ran")
    expect(log.entries == [], "meanwhile nothing of the main loop was served: \(log.entries)")
}

private func asynchronousToTheMainQueue(_ arguments: [String]) {
    let log = Log()
    URLConnection.sendAsynchronousRequest(request(arguments), queue: .main) { _, data, _ in
        log.note("handler \(Thread.isMainThread) \(data?.isEmpty == false)")
    }
    // The handler waits for the main queue, and so for the main loop.
    spin { OperationQueue.main.operationCount == 1 }
    expect(log.entries == [], "not before the main loop runs: \(log.entries)")
    runMainLoop(until: { !log.entries.isEmpty })
    expect(log.entries == ["handler true true"], "\(log.entries)")
}

/// The calls of a session with the main queue.
private func sessionOnTheMainQueue(_ arguments: [String]) {
    let log = Log()
    let mine = RunLoop.Mode("mine")
    let note = { @Sendable (call: String) in
        log.note("\(call) \(Thread.isMainThread) \(RunLoop.main.currentMode == .tracking)")
    }
    let session = URLSession(configuration: .default, delegate: nil, delegateQueue: .main)
    session.dataTask(with: request(arguments)) { data, _, _ in note("handler \(data?.isEmpty == false)") }
        .resume()
    session.getAllTasks { _ in note("list") }
    // In a mode that is not common they wait, however often it is run.
    let port = Port()
    RunLoop.main.add(port, forMode: mine)
    _ = RunLoop.main.run(in: mine, for: 0.3, returnAfterSourceHandled: false)
    port.invalidate()
    expect(log.entries == [], "not in a mode that is not common: \(log.entries)")
    while log.entries.count < 2 {
        _ = RunLoop.main.run(in: .tracking, for: 0.05, returnAfterSourceHandled: true)
    }
    expect(log.entries.sorted() == ["handler true true true", "list true true"], "\(log.entries)")
    session.finishTasksAndInvalidate()
}

/// A handler begins another task to the same server, and runs the loop until it is done. The program names its loop
/// only as `RunLoop.main`.
private func nestedRunOfASessionOnTheMainLoop(_ arguments: [String]) {
    let log = Log()
    var get = request(arguments)
    get.timeoutInterval = 20
    let session = URLSession(configuration: .ephemeral, delegate: nil, runLoop: .main)
    session.dataTask(with: get) { [get] _, _, _ in
        session.dataTask(with: get) { data, _, error in
            log.note("second \(data?.isEmpty == false), error: \(error != nil)")
        }.resume()
        runMainLoop(until: { !log.entries.isEmpty })
        log.note("first")
    }.resume()
    runMainLoop(until: { log.entries.contains("first") })
    expect(log.entries == ["second true, error: false", "first"], "\(log.entries)")
    session.finishTasksAndInvalidate()
}

/// Records each call with the main loop's mode, and whether it was made on the main thread.
private final class Delegate: NSObject, URLConnectionDataDelegate, Sendable {
    private let log: Log

    init(_ log: Log) {
        self.log = log
    }

    private func note(_ call: String) {
        let modes: [RunLoop.Mode: String] = [.default: "default", .tracking: "tracking"]
        let mode = RunLoop.main.currentMode.flatMap { modes[$0] } ?? "no mode"
        let text = Thread.isMainThread ? "\(call) \(mode)" : "\(call) on another thread"
        if log.entries.last != text { log.note(text) }
    }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) { note("response") }
    func connection(_ connection: URLConnection, didReceive data: Data) { note("data") }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        note("finish")
        log.isDone = true
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        note("fail \(error)")
        log.isDone = true
    }
}

// MARK: - Help

final class Log: Sendable {
    private let state = Mutex((entries: [String](), isDone: false))

    var entries: [String] { state.withLock { $0.entries } }
    var isDone: Bool {
        get { state.withLock { $0.isDone } }
        set { state.withLock { $0.isDone = newValue } }
    }

    func note(_ entry: String) { state.withLock { $0.entries.append(entry) } }
    func clear() { state.withLock { $0.entries = [] } }
}

func expect(_ condition: Bool, _ message: String, line: Int = #line) {
    if condition { return }
    print("line \(line): not so: \(message)")
    exit(1)
}

private func request(_ arguments: [String]) -> URLRequest {
    guard let url = arguments.first.flatMap({ URL(string: $0) }) else {
        print("a URL is missing")
        exit(2)
    }
    return URLRequest(url: url)
}

private func runMainLoop(_ mode: RunLoop.Mode = .default, until condition: () -> Bool) {
    let limit = Date(timeIntervalSinceNow: 60)
    while !condition() {
        guard limit.timeIntervalSinceNow > 0, RunLoop.main.run(mode: mode, before: limit) else { return }
    }
}

@discardableResult
func onAnotherThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) -> Value {
    let result = Result<Value>()
    Thread.detachNewThread {
        result.value.withLock { $0 = body() }
        result.done.signal()
    }
    result.done.wait()
    guard let value = result.value.withLock({ $0 }) else { fatalError("the thread left nothing") }
    return value
}

private final class Result<Value: Sendable>: Sendable {
    let value = Mutex<Value?>(nil)
    let done = DispatchSemaphore(value: 0)
}

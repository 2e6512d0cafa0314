import Rondo
import RondoMutex

typealias Scenario = @Sendable ([String]) -> Void

let scenarios: [String: Scenario] = [
    "waits": { _ in waitingServesTheLoop() }, "notifies": { _ in theNotificationIsPosted() },
    "semaphore": { _ in aHandlerAndASemaphore() }, "foreign": { _ in childrenOfOthers() },
    "parent": { _ in parentOfOneThatDiesWithIt() }, "many": { _ in manyInTurn() }, "stress": stress,
]

func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
    guard !holds else { return }
    print("broken: \(what())")
    exit(1)
}

private func shell(_ script: String) -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", script]
    return process
}

private func start(_ process: Process) {
    do { try process.run() } catch { expect(false, "it is started: \(error)") }
}

/// Trap 3: during Foundation's `waitUntilExit` Rondo's timers and the main queue stand still.
private func waitingServesTheLoop() {
    let pipe = Pipe()
    let process = shell("cat")
    process.standardInput = pipe
    let served = Mutex<[String]>([])
    let timer = Timer.scheduledTimer(withTimeInterval: 0.01, repeats: true) { _ in
        let count = served.withLock { served in
            served.append("timer")
            return served.count { $0 == "timer" }
        }
        // The child ends only if the timer fires.
        if count == 5 { try? pipe.fileHandleForWriting.close() }
    }
    DispatchQueue.main.async { served.withLock { $0.append("main queue") } }
    start(process)
    process.waitUntilExit()
    timer.invalidate()
    expect(served.withLock { $0.count { $0 == "timer" } } >= 5, "timers fire meanwhile")
    expect(served.withLock { $0.contains("main queue") }, "the main queue is served meanwhile")
    expect(process.terminationStatus == 0, "the child has ended")
}

/// Trap 4: Foundation never posts the notification.
private func theNotificationIsPosted() {
    let process = shell("exit 3")
    let status = Mutex<Int32?>(nil)
    let observer = NotificationCenter.default.addObserver(
        forName: Process.didTerminateNotification, object: process, queue: nil
    ) { note in
        status.withLock { $0 = (note.object as? Process)?.terminationStatus }
        expect(Thread.isMainThread, "it comes on the thread that has started the process")
    }
    start(process)
    while status.withLock({ $0 }) == nil {
        expect(
            RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 30)),
            "the mode has something to wait for")
    }
    expect(status.withLock { $0 } == 3, "the notification names the process")
    NotificationCenter.default.removeObserver(observer)
}

/// A common workaround: the main thread waits for the handler with a semaphore.
private func aHandlerAndASemaphore() {
    let ended = DispatchSemaphore(value: 0)
    let process = shell("exit 0")
    process.terminationHandler = { _ in ended.signal() }
    start(process)
    expect(ended.wait(timeout: .now() + 30) == .success, "the handler is called without a loop")
    expect(!process.isRunning, "the process has ended")
}

/// The program has children from other interfaces, and its own handler for SIGCHLD.
private func childrenOfOthers() {
    signal(SIGCHLD) { _ in
        // A signal handler may only make system calls; the test is that it stays installed.
        _ = getpid()
    }
    var old = sigaction()
    sigaction(SIGCHLD, nil, &old)
    var words = [strdup("/bin/true"), nil]
    var foreign = pid_t()
    expect(posix_spawn(&foreign, "/bin/true", nil, nil, &words, environ) == 0, "a child of another library")
    for _ in 0..<20 {
        let process = shell("exit 0")
        start(process)
        process.waitUntilExit()
        expect(process.terminationStatus == 0, "its own children are collected")
    }
    var now = sigaction()
    sigaction(SIGCHLD, nil, &now)
    expect(
        unsafeBitCast(now.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(old.__sigaction_handler.sa_handler, to: Int.self), "the handler stays installed")
    var status: Int32 = -1
    expect(waitpid(foreign, &status, 0) == foreign && status == 0, "the other child was left to its parent")

    // A thread collects every child that it finds: then statuses are lost, but nothing hangs.
    let isThere = DispatchSemaphore(value: 0)
    let collector = Thread {
        for _ in 0..<50 {
            isThere.wait()
            var status: Int32 = 0
            // Wait until there is a child that has ended, or no child at all.
            _ = waitpid(-1, &status, 0)
        }
    }
    collector.start()
    for _ in 0..<50 {
        let process = shell("exit 0")
        start(process)
        isThere.signal()
        process.waitUntilExit()
        expect(
            [0, 255].contains(process.terminationStatus), "the status is the right one, or said to be unknown"
        )
    }

    // If the program ignores SIGCHLD, the kernel keeps no status.
    signal(SIGCHLD, SIG_IGN)
    let process = shell("exit 0")
    start(process)
    process.waitUntilExit()
    expect(process.terminationStatus == 255, "the end is told, its status is unknown")
}

/// Prints the number of a child that dies with this process, and waits to be killed.
private func parentOfOneThatDiesWithIt() {
    let number = Mutex<Int32?>(nil)
    let task = Mutex("")
    let isStarted = DispatchSemaphore(value: 0)
    let thread = Thread {
        // "process/task/thread"
        task.withLock {
            $0 = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")) ?? ""
        }
        // The child never ends by itself, nor with the process group of this process.
        var configuration = Child.Configuration("tail", ["-f", "/dev/null"])
        configuration.standardInput = .none
        configuration.group = .own
        configuration.diesWithParent = true
        do {
            let child = try Child.spawn(configuration)
            number.withLock { $0 = child.processIdentifier }
            kept.withLock { $0 = child }
        } catch {
            expect(false, "it is started: \(error)")
        }
        isStarted.signal()
    }
    thread.start()
    isStarted.wait()
    // The thread that has requested the child ends, and the child must not.
    let own = "/proc/\(task.withLock { $0 })"
    while access(own, F_OK) == 0 { sched_yield() }
    expect(number.withLock { $0.map { kill($0, 0) == 0 } } ?? false, "the child outlives that thread")
    FileHandle.standardOutput.write(Data("child \(number.withLock { $0 } ?? 0)\n".utf8))
    _ = readLine()
    kill(getpid(), SIGKILL)
}

private let kept = Mutex<Child?>(nil)

/// Runs short children one after the other on the main loop: no descriptor and no child is left.
private func manyInTurn() {
    let before = openDescriptors()
    for index in 0..<300 {
        let process = shell("exit \(index % 3)")
        start(process)
        process.waitUntilExit()
        expect(process.terminationStatus == Int32(index % 3), "each has its own status")
    }
    // The objects that are made with the first child remain: those of the background loop and of this loop.
    expect(openDescriptors() - before < 12, "descriptors: \(before), then \(openDescriptors())")
    expect(waitpid(-1, nil, WNOHANG) == -1 && errno == ECHILD, "no child is left")
}

func openDescriptors() -> Int {
    (0..<1_024).count { fcntl(Int32($0), F_GETFD) != -1 }
}

import Rondo

extension Experiment {
    static let runCannotBeStopped = Experiment(
        "run-cannot-be-stopped", title: "run() cannot be stopped, and does not even begin without a port",
        question: """
            A worker adds a port to its loop and calls run(). Another thread calls stop() on that loop three times. When does \
            run() return?
            """,
        choices: ["After the first stop", "After the third", "When the port is taken out", "Never"],
        answer: 2,
        why: """
            run() is a loop around run(mode:before:), and begins again as long as that finds anything in the default \
            mode. A stop ends one round. Only an empty mode ends run(): with the port gone it returns, and a thread that \
            never added one gets through run() at once. To be able to stop, run the loop by run(in:for:…), or use a \
            RunLoopThread.
            """,
        rules: ["RL-35", "RL-12", "TH-7", "TH-8"], body: runCannotBeStoppedCode
    ) { evidence in
        let runs = evidence.activations(loop: "worker")
        let stopped = runs.filter { $0.result == .stopped }
        let beganAgain = stopped.filter { stop in runs.contains { $0.began >= stop.ended } }
        let returned = evidence.notes("run() returned").first
        let removed = evidence.notes("port taken out").first
        let bare = evidence.activations(loop: "bare")
        return [
            Check(
                "each stop ends one round", stopped.count == 3,
                seen: "\(stopped.count) rounds ended with the result stopped"),
            Check(
                "and run() begins another", beganAgain.count == stopped.count && !stopped.isEmpty,
                seen: "after \(beganAgain.count) of them another round began"),
            Check(
                "run() returns once the port is gone",
                Evidence.inOrder(removed?.began, returned?.began),
                seen: returned.map { "it returned at \(evidence.time($0.began))" } ?? "it did not return"),
            Check(
                "without a port run() returns at once and runs nothing",
                bare.isEmpty && !evidence.notes("run() without a port returned").isEmpty,
                seen: "the loop without a port ran \(Evidence.times(bare.count))"),
        ]
    }
}

// begin run-cannot-be-stopped
@Sendable private func runCannotBeStoppedCode(_ stage: Stage) throws {
    let port = Port()
    let worker = Shared<RunLoop?>(nil)
    stage.thread("worker") {
        let loop = RunLoop.current
        loop.add(port, forMode: .default)
        worker.value = loop
        loop.run()
        stage.note("run() returned")
    }
    stage.thread("bare") {
        RunLoop.current.run()  // nothing in the default mode
        stage.note("run() without a port returned")
    }

    try stage.wait { worker.value?.isWaiting ?? false }
    for _ in 1...3 {
        worker.value?.stop()
        Thread.sleep(forTimeInterval: 0.02)
        try stage.wait { worker.value?.isWaiting ?? false }
    }
    stage.note("port taken out")
    port.invalidate()
    worker.value?.wakeUp()
}
// end

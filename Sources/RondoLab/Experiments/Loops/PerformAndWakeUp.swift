import Rondo
internal import RondoTrace

extension Experiment {
    static let performAndWakeUp = Experiment(
        "perform-and-wake-up", title: "perform, with and without a wake-up",
        question: """
            A loop sleeps. Another thread hands it a block with CFRunLoopPerformBlock, which is performWithoutWaking \
            here. When does the block run?
            """,
        choices: [
            "At once", "When the loop is woken by something else", "Never",
            "On the thread that handed it over",
        ], answer: 1,
        why: """
            Queueing a block does not wake the loop: Core Foundation documents it so, and many a block has come seconds \
            late because of it. Either call wakeUp() afterwards, or use RunLoop.perform, which does that itself.
            """,
        rules: ["RL-60", "RL-61", "RL-49"], body: performAndWakeUpCode
    ) { evidence in
        let asked = evidence.notes("queued without a wake-up").first?.began
        let woken = evidence.notes("woken").first?.began
        let quiet = evidence.notes("the silent block").first?.began
        let called = evidence.notes("performed").first?.began
        let loud = evidence.notes("the waking block").first
        let wakes = evidence.ofKind(.wakeUp).filter { evidence.recording.loopName($0.loop) == "worker" }
        let hasSlept = asked.map { asked in (woken ?? asked) - asked > 100_000_000 } ?? false
        // No limit in seconds: the waking block must run sooner after its call than the silent block did.
        let isSooner =
            if let asked, let quiet, let called, let loud {
                called <= loud.began && loud.began - called < quiet - asked
            } else { false }
        return [
            Check(
                "without a wake-up the block waits for one",
                hasSlept && Evidence.inOrder(woken, quiet) && !wakes.isEmpty,
                seen: asked.flatMap { asked in
                    quiet.map { "it ran \(Evidence.milliseconds($0 - asked)) after it was queued" }
                }
                    ?? "it never ran"),
            Check(
                "perform wakes the loop itself", isSooner,
                seen: called.flatMap { called in
                    loud.map { "it ran \(Evidence.milliseconds($0.began - called)) after it was performed" }
                } ?? "it never ran"),
            Check(
                "both run on the loop's thread",
                evidence.notes("the silent block").first.map { evidence.thread(of: $0) } == "worker"
                    && loud.map { evidence.thread(of: $0) } == "worker",
                seen: "the second ran on \(loud.map { evidence.thread(of: $0) } ?? "none")"),
        ]
    }
}

// begin perform-and-wake-up
@Sendable private func performAndWakeUpCode(_ stage: Stage) throws {
    let worker = Shared<RunLoop?>(nil)
    let hasRun = Shared(false)
    stage.thread("worker") {
        RunLoop.current.keepAlive(in: .default)
        worker.value = RunLoop.current
        RunLoop.current.spend(Stage.patience, in: .default)
    }
    try stage.wait { worker.value?.isWaiting ?? false }
    guard let loop = worker.value else { return }

    stage.note("queued without a wake-up")
    loop.performWithoutWaking(inModes: [.default]) { stage.note("the silent block") }
    Thread.sleep(forTimeInterval: 0.2)
    stage.note("woken")
    loop.wakeUp()
    Thread.sleep(forTimeInterval: 0.05)
    try stage.wait { loop.isWaiting }

    stage.note("performed")
    loop.perform {
        stage.note("the waking block")
        hasRun.value = true
    }
    try stage.wait { hasRun.value }
    loop.stop()
}
// end

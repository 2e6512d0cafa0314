import Rondo
internal import RondoTrace

extension Experiment {
    static let actorOnAMode = Experiment(
        "actor-on-a-mode", title: "An actor that lives on a mode",
        question: """
            An actor's executor is the tracking mode of a run loop. A task calls it while the loop runs in default. \
            When does the actor answer?
            """,
        choices: [
            "At once, on any thread", "At once, on the loop's thread",
            "When the loop runs in tracking, on its thread",
            "Never",
        ], answer: 2,
        why: """
            loop.executor(in:) hands the actor's jobs to the loop as blocks for that mode. So the compiler keeps the \
            actor's state apart as ever, and the run loop decides when it may be touched: in that mode, on that thread. \
            In the timeline the actor's job waits all through default, and runs when tracking begins, inside a performed block.
            """,
        rules: ["RL-60", "RL-8"], body: actorOnAModeCode
    ) { evidence in
        let asked = evidence.notes("asked").first
        let answers = evidence.notes("the actor works")
        let tracking = evidence.activations(mode: .tracking)
        let inside = answers.filter { answer in tracking.contains { $0.contains(answer) } }
        let patient = asked.flatMap { asked in answers.first.map { $0.began - asked.began } }
        return [
            Check(
                "it answers in tracking, and in no other mode",
                !answers.isEmpty && inside.count == answers.count,
                seen: "it worked \(Evidence.times(answers.count)), \(inside.count) of these in tracking"),
            Check(
                "on the loop's thread",
                answers.allSatisfy { evidence.thread(of: $0) == "lab" } && !answers.isEmpty,
                seen: "on \(answers.first.map { evidence.thread(of: $0) } ?? "no thread")"),
            Check(
                "the call waits for the mode",
                asked.map { asked in tracking.allSatisfy { $0.began > asked.began } } ?? false
                    && patient != nil,
                seen: patient.map { "it came \(Evidence.milliseconds($0)) after it was asked" }
                    ?? "it never came"),
        ]
    }
}

// begin actor-on-a-mode
private actor Scroller {
    let executor: RunLoop.ModeExecutor
    let stage: Stage
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(_ loop: RunLoop, _ stage: Stage) {
        executor = loop.executor(in: .tracking)
        self.stage = stage
    }

    func work() { stage.note("the actor works") }
}

@Sendable private func actorOnAModeCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    for mode in [RunLoop.Mode.default, .tracking] { loop.keepAlive(in: mode) }
    let scroller = Scroller(loop, stage)
    let isDone = Shared(false)

    stage.note("asked")
    Task {  // runs on no loop
        await scroller.work()
        isDone.value = true
    }
    loop.spend(0.2, in: .default)
    loop.spend(0.2, in: .tracking)
    try stage.run(loop, .default) { isDone.value }
}
// end

import Rondo

extension Experiment {
    static let pollingLoop = Experiment(
        "polling-loop", title: "The 0.1 s polling loop, beside a stop",
        question: """
            Two workers wait half a second for another thread. One looks at a flag every 0.1 s around \
            run(mode:before:), the other runs its loop until it is stopped. How long does each notice the end too late?
            """,
        choices: [
            "Neither is late", "The polling one up to 0.1 s, the other hardly at all", "Both up to 0.1 s",
            "The one that is stopped waits for its next pass",
        ], answer: 1,
        why: """
            The flag is no event: nothing wakes the sleeping loop when it changes. The polling loop wakes ten times a \
            second for nothing, and hears of the end at the next round. stop() is an event: it wakes the loop, which \
            ends its run at once and has not been awake before.
            """,
        rules: ["TH-6", "RL-37", "RL-45"], body: pollingLoopCode
    ) { evidence in
        let polls = evidence.activations(loop: "polling")
        let stopped = evidence.activations(loop: "stopped")
        let flag = evidence.notes("the end").first
        func late(_ name: String) -> Int64? {
            guard let flag, let end = evidence.notes(name).first else { return nil }
            return end.began - flag.began
        }
        func cost(_ name: String) -> String {
            Evidence.milliseconds(evidence.notes(name).first?.duration ?? 0)
        }
        let looks = evidence.notes("looks at the flag").count
        let waits = evidence.ofKind(.wait)
        let wakes = { (loop: String) in waits.filter { evidence.recording.loopName($0.loop) == loop }.count }
        let polled = late("polling has noticed").map(Evidence.milliseconds) ?? "never"
        let told = late("stopped has noticed").map(Evidence.milliseconds) ?? "never"
        return [
            Check(
                "the polling loop runs again and again, each run ended by its limit",
                polls.count >= 2 && looks >= polls.count && polls.allSatisfy { $0.result == .timedOut },
                seen:
                    "it looked at the flag \(Evidence.times(looks)), made \(polls.count) runs, slept \(Evidence.times(wakes("polling"))) and took "
                    + "\(cost("polling, CPU")) of CPU"),
            Check(
                "the other makes one run, ended by the stop", stopped.map(\.result) == [.stopped],
                seen: "it made \(stopped.count) run\(stopped.count == 1 ? "" : "s"), slept "
                    + "\(Evidence.times(wakes("stopped"))) and took \(cost("stopped, CPU")) of CPU"),
            Check(
                "both notice the end",
                late("polling has noticed") != nil && late("stopped has noticed") != nil,
                seen: "polling was late by \(polled), the stop by \(told)"),
        ]
    }
}

// begin polling-loop
@Sendable private func pollingLoopCode(_ stage: Stage) throws {
    let isOver = Shared(false)
    let loop = Shared<RunLoop?>(nil)
    stage.thread("polling") {
        RunLoop.current.keepAlive(in: .default)
        while !isOver.value {
            stage.note("looks at the flag")
            RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.1))
        }
        stage.note("polling has noticed")
        stage.note("polling, CPU", nanosecondsOfThread())
    }
    stage.thread("stopped") {
        RunLoop.current.keepAlive(in: .default)
        loop.value = RunLoop.current
        RunLoop.current.spend(Stage.patience, in: .default)
        stage.note("stopped has noticed")
        stage.note("stopped, CPU", nanosecondsOfThread())
    }
    try stage.wait { loop.value?.isWaiting ?? false }
    Thread.sleep(forTimeInterval: 0.55)
    stage.note("the end")
    isOver.value = true
    loop.value?.stop()
}
// end

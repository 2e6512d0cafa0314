import Rondo

extension Experiment {
    static let threadWithoutLoop = Experiment(
        "thread-without-loop", title: "On a background thread that runs no loop, nothing comes",
        background: """
            Each thread has a run loop of its own, and callbacks come on the thread whose loop they were scheduled on, \
            from inside a function that runs that loop.
            """,
        question: """
            Two background threads start the same load. One then waits on a semaphore for the end, the other runs its \
            run loop. Which of them gets its bytes?
            """,
        choices: ["Both", "The one that runs its loop", "Neither", "The one that waits"], answer: 1,
        why: """
            Every thread has a run loop, but none runs unless the thread runs it. The connection is scheduled on the loop \
            of the thread that started it; a thread that waits on a semaphore runs no loop, so it waits for a callback \
            that only it could make.
            """,
        rules: ["RL-3", "TH-1", "UC-3"], body: threadWithoutLoopCode
    ) { evidence in
        let calls = evidence.delegateCalls("on the silent thread")
        let runs = evidence.activations(loop: "silent")
        let started = evidence.notes("waited in vain")
        return [
            Check(
                "on the thread that does not run its loop, nothing is called",
                calls.isEmpty && !started.isEmpty,
                seen: "its delegate was called \(Evidence.times(calls.count))"),
            Check(
                "its loop never ran", runs.isEmpty && !started.isEmpty,
                seen: "its loop was run \(Evidence.times(runs.count))"),
            Check(
                "it was ready all the time", !evidence.heldBack("on the silent thread").isEmpty,
                seen: evidence.heldBack("on the silent thread").isEmpty
                    ? "nothing of it was found waiting" : "its source waited to be served"),
            .called("on the thread that runs", in: .default, evidence),
            .finished("on the thread that runs", evidence),
        ]
    }
}

// begin thread-without-loop
@Sendable private func threadWithoutLoopCode(_ stage: Stage) throws {
    stage.thread("silent") {
        let done = DispatchSemaphore(value: 0)
        let load = try? URLConnection.labelled(
            "on the silent thread", stage.url("/drip/3/100/10"), Reader { done.signal() })
        load?.start()
        if done.wait(timeout: .now() + 0.5) == .timedOut { stage.note("waited in vain") }
        load?.cancel()
    }
    stage.thread("running") {
        let reader = Reader()
        let load = try? URLConnection.labelled(
            "on the thread that runs", stage.url("/drip/3/100/10"), reader)
        load?.start()
        try? stage.run(RunLoop.current) { reader.isDone }
    }
}
// end

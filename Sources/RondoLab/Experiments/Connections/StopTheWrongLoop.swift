import Rondo

extension Experiment {
    static let stopTheWrongLoop = Experiment(
        "stop-the-wrong-loop", title: "Stopping the callback's loop, and not the one that waits",
        question: """
            A worker starts a load with a delegate queue and runs its loop until it is stopped. The last callback, on a \
            thread of the queue, says RunLoop.current.stop(). Does the worker go on?
            """,
        choices: [
            "Yes: there is one run loop", "No: that is the loop of the queue's thread, which does not run",
            "Yes, after the current pass", "The queue's thread ends",
        ], answer: 1,
        why: """
            RunLoop.current is the loop of the thread that asks. On a queue's thread that is a loop that is not run; \
            stopping it does nothing and is not remembered. Save the worker's loop before it runs, and stop that. A port \
            keeps the worker's mode from being empty, so that only a stop can end its run.
            """,
        rules: ["TH-4", "TH-5", "RL-46"], body: stopTheWrongLoopCode
    ) { evidence in
        let runs = evidence.activations(loop: "worker")
        let stops = evidence.ofKind(.stop)
        let wrong = stops.filter { evidence.recording.loopName($0.loop) != "worker" }
        let right = stops.filter { evidence.recording.loopName($0.loop) == "worker" }
        let lastedOn = wrong.allSatisfy { stop in
            runs.contains { $0.began < stop.began && $0.ended > stop.began + 100_000_000 }
        }
        let endedByRight = runs.contains { run in
            run.result == .stopped && right.contains { $0.began <= run.ended && $0.began >= run.began }
        }
        return [
            .finished("load", evidence),
            Check(
                "the stop of the wrong loop changes nothing", !wrong.isEmpty && lastedOn,
                seen: wrong.isEmpty
                    ? "no other loop was stopped"
                    : "the worker's loop \(lastedOn ? "ran on for more than 0.1 s" : "did not run on")"),
            Check(
                "the stop of the worker's own loop ends its run", endedByRight,
                seen: endedByRight
                    ? "it ended with the result stopped" : "no run of it was ended by a stop"),
        ]
    }
}

// begin stop-the-wrong-loop
@Sendable private func stopTheWrongLoopCode(_ stage: Stage) throws {
    let worker = Shared<RunLoop?>(nil)
    let wasWrong = Shared(false)
    stage.thread("worker") {
        let loop = RunLoop.current
        worker.value = loop
        loop.keepAlive(in: .default)  // only a stop can end the run
        let queue = OperationQueue()
        let load = try? URLConnection.labelled(
            "load", stage.url("/drip/3/100/10"),
            Reader {
                RunLoop.current.stop()  // the loop of the queue's thread
                wasWrong.value = true
            })
        load?.start()
        load?.setDelegateQueue(queue)
        loop.spend(Stage.patience, in: .default)
    }
    try stage.wait { wasWrong.value }
    Thread.sleep(forTimeInterval: 0.2)  // enough time for the run to end, if it could
    worker.value?.stop()
}
// end

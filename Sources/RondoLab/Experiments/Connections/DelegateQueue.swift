import Rondo

extension Experiment {
    static let delegateQueue = Experiment(
        "delegate-queue", title: "A delegate queue moves the callbacks, not the load",
        question: """
            A connection is started at once on a thread, and then given a delegate queue. Callbacks now come on the \
            queue. The thread's loop runs in tracking for a while. Does the load go on?
            """,
        choices: [
            "Yes: the queue drives it now", "No: the bytes still come by the loop, in the default mode",
            "Yes, and callbacks come on both", "The queue is refused",
        ], answer: 1,
        why: """
            The queue says where the delegate is called. The load itself was scheduled in the default mode when it \
            started, so its socket is still served by that loop in that mode. For a load that needs no loop of yours, \
            set the queue before start() and schedule nothing.
            """,
        rules: ["UC-10", "UC-11", "UC-9"], body: delegateQueueCode
    ) { evidence in
        let calls = evidence.delegateCalls("load")
        let onLoop = calls.filter { evidence.thread(of: $0) == "lab" }
        let served = evidence.calls("load", in: .tracking).filter { $0.kind != .delegate }
        let span = evidence.seconds(evidence.activations(mode: .tracking))
        return [
            Check(
                "every callback comes on the queue, none on the loop's thread",
                onLoop.isEmpty && !calls.isEmpty,
                seen: "of \(calls.count) callbacks \(onLoop.count) came on the loop's thread"),
            Check(
                "in tracking the load is not served", served.isEmpty && span > 0,
                seen:
                    "in \(TextFormats.fixed(span, digits: 2)) s of tracking it was served \(Evidence.times(served.count))"
            ),
            .waited("load", evidence), .finished("load", evidence),
        ]
    }
}

// begin delegate-queue
@Sendable private func delegateQueueCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    loop.keepAlive(in: .tracking)
    let queue = OperationQueue()
    let reader = Reader()

    let load = try URLConnection.labelled("load", stage.url("/drip/25/1000/20"), reader)
    load.start()  // scheduled here, in the default mode
    load.setDelegateQueue(queue)  // the delegate is called there

    try stage.run(loop, .default) { reader.bytes > 0 }
    loop.spend(0.25, in: .tracking)
    try stage.run(loop, .default) { reader.isDone }
    queue.waitUntilAllOperationsAreFinished()
}
// end

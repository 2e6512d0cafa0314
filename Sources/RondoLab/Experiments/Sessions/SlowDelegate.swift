import Rondo

extension Experiment {
    static let slowDelegate = Experiment(
        "slow-delegate", title: "A slow delegate holds the server back",
        question: """
            A server sends 32 MiB as fast as it can. The session's delegate, on a queue, sleeps in its first call until \
            nothing more is received. How much has been received for it by then?
            """,
        choices: [
            "All 32 MiB: they wait in the queue", "Nothing but that first piece",
            "About 1 MiB; the rest is not read",
            "The task has failed",
        ], answer: 2,
        why: """
            What waits for a queue has a bound: at most 1 MiB of a task's content. Beyond that the socket is not read, the \
            kernel's buffers fill, and TCP tells the server to wait. So the memory of a program does not depend on how \
            slow its delegates are, and no byte is lost.
            """,
        rules: ["US-20", "US-87"], body: slowDelegateCode
    ) { evidence in
        let waiting = evidence.notes("received while the delegate slept").first?.duration ?? -1
        let whole = evidence.notes("received at the end").first?.duration ?? -1
        return [
            Check(
                "more than the first piece is received", waiting > 256 << 10,
                seen: "\(TextFormats.grouped(Int(waiting))) bytes were"),
            Check(
                "but not much more than 1 MiB", waiting <= 2 << 20,
                seen: "\(TextFormats.grouped(Int(waiting))) bytes were"),
            Check(
                "in the end all of it came", whole == 32 << 20,
                seen: "\(TextFormats.grouped(Int(whole))) bytes came"),
        ]
    }
}

// begin slow-delegate
@Sendable private func slowDelegateCode(_ stage: Stage) throws {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    let (isIn, mayLeave) = (Shared(false), DispatchSemaphore(value: 0))
    let reader = SessionReader(whenFirst: {
        isIn.value = true
        mayLeave.wait()
    })
    let session = URLSession(configuration: .ephemeral, delegate: reader, delegateQueue: queue)
    let task = session.dataTask(with: stage.url("/drip/32/1048576/0"))
    task.taskDescription = "task"
    task.resume()
    try stage.wait { isIn.value }

    // Waits until no more bytes have been received for a while.
    var (seen, since) = (Int64(-1), Date())
    try stage.wait {
        if task.countOfBytesReceived != seen { (seen, since) = (task.countOfBytesReceived, Date()) }
        return Date().timeIntervalSince(since) > 0.3
    }
    stage.note("received while the delegate slept", Int(seen))
    mayLeave.signal()

    try stage.wait { reader.isDone }
    stage.note("received at the end", reader.bytes)
    session.invalidateAndCancel()
    queue.waitUntilAllOperationsAreFinished()
}
// end

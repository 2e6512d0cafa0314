import Rondo

extension Experiment {
    static let handlerThread = Experiment(
        "handler-thread", title: "Where a completion handler runs",
        question: """
            A thread makes three sessions: one with no queue named, one with OperationQueue.main, one on the thread's own \
            run loop. Each loads the same with a completion handler. The thread runs its loop; the main thread does \
            something else, and runs none. Which handlers are called?
            """,
        choices: [
            "All three, on the thread that called resume()", "All three, each on a thread of its own",
            "Those of the first and the third; the third on the thread", "That of the third only",
        ], answer: 2,
        why: """
            A handler comes where the session's calls come. With no queue named that is a serial queue of the session's \
            own: some thread of a pool, never the caller's. OperationQueue.main is served by the main run loop in its common \
            modes, and by nothing else: here nothing runs it. On a run loop it is that loop's thread, in the modes named.
            """,
        rules: ["US-17", "US-18", "US-21"], body: handlerThreadCode
    ) { evidence in
        let threads = { (name: String) in evidence.notes(name).map { evidence.thread(of: $0) } }
        let (queued, main, looped) = (
            threads("handler, own queue"), threads("handler, main queue"), threads("handler, run loop")
        )
        return [
            Check(
                "with a queue of the session's own it comes on another thread",
                queued.count == 1 && queued != ["lab"], seen: "it came \(Evidence.times(queued.count))"),
            Check(
                "on the main queue it does not come, for no loop runs there",
                main.isEmpty && !evidence.notes("all asked").isEmpty,
                seen: "it came \(Evidence.times(main.count))"),
            Check(
                "on a run loop it comes on that loop's thread", looped == ["lab"],
                seen: looped.first.map { "it came on the thread “\($0)”" } ?? "it never came"),
        ]
    }
}

// begin handler-thread
@Sendable private func handlerThreadCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    let sessions = [
        "own queue": URLSession(configuration: .ephemeral),
        "main queue": URLSession(configuration: .ephemeral, delegate: nil, delegateQueue: .main),
        "run loop": URLSession(configuration: .ephemeral, delegate: nil, runLoop: loop),
    ]
    let called = Shared<Set<String>>([])
    for (name, session) in sessions {
        session.dataTask(with: stage.url("/drip/1/100/0")) { _, _, _ in
            stage.note("handler, \(name)")
            called.update { $0.insert(name) }
        }.resume()
    }
    stage.note("all asked")
    loop.keepAlive(in: .default)
    try stage.run(loop) { called.value.isSuperset(of: ["own queue", "run loop"]) }
    loop.spend(0.1, in: .default)

    for session in sessions.values { session.invalidateAndCancel() }
    loop.spend(0.01, in: .default)
}
// end

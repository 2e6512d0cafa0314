import Rondo

extension Experiment {
    static let sessionOnAMode = Experiment(
        "session-on-a-mode", title: "A session on a mode stands still in others",
        question: """
            A session is made for a thread's run loop and its default mode. A task of it has had its first bytes when the \
            loop begins to run in tracking. The server goes on sending. What happens to the task?
            """,
        choices: [
            "It goes on: a session has threads of its own", "It stands still, and goes on in default",
            "It fails: what comes is not taken", "What comes meanwhile is lost",
        ], answer: 1,
        why: """
            A session that was made with a run loop has no other engine than that loop in the modes that were named. In \
            another mode its sockets are not read: what the server sends waits in the kernel, and when that is full, the \
            server waits. With the default mode, the next bytes come. For tasks that go on in every common mode, name \
            .common.
            """,
        rules: ["US-21", "US-22", "US-23"], body: sessionOnAModeCode
    ) { evidence in
        [
            .called("task", in: .default, evidence), .silent("task", in: .tracking, evidence),
            .waited("task", evidence), .completed("task", evidence),
            Check(
                "no byte is lost", evidence.notes("bytes").first?.duration == 25_000,
                seen: "of 25,000 bytes \(evidence.notes("bytes").first?.duration ?? 0) came"),
        ]
    }
}

// begin session-on-a-mode
@Sendable private func sessionOnAModeCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    loop.keepAlive(in: .tracking)
    let reader = SessionReader()
    let session = URLSession(configuration: .ephemeral, delegate: reader, runLoop: loop, modes: [.default])

    let task = session.dataTask(with: stage.url("/drip/25/1000/20"))
    task.taskDescription = "task"  // its name on the timeline
    task.resume()

    try stage.run(loop, .default) { reader.bytes > 0 }
    loop.spend(0.25, in: .tracking)
    try stage.run(loop, .default) { reader.isDone }
    stage.note("bytes", reader.bytes)
    session.invalidateAndCancel()
    loop.spend(0.01, in: .default)
}
// end

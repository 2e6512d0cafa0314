import Rondo

extension Experiment {
    static let scheduleAfterStart = Experiment(
        "schedule-after-start", title: "Scheduling after the start does nothing",
        question: """
            A connection is started in the default mode. Then the program also schedules it in \
            the common modes. The loop runs in tracking. Do bytes come?
            """,
        choices: ["Yes, from then on", "No: it is too late", "Yes, but twice", "The program traps"],
        answer: 1,
        why: """
            Loop and mode are chosen before the start and hold for the whole load. Create the connection with \
            startImmediately: false, schedule it, then start it. Rondo says so in the log, once for each connection.
            """,
        rules: ["UC-7", "UC-5"], body: scheduleAfterStartCode
    ) { evidence in
        let note = evidence.notes("scheduled in the common modes, too late").first
        return [
            Check(
                "it was scheduled after the start", note != nil,
                seen: note.map { "at \(evidence.time($0.began))" } ?? "it never was"),
            .called("load", in: .default, evidence), .silent("load", in: .tracking, evidence),
            .waited("load", evidence), .finished("load", evidence),
        ]
    }
}

// begin schedule-after-start
@Sendable private func scheduleAfterStartCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    loop.keepAlive(in: .tracking)
    let reader = Reader()
    let load = try URLConnection.labelled("load", stage.url("/drip/25/1000/20"), reader)
    load.start()  // in the default mode, for good

    load.schedule(in: loop, forMode: .common)
    stage.note("scheduled in the common modes, too late")

    try stage.run(loop, .default) { reader.bytes > 0 }
    loop.spend(0.25, in: .tracking)
    try stage.run(loop, .default) { reader.isDone }
}
// end

import Rondo

extension Experiment {
    static let commonModes = Experiment(
        "common-modes", title: "A load in the common modes goes on while the user scrolls",
        background: """
            A run loop calls only what is scheduled in the mode that it runs in. While the user scrolls that is tracking, \
            else default. “The common modes” is a name to schedule by.
            """,
        question: """
            Two loads of the same file on one run loop: A in the default mode, B in the common modes. The loop runs in \
            tracking for a while. Which of them gets bytes then?
            """,
        choices: ["Both", "Neither", "B alone", "A alone"], answer: 2,
        why: """
            “Common” is no mode that a loop could run in, but a set of modes; default and tracking are in it from the \
            start. B is scheduled under that name, so it is in both and is called in whichever of them runs. A is in \
            default alone, and waits until the scrolling is over. B pays for it: its callbacks take time from the \
            scrolling.
            """,
        rules: ["RL-19", "RL-20", "UC-4", "TH-10"], body: commonModesCode
    ) { evidence in
        [
            .called("B, common", in: .default, evidence), .called("B, common", in: .tracking, evidence),
            .called("A, default", in: .default, evidence), .silent("A, default", in: .tracking, evidence),
            .waited("A, default", evidence), .finished("A, default", evidence),
            .finished("B, common", evidence),
        ]
    }
}

// begin common-modes
@Sendable private func commonModesCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    let (readA, readB) = (Reader(), Reader())
    let a = try URLConnection.labelled("A, default", stage.url("/drip/30/1000/20"), readA)
    let b = try URLConnection.labelled("B, common", stage.url("/drip/30/1000/20"), readB)
    a.schedule(in: loop, forMode: .default)
    b.schedule(in: loop, forMode: .common)
    a.start()
    b.start()

    try stage.run(loop, .default) { readA.bytes > 0 && readB.bytes > 0 }
    loop.spend(0.25, in: .tracking)  // the user scrolls
    try stage.run(loop, .default) { readA.isDone && readB.isDone }
}
// end

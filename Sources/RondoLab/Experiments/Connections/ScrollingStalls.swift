import Rondo

extension Experiment {
    static let scrollingStalls = Experiment(
        "scrolling-stalls", title: "A load in the default mode stops while somebody scrolls",
        question: """
            A connection is started on the thread's run loop in the usual way. While its bytes come in, the loop runs \
            in tracking for 0.4 s, as it does while somebody scrolls. What happens to the load?
            """,
        choices: [
            "It goes on: bytes are bytes", "It stands still, and goes on when default runs again",
            "It stands still, and the bytes sent meanwhile are lost", "It fails with a timeout",
        ], answer: 1,
        why: """
            A connection that nobody schedules is in the default mode. While the loop runs in tracking, nothing listens \
            to its socket: the bytes wait in the kernel, and when that is full the server has to wait. Nothing is lost. \
            As soon as default runs again, the loop finds the socket ready.
            """,
        rules: ["UC-3", "UC-12", "RL-8", "RL-9"], body: scrollingStallsCode
    ) { evidence in
        let scrolled = evidence.activations(mode: .tracking)
        let calls = evidence.delegateCalls("load", "didReceive data")
        let before = calls.filter { call in scrolled.allSatisfy { call.began < $0.began } }.count
        return [
            Check(
                "data come before the scrolling", before > 0,
                seen: "before tracking didReceive data was called \(Evidence.times(before))"),
            .silent("load", in: .tracking, evidence), .waited("load", evidence), .finished("load", evidence),
        ]
    }
}

// begin scrolling-stalls
@Sendable private func scrollingStallsCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    loop.keepAlive(in: .tracking)  // or running it would return at once

    // 40 pieces, one every 20 ms. Nobody schedules the connection: it is in the default mode.
    let reader = Reader()
    let load = try URLConnection.labelled("load", stage.url("/drip/40/1000/20"), reader)
    load.start()

    try stage.run(loop, .default) { reader.bytes > 0 }
    loop.spend(0.4, in: .tracking)  // somebody scrolls
    try stage.run(loop, .default) { reader.isDone }
}
// end

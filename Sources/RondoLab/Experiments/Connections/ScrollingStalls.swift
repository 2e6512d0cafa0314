import Rondo

extension Experiment {
    static let scrollingStalls = Experiment(
        "scrolling-stalls", title: "A load in the default mode stops while the user scrolls",
        background: """
            A run loop is how a thread waits: it sleeps until something happens, calls what is scheduled for that, \
            and sleeps again. It runs in one mode at a time, and calls only what is scheduled in that mode. Mostly the \
            mode is “default”. While the user scrolls, a user interface runs the loop in “tracking”, so that nothing \
            else can make the scrolling stutter.
            """,
        question: """
            A load of a URL is started in the usual way, which schedules it in default. While its bytes come in, the \
            loop runs in tracking for 0.4 s, as if the user scrolled. What happens to the load?
            """,
        choices: [
            "It goes on: bytes are bytes", "It stands still, and goes on when default runs again",
            "It stands still, and the bytes sent meanwhile are lost", "It fails with a timeout",
        ], answer: 1,
        why: """
            This is why callbacks stop while the user scrolls: the load is scheduled in default, the loop runs in \
            tracking, and what is not scheduled in the running mode is not called, however ready it is. The loop does not \
            even watch its socket: the bytes wait in the kernel, and when that is full the server has to wait. Nothing is \
            lost. As soon as the loop runs in default again, it finds the socket ready and calls. To have it called while \
            scrolling, schedule it in both modes: the next experiment, common-modes, does.
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

    // 40 pieces, one every 20 ms. The connection is scheduled by `start()` alone: in the default mode.
    let reader = Reader()
    let load = try URLConnection.labelled("load", stage.url("/drip/40/1000/20"), reader)
    load.start()

    try stage.run(loop, .default) { reader.bytes > 0 }
    loop.spend(0.4, in: .tracking)  // the user scrolls
    try stage.run(loop, .default) { reader.isDone }
}
// end

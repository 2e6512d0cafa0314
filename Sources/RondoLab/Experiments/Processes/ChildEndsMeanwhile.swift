import Rondo

extension Experiment {
    static let childEndsMeanwhile = Experiment(
        "child-ends-meanwhile", title: "A child ends while its mode does not run",
        background: """
            A child process can be scheduled in a mode of a run loop, as a timer or a connection can. Its end then comes \
            as a callback of that mode.
            """,
        question: """
            A child is scheduled in the default mode. It ends while the loop runs in tracking for a third of a second. \
            When is its end told, and is the exit code still there?
            """,
        choices: [
            "At once, from tracking", "In the first pass of default, with its exit code",
            "Never: the end is over",
            "In default, but the exit code is lost",
        ], answer: 1,
        why: """
            The kernel keeps an ended child, with its exit code, until its parent collects it, as it keeps the bytes of a \
            socket. Rondo collects a scheduled child in one of its modes, so nothing is told in tracking, and nothing is \
            lost. A child that is scheduled nowhere is collected in the background, so that no zombie stays.
            """,
        rules: ["CH-2", "CH-4", "RL-9"], body: childEndsMeanwhileCode
    ) { evidence in
        let ended = evidence.notes("ended").first
        let told = evidence.notes("told, exit code")
        return [
            .silent("child", in: .tracking, evidence),
            .waited("child", evidence),
            .called("child", in: .default, evidence),
            Check(
                "its end is told once, with its exit code", told.count == 1 && told.first?.duration == 7,
                seen: "told \(Evidence.times(told.count))"
                    + (told.first.map { ", exit code \($0.duration)" } ?? "")),
            Check(
                "after it has ended", Evidence.inOrder(ended?.began, told.first?.began),
                seen: ended.flatMap { ended in
                    told.first.map { "\(Evidence.milliseconds($0.began - ended.began)) after its end" }
                } ?? "its end was not seen"),
        ]
    }
}

// begin child-ends-meanwhile
@Sendable private func childEndsMeanwhileCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    loop.keepAlive(in: .tracking)
    let told = Shared(false)
    let child = try Child.spawn("sh", ["-c", "exit 7"])
    child.label = "child"
    child.onEnd = { _, status in
        if case .exited(let code) = status { stage.note("told, exit code", Int(code)) }
        told.value = true
    }
    child.schedule(in: loop, forMode: .default)
    // Signal 0 is not sent; it only tests whether the process exists.
    try stage.wait { (try? child.send(signal: 0)) == nil }
    stage.note("ended")
    loop.spend(0.33, in: .tracking)
    try stage.run(loop) { told.value }
}
// end

import Rondo

extension Experiment {
    static let synchronousRequest = Experiment(
        "synchronous-request", title: "A synchronous request runs the loop in a private mode",
        question: """
            A timer fires every 20 ms in the common modes. The thread makes a synchronous request that takes 0.3 s. \
            How often does the timer fire meanwhile?
            """,
        choices: ["About 15 times", "Never", "Once, at the end of the request", "Twice as often"], answer: 1,
        why: """
            The request is an ordinary connection, and the thread's own loop drives it: in a private mode that no other code \
            knows, and that nothing else is in. So no callback of yours comes in between, however common its modes are. \
            That is what makes the call synchronous, and why it must not be made on a thread that has other duties.
            """,
        rules: ["UC-60", "UC-61"], body: synchronousRequestCode
    ) { evidence in
        let known: Set = [RunLoop.Mode.default.spokenName, RunLoop.Mode.tracking.spokenName]
        let runs = evidence.activations().filter { !known.contains(evidence.name(ofMode: $0.mode)) }
        let beats = evidence.calls("beat")
        let inside = beats.filter { beat in runs.contains { $0.contains(beat) } }
        let after = beats.filter { beat in runs.allSatisfy { beat.began > $0.ended } }
        return [
            Check(
                "the loop runs in a mode of its own for it", !runs.isEmpty,
                seen: runs.isEmpty
                    ? "it ran in no other mode"
                    : "it ran in \(evidence.name(ofMode: runs[0].mode)) for \(Evidence.milliseconds(runs.reduce(0) { $0 + $1.ended - $1.began }))"
            ),
            Check(
                "the timer does not fire meanwhile", inside.isEmpty && !runs.isEmpty,
                seen: "it fired \(Evidence.times(inside.count)) meanwhile"),
            .waited("beat", evidence),
            Check(
                "it fires afterwards", !after.isEmpty,
                seen: "afterwards it fired \(Evidence.times(after.count))"),
            Check(
                "the request has its answer", evidence.notes("bytes").contains { $0.duration == 1500 },
                seen: "it returned \(evidence.notes("bytes").first?.duration ?? 0) bytes"),
        ]
    }
}

// begin synchronous-request
@Sendable private func synchronousRequestCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    let beat = Timer(timeInterval: 0.02, repeats: true) { _ in }
    beat.label = "beat"
    loop.add(beat, forMode: .common)

    // 15 pieces of 100 bytes, one every 20 ms.
    let request = URLRequest(url: stage.url("/drip/15/100/20"))
    let body = try URLConnection.sendSynchronousRequest(request, returning: nil)
    stage.note("bytes", body.count)

    loop.spend(0.1, in: .default)
    beat.invalidate()
}
// end

import Rondo

extension Experiment {
    static let twoLoopsOneSource = Experiment(
        "two-loops-one-source", title: "Two run loops share one source",
        question: """
            A signalled source is in the loops of two threads, and both loops run. It is signalled 20 times. How often \
            is it performed?
            """,
        choices: [
            "40 times, on both threads", "20 times, each on one thread or the other", "20 times on the first",
            "Once",
        ], answer: 1,
        why: """
            A signal is a fact about the source, not about a loop. Whichever loop sees it first takes it, and the other \
            finds nothing. That makes a source a simple queue for two workers; which of the two gets it is not yours to choose.
            """,
        rules: ["SRC-8", "SRC-3"], body: twoLoopsOneSourceCode
    ) { evidence in
        let signals = evidence.notes("signalled").count
        let calls = evidence.calls("work")
        let first = calls.filter { evidence.recording.loopName($0.loop) == "first" }.count
        let second = calls.filter { evidence.recording.loopName($0.loop) == "second" }.count
        return [
            Check(
                "each signal is served once", calls.count == signals && signals > 0,
                seen: "\(signals) signals, performed \(Evidence.times(calls.count))"),
            Check(
                "by one loop or the other", first + second == calls.count && !calls.isEmpty,
                seen: "\(Evidence.times(first)) by the first loop, \(Evidence.times(second)) by the second"),
        ]
    }
}

// begin two-loops-one-source
@Sendable private func twoLoopsOneSourceCode(_ stage: Stage) throws {
    let served = Shared(0)
    let loops = Shared<[RunLoop]>([])
    let source = RunLoop.Source { served.update { $0 += 1 } }
    source.label = "work"
    for name in ["first", "second"] {
        stage.thread(name) {
            let loop = RunLoop.current
            loop.add(source, forMode: .default)
            loops.update { $0.append(loop) }
            loop.spend(Stage.patience, in: .default)
        }
    }
    try stage.wait { loops.value.count == 2 && loops.value.allSatisfy(\.isWaiting) }
    for number in 1...20 {
        stage.note("signalled", number)
        source.signal()
        for loop in loops.value { loop.wakeUp() }
        try stage.wait { served.value == number }
    }
    source.invalidate()
    for loop in loops.value { loop.stop() }
}
// end

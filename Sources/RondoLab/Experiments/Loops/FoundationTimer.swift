import Rondo
internal import RondoTrace

extension Experiment {
    static let foundationTimer = Experiment(
        "foundation-timer", title: "A timer of Foundation's beside one of Rondo's",
        background: """
            Each thread has two run loops under `import Rondo`: Rondo's, and Foundation's, which packages use that import \
            only Foundation.
            """,
        question: """
            Two timers repeat every 20 ms, one of Rondo's and one of Foundation's, while Rondo's loop runs. After 0.3 s \
            the loop is told to serve Foundation's too, by servesFoundation(in:atLeastEvery:). When does Foundation's \
            timer fire?
            """,
        choices: [
            "All the time", "Never: it is on another loop", "Once the loop serves Foundation's",
            "All the time, but late before the loop serves Foundation's",
        ], answer: 2,
        why: """
            Neither loop runs the other: what is scheduled on a loop that nothing runs waits, and nothing says so. A \
            bridge has Rondo's loop poll Foundation's of the same thread. On the main thread there are two more, which \
            poll nothing: one lends the loop's sleep to Foundation's, one makes a mode the guest of Foundation's loop.
            """,
        rules: ["BR-11", "BR-12", "BR-17", "BR-18"], body: foundationTimerCode
    ) { evidence in
        let fired = evidence.notes("Foundation's timer")
        guard let begun = evidence.notes("with the bridge").first?.began,
            let ended = evidence.notes("bridge ended").first?.began
        else { return [Check("the bridge began and ended", false, seen: "it did not")] }
        let before = fired.filter { $0.began < begun }
        let meanwhile = fired.filter { $0.began >= begun && $0.began <= ended }
        let after = fired.filter { $0.began > ended }
        let own = evidence.calls("own")
        let thread = own.first.map { evidence.thread(of: $0) }
        return [
            Check(
                "Rondo's timer fires all the time",
                own.contains { $0.began < begun } && own.contains { $0.began > begun },
                seen: "it was called \(Evidence.times(own.count))"),
            Check(
                "without a bridge Foundation's never fires", before.isEmpty,
                seen: "it fired \(Evidence.times(before.count))"),
            Check(
                "with one it does, again and again", meanwhile.count >= 3,
                seen: "in \(Evidence.milliseconds(ended - begun)) it fired \(Evidence.times(meanwhile.count))"
            ),
            Check(
                "on the thread of the loop",
                fired.allSatisfy { evidence.thread(of: $0) == thread } && !fired.isEmpty,
                seen: "on \(Set(fired.map { evidence.thread(of: $0) }).sorted().joined(separator: ", "))"),
            Check(
                "and not when the bridge has ended", after.isEmpty,
                seen: "it fired \(Evidence.times(after.count))"),
        ]
    }
}

// begin foundation-timer
@Sendable private func foundationTimerCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    let own = Timer(timeInterval: 0.02, repeats: true) { _ in }
    own.label = "own"
    loop.add(own, forMode: .default)
    // A timer as code that imports only Foundation schedules it.
    let foreign = Foundation.Timer.scheduledTimer(withTimeInterval: 0.02, repeats: true) { _ in
        stage.note("Foundation's timer")
    }
    loop.spend(0.3, in: .default)
    stage.note("with the bridge")
    loop.servesFoundation(in: [.default], atLeastEvery: 0.02)
    loop.spend(0.3, in: .default)
    loop.endFoundationBridge()
    stage.note("bridge ended")
    loop.spend(0.1, in: .default)
    foreign.invalidate()
    own.invalidate()
}
// end

import Rondo
internal import RondoTrace

extension Experiment {
    static let nestedLoops = Experiment(
        "nested-loops", title: "A loop inside a loop, and one stop",
        question: """
            A timer's callback runs the loop again, in a mode of its own, as a modal dialogue does. Inside, stop() is \
            called once. What ends?
            """,
        choices: ["Both runs", "The inner run alone", "The outer run alone", "Nothing"], answer: 1,
        why: """
            Each run is an activation with its own mode, limit and stop. stop() ends the innermost, the callback goes on \
            behind it, and the outer run continues in its own mode. While the inner one runs, what is in the outer mode \
            only has to wait.
            """,
        rules: ["RL-42", "RL-43", "RL-11", "TM-25"], body: nestedLoopsCode
    ) { evidence in
        let modal = RunLoop.Mode("modal")
        let inner = evidence.activations(mode: modal)
        let outer = evidence.activations(mode: .default)
        let beats = evidence.calls("beat")
        let inside = beats.filter { beat in inner.contains { $0.contains(beat) } }
        let after = beats.filter { beat in inner.allSatisfy { beat.began > $0.ended } }
        return [
            Check(
                "the inner run is one deeper, and stopped",
                inner.count == 1 && inner[0].depth == 2 && inner[0].result == .stopped,
                seen: inner.first.map {
                    "at depth \($0.depth) it ended: \($0.result.map { "\($0)" } ?? "not")"
                }
                    ?? "there was none"),
            Check(
                "the outer run lasts longer, and ends by its own time",
                outer.count == 1 && outer[0].result == .timedOut
                    && outer[0].ended > (inner.first?.ended ?? .max),
                seen: outer.first.map { "it ended: \($0.result.map { "\($0)" } ?? "not")" }
                    ?? "there was none"),
            Check(
                "a timer of the outer mode is silent inside", inside.isEmpty && !inner.isEmpty,
                seen: "inside it fired \(Evidence.times(inside.count))"),
            .waited("beat", evidence),
            Check(
                "and fires again afterwards", !after.isEmpty, seen: "it fired \(Evidence.times(after.count))"),
        ]
    }
}

// begin nested-loops
@Sendable private func nestedLoopsCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    let modal = RunLoop.Mode("modal")
    let beat = Timer(timeInterval: 0.02, repeats: true) { _ in }
    beat.label = "beat"
    loop.add(beat, forMode: .default)

    // In the dialogue, 0.2 s later, the user presses a button.
    let button = Timer(timeInterval: 0.3, repeats: false) { _ in RunLoop.current.stop() }
    button.label = "button"
    loop.add(button, forMode: modal)

    let dialogue = Timer(timeInterval: 0.1, repeats: false) { _ in
        RunLoop.current.spend(10, in: modal)
    }
    dialogue.label = "dialogue"
    loop.add(dialogue, forMode: .default)

    loop.spend(0.5, in: .default)
    beat.invalidate()
}
// end

import Rondo
internal import RondoTrace

extension Experiment {
    static let missedBeats = Experiment(
        "missed-beats", title: "A timer that misses its beats keeps its grid",
        question: """
            A timer repeats every 50 ms. A block keeps the thread busy for 200 ms. How often is the timer called for the \
            beats that it missed, and when is the next one?
            """,
        choices: [
            "Once for each, in a row", "Once for all; then 50 ms later",
            "Once for all; then at the next beat of the grid",
            "Not at all; the timer starts anew",
        ], answer: 2,
        why: """
            A timer's dates are its first date and multiples of its interval. A loop that comes too late calls it once, \
            and sets it to the next date of that grid that is still to come. So lateness never adds up, and a busy loop \
            is not buried under calls.
            """,
        rules: ["TM-4", "TM-5", "TM-2"], body: missedBeatsCode
    ) { evidence in
        let interval: Int64 = 50_000_000
        let beats = evidence.calls("beat").map(\.began)
        guard let made = evidence.notes("made, first beat in 50 ms").first?.began,
            let busy = evidence.notes("busy").first?.began, let free = evidence.notes("free").first?.began
        else { return [Check("the timer was made", false, seen: "it was not")] }
        // The timer was made within a millisecond of the note, and is called at or after its date.
        let numbers = beats.map { ($0 - made + 1_000_000) / interval }
        let during = beats.filter { $0 > busy && $0 < free }
        let missed = (free - made) / interval - (busy - made) / interval
        let late = beats.first { $0 >= free }
        // A machine that is busy with something else may delay one of them.
        let later = beats.filter { beat in late.map { beat > $0 } ?? false }
        let distances = later.map { ($0 - made) % interval }.sorted()
        let distance = distances.isEmpty ? nil : distances[distances.count / 2]
        return [
            Check(
                "while the thread is busy the timer is not called", during.isEmpty && missed >= 2,
                seen:
                    "in \(Evidence.milliseconds(free - busy)) with \(missed) beats it was called \(Evidence.times(during.count))"
            ),
            Check(
                "then once for all that it missed: no beat of the grid is called twice",
                late != nil && Set(numbers).count == numbers.count,
                seen:
                    "\(beats.count) calls, for the beats \(numbers.map(String.init).joined(separator: ", "))"),
            Check(
                "no call comes before its date", numbers.allSatisfy { $0 >= 1 } && !numbers.isEmpty,
                seen:
                    "the first came \(beats.first.map { Evidence.milliseconds($0 - made) } ?? "never") after it was made"
            ),
            Check(
                "the next ones are on the grid again", distance.map { $0 < interval / 2 } ?? false,
                seen: distance.map { "half of them were at most \(Evidence.milliseconds($0)) late" }
                    ?? "there was none"),
        ]
    }
}

// begin missed-beats
@Sendable private func missedBeatsCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    let beat = Timer(timeInterval: 0.05, repeats: true) { _ in }
    stage.note("made, first beat in 50 ms")
    beat.label = "beat"
    loop.add(beat, forMode: .default)

    let busy = Timer(timeInterval: 0.13, repeats: false) { _ in
        stage.note("busy")
        Thread.sleep(forTimeInterval: 0.2)
        stage.note("free")
    }
    busy.label = "busy"
    loop.add(busy, forMode: .default)

    loop.spend(0.5, in: .default)
    beat.invalidate()
}
// end

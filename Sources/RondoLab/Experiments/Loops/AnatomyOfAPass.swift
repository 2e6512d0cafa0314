import Rondo
internal import RondoTrace

extension Experiment {
    static let anatomyOfAPass = Experiment(
        "anatomy-of-a-pass", title: "The anatomy of a pass",
        question: """
            A timer is due, a source is signalled, a block is queued, and an observer watches everything. In what order \
            are they called?
            """,
        choices: [
            "Timer, source, block", "Source, block, timer", "Block, source, timer", "As they were added",
        ],
        answer: 2,
        why: """
            A pass has a fixed order: observers hear beforeTimers and beforeSources, then blocks run, then signalled \
            sources; then, if nothing was served, the loop may sleep; and only then come the timers, the main queue or \
            one descriptor. beforeTimers is an announcement: the timers themselves come last.
            """,
        rules: ["RL-52", "RL-54", "RL-55"], body: anatomyOfAPassCode
    ) { evidence in
        let calls = evidence.recording.records.filter { $0.kind.isCallOut }
        let words = calls.map { call in
            call.kind == .observer
                ? RunLoop.Activity(rawValue: UInt(call.detail)).words
                : call.kind == .block ? "block" : evidence.recording.label(call)
        }
        func order(_ expected: [String], from start: String, _ sentence: String) -> Check {
            let first = words.firstIndex(of: start) ?? words.endIndex
            let seen = Array(words[first...].prefix(expected.count))
            return Check(sentence, seen == expected, seen: seen.joined(separator: " → "))
        }
        return [
            order(
                ["entry", "beforeTimers", "beforeSources", "block", "source"], from: "entry",
                "the first pass: announcements, the block, the source"),
            Check(
                "having served a source it does not sleep, and takes the timer",
                words.firstIndex(of: "timer").map { timer in
                    words.firstIndex(of: "source").map { $0 + 1 == timer } ?? false
                } ?? false,
                seen: words.firstIndex(of: "timer").map {
                    $0 > 0 ? "before the timer came \(words[$0 - 1])" : ""
                }
                    ?? "the timer was not called"),
            order(
                ["beforeWaiting", "afterWaiting"], from: "beforeWaiting",
                "a later pass, with nothing to do, sleeps between beforeWaiting and afterWaiting"),
            Check(
                "exit is last, once", words.last == "exit" && words.count { $0 == "exit" } == 1,
                seen: "the last call was \(words.last ?? "none")"),
        ]
    }
}

// begin anatomy-of-a-pass
@Sendable private func anatomyOfAPassCode(_ stage: Stage) throws {
    let loop = RunLoop.current

    let watcher = RunLoop.Observer(activities: .allActivities) { _, _ in }
    watcher.label = "watcher"
    loop.add(watcher, forMode: .default)

    let timer = Timer(timeInterval: 0, repeats: false) { _ in
        // From now on the loop only sleeps, until this timer stops it.
        let end = Timer(timeInterval: 0.1, repeats: false) { _ in loop.stop() }
        end.label = "end"
        loop.add(end, forMode: .default)
    }
    timer.label = "timer"
    loop.add(timer, forMode: .default)

    let source = RunLoop.Source {}
    source.label = "source"
    loop.add(source, forMode: .default)
    source.signal()

    loop.perform {}

    loop.spend(Stage.patience, in: .default)
}
// end

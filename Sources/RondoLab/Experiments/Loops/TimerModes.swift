import Rondo

extension Experiment {
    static let timerModes = Experiment(
        "timer-modes", title: "A timer in default, and one in the common modes",
        background: """
            A run loop calls only what is scheduled in the mode that it runs in, and that holds for timers too: tracking \
            while the user scrolls, else default.
            """,
        question: """
            Two timers repeat every 20 ms. One was made with scheduledTimer, the other was added for the common modes. \
            The loop runs in tracking. Which of them fires?
            """,
        choices: ["Both", "The scheduled one", "The common one", "Neither"], answer: 2,
        why: """
            scheduledTimer adds to the default mode, and to that alone, so while the user scrolls its date passes and \
            it is not called: the clock above a list that is scrolled stands still, and jumps when the finger lifts. A \
            timer that has to go on is made with init(timeInterval:…) and added for the common modes.
            """,
        rules: ["TM-10", "RL-20", "RL-8"], body: timerModesCode
    ) { evidence in
        [
            .called("scheduled", in: .default, evidence), .called("common", in: .default, evidence),
            .called("common", in: .tracking, evidence), .silent("scheduled", in: .tracking, evidence),
            .waited("scheduled", evidence),
        ]
    }
}

// begin timer-modes
@Sendable private func timerModesCode(_ stage: Stage) throws {
    let loop = RunLoop.current

    let scheduled = Timer.scheduledTimer(withTimeInterval: 0.02, repeats: true) { _ in }
    scheduled.label = "scheduled"

    let common = Timer(timeInterval: 0.02, repeats: true) { _ in }
    common.label = "common"
    loop.add(common, forMode: .common)

    loop.spend(0.15, in: .default)
    loop.spend(0.2, in: .tracking)
    loop.spend(0.15, in: .default)

    scheduled.invalidate()
    common.invalidate()
}
// end

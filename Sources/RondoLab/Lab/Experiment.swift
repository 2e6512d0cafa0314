package import RondoTrace

/// A question about run loops with the code that answers it on this machine, and checks of the code's
/// recording.
package struct Experiment: Sendable {
    /// The name in `rondo lab run NAME`: words with hyphens.
    package let name: String
    package let title: String
    /// An introduction for readers who are new to run loops; may be empty.
    package let background: String
    package let question: String
    /// The predictions that a reader may choose from.
    package let choices: [String]
    /// The index of the right prediction in `choices`.
    package let answer: Int
    /// The explanation of the answer, in a few sentences.
    package let why: String
    /// The numbers of the rules in Documentation/Rules.md that the experiment shows.
    package let rules: [String]
    /// True if the experiment needs the main thread, whose loop drains the main queue.
    package let needsMainThread: Bool
    /// The plot of the experiment's notes; nil if it has none.
    package let plot: Plot?
    let body: @Sendable (Stage) throws -> Void
    let checks: @Sendable (Evidence) -> [Check]

    init(
        _ name: String, title: String, background: String = "", question: String, choices: [String],
        answer: Int, why: String,
        rules: [String], needsMainThread: Bool = false, plot: Plot? = nil,
        body: @escaping @Sendable (Stage) throws -> Void,
        checks: @escaping @Sendable (Evidence) -> [Check]
    ) {
        self.name = name
        self.title = title
        self.background = background
        self.question = question
        self.choices = choices
        self.answer = answer
        self.why = why
        self.rules = rules
        self.needsMainThread = needsMainThread
        self.plot = plot
        self.body = body
        self.checks = checks
    }

    /// The checks of a recording. They are computed from its events alone.
    package func verdict(on recording: Recording) -> Verdict {
        let evidence = Evidence(recording)
        let notes = evidence.ofKind(.mark).map { recording.name($0) }
        let reason = notes.first { $0.hasPrefix(Self.gaveUp) }?.dropFirst(Self.gaveUp.count)
        let end = reason.map { Check("the run comes to its end", false, seen: String($0)) }
        return Verdict(checks: (end.map { [$0] } ?? []) + checks(evidence))
    }

    /// The beginning of the note of a run that waited in vain; the reason follows.
    static let gaveUp = "gave up: "

    /// The source lines of the code that runs.
    package var code: String { Listings.all[name] ?? "" }

    /// The code as a whole program that uses only Rondo's public interface, with helpers and a call at its
    /// end.
    package var program: String {
        let call = code.split(separator: " ").first { $0.contains("Code(") }?.prefix { $0 != "(" } ?? ""
        let parts = ["helpers of \(name)", "stage", "helpers of all"].compactMap { Listings.all[$0] }
        return """
            import Rondo
            import Synchronization

            \(code)

            // The helpers of the code above. Loads need a server: run `rondo lab serve`, and give its address as the first argument.

            \(parts.joined(separator: "\n\n"))

            let stage = Stage()
            try \(call)(stage)
            stage.joinThreads()

            """
    }
}

/// One expectation, and the evidence for or against it.
package struct Check: Sendable, Equatable {
    /// The documented behaviour, as a sentence.
    package let expected: String
    package let holds: Bool
    /// The recorded behaviour, as a sentence.
    package let seen: String

    init(_ expected: String, _ holds: Bool, seen: String) {
        self.expected = expected
        self.holds = holds
        self.seen = seen
    }
}

/// The checks of one run, which together say whether the behaviour is as documented.
package struct Verdict: Sendable, Equatable {
    package let checks: [Check]

    /// A run without checks shows nothing.
    package var isAsDocumented: Bool { !checks.isEmpty && checks.allSatisfy(\.holds) }

    package var words: String { isAsDocumented ? "as documented" : "not as documented" }
}

/// An experiment with the recording and verdict of one run.
package struct Outcome: Sendable {
    package let experiment: Experiment
    package let recording: Recording
    package let verdict: Verdict

    package init(experiment: Experiment, recording: Recording, verdict: Verdict) {
        self.experiment = experiment
        self.recording = recording
        self.verdict = verdict
    }
}

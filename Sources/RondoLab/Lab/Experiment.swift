package import RondoTrace

/// A question about run loops that this machine answers: code that runs, and what its recording has to show.
package struct Experiment: Sendable {
    /// As in `rondo lab run NAME`: words with hyphens.
    package let name: String
    package let title: String
    /// What a reader who has not met run loops before needs to understand the question; may be empty.
    package let background: String
    package let question: String
    /// What a reader may predict.
    package let choices: [String]
    /// The place of the right prediction among them.
    package let answer: Int
    /// Why it is so, in a few sentences.
    package let why: String
    /// The numbers of Documentation/Rules.md that it shows.
    package let rules: [String]
    /// Whether it has to have the main thread, whose loop drains the main queue.
    package let needsMainThread: Bool
    /// What its notes are to be drawn as.
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

    /// What a recording says. It is computed from the events and from nothing else.
    package func verdict(on recording: Recording) -> Verdict {
        let evidence = Evidence(recording)
        let notes = evidence.ofKind(.mark).map { recording.name($0) }
        let reason = notes.first { $0.hasPrefix(Self.gaveUp) }?.dropFirst(Self.gaveUp.count)
        let end = reason.map { Check("the run comes to its end", false, seen: String($0)) }
        return Verdict(checks: (end.map { [$0] } ?? []) + checks(evidence))
    }

    /// How the note of a run begins that waited in vain; the reason follows.
    static let gaveUp = "gave up: "

    /// The lines that ran, as they stand in the source.
    package var code: String { Listings.all[name] ?? "" }

    /// The code as a whole program that uses nothing but Rondo's public interface: with its helpers, and run at the end.
    package var program: String {
        let call = code.split(separator: " ").first { $0.contains("Code(") }?.prefix { $0 != "(" } ?? ""
        let parts = ["helpers of \(name)", "stage", "helpers of all"].compactMap { Listings.all[$0] }
        return """
            import Rondo
            import Synchronization

            \(code)

            // What it uses. Loads need a server: run `rondo lab serve`, and give its address as the first argument.

            \(parts.joined(separator: "\n\n"))

            let stage = Stage()
            try \(call)(stage)
            stage.joinThreads()

            """
    }
}

/// One thing that has to be so, and what was seen of it.
package struct Check: Sendable, Equatable {
    /// What is documented, as a sentence.
    package let expected: String
    package let holds: Bool
    /// What the recording shows, as a sentence.
    package let seen: String

    init(_ expected: String, _ holds: Bool, seen: String) {
        self.expected = expected
        self.holds = holds
        self.seen = seen
    }
}

package struct Verdict: Sendable, Equatable {
    package let checks: [Check]

    /// Nothing was shown where nothing was checked.
    package var isAsDocumented: Bool { !checks.isEmpty && checks.allSatisfy(\.holds) }

    package var words: String { isAsDocumented ? "as documented" : "not as documented" }
}

/// An experiment that has been run.
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

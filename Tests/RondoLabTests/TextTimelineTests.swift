import Rondo
import RondoTrace
import Testing

@testable import RondoLab

/// A recording as lines of text.
struct TextTimelineTests {
    private func recording(modes: [String]) -> Recording {
        var maker = RecordingMaker()
        maker.tables.modes = [""] + modes
        for place in modes.indices {
            let began = Int64(place) * 100_000_000
            maker.add(.entry, began, mode: UInt16(place + 1))
            maker.add(.exit, began + 90_000_000, mode: UInt16(place + 1), detail: 3)
        }
        return maker.recording(ended: Int64(modes.count) * 100_000_000)
    }

    private func lines(_ recording: Recording, colour: Bool = false) -> [String] {
        let terminal = Terminal(
            descriptor: 1, isTerminal: colour,
            environment: colour ? ["LC_ALL": "C.UTF-8", "TERM": "xterm"] : ["LC_ALL": "C"])
        return TextTimeline(recording, terminal: terminal, width: 100).lines
    }

    @Test func `without colour each mode has a letter of its own, in its lane and in the key`() throws {
        let modes = [
            RunLoop.Mode.default.rawValue, RunLoop.Mode.tracking.rawValue, "the modal one", "tt", "modal",
            "Ö",
        ]
        let lines = lines(recording(modes: modes))
        let key = lines.suffix(2).joined(separator: "\n")
        let letters = ["d default", "t tracking", "h the modal one", "0 tt", "m modal", "1 Ö"]
        for letter in letters { #expect(key.contains(letter), "\(letter) in \(key)") }
        let lane = try #require(lines.first { $0.contains("  mode") }).dropFirst(24)
        #expect(
            Array(lane).filter { $0 != " " }.reduce(into: "") { if $0.last != $1 { $0.append($1) } }
                == "dth0m1")
    }

    @Test func `in colour a mode is named where there is room`() throws {
        let lines = lines(recording(modes: [RunLoop.Mode.default.rawValue, "private"]), colour: true)
        let lane = try #require(lines.first { $0.contains("  mode") })
        #expect(lane.contains("━ default ━") && lane.contains("━ private ━"))
    }

    @Test func `of many run loops the first fifty are printed, and the others counted`() {
        var maker = RecordingMaker()
        for number in 2...60 { maker.tables.loops.append(TraceTables.Loop(name: "\(number)", thread: 0)) }
        let lines = lines(maker.recording())
        #expect(lines.count { $0.hasPrefix("run loop of ") } == 50)
        #expect(lines.contains("… and 10 other run loops"))
    }

    @Test func `no name of the program's brings a control character to the terminal`() {
        let name = "a\u{1B}[2J\n\u{7F}\u{9B}b"
        var maker = RecordingMaker()
        maker.tables.loops[1].name = name
        maker.tables.subjects[1].label = name
        maker.tables.modes[1] = name
        maker.add(.entry, 0)
        maker.add(.timer, 10_000_000, 1_000_000, subject: 1)
        maker.add(.exit, 100_000_000, detail: 3)
        let lines = lines(maker.recording(ended: 100_000_000))
        let shown = "a\\x1B[2J\\x0A\\x7F\\x9Bb"
        #expect(lines.count { $0.contains(shown) } == 3)
        #expect(!lines.joined().unicodeScalars.contains { $0.properties.generalCategory == .control })
    }

    @Test func `a lane without a label says so, and notes have a lane`() throws {
        var maker = RecordingMaker()
        maker.add(.entry, 0)
        maker.add(.timer, 10_000_000, 1_000_000)
        maker.add(.block, 20_000_000, 1_000_000)
        maker.add(.mark, 30_000_000, name: 1, loop: 0)
        maker.add(.mark, 60_000_000, name: 1, loop: 0)
        maker.add(.exit, 100_000_000, detail: 3)
        let lines = lines(maker.recording(ended: 100_000_000))
        #expect(lines.contains { $0.contains("timer without a label") && $0.contains("#") })
        #expect(lines.contains { $0.contains("performed blocks") && $0.contains("#") })
        let notes = try #require(lines.first { $0.hasPrefix("  notes") })
        #expect(notes.count { $0 == "|" } == 2)
    }

    /// A line that the terminal breaks makes the next picture begin too low.
    @Test(arguments: [44, 50, 80, 110], [false, true])
    func `an experiment's lines fit the terminal`(columns: Int, hasColour: Bool) throws {
        var maker = RecordingMaker()
        maker.tables.modes[3] = String(repeating: "a mode with a long name ", count: 6)
        maker.tables.loops[1].name = String(repeating: "a thread with a long name ", count: 6)
        for mode in UInt16(1)...3 {
            maker.add(.entry, Int64(mode) * 100_000_000, mode: mode)
            maker.add(.timer, Int64(mode) * 100_000_000, 50_000_000, mode: mode, subject: 1)
            maker.add(.exit, Int64(mode) * 100_000_000 + 90_000_000, mode: mode, detail: 3)
        }
        maker.add(.heldBack, 0, 400_000_000, subject: 2, detail: TraceRecord.Kind.descriptorSource.rawValue)
        maker.add(.mark, 60_000_000, name: 1, loop: 0)
        let recording = maker.recording(ended: 400_000_000)
        let sentence =
            "the documented behaviour, in a sentence that is longer than any terminal is wide, and longer"
        let verdict = Verdict(checks: [
            Check(sentence, true, seen: sentence), Check(sentence, false, seen: sentence),
        ])
        try withFile { file in
            let descriptor = open(file, O_WRONLY | O_CREAT, 0o600)
            try #require(descriptor >= 0)
            defer { close(descriptor) }
            let terminal = Terminal(
                descriptor: descriptor, isTerminal: true,
                environment: hasColour ? ["LC_ALL": "C.UTF-8"] : ["LC_ALL": "C", "NO_COLOR": "1"],
                fixedSize: (columns, 24))
            let view = ExperimentView(terminal: terminal)
            for experiment in Experiment.all {
                view.begin(experiment)
                // Nil on a terminal where the cursor cannot be moved.
                let live = view.live()
                live?(recording, false)
                live?(recording, true)
                _ = view.ask(experiment, maySkip: false) { nil }
                let outcome = Outcome(experiment: experiment, recording: recording, verdict: verdict)
                view.end(outcome, prediction: nil, showsCode: false)
                for prediction in 0...1 { view.end(outcome, prediction: prediction, showsCode: false) }
            }
            let text = try String(contentsOfFile: file, encoding: .utf8)
            #expect(text.contains("not as documented"))
            for line in text.replacing(/\u{1B}\[[0-9;]*[A-Za-z]|\r/, with: "").split(separator: "\n") {
                #expect(line.count <= columns, "\(line)")
            }
        }
    }

    @Test func `a question fits a narrow terminal, but for words that do not`() throws {
        try withFile { file in
            let descriptor = open(file, O_WRONLY | O_CREAT, 0o600)
            try #require(descriptor >= 0)
            defer { close(descriptor) }
            let view = ExperimentView(
                terminal: Terminal(
                    descriptor: descriptor, isTerminal: true, environment: ["NO_COLOR": "1"],
                    fixedSize: (30, 24)))
            for experiment in Experiment.all {
                view.begin(experiment)
                for maySkip in [false, true] { _ = view.ask(experiment, maySkip: maySkip) { nil } }
            }
            for line in try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n") {
                // A margin has seven columns at most.
                #expect(line.count <= 30 || !line.dropFirst(7).contains(" "), "\(line)")
            }
        }
    }
}

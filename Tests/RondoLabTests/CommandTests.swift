import Foundation
import RondoLab
import RondoTestSupport
import RondoTrace
import Testing

/// `rondo lab` and `rondo trace`, as processes.
struct LabCommandTests {
    private func withFile(_ body: (String) throws -> Void) rethrows {
        let file = NSTemporaryDirectory() + "/rondo-lab-test-\(UUID().uuidString)"
        defer { unlink(file) }
        try body(file)
    }

    @Test func `the list names every experiment`() throws {
        let lines = try Tool.run(["lab", "list"]).split(separator: "\n")
        #expect(lines.count == Experiment.all.count)
        for (line, experiment) in zip(lines, Experiment.all) {
            #expect(line.hasPrefix(experiment.name + " "))
        }
    }

    @Test func `a run prints question, timeline, what was seen, why, and the code`() throws {
        try withFile { page in
            let output = try Tool.run(["lab", "run", "timer-modes", "--code", "--html", page])
            for part in [
                "Two timers repeat", "run loop of lab", "What was seen", "Why", "scheduledTimer",
                "as documented",
            ] {
                #expect(output.contains(part), "\(part)")
            }
            // Plain, where it is no terminal.
            #expect(!output.contains("\u{1B}"))
            #expect(try String(contentsOfFile: page, encoding: .utf8).hasPrefix("<!doctype html>"))
        }
    }

    @Test func `a run can write Chrome's trace events`() throws {
        try withFile { file in
            _ = try Tool.run(["lab", "run", "anatomy-of-a-pass", "--json", file])
            let data = try Data(contentsOf: URL(fileURLWithPath: file))
            let object = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
            #expect((object["traceEvents"] as? [Any])?.isEmpty == false)
        }
    }

    @Test func `an unknown experiment is bad usage, and so is a quiz without an answer`() {
        #expect(throws: (any Error).self) { try Tool.run(["lab", "run", "no-such-thing"]) }
        #expect(throws: (any Error).self) { try Tool.run(["lab", "run", "timer-modes", "--quiz"]) }
    }

    @Test func `a program is recorded without changing it`() throws {
        try withFile { file in
            let path = try Tool.path
            // The program that is recorded is another experiment, which has a recorder of its own besides.
            let output = try Tool.run([
                "trace", "--json", file, "--", path, "serve", "--size", "1", "--until-stdin-closes",
            ])
            #expect(output.contains("listening"))
            let text = try String(contentsOfFile: file, encoding: .utf8)
            #expect(text.contains("traceEvents"))
        }
    }

    @Test func `RONDO_TRACE records from the first loop to the last, and no child process`() throws {
        try withFile { file in
            _ = try TestServerProcess.run([
                "env", "RONDO_TRACE=\(file)", try Tool.path, "demo", "--json", "--size", "200k", "--rate",
                "400k",
                "--span", "0.1",
            ])
            let recording = try Recording(file: Array(Data(contentsOf: URL(fileURLWithPath: file))))
            let calls = recording.records.filter {
                $0.kind == .delegate && recording.name($0) == "didReceive data"
            }
            #expect(!calls.isEmpty && calls.allSatisfy { recording.threadName($0.thread) == "main" })
            // Connections without a label are known by host and path.
            let sources = recording.records.filter { $0.kind == .descriptorSource }
            #expect(!sources.isEmpty && sources.allSatisfy { recording.label($0) == "127.0.0.1/bytes" })
            let ends = recording.records.filter { recording.name($0) == "connectionDidFinishLoading" }
            #expect(ends.count == 2)
            let modes = Set(
                recording.activations.map {
                    recording.modeName(TraceRecord(kind: .entry, began: 0, mode: $0.mode))
                })
            #expect(modes.isSuperset(of: ["default", "tracking"]))
            // A loop of Rondo's own may still run when the program ends.
            let own = recording.activations.filter { recording.loopName($0.loop) == "main" }
            #expect(!own.isEmpty && own.allSatisfy { $0.result != nil })
        }
    }

    /// What begins to record is found by the constructor through a weak symbol, which no symbol table may be needed
    /// for.
    @Test func `a program without its symbols is recorded as well`() throws {
        try withFile { file in
            let program = file + "-stripped"
            defer { unlink(program) }
            _ = try TestServerProcess.run(["strip", "-o", program, try Tool.path])
            // LeakSanitizer, where it watches, knows by symbols what is no leak.
            _ = try TestServerProcess.run([
                "env", "RONDO_TRACE=\(file)", "ASAN_OPTIONS=detect_leaks=0", program, "demo", "--json",
                "--size", "200k", "--rate", "400k", "--span", "0.1",
            ])
            let recording = try Recording(file: Array(Data(contentsOf: URL(fileURLWithPath: file))))
            #expect(recording.activations.contains { recording.loopName($0.loop) == "main" })
        }
    }

    @Test func `a file that cannot be written, or is no recording, is said so`() {
        #expect(throws: (any Error).self) {
            try Tool.run(["lab", "run", "timer-modes", "--html", "/no/such/folder/page.html"])
        }
        #expect(throws: (any Error).self) { try Tool.run(["trace", "--from", "/etc/passwd"]) }
        #expect(throws: (any Error).self) { try Tool.run(["trace"]) }
    }
}

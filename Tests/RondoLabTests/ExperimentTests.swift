import Foundation
import Rondo
import RondoTestSupport
import RondoTrace
import Testing

@testable import RondoLab

/// Each experiment is run, has to be as documented, and has to say so of no recording in which it is not.
@Suite(.serialized) struct ExperimentTests {
    private static let alterations: [String: [Alteration]] = [
        "scrolling-stalls": [
            .called("load", in: "tracking"), .lost("load"), .neverWaited("load"), .neverRan("tracking"),
            .neverCalled("load"),
        ],
        "common-modes": [
            .neverCalled("B, common", in: "tracking"), .called("A, default", in: "tracking"),
            .lost("A, default"), .lost("B, common"), .neverWaited("A, default"),
        ],
        "timer-modes": [
            .called("scheduled", in: "tracking"), .neverCalled("common", in: "tracking"),
            .neverCalled("scheduled"), .neverWaited("scheduled"),
        ],
        "schedule-after-start": [
            .called("load", in: "tracking"), .lost("load"), .neverWaited("load"),
            .neverNoted("scheduled in the common modes, too late"),
        ],
        "thread-without-loop": [
            Alteration("the silent thread is called") { recording in
                let silent = recording.tables.subjects.firstIndex { $0.label == "on the silent thread" } ?? 0
                recording.repeatFirst(where: { $1.kind == .delegate && $0.name($1) != "" }) { _, record in
                    record.subject = UInt32(silent)
                }
                recording.tables.subjects[silent].kind = .delegate
            },
            Alteration("the silent loop runs") { recording in
                recording.repeatFirst(where: { $1.kind == .entry }) { whole, record in
                    record.loop = whole.place(ofLoop: "silent")
                }
            },
            .lost("on the thread that runs"), .neverWaited("on the silent thread"),
        ],
        "anatomy-of-a-pass": [
            Alteration("the timer is called before the block") { recording in
                let block = recording.records.first { $0.kind == .block }?.began ?? 0
                recording.change(where: { $0.isCall($1, "timer") }) { $0.began = block - 1 }
            },
            Alteration("beforeSources is sent before beforeTimers") { recording in
                let first = recording.records.first { $0.kind == .observer && $0.detail == 2 }?.began ?? 0
                recording.change(where: { $1.kind == .observer && $1.detail == 4 }) { $0.began = first - 1 }
            },
            Alteration("exit is sent twice") { recording in
                recording.repeatFirst(where: { $1.kind == .observer && $1.detail == 128 }) { $1.began += 1 }
            },
            .neverCalled("source"),
        ],
        "run-cannot-be-stopped": [
            Alteration("the second stop ends run()") { recording in
                let loop = recording.place(ofLoop: "worker")
                let ends = recording.records.filter { $0.loop == loop && $0.kind == .exit }.map(\.began)
                recording.remove { $1.loop == loop && $1.began > ends[1] }
            },
            .ended(.stopped, as: .timedOut), .neverNoted("run() returned"),
            .neverNoted("run() without a port returned"), .moved("port taken out", by: 60_000),
        ],
        "child-ends-meanwhile": [
            .called("child", in: "tracking"), .neverCalled("child"), .neverWaited("child"),
            .neverNoted("told, exit code"), .neverNoted("ended"),
            Alteration("the exit code is lost") { recording in
                recording.change(where: { $0.isNote($1, "told, exit code") }) { $0.duration = 0 }
            },
        ],
        "notification-when-idle": [
            .neverNoted("posted"), .neverNoted("enqueued"), .neverNoted("block"), .repeated("posted"),
            .moved("posted", by: -60_000),
            Alteration("the first value is posted") { recording in
                recording.change(where: { $0.isNote($1, "posted") }) { $0.duration = 1 }
            },
        ],
        "foundation-timer": [
            .neverCalled("own"), .neverNoted("Foundation's timer"), .neverNoted("with the bridge"),
            .neverNoted("bridge ended"), .moved("Foundation's timer", by: -60_000),
            .moved("Foundation's timer", by: 60_000),
            Alteration("Foundation's timer fires on another thread") { recording in
                recording.change(where: { $0.isNote($1, "Foundation's timer") }) { $0.thread += 1 }
            },
        ],
        "session-on-a-mode": [
            .called("task", in: "tracking"), .neverRan("tracking"), .neverWaited("task"),
            .neverCalled("task"), .neverNoted("bytes"),
            Alteration("the task never ends") { recording in
                recording.remove { $0.isCall($1, "task") && $0.name($1) == "didCompleteWithError" }
            },
            Alteration("a byte is lost") { recording in
                recording.change(where: { $0.isNote($1, "bytes") }) { $0.duration -= 1 }
            },
        ],
        "slow-delegate": [
            Alteration("all of it waits in the queue") { recording in
                recording.change(where: { $0.isNote($1, "received while the delegate slept") }) {
                    $0.duration = 32 << 20
                }
            },
            Alteration("a byte is lost") { recording in
                recording.change(where: { $0.isNote($1, "received at the end") }) { $0.duration -= 1 }
            },
            .neverNoted("received while the delegate slept"), .neverNoted("received at the end"),
        ],
        "handler-thread": [
            .neverNoted("handler, own queue"), .neverNoted("handler, run loop"), .neverNoted("all asked"),
            .repeated("handler, own queue"),
            Alteration("the handler of the run loop comes on another thread") { recording in
                let other =
                    recording.records.first { recording.isNote($0, "handler, own queue") }?.thread ?? 0
                recording.change(where: { $0.isNote($1, "handler, run loop") }) { $0.thread = other }
            },
        ],
        "polling-loop": [
            .ended(.stopped, as: .timedOut), .ended(.timedOut, as: .handledSource),
            .neverNoted("stopped has noticed"), .neverNoted("polling has noticed"),
        ],
        "nested-loops": [
            .called("beat", in: "modal"), .ended(.stopped, as: .timedOut), .ended(.timedOut, as: .stopped),
            .neverRan("modal"), .neverWaited("beat"),
        ],
        "stop-the-wrong-loop": [
            Alteration("the wrong stop ends the run") { recording in
                let loop = recording.place(ofLoop: "worker")
                let wrong = recording.records.first { $0.kind == .stop && $0.loop != loop }?.began ?? 0
                recording.change(where: { $1.kind == .exit && $1.loop == loop }) { $0.began = wrong + 1000 }
            },
            .ended(.stopped, as: .finished), .lost("load"),
            Alteration("no other loop was stopped") { recording in
                recording.remove { $1.kind == .stop && $1.loop != $0.place(ofLoop: "worker") }
            },
        ],
        "delegate-queue": [
            Alteration("a callback comes on the loop's thread") { recording in
                let own = recording.tables.threads.firstIndex(of: "lab") ?? 0
                recording.change(where: { $1.kind == .delegate }) { $0.thread = UInt16(own) }
            },
            Alteration("the load is served in tracking") { recording in
                recording.repeatFirst(where: { $0.isCall($1, "load") && $1.kind != .delegate }) {
                    whole, record in
                    record.began = whole.middle(of: "tracking")
                    record.mode = whole.place(ofMode: "tracking")
                }
            },
            .lost("load"), .neverWaited("load"),
        ],
        "synchronous-request": [
            .called("beat", in: "RondoSynchronousRequest"), .neverRan("RondoSynchronousRequest"),
            .neverWaited("beat"), .neverCalled("beat"), .neverNoted("bytes"),
        ],
        "missed-beats": [
            Alteration("every missed beat is made up for") { recording in
                let free = recording.records.first { recording.isNote($0, "free") }?.began ?? 0
                recording.repeatFirst(where: { $0.isCall($1, "beat") && $1.began > free }) {
                    $1.began += 1000
                }
            },
            Alteration("the grid begins anew after the late call") { recording in
                let free = recording.records.first { recording.isNote($0, "free") }?.began ?? 0
                let made =
                    recording.records.first { recording.isNote($0, "made, first beat in 50 ms") }?.began ?? 0
                recording.change(all: true, where: { $0.isCall($1, "beat") && $1.began > free + 5_000_000 }) {
                    $0.began += 30_000_000 - ($0.began - made) % 50_000_000
                }
            },
            Alteration("a call comes before its date") { recording in
                recording.change(where: { $0.isCall($1, "beat") }) { $0.began -= 40_000_000 }
            },
            .neverCalled("beat"),
        ],
        "perform-and-wake-up": [
            Alteration("the block comes without a wake-up") { recording in
                let asked =
                    recording.records.first { recording.isNote($0, "queued without a wake-up") }?.began ?? 0
                recording.change(where: { $0.isNote($1, "the silent block") }) { $0.began = asked + 1000 }
            },
            Alteration("the block comes on the other thread") { recording in
                recording.change(where: { $0.isNote($1, "the waking block") }) { $0.thread = 0 }
            },
            .neverNoted("the waking block"), .neverNoted("the silent block"),
            .moved("the waking block", by: 10_000),
        ],
        "one-event-until-you-read": [
            .repeated("hasBytesAvailable"), .neverNoted("hasBytesAvailable"),
            .moved("read one byte", by: -10_000),
            .neverNoted("wrote"),
        ],
        "redirects": [
            Alteration("the refused redirect is followed") { recording in
                recording.change(where: { $0.isNote($1, "refused: status") }) { $0.duration = 200 }
            },
            Alteration("the followed redirect is shown") { recording in
                recording.repeatFirst(where: { $0.isNote($1, "allowed: status") }) { $1.duration = 302 }
            },
            .lost("refused"), .neverNoted("changed: status"), .neverCalled("allowed"),
        ],
        "save-a-download": [
            Alteration("URLDownload collects in memory") { recording in
                recording.change(where: { $0.isNote($1, "memory, URLDownload") }) { $0.duration = 40 << 20 }
            },
            Alteration("a byte is lost") { recording in
                recording.change(where: { $0.isNote($1, "saved, output stream") }) { $0.duration -= 1 }
            },
            .neverNoted("memory, in memory"), .neverNoted("memory, file handle"),
            .neverNoted("saved, file handle"),
        ],
        "late-challenge": [
            Alteration("the response comes before the answer") { recording in
                recording.change(where: { $1.kind == .delegate && $0.name($1) == "didReceive response" }) {
                    $0.began = 0
                }
            },
            Alteration("the callback waits for the answer") { recording in
                let answered = recording.records.first { recording.isNote($0, "answered") }?.began ?? 0
                recording.change(where: { $0.name($1) == "challenge" }) { $0.duration = answered - $0.began }
            },
            .neverCalled("beat"), .lost("load"), .neverNoted("answered"), .neverNoted("status"),
        ],
        "upload-with-progress": [
            Alteration("the pair takes the whole body at once") { recording in
                let first = recording.records.first { recording.isNote($0, "body, sent") }?.began ?? 0
                recording.change(all: true, where: { $0.isNote($1, "body, written") }) {
                    $0.began = first - 1
                }
            },
            Alteration("the body is collected before it is sent") { recording in
                let last = recording.records.last { recording.isNote($0, "body, written") }?.began ?? 0
                recording.change(all: true, where: { $0.isNote($1, "body, sent") && $1.began < last }) {
                    $0.began = last + 1
                }
            },
            Alteration("a byte is lost") { recording in
                recording.change(where: { $0.isNote($1, "the server received") }) { $0.duration -= 1 }
            },
            Alteration("a total falls") { recording in
                recording.repeatFirst(where: { $0.isNote($1, "body, sent") }) { whole, record in
                    record.began = whole.ended
                    record.duration -= 1
                }
            },
            .lost("upload"),
        ],
        "mixed-replace": [
            Alteration("a part has no response of its own") { recording in
                let last = recording.records.last { recording.isNote($0, "response text/html") }
                recording.remove { $1 == last }
            },
            Alteration("data of the outer response are delivered") { recording in
                let first = recording.records.first { recording.name($0) == "didReceive response" }
                recording.change(where: { $0.name($1) == "didReceive data" }) {
                    [began = first?.began ?? 0] in
                    $0.began = began + 1
                }
            },
            Alteration("a byte is lost") { recording in
                recording.change(where: { $0.isNote($1, "bytes of the part") }) { $0.duration -= 1 }
            },
            .lost("camera"), .neverNoted("response multipart/x-mixed-replace"),
        ],
        "cache-policies": [
            Alteration("the cache answers inside start()") { recording in
                let end = recording.ended
                recording.change(
                    all: true, where: { $0.isCall($1, "2 else load") && $1.kind == .delegate }
                ) { $0.began = end + 1 }
            },
            Alteration("the failure is another one") { recording in
                recording.change(where: { $0.isNote($1, "error") }) { $0.duration = -1001 }
            },
            .neverNoted("0 protocol, fresh: version"),
            .neverNoted("3 don't load, missing: requests"),
            .neverNoted("4 reload, all, fresh: caches on the way were told"),
        ],
        "two-loops-one-source": [
            Alteration("both loops perform one signal") { recording in
                recording.repeatFirst(where: { $0.isCall($1, "work") }) { $1.began += 1 }
            },
            .neverCalled("work"), .neverNoted("signalled"),
        ],
        "actor-on-a-mode": [
            Alteration("the actor works in default") { recording in
                let middle = recording.middle(of: "default")
                recording.change(where: { $0.isNote($1, "the actor works") }) { $0.began = middle }
            },
            Alteration("the actor works on another thread") { recording in
                recording.change(where: { $0.isNote($1, "the actor works") }) { $0.thread = 0 }
            },
            .neverNoted("the actor works"),
        ],
        "main-queue": [
            Alteration("the queue is drained in a private mode") { recording in
                recording.change(where: { $1.kind == .mainQueue }) {
                    [mode = recording.place(ofMode: "modal")] in
                    $0.mode = mode
                }
            },
            .moved("the second block", by: -90), .neverCalled("timer"), .neverNoted("the second block"),
        ],
    ]

    // MARK: -

    private func check(_ outcome: (recording: Recording, verdict: Verdict), of experiment: Experiment) throws
    {
        for check in outcome.verdict.checks where !check.holds {
            Issue.record("\(experiment.name): \(check.expected): \(check.seen)")
        }
        #expect(outcome.verdict.isAsDocumented)
        let alterations = try #require(Self.alterations[experiment.name])
        #expect(!alterations.isEmpty)
        for alteration in alterations {
            let verdict = experiment.verdict(on: alteration(outcome.recording))
            #expect(!verdict.isAsDocumented, "\(experiment.name) does not notice that \(alteration)")
        }
        var nothing = outcome.recording
        nothing.records = []
        #expect(!experiment.verdict(on: nothing).isAsDocumented)
    }

    /// In a process of its own: other tests run other loops in this one, and some experiments need the main
    /// thread, or measure the process.
    @Test(arguments: Experiment.all.map(\.name))
    func `an experiment is as documented, and with changed behaviour it is not`(name: String) throws {
        let experiment = try #require(Experiment.named(name))
        let file = NSTemporaryDirectory() + "/rondo-lab-test-\(UUID().uuidString)"
        defer { unlink(file) }
        let output = try Tool.run(["lab", "run", name, "--save", file])
        #expect(output.contains("as documented"))
        let recording = try Recording(file: Array(Data(contentsOf: URL(fileURLWithPath: file))))
        try check((recording, experiment.verdict(on: recording)), of: experiment)
    }

    @Test func `each way to save a download has a lane of its own, by its name`() throws {
        let lines = try Tool.run(["lab", "run", "save-a-download"]).components(separatedBy: "\n")
        let picture = lines.drop { !$0.hasPrefix("  run loop of") }.prefix { !$0.hasPrefix("  Memory") }
        for way in ["output stream", "file handle", "URLDownload", "in memory"] {
            #expect(picture.contains { $0.hasPrefix("    \(way) ") }, "\(way)")
        }
    }

    @Test func `every experiment has alterations, a question, and the code of its source`() throws {
        #expect(Set(Self.alterations.keys) == Set(Experiment.all.map(\.name)))
        #expect(Set(Experiment.all.map(\.name)).count == Experiment.all.count)
        let rules = try String(contentsOf: Repository.file("Documentation/Rules.md"), encoding: .utf8)
        var code: [String: String] = [:]
        for file in try Repository.swiftFiles(below: "Sources/RondoLab/Experiments") {
            let text = try String(contentsOf: file, encoding: .utf8)
            for part in text.components(separatedBy: "\n// begin ").dropFirst() {
                let lines = part.components(separatedBy: "\n")
                code[lines[0]] = lines.dropFirst().prefix { $0 != "// end" }.joined(separator: "\n")
            }
        }
        for experiment in Experiment.all {
            #expect(experiment.code == code[experiment.name], "run Scripts/listings")
            #expect(experiment.choices.indices.contains(experiment.answer) && experiment.choices.count > 2)
            for rule in experiment.rules {
                #expect(rules.contains("**\(rule)**"), "\(experiment.name): \(rule)")
            }
            #expect(experiment.code.split(separator: "\n").count <= 40, "\(experiment.name) is long")
        }
        #expect(Set(code.keys) == Set(Experiment.all.map(\.name)))
    }

    @Test func `the program of each experiment compiles with the public interface alone`()
        throws
    {
        let folder = URL(fileURLWithPath: NSTemporaryDirectory() + "/rondo-lab-programs-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // What is left of it is in a temporary folder.
        defer { try? FileManager.default.removeItem(at: folder) }
        for experiment in Experiment.all {
            let file = folder.appendingPathComponent(experiment.name + ".swift")
            try experiment.program.write(to: file, atomically: true, encoding: .utf8)
        }
        let modules = try BuiltFiles.path("Modules")
        let said = try TestServerProcess.run([
            "python3", Repository.file("Scripts/snippets").path, "--programs", folder.path, "--modules",
            modules,
        ])
        #expect(said.contains("\(Experiment.all.count) are right"))
    }

    @Test func `an experiment that waits in vain is not as documented, and says what it waited for`() throws {
        let experiment = Experiment(
            "in-vain", title: "", question: "", choices: [], answer: 0, why: "", rules: [],
            body: { stage in try stage.run(.current, .work) { false } },
            checks: { _ in [Check("all else is well", true, seen: "it is")] })
        let outcome = try InstrumentTurn.take { try Runner.run(experiment) }
        #expect(!outcome.verdict.isAsDocumented)
        #expect(
            outcome.verdict.checks.map(\.seen) == ["the run loop had nothing to wait for in work", "it is"])
    }

    @Test func `a verdict without checks is not as documented`() {
        #expect(!Verdict(checks: []).isAsDocumented)
    }
}

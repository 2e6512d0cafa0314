import RondoCore
import RondoTestSupport
import Testing

/// The warning about loops that are not run. Each test runs in a process of its own, since a process has one log handler.
@Suite struct UnservedWarningTests {
    @Test func `a loop that is not run is warned about once, with its thread and its members`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin("rondo.core")
            RunLoop.unservedWarningDelay = 0.01
            let end = Latch()
            let thread = LoopThread { loop in
                let source = RunLoop.Source {}
                source.label = "download"
                loop.add(source, forMode: .work)
                loop.add(RunLoop.Source {}, forMode: .work)
                loop.add(Timer(timeInterval: 1000, repeats: false) { _ in }, forMode: .other)
                loop.perform(inModes: [.common]) {}
                end.waitOrRecord()
            }
            let first = try waitFor("the warning") { LogCatcher.log.entries.first }
            precondition(first.hasPrefix("warning: The run loop of thread "), first)
            precondition(first.contains("has not been run for 0.01 s"), first)
            precondition(
                first.contains("work: 2 sources (download); other: 1 timer; the common modes: blocks"), first)
            // Once for each loop; the warning about a later loop shows that no second one is to come.
            try thread.loop.add(RunLoop.Source {}, forMode: .default)
            let other = LoopThread { loop in
                loop.perform {}
                end.waitOrRecord()
            }
            try waitFor("the other warning") { LogCatcher.log.entries.count > 1 ? () : nil }
            let entries = LogCatcher.log.entries
            precondition(entries.count == 2 && entries[1].contains("default: blocks"), "\(entries)")
            end.open()
            try thread.value()
            try other.value()
        }
    }

    @Test func `a warning names the first modes and labels, and says how many more there are`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin("rondo.core")
            RunLoop.unservedWarningDelay = 0.01
            let end = Latch()
            let thread = LoopThread { loop in
                for number in 0..<100 {
                    let source = RunLoop.Source {}
                    source.label = "label \(number)"
                    loop.addUnwatched(source, forMode: .work)
                    loop.addUnwatched(source, forMode: RunLoop.Mode("mode \(number)"))
                }
                loop.add(RunLoop.Source {}, forMode: .work)
                end.waitOrRecord()
            }
            let warning = try waitFor("the warning") { LogCatcher.log.entries.first }
            precondition(warning.contains("work: 101 sources (label 0, label 1, label 10, "), warning)
            precondition(warning.contains(", and 92 more labels); mode 0: 1 source"), warning)
            precondition(warning.contains("; mode 6: 1 source (label 6); and 93 more modes. Run it"), warning)
            end.open()
            try thread.value()
        }
    }

    @Test func `RL-12 the warning names the empty mode that the loop was run in`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin("rondo.core")
            RunLoop.unservedWarningDelay = 0.01
            let end = Latch()
            let thread = LoopThread { loop in
                loop.poll(.other)
                loop.add(Port(), forMode: .work)
                end.waitOrRecord()
            }
            let entry = try waitFor("the warning") { LogCatcher.log.entries.first }
            precondition(entry.contains("work: 1 source"), entry)
            precondition(
                entry.contains(
                    ". It was run in other, found it empty and returned at once: run it in a mode "),
                entry)
            end.open()
            try thread.value()
        }
    }

    @Test func `a loop that runs or is empty is not warned about`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin("rondo.core")
            RunLoop.unservedWarningDelay = 1
            let end = Latch()
            let running = LoopThread { loop in
                // Before its run, and while it runs.
                loop.add(Port(), forMode: .work)
                return loop.runOn(.work)
            }
            let loop = try running.loop
            try loop.waitUntilAsleep()
            loop.add(RunLoop.Source {}, forMode: .other)
            let emptied = LoopThread { loop in
                let timer = Timer(timeInterval: 1000, repeats: false) { _ in }
                loop.add(timer, forMode: .work)
                timer.invalidate()
                // There is no member that waits for this run.
                loop.add(RunLoop.Observer(activities: .entry) { _, _ in }, forMode: .work)
                end.waitOrRecord()
            }
            _ = try emptied.loop
            // Looked at after the others.
            let late = LoopThread { loop in
                loop.add(Port(), forMode: .inner)
                end.waitOrRecord()
            }
            try waitFor("the late loop's warning") { LogCatcher.log.entries.isEmpty ? nil : () }
            precondition(LogCatcher.log.entries.count == 1, "\(LogCatcher.log.entries)")
            precondition(LogCatcher.log.entries[0].contains("inner: 1 source"), "\(LogCatcher.log.entries)")
            // A member that is added later is warned about.
            try emptied.loop.add(Timer(timeInterval: 1000, repeats: false) { _ in }, forMode: .other)
            try waitFor("the emptied loop's warning") { LogCatcher.log.entries.count == 2 ? () : nil }
            precondition(LogCatcher.log.entries[1].contains("other: 1 timer"), "\(LogCatcher.log.entries)")
            end.open()
            loop.stop()
            try running.value()
            try emptied.value()
            try late.value()
        }
    }

    @Test func `a loop that was run once and never again is warned about`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin("rondo.core")
            RunLoop.unservedWarningDelay = 0.05
            let end = Latch()
            let left = LoopThread { loop in
                loop.add(Port(), forMode: .work)
                loop.poll(.work)
                end.waitOrRecord()
            }
            try waitFor("the warning") { LogCatcher.log.entries.isEmpty ? nil : () }
            precondition(LogCatcher.log.entries[0].contains("work: 1 source"), "\(LogCatcher.log.entries)")
            end.open()
            try left.value()
        }
    }

    @Test func `a loop that still holds a member is warned about after its last run`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin("rondo.core")
            RunLoop.unservedWarningDelay = 0.05
            let end = Latch()
            let left = LoopThread { loop in
                loop.add(Port(), forMode: .work)
                _ = loop.runOn(.work)
                end.waitOrRecord()
            }
            try left.loop.waitUntilAsleep()
            // Looked at after the loop that runs.
            let other = LoopThread { loop in
                loop.add(Port(), forMode: .inner)
                end.waitOrRecord()
            }
            try waitFor("the other loop's warning") { LogCatcher.log.entries.isEmpty ? nil : () }
            precondition(LogCatcher.log.entries[0].contains("inner: 1 source"), "\(LogCatcher.log.entries)")
            try left.loop.stop()
            try waitFor("the warning") { LogCatcher.log.entries.count == 2 ? () : nil }
            precondition(LogCatcher.log.entries[1].contains("work: 1 source"), "\(LogCatcher.log.entries)")
            end.open()
            try left.value()
            try other.value()
        }
    }

    @Test func `without a delay there is no warning`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin("rondo.core")
            RunLoop.unservedWarningDelay = nil
            let (added, end) = (Latch(), Latch())
            let silent = LoopThread { loop in
                loop.add(Port(), forMode: .work)
                added.open()
                end.waitOrRecord()
            }
            try added.wait()
            RunLoop.unservedWarningDelay = 0.01
            let late = LoopThread { loop in
                loop.add(Port(), forMode: .inner)
                end.waitOrRecord()
            }
            try waitFor("the late loop's warning") { LogCatcher.log.entries.isEmpty ? nil : () }
            precondition(
                LogCatcher.log.entries.allSatisfy { $0.contains("inner: 1 source") },
                "\(LogCatcher.log.entries)")
            end.open()
            try silent.value()
            try late.value()
        }
    }
}

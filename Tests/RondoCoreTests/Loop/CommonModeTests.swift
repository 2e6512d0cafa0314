import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct CommonModeTests {
    @Test func `RL-18 the common name is no mode to run in`() throws {
        let log = EventLog()
        let results = try onLoopThread { loop in
            loop.addSignalled("source", to: log, mode: .common)
            log.observe(of: loop, in: .common)
            loop.perform(inModes: [.common]) { log.note("block") }
            let ran = loop.run(mode: .common, before: .distantFuture)
            let result = loop.runOn(.common)
            return "\(ran) \(result) \(loop.limitDate(forMode: .common) == nil)"
        }
        #expect(results == "false finished true")
        #expect(log.entries == [])
    }

    @Test func `RL-18 a run in the common modes is logged once for each loop`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin("rondo.core")
            RunLoop.unservedWarningDelay = nil
            for _ in 1...2 {
                try onLoopThread { loop in
                    loop.add(Port(), forMode: .common)
                    _ = loop.run(mode: .common, before: .distantFuture)
                    loop.poll(.common)
                }
            }
            let entries = LogCatcher.log.entries
            precondition(entries.count == 2, "\(entries)")
            for entry in entries {
                precondition(
                    entry.contains(" was to be run in the common modes, and returned at once: "), entry)
                precondition(entry.hasSuffix("Run it in one of the common modes, such as default."), entry)
            }
        }
    }

    @Test func `RL-19 default and tracking are common from the start, and no other`() throws {
        let modes = try onLoopThread { loop in
            loop.add(Port(), forMode: .work)
            loop.add(Port(), forMode: .default)
            loop.add(Port(), forMode: .tracking)
            let log = EventLog()
            let source = RunLoop.Source { log.note(loop.currentMode?.rawValue ?? "none") }
            loop.add(source, forMode: .common)
            for mode in [RunLoop.Mode.work, .tracking, .default] {
                source.signal()
                loop.poll(mode)
            }
            return log.entries
        }
        #expect(modes == [RunLoop.Mode.tracking.rawValue, RunLoop.Mode.default.rawValue])
    }

    @Test func `RL-20 a member added under the common name is in every common mode`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            loop.addCommonMode(.work)
            let source = RunLoop.Source { log.note("source") }
            let timer = Timer(fire: .distantPast, interval: 0, repeats: false) { _ in log.note("timer") }
            loop.add(source, forMode: .common)
            loop.add(timer, forMode: .common)
            loop.add(pipe.source("descriptor", to: log), forMode: .common)
            log.observe(.exit, of: loop, in: .common)
            for mode in [RunLoop.Mode.default, .tracking, .work] {
                log.note(mode.rawValue)
                source.signal()
                pipe.write()
                loop.perform(inModes: [.common]) { log.note("block") }
                loop.poll(mode)
            }
            return log.entries
        }
        #expect(
            entries == [
                RunLoop.Mode.default.rawValue, "block", "source", "timer", "descriptor", "exit",
                RunLoop.Mode.tracking.rawValue, "block", "source", "descriptor", "exit",
                RunLoop.Mode.work.rawValue, "block", "source", "descriptor", "exit",
            ])
    }

    @Test func `RL-21 a mode that becomes common gets the common members`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            let source = loop.addSignalled("source", to: log, mode: .common)
            loop.addDueTimer("timer", to: log, mode: .common)
            log.observe(.entry, of: loop, in: .common)
            pipe.write()
            loop.add(pipe.source("descriptor", to: log), forMode: .common)
            loop.perform(inModes: [.common]) { log.note("block") }
            let before = "\(loop.poll(.work))"
            loop.addCommonMode(.work)
            loop.poll(.work)
            return [before] + log.entries + ["\(loop.contains(source, forMode: .work))"]
        }
        #expect(entries == ["finished", "entry", "block", "source", "timer", "descriptor", "true"])
    }

    @Test func `RL-21 a common source with data is served in a mode that another thread makes common`() throws
    {
        let log = EventLog()
        let pipe = BytePipe()
        pipe.write()
        let thread = LoopThread { loop in
            loop.add(pipe.source("descriptor", to: log), forMode: .common)
            loop.add(Port(), forMode: .work)
            return loop.run(in: .work, for: 60, returnAfterSourceHandled: true)
        }
        let loop = try thread.loop
        try loop.waitUntilAsleep()
        #expect(log.entries == [])
        loop.addCommonMode(.work)
        #expect(try thread.value() == .handledSource)
        #expect(log.entries == ["descriptor"])
    }

    @Test func `RL-22 each loop has its own common modes`() throws {
        let (here, there) = try onLoopThread { loop in
            loop.addCommonMode(.work)
            loop.addCommonMode(.work)
            let port = RunLoop.Source {}
            loop.add(port, forMode: .common)
            let there = try? onLoopThread { other in
                let source = RunLoop.Source {}
                other.add(source, forMode: .common)
                return other.contains(source, forMode: .work)
            }
            return (loop.contains(port, forMode: .work), there)
        }
        #expect(here)
        #expect(there == false)
    }

    @Test func `RL-23 contains tells common items from those added directly`() throws {
        let answers = try onLoopThread { loop in
            let common = Members()
            let direct = Members()
            common.add(to: loop, .common)
            for mode in [RunLoop.Mode.default, .tracking] { direct.add(to: loop, mode) }
            return [
                common.areIn(loop, .common), common.areIn(loop, .default), common.areIn(loop, .tracking),
                direct.areIn(loop, .common), direct.areIn(loop, .default), common.areIn(loop, .work),
            ]
        }
        #expect(answers == [[true], [true], [true], [false], [true], [false]])
    }

    @Test func `RL-24 removing under the common name takes only common items, from all common modes`() throws
    {
        let answers = try onLoopThread { loop in
            let common = Members()
            let direct = Members()
            common.add(to: loop, .common)
            common.add(to: loop, .tracking)
            common.add(to: loop, .work)
            direct.add(to: loop, .default)
            common.remove(from: loop, .common)
            direct.remove(from: loop, .common)
            return [
                common.areIn(loop, .default), common.areIn(loop, .tracking), common.areIn(loop, .work),
                common.areIn(loop, .common), direct.areIn(loop, .default),
            ]
        }
        #expect(answers == [[false], [false], [true], [false], [true]])
    }

    @Test func `RL-25 removing a common item from one mode leaves it common`() throws {
        let answers = try onLoopThread { loop in
            let common = Members()
            common.add(to: loop, .common)
            common.remove(from: loop, .tracking)
            loop.addCommonMode(.work)
            return [
                common.areIn(loop, .tracking), common.areIn(loop, .default), common.areIn(loop, .common),
                common.areIn(loop, .work),
            ]
        }
        #expect(answers == [[false], [true], [true], [true]])
    }

    @Test func `RL-26 tracking is a mode like any other`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let scheduled = RunLoop.Source { log.note("default \(loop.currentMode == .default)") }
            let common = RunLoop.Source { log.note("common") }
            loop.add(scheduled, forMode: .default)
            loop.add(common, forMode: .common)
            for mode in [RunLoop.Mode.tracking, .eventTracking, .default] {
                scheduled.signal()
                common.signal()
                loop.poll(mode)
            }
            return log.entries
        }
        #expect(entries == ["common", "common", "default true", "common"])
    }
}

/// A source, a timer and an observer.
private struct Members {
    let source = RunLoop.Source {}
    let observer = RunLoop.Observer(activities: .entry) { _, _ in }
    let timer = Timer(fire: .distantFuture, interval: 0, repeats: false) { _ in }

    func add(to loop: RunLoop, _ mode: RunLoop.Mode) {
        loop.add(source, forMode: mode)
        loop.add(observer, forMode: mode)
        loop.add(timer, forMode: mode)
    }

    func remove(from loop: RunLoop, _ mode: RunLoop.Mode) {
        loop.remove(source, forMode: mode)
        loop.remove(observer, forMode: mode)
        loop.remove(timer, forMode: mode)
    }

    /// The distinct answers of the three.
    func areIn(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Set<Bool> {
        [
            loop.contains(source, forMode: mode), loop.contains(observer, forMode: mode),
            loop.contains(timer, forMode: mode),
        ]
    }
}

import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct RunResultTests {
    @Test func `RL-27 an activation ends finished, stopped, timed out, or having handled a source`() throws {
        let results = try onLoopThread { loop in
            let log = EventLog()
            var results = [loop.run(in: .work, for: 60, returnAfterSourceHandled: false)]
            loop.add(Port(), forMode: .work)
            loop.perform(inModes: [.work]) { loop.stop() }
            results.append(loop.run(in: .work, for: 60, returnAfterSourceHandled: false))
            results.append(loop.run(in: .work, for: 0.001, returnAfterSourceHandled: false))
            loop.addSignalled("source", to: log, mode: .work)
            results.append(loop.run(in: .work, for: 60, returnAfterSourceHandled: true))
            return results
        }
        #expect(results == [.finished, .stopped, .timedOut, .handledSource])
        #expect(results.map(\.rawValue) == [1, 2, 3, 4])
    }

    @Test func `RL-28 of several results the first of handled, timed out, stopped, finished counts`() throws {
        let results = try onLoopThread { loop in
            /// One pass in which a source is performed that stops, and perhaps takes too long.
            func result(seconds: TimeInterval, returns: Bool) -> RunLoop.RunResult {
                let begin = LoopClock.now
                let source = RunLoop.Source {
                    if seconds < 1 { spin(until: begin.advanced(bySeconds: 0.01)) }
                    loop.stop()
                }
                loop.add(source, forMode: .work)
                source.signal()
                defer { source.invalidate() }
                return loop.run(in: .work, for: seconds, returnAfterSourceHandled: returns)
            }
            return [
                result(seconds: 0.001, returns: true),
                result(seconds: 0.001, returns: false),
                result(seconds: 60, returns: false),
            ]
        }
        #expect(results == [.handledSource, .timedOut, .stopped])
    }

    @Test func `RL-28 stopped comes before finished`() throws {
        let result = try onLoopThread { loop in
            loop.perform(inModes: [.work]) { loop.stop() }
            return loop.runOn(.work)
        }
        #expect(result == .stopped)
    }

    @Test func `RL-29 timers, observers, blocks and wake-ups are no sources`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe(.afterWaiting, of: loop, in: .work)
            loop.addDueTimer("timer", to: log, mode: .work)
            loop.perform(inModes: [.work]) { loop.wakeUp() }
            loop.add(Port(), forMode: .work)
            log.note("\(loop.run(in: .work, for: 0.001, returnAfterSourceHandled: true))")
            loop.addSignalled("source", to: log, mode: .work)
            log.note("\(loop.run(in: .work, for: 0, returnAfterSourceHandled: true))")
            let pipe = BytePipe()
            pipe.write()
            loop.add(pipe.source("descriptor", to: log), forMode: .work)
            log.note("\(loop.run(in: .work, for: 60, returnAfterSourceHandled: true))")
            return log.entries.filter { $0 != "afterWaiting" }
        }
        #expect(entries == ["timer", "timedOut", "source", "handledSource", "descriptor", "handledSource"])
    }

    @Test func `RL-30 sources do not end a run that is not to return after one`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            loop.add(pipe.source("descriptor", to: log) { loop.stop() }, forMode: .work)
            let second = RunLoop.Source {
                log.note("second")
                pipe.write()
            }
            loop.add(second, forMode: .work)
            loop.addSignalled("first", to: log, mode: .work) { second.signal() }
            log.note("\(loop.runOn(.work))")
            return log.entries
        }
        #expect(entries == ["first", "second", "descriptor", "stopped"])
    }

    @Test(arguments: [0, -1, -Double.infinity])
    func `RL-31 no time means one pass that serves every kind and never sleeps`(
        seconds: Double
    ) throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            pipe.write()
            log.observe([.beforeTimers, .beforeWaiting, .afterWaiting], of: loop, in: .work)
            loop.add(Port(), forMode: .work)
            log.note("\(loop.run(in: .work, for: seconds, returnAfterSourceHandled: true))")
            loop.addDueTimer("timer", to: log, mode: .work)
            loop.add(pipe.source("descriptor", to: log), forMode: .work)
            loop.addSignalled("source", to: log, mode: .work)
            // A wake-up that waits must not be all that the pass takes.
            loop.perform(inModes: [.work]) { loop.wakeUp() }
            log.note("\(loop.run(in: .work, for: seconds, returnAfterSourceHandled: false))")
            pipe.write()
            log.note("\(loop.run(in: .work, for: seconds, returnAfterSourceHandled: true))")
            return log.entries
        }
        #expect(
            entries == [
                "beforeTimers", "timedOut", "beforeTimers", "source", "timer", "descriptor", "timedOut",
                "beforeTimers", "descriptor", "handledSource",
            ])
    }

    @Test func `RL-32 a mode emptied from another thread ends the run when something wakes it`() throws {
        let source = RunLoop.Source {}
        let thread = LoopThread { loop in
            loop.add(source, forMode: .work)
            return loop.runOn(.work)
        }
        let loop = try thread.loop
        try loop.waitUntilAsleep()
        source.invalidate()
        #expect(loop.isWaiting)
        loop.wakeUp()
        #expect(try thread.value() == .finished)
    }

    @Test func `RL-33 a run that could not begin leaves no time reading to the next one`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let due = LoopClock.now.advanced(bySeconds: 0.002)
            #expect(loop.run(in: .work, for: 1, returnAfterSourceHandled: false) == .finished)
            let date = LoopClock.date(of: due)
            let timer = Timer(fire: date, interval: 0, repeats: false) { _ in log.note("timer") }
            loop.add(timer, forMode: .work)
            spin(until: due.advanced(bySeconds: 0.001))
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["timer"])
    }

    @Test func `RL-31 RL-33 RL-39 a run in a callback begins with the time of its call`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            for mode in [RunLoop.Mode.inner, .other] { loop.add(Port(), forMode: mode) }
            log.observe(.beforeWaiting, of: loop, in: .inner)
            /// Calls `body` in the callback of a timer that has worked for a while, with a date of that time.
            func afterWork(_ body: @escaping @Sendable (Date) -> Void) {
                loop.addDueTimer("worked", to: log, mode: .work) {
                    let middle = LoopClock.now.advanced(bySeconds: 0.01)
                    spin(until: middle.advanced(bySeconds: 0.01))
                    body(LoopClock.date(of: middle))
                }
                loop.poll(.work)
            }
            afterWork { date in
                let timer = Timer(fire: date, interval: 0, repeats: false) { _ in log.note("due") }
                loop.add(timer, forMode: .inner)
                loop.poll(.inner)
            }
            afterWork { date in log.note("past \(loop.run(mode: .inner, before: date))") }
            afterWork { _ in
                let begin = LoopClock.now
                let result = loop.run(in: .other, for: 0.005, returnAfterSourceHandled: false)
                log.note("\(result) early \(LoopClock.now.seconds(since: begin) < 0.005)")
            }
            return log.entries
        }
        #expect(entries == ["worked", "due", "worked", "past true", "worked", "timedOut early false"])
    }

    @Test func `RL-33 a callback that overruns the limit is not interrupted, and the pass is the last`()
        throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let next = RunLoop.Source { log.note("next") }
            loop.add(next, forMode: .work)
            let begin = LoopClock.now
            loop.addSignalled("begins", to: log, mode: .work) {
                next.signal()
                spin(until: begin.advanced(bySeconds: 0.01))
                log.note("ends")
            }
            log.note("\(loop.run(in: .work, for: 0.002, returnAfterSourceHandled: false))")
            return log.entries
        }
        #expect(entries == ["begins", "ends", "timedOut"])
    }

    @Test func `RL-33 the limit is not reached early`() throws {
        let early = try onLoopThread { loop in
            loop.add(Port(), forMode: .work)
            return (1...20).filter { step in
                let begin = LoopClock.now
                _ = loop.run(in: .work, for: Double(step) * 0.0005, returnAfterSourceHandled: false)
                return LoopClock.now.seconds(since: begin) < Double(step) * 0.0005
            }
        }
        #expect(early == [])
    }

    @Test func `RL-34 the default mode runs without end until stop, or until it is empty`() throws {
        let port = Port()
        let thread = LoopThread { loop in
            loop.add(port, forMode: .default)
            return (1...2).map { _ in loop.run(in: .default, for: .infinity, returnAfterSourceHandled: false)
            }
        }
        let loop = try thread.loop
        try loop.waitUntilAsleep()
        let source = loop.addSignalled("source", to: EventLog())
        loop.perform { loop.stop() }
        try waitFor("the second run") { loop.isWaiting ? () : nil }
        loop.perform {
            source.invalidate()
            port.invalidate()
        }
        #expect(try thread.value() == [.stopped, .finished])
    }

    @Test func `RL-35 run() goes on after stops until the default mode is empty`() throws {
        let log = EventLog()
        let port = Port()
        let thread = LoopThread { loop in
            loop.add(port, forMode: .default)
            log.observe(.entry, of: loop, in: .default)
            loop.run()
            log.note("end")
        }
        let loop = try thread.loop
        for round in 1...3 {
            try waitFor("an activation") { log.count(of: "entry") == round && loop.isWaiting ? () : nil }
            loop.stop()
        }
        try waitFor("an activation") { log.count(of: "entry") == 4 && loop.isWaiting ? () : nil }
        port.invalidate()
        loop.wakeUp()
        try thread.value()
        #expect(log.entries == ["entry", "entry", "entry", "entry", "end"])
    }

    @Test func `RL-36 run(until) goes on after sources until the date, or an empty mode`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            // With no date that could have passed before the run begins: the mode is empty after the second one.
            let sources = SourceList()
            let second = RunLoop.Source {
                log.note("second")
                for source in sources.sources { source.invalidate() }
            }
            loop.add(second, forMode: .default)
            let first = loop.addSignalled("first", to: log) { second.signal() }
            for source in [first, second] { sources.append(source) }
            loop.run(until: .distantFuture)
            log.note("empty")
            let port = Port()
            loop.add(port, forMode: .default)
            let limit = Date(timeIntervalSinceNow: 0.02)
            loop.run(until: limit)
            log.note("limit passed \(Date() >= limit)")
            port.invalidate()
            loop.addSignalled("third", to: log)
            loop.run(until: .distantPast)
            return log.entries
        }
        #expect(entries == ["first", "second", "empty", "limit passed true", "third"])
    }

    @Test func `RL-37 run(mode before) returns true after a source, the limit, or a stop`() throws {
        let (entries, results) = try onLoopThread { loop in
            let log = EventLog()
            var results: [Bool] = []
            let second = loop.addSignalled("second", to: log, order: 2, mode: .work)
            loop.addSignalled("first", to: log, order: 1, mode: .work)
            results.append(loop.run(mode: .work, before: .distantFuture))
            second.invalidate()
            results.append(loop.run(mode: .work, before: Date(timeIntervalSinceNow: 0.001)))
            loop.perform(inModes: [.work]) { loop.stop() }
            results.append(loop.run(mode: .work, before: .distantFuture))
            results.append(loop.run(mode: .other, before: .distantFuture))
            return (log.entries, results)
        }
        #expect(entries == ["first"])
        #expect(results == [true, true, true, false])
    }

    @Test func `RL-38 timers do not make run(mode before) return`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let source = RunLoop.Source { log.note("source") }
            loop.add(source, forMode: .work)
            let timer = Timer(fire: Date(), interval: 0.0005, repeats: true) { _ in
                log.note("timer")
                if log.entries.count == 4 { source.signal() }
            }
            loop.add(timer, forMode: .work)
            loop.run(mode: .work, before: .distantFuture)
            return log.entries
        }
        #expect(entries.prefix(4) == ["timer", "timer", "timer", "timer"])
        #expect(entries.contains("source"))
    }

    @Test func `RL-39 a limit in the past makes one pass that serves ready events`() throws {
        let (entries, ran) = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            pipe.write()
            log.observe([.beforeTimers, .beforeWaiting], of: loop, in: .default)
            loop.addDueTimer("timer", to: log)
            loop.add(pipe.source("descriptor", to: log), forMode: .default)
            let ran = loop.run(mode: .default, before: .distantPast)
            loop.addDueTimer("timer", to: log)
            loop.run(until: .distantPast)
            return (log.entries, ran)
        }
        #expect(ran)
        #expect(entries == ["beforeTimers", "timer", "descriptor", "beforeTimers", "timer"])
    }

    @Test func `RL-40 acceptInput serves one source, or returns at once from an empty mode`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            loop.acceptInput(forMode: .work, before: .distantFuture)
            loop.addSignalled("first", to: log, order: 1, mode: .work)
            loop.addSignalled("second", to: log, order: 2, mode: .work)
            loop.acceptInput(forMode: .work, before: .distantFuture)
            return log.entries
        }
        #expect(entries == ["first"])
    }

    @Test func `RL-41 limitDate serves ready events and returns the next date`() throws {
        let (entries, dates, date) = try onLoopThread { loop in
            let log = EventLog()
            var dates = [loop.limitDate(forMode: .work)]
            loop.addDueTimer("timer", to: log, mode: .work)
            dates.append(loop.limitDate(forMode: .work))
            let source = loop.addSignalled("source", to: log, mode: .work)
            dates.append(loop.limitDate(forMode: .work))
            let date = Date(timeIntervalSinceNow: 1000)
            loop.add(Timer(fire: date, interval: 0, repeats: false) { _ in }, forMode: .work)
            loop.add(Timer(fire: date + 1, interval: 0, repeats: false) { _ in }, forMode: .work)
            dates.append(loop.limitDate(forMode: .work))
            source.invalidate()
            dates.append(loop.limitDate(forMode: .work))
            return (log.entries, dates, date)
        }
        #expect(entries == ["timer", "source"])
        #expect(dates.prefix(3) == [nil, nil, .distantFuture])
        for found in dates.suffix(2) {
            #expect(abs(try #require(found).timeIntervalSince(date)) < 0.01)
        }
    }

    @Test func `RL-42 a callback may run the loop again in the same mode`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            log.observe([.entry, .exit], of: loop, in: .work)
            loop.add(Port(), forMode: .work)
            loop.perform(inModes: [.work]) {
                loop.perform(inModes: [.work]) { loop.stop() }
                log.note("\(loop.runOn(.work))")
                log.note("\(loop.run(in: .work, for: 0.001, returnAfterSourceHandled: false))")
                loop.stop()
            }
            log.note("\(loop.runOn(.work))")
            return log.entries
        }
        #expect(
            entries == ["entry", "entry", "exit", "stopped", "entry", "exit", "timedOut", "exit", "stopped"])
    }
}

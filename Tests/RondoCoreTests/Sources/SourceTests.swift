import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct SourceTests {
    @Test func `SRC-1 a source is performed only after a signal, in its mode, on the loop's thread`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let thread = pthread_self()
            let source = RunLoop.Source { log.note("here \(pthread_equal(thread, pthread_self()) != 0)") }
            loop.add(source, forMode: .work)
            loop.add(Port(), forMode: .other)
            loop.poll(.work)
            _ = try? onLoopThread { _ in source.signal() }
            loop.poll(.other)
            log.note("signalled \(source.isSignalled)")
            loop.poll(.work)
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["signalled true", "here true"])
    }

    @Test func `SRC-2 a signal with a wake-up wakes every loop that the source is in`() throws {
        let log = EventLog()
        let source = RunLoop.Source { log.note("source") }
        let threads = ["first", "second"].map { name in
            LoopThread { loop in
                loop.add(source, forMode: .work)
                loop.add(Port(), forMode: .work)
                let woken = RunLoop.Observer(activities: .afterWaiting) { _, _ in log.note(name) }
                loop.add(woken, forMode: .work)
                return loop.runOn(.work)
            }
        }
        for thread in threads { try thread.loop.waitUntilAsleep() }
        source.signalAndWakeUp()
        try waitFor("both") { Set(log.entries) == ["first", "second", "source"] ? () : nil }
        #expect(log.count(of: "source") == 1)
        for thread in threads {
            try thread.loop.stop()
            #expect(try thread.value() == .stopped)
        }
    }

    @Test func `SRC-2 a signal does not wake a sleeping loop`() throws {
        let log = EventLog()
        let source = RunLoop.Source { log.note("source") }
        let thread = LoopThread { loop in
            log.observe(.afterWaiting, of: loop, in: .work)
            loop.add(source, forMode: .work)
            return loop.run(in: .work, for: 60, returnAfterSourceHandled: true)
        }
        let loop = try thread.loop
        try loop.waitUntilAsleep()
        source.signal()
        #expect(loop.isWaiting)
        #expect(log.entries == [])
        loop.wakeUp()
        #expect(try thread.value() == .handledSource)
        #expect(log.entries == ["afterWaiting", "source"])
    }

    @Test func `SRC-3 signals before the source is served are one`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let source = RunLoop.Source { log.note("source") }
            loop.add(source, forMode: .work)
            for _ in 1...5 { source.signal() }
            loop.poll(.work)
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["source"])
    }

    @Test func `SRC-4 a signal inside perform gives one more in the next pass`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let list = SourceList()
            log.observe(.beforeTimers, of: loop, in: .work)
            let source = RunLoop.Source {
                log.note("source")
                if log.count(of: "source") < 3 {
                    for source in list.sources { source.signal() }
                } else {
                    loop.stop()
                }
            }
            list.append(source)
            loop.add(source, forMode: .work)
            source.signal()
            loop.runOn(.work)
            return log.entries
        }
        #expect(entries == ["beforeTimers", "source", "beforeTimers", "source", "beforeTimers", "source"])
    }

    @Test func `SRC-5 a signal given before the source is added is kept`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let source = RunLoop.Source { log.note("source") }
            source.signal()
            loop.add(source, forMode: .other)
            loop.remove(source, forMode: .other)
            loop.add(source, forMode: .work)
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["source"])
    }

    @Test func `SRC-6 sources are performed by order, equal ones by time of signal`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let sources = [("d", 5), ("b2", 0), ("a", -3), ("b1", 0), ("c", 1)].map { name, order in
                (name, RunLoop.Source(order: order) { log.note(name) })
            }
            for (_, source) in sources { loop.add(source, forMode: .work) }
            for wanted in ["b1", "c", "b2", "d", "a"] {
                for (name, source) in sources where name == wanted { source.signal() }
            }
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["a", "b1", "b2", "c", "d"])
    }

    @Test func `SRC-7 a run that returns after a source performs only the lowest order`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            for (name, order) in [("3", 3), ("1", 1), ("2", 2)] {
                loop.addSignalled(name, to: log, order: order, mode: .work)
            }
            for _ in 1...3 {
                log.note("\(loop.run(in: .work, for: 0, returnAfterSourceHandled: true))")
            }
            log.note("\(loop.run(in: .work, for: 0, returnAfterSourceHandled: true))")
            return log.entries
        }
        #expect(
            entries == ["1", "handledSource", "2", "handledSource", "3", "handledSource", "timedOut"])
    }

    @Test func `SRC-7 a source that another mode has served stands where its next signal puts it`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let (first, second) = (
                RunLoop.Source { log.note("first") }, RunLoop.Source { log.note("second") }
            )
            for source in [first, second] { loop.add(source, forMode: .work) }
            loop.add(first, forMode: .other)
            first.signal()
            loop.poll(.other)
            second.signal()
            first.signal()
            for _ in 1...3 {
                log.note("\(loop.run(in: .work, for: 0, returnAfterSourceHandled: true))")
            }
            return log.entries
        }
        #expect(entries == ["first", "second", "handledSource", "first", "handledSource", "timedOut"])
    }

    @Test func `SRC-7 sources whose signals were served or taken back are passed over`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let sources = ["served", "withdrawn", "removed", "invalid", "left"].map { name in
                RunLoop.Source { log.note(name) }
            }
            for source in sources { loop.add(source, forMode: .work) }
            loop.add(sources[0], forMode: .other)
            for source in sources { source.signal() }
            loop.poll(.other)
            sources[1].withdrawSignal()
            loop.remove(sources[2], forMode: .work)
            sources[3].invalidate()
            for _ in 1...2 {
                log.note("\(loop.run(in: .work, for: 0, returnAfterSourceHandled: true))")
            }
            // It has kept its signal, and its place.
            sources[4].signal()
            loop.add(sources[2], forMode: .work)
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["served", "left", "handledSource", "timedOut", "removed", "left"])
    }

    @Test func `SRC-8 one signal is served once, by the loop or mode that sees it first`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let source = RunLoop.Source { log.note("source") }
            for mode in [RunLoop.Mode.work, .other] { loop.add(source, forMode: mode) }
            source.signal()
            _ = try? onLoopThread { second in
                second.add(source, forMode: .work)
                second.poll(.work)
                log.note("second loop")
            }
            loop.poll(.other)
            loop.poll(.work)
            log.note("first loop")
            source.signal()
            loop.poll(.other)
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["source", "second loop", "first loop", "source"])
    }

    @Test func `SRC-9 SRC-10 schedule and cancel come once for each mode, common ones too`() throws {
        let log = EventLog()
        let name = { @Sendable (mode: RunLoop.Mode) in
            mode == .default ? "default" : mode == .tracking ? "tracking" : mode.rawValue
        }
        try onLoopThread { loop in
            let expected = loop
            let thread = pthread_self()
            let note = { @Sendable (what: String, scheduled: RunLoop, mode: RunLoop.Mode) in
                let isRight = scheduled === expected && pthread_equal(thread, pthread_self()) != 0
                log.note("\(what) \(name(mode)) \(isRight)")
            }
            let source = RunLoop.Source(
                schedule: { note("schedule", $0, $1) }, cancel: { note("cancel", $0, $1) }, perform: {})
            loop.add(source, forMode: .work)
            loop.add(source, forMode: .common)
            loop.add(source, forMode: .default)
            loop.remove(source, forMode: .work)
            loop.remove(source, forMode: .common)
            log.note("end")
        }
        #expect(
            log.entries == [
                "schedule work true", "schedule default true", "schedule tracking true", "cancel work true",
                "cancel default true", "cancel tracking true", "end",
            ])
    }

    @Test func `SRC-11 invalidate takes a source out of everything`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let source = RunLoop.Source(
                schedule: { _, _ in log.note("schedule") }, cancel: { _, _ in log.note("cancel") },
                perform: { log.note("perform") })
            loop.add(source, forMode: .work)
            loop.add(source, forMode: .common)
            source.signal()
            source.invalidate()
            source.invalidate()
            source.signal()
            loop.add(source, forMode: .work)
            loop.add(source, forMode: .common)
            loop.addCommonMode(.other)
            log.note("\(source.isValid) \(source.isSignalled) \(loop.contains(source, forMode: .common))")
            for mode in [RunLoop.Mode.work, .default, .other] { log.note("\(loop.poll(mode))") }
            return log.entries
        }
        #expect(
            entries == [
                "schedule", "schedule", "schedule", "cancel", "cancel", "cancel", "false false false",
                "finished",
                "finished", "finished",
            ])
    }

    @Test func `SRC-12 a source signalled again in its own perform is served by a run nested in it`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let list = SourceList()
            let source = RunLoop.Source {
                log.note("begins")
                if log.count(of: "begins") == 1 {
                    for source in list.sources { source.signal() }
                    log.note("\(loop.run(in: .work, for: 60, returnAfterSourceHandled: true))")
                }
                log.note("ends")
            }
            list.append(source)
            loop.add(source, forMode: .work)
            source.signal()
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["begins", "begins", "ends", "handledSource", "ends"])
    }

    @Test(arguments: [false, true])
    func `SRC-1 a nested run serves sources that were signalled together with the one that runs it`(
        returnAfterSourceHandled: Bool
    ) throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            loop.addSignalled("second", to: log, order: 2, mode: .work)
            loop.addSignalled("first", to: log, order: 1, mode: .work) {
                log.note("nested \(loop.run(in: .work, for: 0.001, returnAfterSourceHandled: true))")
            }
            log.note(
                "outer \(loop.run(in: .work, for: 0, returnAfterSourceHandled: returnAfterSourceHandled))")
            return log.entries
        }
        let outer = returnAfterSourceHandled ? "outer handledSource" : "outer timedOut"
        #expect(entries == ["first", "second", "nested handledSource", outer])
    }

    @Test func `SRC-13 sources are told apart by identity`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let perform = { @Sendable in log.note("source") }
            for source in [RunLoop.Source(perform: perform), RunLoop.Source(perform: perform)] {
                loop.add(source, forMode: .work)
                source.signal()
            }
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["source", "source"])
    }
}

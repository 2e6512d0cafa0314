import RondoCore
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct DescriptorSourceTests {
    @Test func `SRC-14 a descriptor source cannot be signalled by hand, and has no order`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            let source = pipe.source("descriptor", to: log)
            loop.add(source, forMode: .work)
            source.signal()
            loop.poll(.work)
            log.note("\(source.isSignalled) \(source.order)")
            pipe.write()
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["false 0", "descriptor"])
    }

    @Test func `SRC-15 readiness is a level: a source finds a descriptor that was ready before it was added`()
        throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            pipe.write()
            let source = RunLoop.Source(fileDescriptor: pipe.readEnd, interest: .read) { _, _ in
                log.note("ready")
            }
            loop.add(source, forMode: .work)
            for _ in 1...3 { loop.poll(.work) }
            loop.add(source, forMode: .other)
            loop.poll(.other)
            pipe.drain()
            loop.poll(.other)
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["ready", "ready", "ready", "ready"])
    }

    @Test func `SRC-16 several sources may watch one descriptor, and each is served`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            var ends: [Int32] = [-1, -1]
            let status = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
            precondition(status == 0, "no socket pair")
            defer { for end in ends { close(end) } }
            var byte: UInt8 = 1
            _ = write(ends[1], &byte, 1)
            let interests: [(String, RunLoop.Source.Interest)] = [
                ("read", .read), ("write", .write), ("both", [.read, .write]), ("none", []),
            ]
            for (name, interest) in interests {
                loop.add(
                    RunLoop.Source(fileDescriptor: ends[0], interest: interest) { source, ready in
                        log.note("\(name) \(ready.rawValue)")
                        source.invalidate()
                    }, forMode: .work)
            }
            for _ in 1...5 { loop.poll(.work) }
            return log.entries
        }
        #expect(entries.sorted() == ["both 3", "read 1", "write 2"])
    }

    @Test func `SRC-16 the interest of a source can be changed at any time`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            let source = RunLoop.Source(fileDescriptor: pipe.readEnd, interest: []) { source, _ in
                log.note("ready")
                source.interest = []
            }
            pipe.write()
            loop.add(source, forMode: .work)
            loop.poll(.work)
            for _ in 1...2 {
                log.note("on")
                source.interest = .read
                loop.poll(.work)
                loop.poll(.work)
            }
            return log.entries
        }
        #expect(entries == ["on", "ready", "on", "ready"])
    }

    @Test func `SRC-16 an interest set from another thread wakes the loop`() throws {
        let log = EventLog()
        let pipe = BytePipe()
        pipe.write()
        let source = pipe.source("ready", to: log)
        source.interest = []
        let thread = LoopThread { loop in
            loop.add(source, forMode: .work)
            return loop.run(in: .work, for: 60, returnAfterSourceHandled: true)
        }
        try thread.loop.waitUntilAsleep()
        source.interest = .read
        #expect(try thread.value() == .handledSource)
    }

    @Test func `SRC-17 a descriptor in two loops is served by one that detects it`() throws {
        let log = EventLog()
        let pipe = BytePipe()
        let source = pipe.source("ready", to: log)
        let threads = (1...2).map { _ in
            LoopThread { loop in
                loop.add(source, forMode: .work)
                loop.add(Port(), forMode: .work)
                return loop.runOn(.work)
            }
        }
        for thread in threads { try thread.loop.waitUntilAsleep() }
        pipe.write()
        try waitFor("the source") { log.entries.isEmpty ? nil : () }
        for thread in threads {
            try thread.loop.stop()
            #expect(try thread.value() == .stopped)
        }
        #expect(log.entries.count <= 2)
    }

    @Test func `SRC-26 a nested run does not re-enter a descriptor source, and serves others`()
        throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let first = BytePipe()
            let second = BytePipe()
            let sources = [
                RunLoop.Source(fileDescriptor: first.readEnd, interest: .read) { source, _ in
                    log.note("begins")
                    // The bytes of its pipe are still there.
                    log.note("\(loop.run(in: .work, for: 0.001, returnAfterSourceHandled: true))")
                    second.write()
                    log.note("\(loop.run(in: .work, for: 60, returnAfterSourceHandled: true))")
                    // It is not served in another mode either.
                    loop.add(source, forMode: .other)
                    log.note("\(loop.run(in: .other, for: 0.001, returnAfterSourceHandled: true))")
                    loop.remove(source, forMode: .other)
                    log.note("ends")
                }, second.source("second", to: log),
            ]
            first.write()
            for source in sources { loop.add(source, forMode: .work) }
            loop.poll(.work)
            // The source is found ready again when its callback has ended.
            log.note("again")
            loop.poll(.work)
            return log.entries
        }
        let once = ["begins", "timedOut", "second", "handledSource", "timedOut", "ends"]
        #expect(entries == once + ["again"] + once)
    }

    /// Connections have such sources: they leave their mode after a request, and come back for the next one.
    @Test func `SRC-15 a source that keeps its file is served when it comes back, and not while it is away`()
        throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            let source = RunLoop.Source(fileDescriptor: pipe.readEnd, keepsFile: true, interest: .read) {
                _, _ in
                log.note("ready")
                pipe.drain()
            }
            loop.add(source, forMode: .work)
            for round in 1...3 {
                log.note("\(round)")
                pipe.write()
                loop.poll(.work)
                loop.remove(source, forMode: .work)
                loop.add(source, forMode: .work)
            }
            loop.remove(source, forMode: .work)
            pipe.write()
            loop.poll(.work)
            loop.add(source, forMode: .work)
            source.interest = []
            loop.poll(.work)
            log.note("wanted")
            source.interest = .read
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["1", "ready", "2", "ready", "3", "ready", "wanted", "ready"])
    }

    @Test
    func `SRC-26 a source that keeps its file is not served by a nested run in a mode that it was added to`()
        throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            pipe.write()
            loop.add(
                RunLoop.Source(fileDescriptor: pipe.readEnd, keepsFile: true, interest: .read) { source, _ in
                    loop.remove(source, forMode: .work)
                    loop.add(source, forMode: .work)
                    log.note("\(loop.run(in: .work, for: 0.001, returnAfterSourceHandled: true))")
                }, forMode: .work)
            for _ in 1...2 { loop.poll(.work) }
            return log.entries
        }
        #expect(entries == ["timedOut", "timedOut"])
    }

    @Test func `SRC-26 a nested run sleeps while the source that runs it stays ready`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            pipe.write()
            let observer = RunLoop.Observer(activities: .afterWaiting) { _, _ in log.note("afterWaiting") }
            loop.add(
                RunLoop.Source(fileDescriptor: pipe.readEnd, interest: .read) { source, _ in
                    loop.add(observer, forMode: .work)
                    _ = loop.run(in: .work, for: 0.01, returnAfterSourceHandled: false)
                    observer.invalidate()
                    source.invalidate()
                }, forMode: .work)
            loop.runOn(.work)
            return log.entries
        }
        #expect(entries == ["afterWaiting"])
    }

    @Test func `SRC-27 a closed descriptor invalidates its source with an error`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let source = RunLoop.Source(
                fileDescriptor: 1_000_000, interest: .read, cancel: { _, _ in log.note("cancel") },
                perform: { _, _ in log.note("perform") })
            loop.add(source, forMode: .work)
            // The mode is empty then, which ends the run.
            log.note("\(loop.runOn(.work)) \(source.isValid)")
            log.note("\((source.error as? SystemError)?.code == EBADF)")
            return log.entries
        }
        #expect(entries == ["cancel", "finished false", "true"])
    }

    @Test func `SRC-27 a source whose callback closes its descriptor and runs the loop does not trap`() throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            pipe.write()
            let descriptor = fcntl(pipe.readEnd, F_DUPFD, 500)
            let source = RunLoop.Source(fileDescriptor: descriptor, interest: .read) { _, _ in
                log.note("perform")
                loop.poll(.work)
                close(descriptor)
            }
            loop.add(source, forMode: .work)
            loop.add(Port(), forMode: .work)
            for _ in 1...3 { loop.poll(.work) }
            return log.entries + ["\(source.isValid)"]
        }
        #expect(entries == ["perform", "false"])
    }

    @Test func `SRC-27 a descriptor number that is reused belongs to the new source alone`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let old = BytePipe()
            let new = BytePipe()
            let number = fcntl(old.readEnd, F_DUPFD, 600)
            defer { close(number) }
            let first = RunLoop.Source(fileDescriptor: number, interest: .read) { _, _ in log.note("old") }
            loop.add(Port(), forMode: .work)
            loop.add(first, forMode: .work)
            loop.poll(.work)
            first.invalidate()
            dup2(new.readEnd, number)
            let second = RunLoop.Source(fileDescriptor: number, interest: .read) { _, _ in
                log.note("new")
                new.drain()
            }
            loop.add(second, forMode: .work)
            old.write()
            loop.poll(.work)
            new.write()
            loop.poll(.work)
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["new"])
    }

    @Test func `SRC-27 a source that was removed before its number was reused watches its own file`()
        throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let old = BytePipe()
            let new = BytePipe()
            let number = fcntl(old.readEnd, F_DUPFD, 700)
            defer { close(number) }
            let source = RunLoop.Source(fileDescriptor: number, interest: .read) { _, _ in log.note("ready") }
            loop.add(source, forMode: .work)
            loop.poll(.work)
            loop.remove(source, forMode: .work)
            dup2(new.readEnd, number)
            loop.add(source, forMode: .work)
            new.write()
            loop.poll(.work)
            return log.entries
        }
        #expect(entries == ["ready"])
    }

    @Test func `SRC-27 a closed descriptor that several sources watch does not trap`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            let descriptor = fcntl(pipe.readEnd, F_DUPFD, 800)
            let sources = (1...3).map { number in
                RunLoop.Source(fileDescriptor: descriptor, interest: .read) { _, _ in log.note("\(number)") }
            }
            for source in sources { loop.add(source, forMode: .work) }
            loop.poll(.work)
            close(descriptor)
            sources[0].invalidate()
            log.note("\(loop.runOn(.work))")
            return log.entries + sources.map { "\($0.isValid) \($0.error == nil)" }
        }
        #expect(entries == ["finished", "false true", "false false", "false false"])
    }

    @Test func `SRC-27 another thread may invalidate a source and close its descriptor at any time`() throws {
        let log = EventLog()
        let isOver = DispatchSemaphore(value: 0)
        let pipe = BytePipe()
        let thread = LoopThread { loop in
            loop.add(Port(), forMode: .work)
            // The loop looks all the time, so that it meets the other thread at every step.
            while isOver.wait(timeout: .now()) == .timedOut { loop.poll(.work) }
        }
        let loop = try thread.loop
        for round in 1...300 {
            // Many at once, so that the loop needs some time.
            let descriptors = (1...64).map { _ in dup(pipe.readEnd) }
            let sources = descriptors.map { descriptor in
                RunLoop.Source(fileDescriptor: descriptor, interest: .read) { _, _ in log.note("ready") }
            }
            for source in sources { loop.add(source, forMode: .work) }
            for _ in 0..<(round * 10) { _ = loop.isWaiting }
            for (source, descriptor) in zip(sources, descriptors) {
                source.invalidate()
                close(descriptor)
            }
        }
        isOver.signal()
        try thread.value()
        #expect(log.entries == [])
    }

    @Test func `RL-57 sources added while others wait to be served cause no source to be served twice`()
        throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let first = (1...5).map { _ in BytePipe() }
            let later = (1...5).map { _ in BytePipe() }
            for (pipe, next) in zip(first, later) {
                pipe.write()
                next.write()
                loop.add(
                    pipe.source("first", to: log) { loop.add(next.source("later", to: log), forMode: .work) },
                    forMode: .work)
            }
            for _ in 1...20 { loop.poll(.work) }
            return log.entries
        }
        #expect(entries.sorted() == Array(repeating: "first", count: 5) + Array(repeating: "later", count: 5))
    }
}

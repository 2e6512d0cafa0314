import RondoTestSupport
import Synchronization
import Testing

@testable import RondoCore

/// Sources that keep their file, as connections have, leave the mode that runs when it next looks at the kernel: until
/// then nobody can tell that they are still there.
@Suite(.leavesNothing) struct LeavingSourceTests {
    private static func source(
        _ pipe: BytePipe, interest: RunLoop.Source.Interest = .read,
        _ perform: @escaping @Sendable (RunLoop.Source) -> Void
    ) -> RunLoop.Source {
        RunLoop.Source(fileDescriptor: pipe.readEnd, keepsFile: true, interest: interest) { source, _ in
            perform(source)
        }
    }

    @Test func `RL-13 a source that leaves in its callback does not keep the mode from being empty`() throws {
        let results = try onLoopThread { loop in
            let pipe = BytePipe()
            pipe.write()
            let source = Self.source(pipe) { loop.remove($0, forMode: .work) }
            loop.add(source, forMode: .work)
            let first = loop.runOn(.work)
            let isMember = loop.contains(source, forMode: .work) || source.isScheduled
            let date = loop.limitDate(forMode: .work)
            return ["\(first)", "\(isMember)", "\(date == nil)", "\(loop.runOn(.work))"]
        }
        #expect(results == ["finished", "false", "true", "finished"])
    }

    @Test func `RL-8 a source that leaves after it was found ready is not called`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let pipes = [BytePipe(), BytePipe()]
            let sources = Mutex<[RunLoop.Source]>([])
            for pipe in pipes {
                let source = Self.source(pipe) { source in
                    log.note("called")
                    for source in sources.withLock({ $0 }) { loop.remove(source, forMode: .work) }
                }
                sources.withLock { $0.append(source) }
                loop.add(source, forMode: .work)
                pipe.write()
            }
            loop.add(Port(), forMode: .work)
            // The look of a last pass would have them taken out: so it is not the next one.
            loop.add(Timer(timeInterval: 0.02, repeats: false) { _ in loop.stop() }, forMode: .work)
            loop.runOn(.work)
            sources.withLock { $0 = [] }
        }
        #expect(log.entries == ["called"])
    }

    @Test func `RL-24 a source that leaves in its callback and comes back is served again, as it wants`()
        throws
    {
        let log = EventLog()
        try onLoopThread { loop in
            let pipe = BytePipe()
            pipe.write()
            let source = Self.source(pipe) { source in
                log.note("\(source.interest.rawValue)")
                loop.remove(source, forMode: .work)
                if log.entries.count == 2 { source.interest = .write }
                if log.entries.count == 3 { source.interest = .read }
                loop.add(source, forMode: .work)
                if log.entries.count == 5 { loop.stop() }
            }
            loop.add(source, forMode: .work)
            // A pipe's end for reading is never ready to be written: a callback would be a stale watcher's.
            loop.add(
                Timer(timeInterval: 0.001, repeats: true) { _ in
                    if log.entries.count == 2 {
                        log.note("timer")
                        source.interest = .read
                    }
                }, forMode: .work)
            loop.runOn(.work)
            source.invalidate()
        }
        #expect(log.entries == ["1", "1", "timer", "1", "1"])
    }

    @Test func `SRC-15 a source that leaves one loop is served by another that it enters meanwhile`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let pipe = BytePipe()
            pipe.write()
            let source = Self.source(pipe) { source in
                log.note(RunLoop.current === loop ? "first" : "second")
                guard RunLoop.current === loop else {
                    pipe.drain()
                    return
                }
                loop.remove(source, forMode: .work)
                _ = try? onLoopThread { other in
                    other.add(source, forMode: .work)
                    other.poll(.work)
                    log.note("\(loop.contains(source, forMode: .work))")
                    pipe.write()
                    // It stays in that loop, where it ends.
                    #expect(other.contains(source, forMode: .work))
                }
            }
            loop.add(source, forMode: .work)
            loop.add(Port(), forMode: .work)
            for _ in 1...3 { loop.poll(.work) }
            log.note("\(source.isScheduled)")
            source.invalidate()
        }
        #expect(log.entries == ["first", "second", "false", "false"])
    }

    @Test func `SRC-11 the number of a source that is invalidated while it leaves may be another's`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let pipe = BytePipe()
            pipe.write()
            let source = Self.source(pipe) { source in
                log.note("first")
                loop.remove(source, forMode: .work)
                source.invalidate()
                let successor = Self.source(pipe) { successor in
                    log.note("second")
                    loop.remove(successor, forMode: .work)
                }
                loop.add(successor, forMode: .work)
            }
            loop.add(source, forMode: .work)
            log.note("\(loop.runOn(.work))")
        }
        #expect(log.entries == ["first", "second", "finished"])
    }

    @Test func `RL-6 a source that was leaving when the thread ended does not keep the loop`() throws {
        weak var weakLoop: RunLoop?
        let source = try {
            let (loop, source) = try onLoopThread { loop in
                let pipe = BytePipe()
                pipe.write()
                // Its callback keeps no loop.
                let source = Self.source(pipe) { source in
                    RunLoop.current.remove(source, forMode: .work)
                    withExtendedLifetime(pipe) {}
                }
                loop.add(source, forMode: .work)
                loop.poll(.work)
                return (loop, source)
            }
            weakLoop = loop
            return source
        }()
        #expect(!source.isScheduled)
        #expect(weakLoop == nil)
        source.invalidate()
    }

    @Test func `RL-15 what is added and removed from several modes is where it was added last`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let pipe = BytePipe()
            pipe.write()
            let source = Self.source(pipe) { source in
                log.note("\(loop.currentMode!.rawValue)")
                loop.remove(source, forMode: .work)
                loop.add(source, forMode: .other)
                loop.add(source, forMode: .work)
                loop.remove(source, forMode: .work)
                loop.remove(source, forMode: .work)
            }
            loop.add(Port(), forMode: .other)
            loop.add(source, forMode: .work)
            log.note("\(loop.runOn(.work))")
            loop.poll(.work)
            loop.poll(.other)
            log.note("\(loop.contains(source, forMode: .other)) \(loop.contains(source, forMode: .work))")
            source.invalidate()
            return log.entries
        }
        #expect(entries == ["work", "finished", "other", "true false"])
    }
}

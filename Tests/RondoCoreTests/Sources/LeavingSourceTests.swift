import RondoMutex
import RondoTestSupport
import Testing

@testable import RondoCore

/// Sources that leave the mode that runs, in their callback. Their watchers are stopped when the mode next looks at the
/// kernel: a program cannot see that they are still there until then.
@Suite(.leavesNothing) struct LeavingSourceTests {
    /// A source in `.work` that is ready from the start: there is a byte in its pipe, which lives as long as
    /// it does.
    private static func addReadySource(
        to loop: RunLoop, of pipe: BytePipe = BytePipe(),
        _ perform: @escaping @Sendable (RunLoop.Source) -> Void
    ) -> RunLoop.Source {
        pipe.write()
        let source = RunLoop.Source(fileDescriptor: pipe.readEnd, keepsFile: true, interest: .read) {
            source, _ in
            withExtendedLifetime(pipe) { perform(source) }
        }
        loop.add(source, forMode: .work)
        return source
    }

    /// Runs `loop` in `.work` for so many passes, none of which sleeps: an event that is not served in its
    /// pass is not served.
    ///
    /// - Parameter began: Called as each pass begins, with its number from 1.
    private static func run(
        _ loop: RunLoop, forPasses count: Int, began: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        let passes = Mutex(0)
        let observer = RunLoop.Observer(activities: .beforeTimers) { _, _ in
            let pass = passes.withLock { passes in
                passes += 1
                return passes
            }
            began(pass)
            if pass == count { loop.stop() }
            loop.wakeUp()
        }
        // The mode is not empty when the source leaves it.
        let port = Port()
        loop.add(port, forMode: .work)
        loop.add(observer, forMode: .work)
        loop.runOn(.work)
        observer.invalidate()
        loop.remove(port, forMode: .work)
    }

    @Test func `RL-13 a source that leaves in its callback does not keep the mode from being empty`() throws {
        let results = try onLoopThread { loop in
            let source = Self.addReadySource(to: loop) { loop.remove($0, forMode: .work) }
            let first = loop.runOn(.work)
            let isMember = loop.contains(source, forMode: .work) || source.isScheduled
            let date = loop.limitDate(forMode: .work)
            return ["\(first)", "\(isMember)", "\(date == nil)", "\(loop.runOn(.work))"]
        }
        #expect(results == ["finished", "false", "true", "finished"])
    }

    @Test func `RL-8 a source that has left is not watched, though its descriptor stays ready`() throws {
        let passes = Mutex(0)
        let result = try onLoopThread { loop in
            let source = Self.addReadySource(to: loop) { loop.remove($0, forMode: .work) }
            let observer = RunLoop.Observer(activities: .beforeTimers) { _, _ in
                passes.withLock { $0 += 1 }
            }
            loop.add(observer, forMode: .work)
            loop.add(Port(), forMode: .work)
            let result = loop.run(in: .work, for: 0.02, returnAfterSourceHandled: false)
            observer.invalidate()
            withExtendedLifetime(source) {}
            return result
        }
        #expect(result == .timedOut)
        // A pass that serves it, one that sleeps, and one for the limit; a loop that still watched it would
        // make thousands.
        #expect(passes.withLock { $0 } <= 3)
    }

    @Test func `RL-8 a source that leaves after it was found ready is not called`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let sources = SourceList()
            let kept = (1...2).map { _ in
                Self.addReadySource(to: loop) { _ in
                    log.note("called")
                    for source in sources.sources { loop.remove(source, forMode: .work) }
                }
            }
            for source in kept { sources.append(source) }
            // The look of a last pass would remove the source: so the next pass is not the last one.
            Self.run(loop, forPasses: 5)
            withExtendedLifetime(kept) {}
        }
        #expect(log.entries == ["called"])
    }

    @Test func `RL-24 a source that leaves in its callback and comes back is served for its new interest`()
        throws
    {
        let log = EventLog()
        try onLoopThread { loop in
            let source = Self.addReadySource(to: loop) { source in
                log.note("\(source.interest.rawValue)")
                loop.remove(source, forMode: .work)
                // The reading end of a pipe is never ready to be written: a callback would come from a stale
                // watcher.
                if log.count(of: "1") == 2 { source.interest = .write }
                loop.add(source, forMode: .work)
            }
            Self.run(loop, forPasses: 5) { pass in
                log.note("pass")
                if pass == 4 { source.interest = .read }
            }
            source.invalidate()
        }
        #expect(log.entries == ["pass", "1", "pass", "1", "pass", "pass", "1", "pass", "1"])
    }

    @Test func `SRC-15 a source that leaves one loop is served by another that it enters meanwhile`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let pipe = BytePipe()
            let source = Self.addReadySource(to: loop, of: pipe) { source in
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
            loop.add(Port(), forMode: .work)
            for _ in 1...3 { loop.poll(.work) }
            log.note("\(source.isScheduled)")
            source.invalidate()
        }
        #expect(log.entries == ["first", "second", "false", "false"])
    }

    @Test func `SRC-11 the descriptor of a source that is invalidated while it leaves may be reused`() throws
    {
        let log = EventLog()
        try onLoopThread { loop in
            let pipe = BytePipe()
            _ = Self.addReadySource(to: loop, of: pipe) { source in
                log.note("first")
                loop.remove(source, forMode: .work)
                source.invalidate()
                _ = Self.addReadySource(to: loop, of: pipe) { successor in
                    log.note("second")
                    loop.remove(successor, forMode: .work)
                }
            }
            log.note("\(loop.runOn(.work))")
        }
        #expect(log.entries == ["first", "second", "finished"])
    }

    @Test func `RL-6 a source that was leaving when the thread ended does not retain the loop`() throws {
        weak var weakLoop: RunLoop?
        let source = try {
            let (loop, source) = try onLoopThread { loop in
                // Its callback retains no loop.
                let source = Self.addReadySource(to: loop) { RunLoop.current.remove($0, forMode: .work) }
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

    @Test func `RL-15 a source added to and removed from several modes is in the mode it was added to last`()
        throws
    {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let source = Self.addReadySource(to: loop) { source in
                log.note("\(loop.currentMode!.rawValue)")
                loop.remove(source, forMode: .work)
                loop.add(source, forMode: .other)
                loop.add(source, forMode: .work)
                loop.remove(source, forMode: .work)
                loop.remove(source, forMode: .work)
            }
            loop.add(Port(), forMode: .other)
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

import RondoTestSupport
import Testing

@testable import RondoCore

/// Changes between the look that found an event ready and the call of its source.
@Suite(.leavesNothing) struct LateChangesTests {
    @Test func `RL-8 a descriptor source that an observer removes after the wait is not called`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let pipe = BytePipe()
            let source = pipe.source("called", to: log)
            loop.add(source, forMode: .work)
            loop.add(Port(), forMode: .work)
            loop.add(
                RunLoop.Observer(activities: .afterWaiting, repeats: false) { _, _ in
                    loop.remove(source, forMode: .work)
                    log.note("removed")
                    loop.perform(inModes: [.work]) { loop.stop() }
                }, forMode: .work)
            pipe.write()
            loop.runOn(.work)
            source.invalidate()
        }
        #expect(log.entries == ["removed"])
    }

    @Test(arguments: [true, false])
    func `RL-8 a descriptor source that a timer of the same pass removes, or pauses, is not called`(
        removes: Bool
    ) throws {
        let log = EventLog()
        try onLoopThread { loop in
            let pipe = BytePipe()
            let source = pipe.source("called", to: log)
            loop.add(source, forMode: .work)
            loop.add(Port(), forMode: .work)
            pipe.write()
            loop.addDueTimer("timer", to: log, mode: .work) {
                if removes { loop.remove(source, forMode: .work) } else { source.interest = [] }
            }
            loop.poll(.work)
            source.invalidate()
        }
        #expect(log.entries == ["timer"])
    }

    @Test func `RL-17 a timer that leaves one of its modes stays in the others`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let timer = loop.addDueTimer("timer", to: log, mode: .work)
            loop.add(timer, forMode: .other)
            loop.add(timer, forMode: .inner)
            loop.add(Port(), forMode: .work)
            loop.remove(timer, forMode: .work)
            loop.poll(.work)
            log.note("work is over")
            loop.poll(.other)
        }
        #expect(log.entries == ["work is over", "timer"])
    }

    @Test func `SRC-9 the schedule callback comes on the adding thread, and for a mode that becomes common`()
        throws
    {
        let log = EventLog()
        let loopThread = RunLoopThread(name: "schedule", mode: .work)
        let loop = loopThread.start()
        let source = RunLoop.Source(
            schedule: { loop, mode in log.note("\(mode.shortName) \(loop.isCurrent)") }, perform: {})
        loop.add(source, forMode: .common)
        loop.addCommonMode(.other)
        source.invalidate()
        loopThread.stop()
        loopThread.join()
        #expect(log.entries.sorted() == ["default false", "other false", "tracking false"])
    }

    @Test func `SRC-11 a source in two loops is cancelled in both`() throws {
        let log = EventLog()
        let threads = ["first", "second"].map { RunLoopThread(name: $0, mode: .work) }
        let source = RunLoop.Source(
            cancel: { loop, mode in log.note("\(loop.threadName ?? "") \(mode.shortName)") }, perform: {})
        for thread in threads { thread.start().add(source, forMode: .work) }
        source.invalidate()
        for thread in threads {
            thread.stop()
            thread.join()
        }
        #expect(log.entries.sorted() == ["first work", "second work"])
    }
}

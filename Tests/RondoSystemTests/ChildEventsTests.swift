import Rondo
import RondoMutex
import RondoTestSupport
import Testing

@testable import RondoSystem

/// The modes that a child remembers, as a value.
@Suite struct ChildEventsTests {
    @Test func `a child remembers no loop whose thread has ended`() throws {
        let thread = RunLoopThread(name: "alive")
        let alive = LoopMode(loop: thread.start(), mode: .default)
        defer { thread.stop() }
        let first = RunLoopThread(name: "first")
        let ended = LoopMode(loop: first.start(), mode: .default)
        var events = ChildEvents()
        events.enter(ended)
        events.enter(alive)
        first.stop()
        first.join()
        events.leaveEndedLoops()
        let others = events.leave(LoopMode(loop: alive.loop, mode: .tracking))
        #expect(others == [alive])
    }

    @Test func `a child forgets a loop when its thread ends, and is scheduled in none that has ended`() throws
    {
        let child = try Child.spawn("cat", standardInput: .stream)
        let thread = RunLoopThread(name: "ending")
        let loop = thread.start()
        for mode in [RunLoop.Mode.default, .common, .tracking] { child.schedule(in: loop, forMode: mode) }
        thread.stop()
        thread.join()
        let left = child.events.withLock { $0.leave(LoopMode(loop: loop, mode: .tracking)) }
        #expect(left.isEmpty)
        child.schedule(in: loop, forMode: .default)
        let late = child.events.withLock { $0.leave(LoopMode(loop: loop, mode: .tracking)) }
        #expect(late.isEmpty)
        child.kill()
        try waitUntilGone(child.processIdentifier)
    }

    @Test func `a child that is complete remembers no loop`() throws {
        let thread = RunLoopThread(name: "alive")
        let mode = LoopMode(loop: thread.start(), mode: .default)
        defer { thread.stop() }
        var events = ChildEvents()
        events.enter(mode)
        _ = events.ended(.exited(0))
        _ = events.beginReporting(on: mode.loop)
        let items = [events.next(), events.next(), events.next()]
        #expect(items == [.ended(.exited(0)), .completed(.exited(0)), nil])
        let kept = events.leave(LoopMode(loop: mode.loop, mode: .tracking))
        #expect(kept.isEmpty)
        events.enter(mode)
        let late = events.leave(LoopMode(loop: mode.loop, mode: .tracking))
        #expect(late.isEmpty)
    }
}

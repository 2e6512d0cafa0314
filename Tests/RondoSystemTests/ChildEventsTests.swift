import Rondo
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
        first.stop()
        first.join()
        events.enter(alive)
        let others = events.leave(LoopMode(loop: alive.loop, mode: .tracking))
        #expect(others == [alive])
        events.enter(ended)
        let none = events.leave(alive)
        #expect(none.isEmpty)
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

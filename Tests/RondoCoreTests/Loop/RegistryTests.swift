import RondoCore
import RondoTestSupport
import Testing

/// A member that was added under the common name stays registered until it is invalidated, whatever modes it
/// has left.
@Suite(.leavesNothing) struct RegistryTests {
    @Test
    func `RL-25 a common item removed from every mode joins later ones, and is released when invalidated`()
        throws
    {
        let released = try onLoopThread { loop -> [Bool] in
            let items = Items(in: loop, .common)
            for mode in [RunLoop.Mode.default, .tracking] { items.remove(from: loop, mode) }
            var found = items.memberships(in: loop, .default) + items.memberships(in: loop, .tracking)
            guard found == Array(repeating: false, count: 6) else { return found }
            guard items.memberships(in: loop, .common) == [true, true, true] else { return [] }
            loop.addCommonMode(.work)
            guard items.memberships(in: loop, .work) == [true, true, true] else { return [] }
            items.remove(from: loop, .work)
            items.invalidate()
            found = items.memberships(in: loop, .common)
            return found + items.dropAndLook()
        }
        #expect(released == [false, false, false, true, true, true])
    }

    @Test
    func `TM-13 RL-6 after the end of its thread a common item belongs to no loop, and may go to another`()
        throws
    {
        let log = EventLog()
        let (items, dead) = try onLoopThread { loop -> (Items, RunLoop) in
            let items = Items(in: loop, .common, log)
            // It is in no mode any more, but still registered.
            for mode in [RunLoop.Mode.default, .tracking] { items.remove(from: loop, mode) }
            return (items, loop)
        }
        #expect(items.memberships(in: dead, .common) == [false, false, false])
        let released = try onLoopThread { loop -> [Bool] in
            items.add(to: loop, .work)
            guard items.memberships(in: loop, .work) == [true, true, true] else { return [] }
            items.signal()
            loop.poll(.work)
            items.invalidate()
            return items.dropAndLook()
        }
        #expect(log.entries == ["observer", "source", "timer"])
        #expect(released == [true, true, true])
    }

    @Test func `TM-13 a timer that is only in the common registry stays with its loop`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let timer = loop.addDueTimer("timer", to: log, mode: .common)
            for mode in [RunLoop.Mode.default, .tracking] { loop.remove(timer, forMode: mode) }
            let steps = try? onLoopThread { other in
                other.add(timer, forMode: .default)
                return other.contains(timer, forMode: .default)
            }
            log.note("\(steps == false)")
            loop.remove(timer, forMode: .common)
            let free = try? onLoopThread { other in
                other.add(timer, forMode: .default)
                return other.contains(timer, forMode: .default)
            }
            log.note("\(free == true)")
        }
        #expect(log.entries == ["true", "true"])
    }

    @Test func `RL-24 an item removed under the common name does not join a later common mode`() throws {
        let found = try onLoopThread { loop -> [Bool] in
            let items = Items(in: loop, .common)
            items.remove(from: loop, .common)
            loop.addCommonMode(.work)
            return [RunLoop.Mode.default, .tracking, .work, .common].flatMap {
                items.memberships(in: loop, $0)
            }
        }
        #expect(found == Array(repeating: false, count: 12))
    }
}

/// A source, an observer and a timer that are always together.
private final class Items: @unchecked Sendable {
    // `@unchecked`: handed from one thread to another at a join.

    private var source: RunLoop.Source?
    private var observer: RunLoop.Observer?
    private var timer: Timer?

    init(in loop: RunLoop, _ mode: RunLoop.Mode, _ log: EventLog = EventLog()) {
        source = RunLoop.Source { log.note("source") }
        observer = RunLoop.Observer(activities: .entry) { _, _ in log.note("observer") }
        timer = Timer(fire: Date(timeIntervalSinceNow: -1), interval: 0, repeats: false) { _ in
            log.note("timer")
        }
        add(to: loop, mode)
    }

    func add(to loop: RunLoop, _ mode: RunLoop.Mode) {
        if let source { loop.add(source, forMode: mode) }
        if let observer { loop.add(observer, forMode: mode) }
        if let timer { loop.add(timer, forMode: mode) }
    }

    func remove(from loop: RunLoop, _ mode: RunLoop.Mode) {
        if let source { loop.remove(source, forMode: mode) }
        if let observer { loop.remove(observer, forMode: mode) }
        if let timer { loop.remove(timer, forMode: mode) }
    }

    func memberships(in loop: RunLoop, _ mode: RunLoop.Mode) -> [Bool] {
        [
            source.map { loop.contains($0, forMode: mode) } ?? false,
            observer.map { loop.contains($0, forMode: mode) } ?? false,
            timer.map { loop.contains($0, forMode: mode) } ?? false,
        ]
    }

    func signal() { source?.signal() }

    func invalidate() {
        source?.invalidate()
        observer?.invalidate()
        timer?.invalidate()
    }

    /// Lets go of all three; whether each was released by that.
    func dropAndLook() -> [Bool] {
        weak let weakSource = source
        weak let weakObserver = observer
        weak let weakTimer = timer
        source = nil
        observer = nil
        timer = nil
        return [weakSource == nil, weakObserver == nil, weakTimer == nil]
    }
}

/// A loop calls the methods of a subclass of `Port`, as Foundation's own test expects.
@Suite(.leavesNothing) struct PortTests {
    private final class NotedPort: Port, @unchecked Sendable {
        let modes = EventLog()
        private let whenGone: @Sendable () -> Void

        init(whenGone: @escaping @Sendable () -> Void) {
            self.whenGone = whenGone
            super.init()
        }

        deinit { whenGone() }

        override func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
            modes.note("+\(mode.rawValue)")
        }

        override func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
            modes.note("-\(mode.rawValue)")
        }
    }

    @Test func `RL-15 RL-16 a port is called once for each mode, and released when it is invalid`() throws {
        let gone = EventLog()
        let log = try onLoopThread { loop -> [String] in
            let log: EventLog
            do {
                let port = NotedPort { gone.note("gone") }
                log = port.modes
                loop.add(port, forMode: RunLoop.Mode("a"))
                loop.add(port, forMode: RunLoop.Mode("a"))
                loop.add(port, forMode: RunLoop.Mode("b"))
                loop.remove(port, forMode: RunLoop.Mode("b"))
                port.invalidate()
            }
            return log.entries
        }
        #expect(log == ["+a", "+b", "-b", "-a"])
        #expect(gone.entries == ["gone"])
    }
}

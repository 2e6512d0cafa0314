import RondoTestSupport
import Testing

@testable import RondoCore

/// The memory of a mode's watchers.
@Suite(.leavesNothing) struct WatcherTests {
    /// Allocates `count` watchers and numbers them.
    private static func take(_ count: Int, of table: inout WatcherTable) -> [WatcherPointer] {
        (0..<count).map { number in
            let place = table.take()
            place.pointee.io.fd = Int32(number)
            return place
        }
    }

    @Test func `a watcher does not move when others are allocated, and its memory is its own`() {
        var table = WatcherTable()
        let places = Self.take(1_000, of: &table)
        #expect(places.map(\.pointee.io.fd) == (0..<1_000).map { Int32($0) })
        var found: [Int32] = []
        table.forEach { found.append($0.pointee.io.fd) }
        #expect(found == (0..<1_000).map { Int32($0) })
    }

    @Test func `a watcher takes one line of the cache`() {
        var table = WatcherTable()
        #expect(MemoryLayout<Watcher>.stride == 64)
        // libev calls back with the address of the `ev_io`, which is taken for that of the watcher.
        #expect(MemoryLayout<Watcher>.offset(of: \.io) == 0)
        #expect(Self.take(100, of: &table).allSatisfy { UInt(bitPattern: $0) % 64 == 0 })
    }

    @Test func `a watcher that is reused is as new, and has another generation`() {
        var table = WatcherTable()
        let place = table.take()
        place.pointee.io.fd = 7
        place.pointee.isListed = true
        let generation = place.pointee.generation
        table.giveBack(place)
        #expect(table.take() == place)
        #expect(place.pointee.generation != generation)
        #expect(place.pointee.io.fd == 0 && !place.pointee.isListed)
    }

    @Test
    func `the memory of many watchers is given back when they are gone, and those that stay do not move`() {
        var table = WatcherTable()
        let staying = Self.take(3, of: &table)
        for place in Self.take(1_000, of: &table) { table.giveBack(place) }
        table.shrink(to: 3)
        #expect(staying.map(\.pointee.io.fd) == [0, 1, 2])
        // The first piece, from its beginning, and no place twice.
        let next = Self.take(5, of: &table)
        #expect(next.map { $0 - staying[0] } == [3, 4, 5, 6, 7])
        #expect(staying.map(\.pointee.io.fd) == [0, 1, 2])
        _ = Self.take(1_000, of: &table)
        #expect(next.map(\.pointee.io.fd) == [0, 1, 2, 3, 4])
    }

    /// In a process of its own, which too many would end.
    @Test func `SRC-16 one descriptor may have more sources than a number of 16 bits counts`() async {
        await #expect(processExitsWith: .success) {
            var table = WatcherTable()
            var started = StartedWatchers()
            let place = table.take()
            place.pointee.io.fd = 3
            for _ in 0..<(1 << 16) { _ = started.add(place) }
            for _ in 1..<(1 << 16) { started.remove(place) }
            precondition(started.contains(3))
            started.remove(place)
            precondition(started.isEmpty && !started.contains(3))
        }
    }

    /// Adds a source to `.work` for each of `pipes`.
    private static func add(_ name: String, of pipes: [BytePipe], to loop: RunLoop, _ log: EventLog)
        -> [RunLoop.Source]
    {
        let sources = pipes.map { $0.source(name, to: log) }
        for source in sources { loop.add(source, forMode: .work) }
        return sources
    }

    @Test(arguments: [false, true])
    func `RL-57 sources added after many were removed are served, and only those`(wereReady: Bool)
        throws
    {
        let log = EventLog()
        let port = Port()
        try onLoopThread { loop in
            // The mode is not empty when they have gone.
            loop.add(port, forMode: .work)
            for round in ["first", "second"] {
                let pipes = (0..<100).map { _ in BytePipe() }
                let sources = Self.add(round, of: pipes, to: loop, log)
                for pipe in pipes { pipe.write() }
                for _ in pipes { loop.poll(.work) }
                if wereReady {
                    for pipe in pipes { pipe.write() }
                    // This pass finds them all, and serves one.
                    loop.poll(.work)
                }
                for source in sources { source.invalidate() }
                loop.poll(.work)
            }
        }
        let count = wereReady ? 101 : 100
        #expect(
            log.entries == Array(repeating: "first", count: count) + Array(repeating: "second", count: count))
    }

    @Test func `RL-45 TM-1 after many sources were removed wake-ups and timers still end the sleep`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            loop.add(Port(), forMode: .work)
            let many = Self.add("many", of: (0..<100).map { _ in BytePipe() }, to: loop, log)
            loop.poll(.work)
            for source in many { source.invalidate() }
            loop.poll(.work)
            // They reuse the watchers of those.
            let few = Self.add("few", of: (0..<10).map { _ in BytePipe() }, to: loop, log)
            loop.poll(.work)
            let timer = Timer(timeInterval: 0.01, repeats: false) { _ in
                log.note("timer")
                loop.stop()
            }
            loop.add(timer, forMode: .work)
            loop.runOn(.work)
            let waker = LoopThread { _ in
                try? loop.waitUntilAsleep()
                loop.perform(inModes: [.work]) {
                    log.note("block")
                    loop.stop()
                }
            }
            loop.runOn(.work)
            _ = try? waker.value()
            for source in few { source.invalidate() }
        }
        #expect(log.entries == ["timer", "block"])
    }

    /// All in one look: removing the first source finds that the descriptor of the second is closed, which is
    /// noted for that one. Then the second is removed, and the third reuses its watcher.
    @Test func `SRC-27 a closed descriptor is not reported to a source that reuses its watcher`() throws {
        let valid = try onLoopThread { loop -> [Bool] in
            let (closed, open) = (BytePipe(), BytePipe())
            let descriptor = dup(closed.readEnd)
            let watching = (0..<2).map { _ in
                RunLoop.Source(fileDescriptor: descriptor, interest: .read) { _, _ in }
            }
            for source in watching { loop.add(source, forMode: .work) }
            loop.poll(.work)
            close(descriptor)
            for source in watching { source.invalidate() }
            let next = RunLoop.Source(fileDescriptor: open.readEnd, interest: .read) { _, _ in }
            loop.add(next, forMode: .work)
            for _ in 0..<3 { loop.poll(.work) }
            defer { next.invalidate() }
            return withExtendedLifetime((closed, open)) { [next.isValid] }
        }
        #expect(valid == [true])
    }
}

import RondoTestSupport
import Testing

@testable import RondoCore

/// Where a mode's watchers stand.
@Suite(.leavesNothing) struct WatcherTests {
    /// Takes `count` places and numbers them.
    private static func take(_ count: Int, of table: inout WatcherTable) -> [WatcherPointer] {
        (0..<count).map { number in
            let place = table.take()
            place.pointee.io.fd = Int32(number)
            return place
        }
    }

    @Test func `a place does not move as others are taken, and is nobody else's`() {
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
        #expect(Self.take(100, of: &table).allSatisfy { UInt(bitPattern: $0) % 64 == 0 })
    }

    @Test func `who stands where another one stood is as new, and can be told from it`() {
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

    @Test func `what many have taken is given back when they are gone, and those that stay do not move`() {
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

    @Test func `RL-57 of sources that come after many have gone each is served, and only they`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            for round in ["first", "second"] {
                let pipes = (0..<100).map { _ in BytePipe() }
                let sources = pipes.map { $0.source(round, to: log) }
                for source in sources { loop.add(source, forMode: .work) }
                for pipe in pipes { pipe.write() }
                for _ in 0..<150 { loop.poll(.work) }
                for pipe in pipes { pipe.write() }
                // Found ready, all of them, and one served.
                loop.poll(.work)
                for source in sources { source.invalidate() }
                loop.add(Port(), forMode: .work)
                loop.poll(.work)
            }
        }
        #expect(log.entries == Array(repeating: "first", count: 101) + Array(repeating: "second", count: 101))
    }
}

import Rondo
import RondoCore
import RondoStreams
import Testing

@testable import RondoConnections

/// Tests which connections are kept, for which loads, and which have to go.
@Suite(.leavesNoConnections) struct IdleConnectionsTests {
    private static func key(_ host: String = "a", port: Int = 80, tls: TLSSettings? = nil) -> ConnectionKey {
        ConnectionKey(host: host, port: port, tls: tls)
    }

    private static func second(_ number: Double) -> LoopInstant {
        LoopInstant(nanoseconds: 0).advanced(bySeconds: number)
    }

    /// Loops, as far as they are told apart here.
    private final class Loop: Sendable {}
    private let loops = [Loop(), Loop()]
    private func loop(_ number: Int) -> ObjectIdentifier { ObjectIdentifier(loops[number]) }

    /// Idle connections in a box: expectations take no mutating calls.
    private final class Idle {
        var state = IdleConnections<Int>()

        func add(
            _ number: Int, _ key: ConnectionKey = key(), _ loop: ObjectIdentifier? = nil,
            at second: Double = 0
        ) {
            state.add(number, for: key, of: loop, now: IdleConnectionsTests.second(second))
        }

        func take(
            _ key: ConnectionKey = key(), _ loop: ObjectIdentifier? = nil,
            where isUsable: ((Int) -> Bool)? = nil
        ) -> Int? {
            guard let position = state.choose(for: key, of: loop, where: isUsable) else { return nil }
            return state.remove(at: position)
        }

        func expire(_ second: Double) -> [Int] {
            state.removeExpired(now: IdleConnectionsTests.second(second))
        }
        func shrink(_ limit: Int) -> [Int] { state.shrink(to: limit) }
        func remove(_ isUseless: (Int) -> Bool) -> [Int] { state.remove(where: isUseless) }
        func removeAll() -> [Int] { state.removeAll() }
    }

    @Test func `the connection that has been idle for the shortest time is taken`() {
        let idle = Idle()
        idle.add(1, at: 0)
        idle.add(2, at: 1)
        #expect(idle.take() == 2)
        #expect(idle.take() == 1)
        #expect(idle.take() == nil)
        #expect(idle.state.count == 0 && idle.state.isEmpty)
    }

    @Test func `of the usable connections the one that has been idle for the shortest time is taken`() {
        let idle = Idle()
        for number in 1...4 { idle.add(number, at: Double(number)) }
        #expect(idle.take { $0 < 3 } == 2)
        #expect(idle.take { $0 > 4 } == nil)
        #expect(idle.state.count == 3)
    }

    @Test func `a loop takes its own idle connection, and another loop's only if it has none`() {
        let idle = Idle()
        let (first, second) = (loop(0), loop(1))
        idle.add(1, Self.key(), first, at: 0)
        idle.add(2, Self.key(), first, at: 1)
        idle.add(3, Self.key(), second, at: 2)
        #expect(idle.take(Self.key(), first) == 2)
        #expect(idle.take(Self.key(), second) == 3)
        #expect(idle.take(Self.key(), second) == 1)
        #expect(idle.take(Self.key(), second) == nil)
        // Of another loop that has one it is taken where it is missed least.
        for number in 4...5 { idle.add(number, Self.key(), second, at: 3) }
        idle.add(6, Self.key(), first, at: 4)
        #expect(idle.take(Self.key(), nil) == 5)
    }

    @Test func `idle connections with different hosts, ports or TLS settings are kept apart`() {
        var careless = TLSSettings()
        careless.verification = .none
        let keys = [
            Self.key("a"), Self.key("b"), Self.key("a", port: 81), Self.key("a", tls: TLSSettings()),
            Self.key("a", tls: careless),
        ]
        let idle = Idle()
        for (number, key) in keys.enumerated() {
            #expect(idle.take(key) == nil)
            idle.add(number, key)
        }
        for (number, key) in keys.enumerated() { #expect(idle.take(key) == number) }
    }

    @Test func `connection keys with the same server, TLS and proxy are equal`() {
        let proxy = StreamProxy(.httpConnect, host: "p", port: 1)
        let keys = [
            Self.key("a"), Self.key("a", port: 81), Self.key("a", tls: TLSSettings()),
            ConnectionKey(host: "a", port: 80, tls: nil, proxy: proxy),
        ]
        let others = [
            Self.key("a"), Self.key("a", port: 81), Self.key("a", tls: TLSSettings()),
            ConnectionKey(host: "a", port: 80, tls: nil, proxy: proxy),
        ]
        #expect(
            keys == others && keys.map(\.hashValue) == others.map(\.hashValue)
                && Set(keys + others).count == 4)
    }

    @Test func `a connection idle for too long is removed`() {
        let idle = Idle()
        idle.add(1, at: 10)
        idle.add(2, Self.key(), loop(0), at: 20)
        #expect(idle.state.oldestSince == Self.second(10))
        #expect(idle.expire(64) == [])
        #expect(idle.expire(66) == [1])
        #expect(idle.state.oldestSince == Self.second(20))
        #expect(idle.take() == 2)
        #expect(idle.state.oldestSince == nil)
    }

    @Test func `idle connections of all loops beyond the limit are removed, the oldest first`() {
        let idle = Idle()
        for number in 0..<4 { idle.add(number, Self.key(), loop(number % 2), at: Double(number)) }
        idle.add(10, Self.key(tls: TLSSettings()), at: 5)
        #expect(idle.shrink(5) == [])
        #expect(idle.shrink(3) == [0, 1])
        #expect(idle.state.oldestSince == Self.second(2))
        #expect(idle.shrink(0) == [2, 3, 10])
        #expect(idle.state.oldestSince == nil)
    }

    @Test func `useless connections are removed, the others stay in order`() {
        let idle = Idle()
        for number in 0..<4 { idle.add(number, at: Double(number)) }
        for number in 10..<12 { idle.add(number, Self.key("b"), at: 4) }
        #expect(idle.state.all.sorted() == [0, 1, 2, 3, 10, 11])
        #expect(idle.remove { $0 == 1 || $0 > 9 }.sorted() == [1, 10, 11])
        #expect(idle.state.count == 3)
        #expect(idle.state.all.sorted() == [0, 2, 3])
        #expect(idle.take(Self.key("b")) == nil)
        #expect(idle.take() == 3)
        #expect(idle.state.oldestSince == Self.second(0))
        #expect(idle.remove { _ in true } == [0, 2])
        #expect(idle.state.isEmpty && idle.state.oldestSince == nil)
        #expect(idle.remove { _ in true } == [])
    }

    @Test func `removeAll returns all idle connections, the oldest first`() {
        let idle = Idle()
        for number in 0..<3 { idle.add(number, Self.key(), loop(number % 2), at: Double(number)) }
        #expect(idle.removeAll() == [0, 1, 2])
        #expect(idle.state.count == 0)
        #expect(idle.removeAll() == [])
    }

    @Test func `groups of loops that are gone are removed when there are many`() {
        let idle = Idle()
        let loops = (0..<100).map { _ in Loop() }
        for loop in loops {
            idle.add(1, Self.key(), ObjectIdentifier(loop))
            #expect(idle.take(Self.key(), ObjectIdentifier(loop)) == 1)
        }
        #expect(idle.state.groupCount <= IdleConnections<Int>.groupsBeforeCleanup)
        idle.add(2, Self.key(), ObjectIdentifier(loops[0]))
        idle.state.removeEmptyGroups()
        #expect(idle.state.groupCount == 1)
        #expect(idle.take() == 2)
    }
}

import Rondo
import RondoCore
import RondoStreams
import Testing

@testable import RondoConnections

/// Which connections are kept, and which have to go.
@Suite(.leavesNoConnections) struct PoolStateTests {
    private static func key(_ host: String, port: Int = 80, tls: TLSSettings? = nil) -> PoolKey {
        PoolKey(host: host, port: port, tls: tls)
    }

    private static func second(_ number: Double) -> LoopInstant {
        LoopInstant(nanoseconds: 0).advanced(bySeconds: number)
    }

    @Test func `the one that has been idle for the shortest time is taken`() {
        var pool = PoolState<Int>()
        #expect(pool.add(1, for: Self.key("a"), now: Self.second(0)) == [])
        #expect(pool.add(2, for: Self.key("a"), now: Self.second(1)) == [])
        #expect(pool.take(for: Self.key("a"), now: Self.second(2)).kept == 2)
        #expect(pool.take(for: Self.key("a"), now: Self.second(2)).kept == 1)
        #expect(pool.take(for: Self.key("a"), now: Self.second(2)).kept == nil)
        #expect(pool.count == 0)
    }

    @Test func `of those that are usable the one that has been idle for the shortest time is taken`() {
        var pool = PoolState<Int>()
        for number in 1...4 { _ = pool.add(number, for: Self.key("a"), now: Self.second(Double(number))) }
        #expect(pool.take(for: Self.key("a"), now: Self.second(5)) { $0 < 3 }.kept == 2)
        #expect(pool.take(for: Self.key("a"), now: Self.second(5)) { $0 > 4 }.kept == nil)
        #expect(pool.count == 3)
    }

    @Test func `hosts, ports and TLS settings are kept apart`() {
        var careless = TLSSettings()
        careless.verification = .none
        let keys = [
            Self.key("a"), Self.key("b"), Self.key("a", port: 81), Self.key("a", tls: TLSSettings()),
            Self.key("a", tls: careless),
        ]
        var pool = PoolState<Int>()
        for (number, key) in keys.enumerated() {
            #expect(pool.take(for: key, now: Self.second(0)).kept == nil)
            _ = pool.add(number, for: key, now: Self.second(0))
        }
        for (number, key) in keys.enumerated() {
            #expect(pool.take(for: key, now: Self.second(0)).kept == number)
        }
    }

    @Test func `keys are equal by what they say`() {
        let proxy = StreamProxy(.httpConnect, host: "p", port: 1)
        let keys = [
            Self.key("a"), Self.key("a", port: 81), Self.key("a", tls: TLSSettings()),
            PoolKey(host: "a", port: 80, tls: nil, proxy: proxy),
        ]
        let others = [
            Self.key("a"), Self.key("a", port: 81), Self.key("a", tls: TLSSettings()),
            PoolKey(host: "a", port: 80, tls: nil, proxy: proxy),
        ]
        #expect(
            keys == others && keys.map(\.hashValue) == others.map(\.hashValue)
                && Set(keys + others).count == 4)
    }

    private static func limits(_ perServer: Int, _ all: Int) -> URLConnection.Limits {
        var limits = URLConnection.Limits()
        limits.idleConnectionsPerServer = perServer
        limits.idleConnections = all
        return limits
    }

    @Test func `one server has at most as many as the limit says, the oldest goes`() {
        var pool = PoolState<Int>(limits: Self.limits(6, 64))
        for number in 0..<6 { #expect(pool.add(number, for: Self.key("a"), now: Self.second(0)) == []) }
        _ = pool.add(100, for: Self.key("b"), now: Self.second(0))
        #expect(pool.add(6, for: Self.key("a"), now: Self.second(0)) == [0])
        #expect(pool.count == 7)
    }

    @Test func `there are at most as many in all as the limit says, the oldest goes`() {
        var pool = PoolState<Int>(limits: Self.limits(6, 64))
        for number in 0..<64 {
            #expect(pool.add(number, for: Self.key("\(number)"), now: Self.second(Double(number) / 10)) == [])
        }
        #expect(pool.add(64, for: Self.key("64"), now: Self.second(7)) == [0])
        #expect(pool.count == 64)
    }

    @Test func `what was idle for too long is dropped, whoever asks`() {
        var pool = PoolState<Int>()
        _ = pool.add(1, for: Self.key("a"), now: Self.second(0))
        _ = pool.add(2, for: Self.key("b"), now: Self.second(10))
        let taken = pool.take(for: Self.key("c"), now: Self.second(56))
        #expect(taken.kept == nil)
        #expect(taken.dropped == [1])
        #expect(pool.add(3, for: Self.key("c"), now: Self.second(66)) == [2])
        #expect(pool.take(for: Self.key("c"), now: Self.second(67)).kept == 3)
    }

    @Test func `a server to which nothing is kept any more is forgotten`() {
        var pool = PoolState<Int>()
        _ = pool.add(1, for: Self.key("a"), now: Self.second(0))
        _ = pool.add(2, for: Self.key("b"), now: Self.second(0))
        _ = pool.add(3, for: Self.key("c"), now: Self.second(0))
        #expect(pool.take(for: Self.key("a"), now: Self.second(1)).kept == 1)
        #expect(pool.take(for: Self.key("a"), now: Self.second(1)).kept == nil)
        #expect(pool.remove { $0 == 2 } == [2])
        pool.forgetUnused()
        #expect(pool.serverCount == 1)
        #expect(pool.secondsToExpiry(now: Self.second(1)) == 54)
        #expect(pool.take(for: Self.key("c"), now: Self.second(1)).kept == 3)
        #expect(pool.secondsToExpiry(now: Self.second(1)) == nil)
        pool.forgetUnused()
        #expect(pool.serverCount == 0)
    }

    @Test func `servers stay apart when some of them are forgotten`() {
        var pool = PoolState<Int>(limits: Self.limits(6, 3))
        for number in 0..<3 {
            _ = pool.add(number, for: Self.key("\(number)"), now: Self.second(Double(number)))
        }
        // The first goes, with its server; the last one stands in its place.
        #expect(pool.add(3, for: Self.key("3"), now: Self.second(3)) == [0])
        #expect(pool.serverCount == 3)
        #expect(pool.take(for: Self.key("0"), now: Self.second(4)).kept == nil)
        #expect(pool.take(for: Self.key("2"), now: Self.second(4)).kept == 2)
        #expect(pool.take(for: Self.key("3"), now: Self.second(4)).kept == 3)
        pool.forgetUnused()
        #expect(pool.serverCount == 1)
        #expect(pool.take(for: Self.key("3"), now: Self.second(4)).kept == nil)
        #expect(pool.take(for: Self.key("1"), now: Self.second(4)).kept == 1)
        _ = pool.add(4, for: Self.key("3"), now: Self.second(5))
        #expect(pool.removeAll() == [4])
        #expect(pool.take(for: Self.key("3"), now: Self.second(5)).kept == nil)
    }

    @Test func `those that are too many by new limits go, the oldest first`() {
        var pool = PoolState<Int>()
        for number in 0..<4 { _ = pool.add(number, for: Self.key("a"), now: Self.second(Double(number))) }
        _ = pool.add(10, for: Self.key("b"), now: Self.second(1.5))
        #expect(pool.setLimits(Self.limits(3, 64)) == [0])
        #expect(pool.setLimits(Self.limits(3, 2)) == [1, 10])
        #expect(pool.count == 2)
        #expect(pool.take(for: Self.key("a"), now: Self.second(5)).kept == 3)
        #expect(pool.setLimits(Self.limits(0, 0)) == [2])
        #expect(pool.add(11, for: Self.key("b"), now: Self.second(6)) == [11])
    }

    @Test func `those of no use are taken out, the others stay in their order`() {
        var pool = PoolState<Int>()
        for number in 0..<4 { _ = pool.add(number, for: Self.key("a"), now: Self.second(Double(number))) }
        for number in 10..<12 { _ = pool.add(number, for: Self.key("b"), now: Self.second(4)) }
        #expect(pool.all.sorted() == [0, 1, 2, 3, 10, 11])
        #expect(pool.remove { $0 == 1 || $0 > 9 }.sorted() == [1, 10, 11])
        #expect(pool.count == 3)
        #expect(pool.all.sorted() == [0, 2, 3])
        #expect(pool.take(for: Self.key("b"), now: Self.second(5)).kept == nil)
        #expect(pool.take(for: Self.key("a"), now: Self.second(5)).kept == 3)
        #expect(pool.secondsToExpiry(now: Self.second(5)) == 50)
        #expect(pool.remove { _ in true } == [0, 2])
        #expect(pool.count == 0)
        #expect(pool.secondsToExpiry(now: Self.second(5)) == nil)
        #expect(pool.remove { _ in true } == [])
    }

    @Test func `removeAll gives all back`() {
        var pool = PoolState<Int>()
        for number in 0..<3 { _ = pool.add(number, for: Self.key("a"), now: Self.second(0)) }
        #expect(pool.removeAll() == [0, 1, 2])
        #expect(pool.count == 0)
        #expect(pool.removeAll() == [])
    }

    @Test func `those that expire are known before they do`() {
        var pool = PoolState<Int>()
        #expect(pool.secondsToExpiry(now: Self.second(0)) == nil)
        _ = pool.add(1, for: Self.key("a"), now: Self.second(10))
        _ = pool.add(2, for: Self.key("b"), now: Self.second(20))
        #expect(pool.secondsToExpiry(now: Self.second(11)) == 54)
        #expect(pool.takeExpired(now: Self.second(64)) == [])
        #expect(pool.takeExpired(now: Self.second(66)) == [1])
        #expect(pool.secondsToExpiry(now: Self.second(66)) == 9)
    }
}

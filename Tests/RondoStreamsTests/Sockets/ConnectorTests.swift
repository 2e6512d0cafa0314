import RondoStreams
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct ConnectorTests {
    static let delay = Connector.attemptDelay

    static func four(_ number: UInt32) -> SocketAddress { .ipv4(number, port: 80) }
    static func six(_ number: UInt64) -> SocketAddress { .ipv6(high: 0, low: number, port: 80, scope: 0) }
    static func refused(_ address: SocketAddress) -> SocketError {
        SocketError(code: 111, operation: .connect, address: address)
    }

    /// The order in which addresses are tried when nothing ever answers.
    static func order(_ addresses: [SocketAddress]) -> [SocketAddress] {
        var connector = Connector()
        var order: [SocketAddress] = []
        var actions = connector.start(addresses, now: 0)
        var now: UInt64 = 0
        while !actions.isEmpty {
            var next: [Connector.Action] = []
            for action in actions {
                if case .start(_, let address) = action { order.append(address) }
                if case .waitUntil(let time) = action {
                    now = time
                    next = connector.timeReached(now)
                }
            }
            actions = next
        }
        return order
    }

    @Test func `without any address connecting fails at once`() {
        var connector = Connector()
        #expect(connector.start([], now: 5) == [.failed([])])
    }

    @Test func `a single address is tried without a timer`() {
        var connector = Connector()
        #expect(connector.start([Self.four(1)], now: 5) == [.start(0, Self.four(1))])
        #expect(connector.attemptSucceeded(0) == [.connected(0)])
    }

    @Test func `the families alternate and the first one begins`() {
        let (a, b, c) = (Self.four(1), Self.four(2), Self.four(3))
        let (x, y) = (Self.six(1), Self.six(2))
        #expect(Self.order([x, y, a, b, c]) == [x, a, y, b, c])
        #expect(Self.order([a, b, c, x]) == [a, x, b, c])
        #expect(Self.order([x, a]) == [x, a])
        #expect(Self.order([a, b]) == [a, b])
    }

    @Test func `a second attempt starts after the delay and the first goes on`() {
        var connector = Connector()
        let (x, a) = (Self.six(1), Self.four(1))
        #expect(connector.start([x, a], now: 1_000) == [.start(0, x), .waitUntil(1_000 + Self.delay)])
        #expect(connector.timeReached(1_000 + Self.delay) == [.start(1, a)])
        #expect(connector.attemptSucceeded(0) == [.cancel(1), .connected(0)])
    }

    @Test func `a wake-up that comes early waits again`() {
        var connector = Connector()
        let (x, a) = (Self.six(1), Self.four(1))
        _ = connector.start([x, a], now: 0)
        #expect(connector.timeReached(Self.delay - 1) == [.waitUntil(Self.delay)])
        #expect(connector.timeReached(Self.delay) == [.start(1, a)])
        #expect(connector.timeReached(Self.delay * 2) == [])
    }

    @Test func `a failure starts the next attempt at once and sets the delay anew`() {
        var connector = Connector()
        let (x, a, b) = (Self.six(1), Self.four(1), Self.four(2))
        _ = connector.start([x, a, b], now: 0)
        #expect(
            connector.attemptFailed(0, Self.refused(x), now: 10) == [
                .start(1, a), .waitUntil(10 + Self.delay),
            ])
        #expect(connector.timeReached(Self.delay) == [.waitUntil(10 + Self.delay)])
        #expect(connector.attemptFailed(1, Self.refused(a), now: 20) == [.start(2, b)])
        #expect(
            connector.attemptFailed(2, Self.refused(b), now: 30)
                == [.failed([Self.refused(x), Self.refused(a), Self.refused(b)])])
    }

    @Test func `connecting fails only when the last running attempt has failed`() {
        var connector = Connector()
        let (x, a) = (Self.six(1), Self.four(1))
        _ = connector.start([x, a], now: 0)
        _ = connector.timeReached(Self.delay)
        #expect(connector.attemptFailed(1, Self.refused(a), now: Self.delay) == [])
        #expect(
            connector.attemptFailed(0, Self.refused(x), now: Self.delay) == [
                .failed([Self.refused(a), Self.refused(x)])
            ])
    }

    @Test func `reports after the end are ignored`() {
        var connector = Connector()
        let (x, a) = (Self.six(1), Self.four(1))
        _ = connector.start([x, a], now: 0)
        _ = connector.timeReached(Self.delay)
        _ = connector.attemptSucceeded(1)
        #expect(connector.attemptSucceeded(0) == [])
        #expect(connector.attemptFailed(0, Self.refused(x), now: 9) == [])
        #expect(connector.timeReached(.max) == [])
        #expect(connector.cancel() == [])
    }

    @Test func `a connector ignores reports of unknown and ended attempts`() {
        var connector = Connector()
        let (x, a) = (Self.six(1), Self.four(1))
        _ = connector.start([x, a], now: 0)
        #expect(connector.attemptSucceeded(7) == [])
        _ = connector.attemptFailed(0, Self.refused(x), now: 1)
        #expect(connector.attemptFailed(0, Self.refused(x), now: 2) == [])
        #expect(connector.attemptSucceeded(0) == [])
        #expect(connector.attemptSucceeded(1) == [.connected(1)])
    }

    @Test func `a cancelled connector cancels its running attempts`() {
        var connector = Connector()
        _ = connector.start([Self.six(1), Self.four(1), Self.four(2)], now: 0)
        _ = connector.timeReached(Self.delay)
        #expect(connector.cancel() == [.cancel(0), .cancel(1)])
        #expect(connector.cancel() == [])
        #expect(connector.timeReached(.max) == [])
    }

    @Test func `addresses beyond the limit are not tried`() {
        let many = (1...1_000).map { Self.four($0) }
        #expect(Self.order(many) == Array(many.prefix(Connector.addressLimit)))
    }

    @Test func `a connector's delay does not overflow at the end of time`() {
        var connector = Connector()
        let actions = connector.start([Self.six(1), Self.four(1)], now: .max - 1)
        #expect(actions == [.start(0, Self.six(1)), .waitUntil(.max)])
    }
}

import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Several addresses of one host, tried by a channel over real sockets (RFC 8305); `ConnectorTests` has the
/// decisions alone.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct HappyEyeballsTests {
    private func resolver(_ addresses: [SocketAddress]) -> Resolver {
        Resolver(idleTime: .milliseconds(1)) { _, _ in .success(addresses) }
    }

    /// The events of a channel to a host with these addresses, until it is open or has failed.
    private func events(of addresses: [SocketAddress]) throws -> [SocketChannel.Event] {
        nonisolated(unsafe) var found: [SocketChannel.Event] = []
        let resolver = resolver(addresses)
        _ = try onStreamThread { loop in
            var configuration = SocketChannel.Configuration(host: "several.test", port: 1)
            configuration.resolver = resolver
            let talk = Conversation(SocketChannel(configuration))
            talk.open(in: loop)
            try loop.run { talk.channel.isOpen || talk.failure != nil }
            talk.channel.close()
            found = talk.events
            return []
        }
        return found
    }

    @Test func `an address that does not answer is overtaken by the next`() throws {
        let silent = try SilentListener()
        let good = try TestListener()
        let found = try events(of: [silent.address, good.address])
        #expect(
            found == [
                .resolving(host: "several.test"), .connecting(silent.address), .connecting(good.address),
                .connected(good.address), .open,
            ])
    }

    @Test func `an address that refuses makes room for the next at once`() throws {
        let refused = try RefusedPort()
        let good = try TestListener()
        let bad = SocketAddress.loopback(port: refused.port)
        let found = try events(of: [bad, bad.withPort(refused.port), good.address])
        #expect(found.suffix(3) == [.connecting(good.address), .connected(good.address), .open])
    }

    @Test func `the families alternate`() throws {
        let refused = try RefusedPort()
        let four = SocketAddress.loopback(port: refused.port)
        let six = SocketAddress.ipv6(high: 0, low: 1, port: refused.port, scope: 0)
        let good = try TestListener()
        let found = try events(of: [four, good.address, six])
        // By families: four, six, good.
        #expect(found.contains(.connecting(six)))
        #expect(found.last == .open)
    }

    @Test func `when all addresses have failed the error has the code of each`() throws {
        let refused = try RefusedPort()
        let bad = SocketAddress.loopback(port: refused.port)
        guard case .failed(.connect(let host, _, let errors)) = try events(of: [bad, bad]).last else {
            Issue.record("it has not failed")
            return
        }
        #expect(host == "several.test")
        #expect(errors.map(\.code) == [ECONNREFUSED, ECONNREFUSED])
    }

    @Test(arguments: [false, true])
    func `a look-up whose channel is closed says nothing`(isDropped: Bool) throws {
        let isAsked = DispatchSemaphore(value: 0)
        let mayAnswer = DispatchSemaphore(value: 0)
        let resolver = Resolver(idleTime: .milliseconds(1)) { _, _ in
            isAsked.signal()
            mayAnswer.wait()
            return .success([.loopback(port: 1)])
        }
        let findings = try onStreamThread { loop in
            var configuration = SocketChannel.Configuration(host: "slow.test", port: 1)
            configuration.resolver = resolver
            var talk: Conversation? = Conversation(SocketChannel(configuration))
            weak let channel = talk?.channel
            talk?.open(in: loop)
            try loop.run { talk?.words == ["resolving"] }
            isAsked.wait()
            if isDropped { talk = nil } else { talk?.channel.close() }
            mayAnswer.signal()
            try waitFor("the resolver's thread") { resolver.threadCount == 0 ? () : nil }
            loop.add(Port(), forMode: .default)
            loop.pass()
            let words = talk?.words ?? ["resolving"]
            talk = nil
            return words + ["\(channel == nil)"]
        }
        #expect(findings == ["resolving", "true"])
    }
}

import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

/// Tests where a connection leads, by values, and where it comes from, on sockets.
@Suite(.leavesNothing) struct ConnectSettingsTests {
    private static let loopback = SocketAddress.loopback(port: 80)

    private func settings(_ change: (inout ConnectSettings) -> Void) -> ConnectSettings {
        var settings = ConnectSettings()
        change(&settings)
        return settings
    }

    @Test func `setting nil allocates no memory for a connection without settings`() {
        var configuration = ChannelConfiguration(host: "localhost", port: 1, tls: nil, route: nil)
        (configuration.tls, configuration.route, configuration.connect) = (nil, nil, nil)
        (configuration.openingLimit, configuration.handshakes) = (nil, nil)
        #expect(configuration.isPlain)
        configuration.openingLimit = 1
        #expect(!configuration.isPlain)
        configuration.openingLimit = nil
        #expect(configuration.openingLimit == nil)
    }

    @Test func `UC-76 a place has the addresses that stand for it, and a name is looked up else`() {
        let some = settings {
            $0.addresses[.init(host: "a.example", port: 80)] = ["127.0.0.1", "no address", "[::1]"]
        }
        let target = some.target(host: "A.example", port: 80, isProxy: false)
        #expect(
            target == .addresses([Self.loopback, .ipv6(high: 0, low: 1, port: 80, scope: 0)]), "\(target)")
        #expect(some.target(host: "a.example", port: 81, isProxy: false) == .name("a.example", port: 81))
        #expect(some.target(host: "[::2]", port: 80, isProxy: true) == .name("::2", port: 80))
        let all = settings {
            $0.addresses[.init(host: "*", port: 80)] = ["127.0.0.1", "::1"]
            $0.addressFamilies = .ipv4
        }
        #expect(all.target(host: "b.example", port: 80, isProxy: true) == .addresses([Self.loopback]))
    }

    @Test func `UC-76 the first detour that fits leads elsewhere, and none is for a proxy`() {
        let some = settings {
            $0.detours = [
                .init(fromHost: "a.example", fromPort: 443, toHost: "b.example", toPort: nil),
                .init(fromHost: nil, fromPort: 80, toHost: "[::1]", toPort: 8080),
                .init(toHost: nil, toPort: 70_000),
            ]
        }
        #expect(some.target(host: "a.example", port: 443, isProxy: false) == .name("b.example", port: 443))
        #expect(some.target(host: "c.example", port: 80, isProxy: false) == .name("::1", port: 8080))
        #expect(some.target(host: "c.example", port: 80, isProxy: true) == .name("c.example", port: 80))
        #expect(
            some.target(host: "c.example", port: 1, isProxy: false)
                == .impossible(host: "c.example", port: 70_000))
    }

    @Test func `UC-76 a Unix socket takes the place of every host and proxy`() {
        let some = settings { $0.unixSocketPath = "/run/x" }
        #expect(some.target(host: "a", port: 80, isProxy: true) == .addresses([.unix(path: "/run/x")]))
    }

    @Test func `UC-76 the time that connecting may take is no reason for another connection`() {
        #expect(settings { $0.timeout = 3 }.sharedPart == nil)
        #expect(settings { $0.localEnd = .address("127.0.0.2") }.sharedPart != nil)
        #expect(settings { $0.addressFamilies = .ipv4 }.sharedPart != settings { $0.addressFamilies = .ipv6 })
    }

    @Test func `UC-76 a connection comes from the address, the interface and the ports that it is bound to`()
        throws
    {
        let server = try TestServer { $0.waitForEnd() }
        let address = SocketAddress.loopback(port: server.port)
        let bound = try Socket.connecting(to: address, from: .address("127.0.0.2"))
        #expect(bound.localAddress?.host == "127.0.0.2")
        bound.close()
        let onInterface = try Socket.connecting(to: address, from: .interface("lo"))
        #expect(onInterface.localAddress?.host == "127.0.0.1")
        onInterface.close()

        let taken = try Socket.connecting(to: address, from: .address("127.0.0.1"))
        let port = try #require(taken.localAddress?.port)
        var end = ConnectSettings.LocalEnd.address("127.0.0.1")
        end.ports = port...port
        #expect(throws: SocketError.self) { try Socket.connecting(to: address, from: end) }
        taken.close()
    }

    @Test func `UC-76 an interface or address that this machine lacks is an error of the binding`() {
        for end in [ConnectSettings.LocalEnd.interface("none0"), .address("192.0.2.1"), .address("x")] {
            let error = #expect(throws: SocketError.self) {
                try Socket.connecting(to: Self.loopback, from: end)
            }
            #expect(error?.operation == .bind, "\(end)")
        }
    }

    @Test func `ciphers that OpenSSL does not know are refused`() throws {
        for change in [{ $0.ciphers = "NONSENSE" }, { $0.cipherSuites = "NONSENSE" }]
            as [(inout TLSSettings) -> Void]
        {
            var settings = TLSSettings()
            change(&settings)
            let error = try #require(throws: TLSError.self) { try TLSContext(settings) }
            #expect("\(error)".contains("cipher"))
        }
    }
}

import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct SocketAddressTests {
    static let literals = [
        ("127.0.0.1", "127.0.0.1:80"), ("0.0.0.0", "0.0.0.0:80"), ("255.255.255.255", "255.255.255.255:80"),
        ("::1", "[::1]:80"), ("::", "[::]:80"), ("2001:db8::ff", "[2001:db8::ff]:80"),
        ("2001:DB8:0:0:0:0:0:1", "[2001:db8::1]:80"), ("::ffff:192.0.2.1", "[::ffff:192.0.2.1]:80"),
        ("fe80::1%lo", "[fe80::1%lo]:80"), ("fe80::1%1", "[fe80::1%lo]:80"),
    ]

    @Test(arguments: literals)
    func `an address literal is read, and described in its canonical form`(
        literal: String, description: String
    ) throws {
        let address = try #require(SocketAddress(literal: literal, port: 80))
        #expect(address.description == description)
        #expect(address.port == 80)
        #expect(SocketAddress(literal: address.host, port: 80) == address)
    }

    @Test(arguments: [
        "", "localhost", "127.1", "0x7f000001", "1.2.3.4.5", "256.1.1.1", "[::1]", "::1%", "::1%nosuch0",
        "127.0.0.1\0.example.com", "127.0.0.1 ", "::1\0", "1.2.3.4%1", "::g", "%1", "1:2:3:4:5:6:7:8:9",
    ])
    func `a text that is not an address literal is not read as one`(text: String) {
        #expect(SocketAddress(literal: text, port: 80) == nil)
    }

    @Test(arguments: [
        SocketAddress.loopback(port: 1), .ipv4(0xfffe_fdfc, port: 65_535),
        .ipv6(high: 0x2001_0db8_0102_0304, low: 0x0506_0708_090a_0b0c, port: 443, scope: 0),
        .ipv6(high: 0xfe80 << 48, low: 1, port: 80, scope: 1),
        .unix(path: "/run/app.sock"), .unix(path: "\0abstract"),
        .unix(path: String(repeating: "x", count: 107)),
    ])
    func `an address is the same after it was a sockaddr`(address: SocketAddress) {
        let back = address.withSockaddr { SocketAddress(sockaddr: $0) }
        #expect(back == .some(.some(address)))
    }

    @Test(arguments: [SocketAddress.loopback(port: 80), .ipv6(high: 0, low: 1, port: 80, scope: 0)])
    func `a sockaddr that is cut off anywhere is none`(address: SocketAddress) {
        let count = address.withSockaddr { $0.count } ?? 0
        for length in 0..<count {
            let cut = address.withSockaddr {
                SocketAddress(sockaddr: UnsafeRawBufferPointer(rebasing: $0[..<length]))
            }
            #expect(cut == .some(nil))
        }
    }

    @Test func `a path that is too long has no sockaddr`() {
        #expect(SocketAddress.unix(path: String(repeating: "x", count: 108)).withSockaddr { $0.count } == nil)
        #expect(
            SocketAddress.unix(path: "\0" + String(repeating: "x", count: 107)).withSockaddr { $0.count }
                == 110)
    }

    @Test func `a Unix socket is described by its path or name, and has no port`() {
        #expect(SocketAddress.unix(path: "/run/app.sock").description == "unix:/run/app.sock")
        #expect(SocketAddress.unix(path: "\0name").description == "unix:@name")
        #expect(SocketAddress.unix(path: "/x").port == nil)
    }

    @Test func `withPort changes an IP address and leaves a Unix socket as it is`() {
        #expect(SocketAddress.loopback(port: 1).withPort(2) == .loopback(port: 2))
        #expect(SocketAddress.unix(path: "/x").withPort(2) == .unix(path: "/x"))
    }
}

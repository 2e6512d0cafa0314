import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

/// Tests the bytes that are sent to proxies, and how their answers are understood.
@Suite(.leavesNothing) struct ProxyNegotiationTests {
    /// A negotiation driven to its end: what was sent in each step, and how it ended.
    private struct Talk: Equatable {
        var sent: [[UInt8]] = []
        var isDone = false
        var error: NegotiationError?
        /// The bytes that are left for the host.
        var rest: [UInt8] = []

        static func == (a: Talk, b: Talk) -> Bool {
            a.sent.flatMap { $0 } == b.sent.flatMap { $0 } && a.isDone == b.isDone && a.error == b.error
                && a.rest == b.rest
        }

        /// - Parameter answers: Each comes after what the step before has sent, in pieces of `size` bytes.
        init(_ proxy: StreamProxy, _ host: String, _ port: Int, _ answers: [[UInt8]], size: Int = .max) {
            var value = proxy.route(toHost: host, port: port).negotiation
            var step = value.begin()
            var unread = answers.filter { !$0.isEmpty }[...]
            while true {
                switch step {
                case .exchange(let bytes):
                    if !bytes.isEmpty { sent.append(bytes) }
                    guard let answer = unread.popFirst() else {
                        error = value.receiveEnd()
                        return
                    }
                    let piece = Array(answer.prefix(size))
                    var consumed = -1
                    step = piece.withUnsafeBytes { value.receive($0, consumed: &consumed) }
                    let left = Array(answer.dropFirst(consumed))
                    if !left.isEmpty { unread.insert(left, at: unread.startIndex) }
                    if case .exchange = step, consumed != piece.count {
                        Issue.record("took \(consumed) of \(piece.count) bytes and went on")
                        return
                    }
                case .done(let bytes):
                    if !bytes.isEmpty { sent.append(bytes) }
                    isDone = true
                    rest = unread.flatMap { $0 }
                    return
                case .failed(let failure):
                    error = failure
                    return
                }
            }
        }
    }

    /// Whole and byte by byte, with the same outcome.
    private func talk(
        _ proxy: StreamProxy, _ answers: [[UInt8]], sourceLocation: SourceLocation = #_sourceLocation
    ) -> Talk {
        talk(proxy, "example.com", 443, answers, sourceLocation: sourceLocation)
    }

    private func talk(
        _ proxy: StreamProxy, _ host: String, _ port: Int, _ answers: [[UInt8]],
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> Talk {
        let whole = Talk(proxy, host, port, answers)
        // All that a proxy says comes at once; what it has refused by then need not be said any more.
        var joined = Talk(proxy, host, port, [answers.flatMap { $0 }])
        if joined.error != nil { joined.sent = whole.sent }
        #expect(joined == whole, sourceLocation: sourceLocation)
        for size in [1, 2, 3, 7] {
            #expect(
                Talk(proxy, host, port, answers, size: size) == whole, "in pieces of \(size)",
                sourceLocation: sourceLocation)
        }
        return whole
    }

    private let socks5 = StreamProxy(.socks5, host: "proxy", port: 1_080)
    private let socks4 = StreamProxy(.socks4, host: "proxy", port: 1_080)
    private let http = StreamProxy(.httpConnect, host: "proxy", port: 3_128)

    private func with(_ proxy: StreamProxy, _ name: String, _ password: String? = nil) -> StreamProxy {
        StreamProxy(proxy.kind, host: proxy.host, port: proxy.port, userName: name, password: password)
    }

    // MARK: - SOCKS 5

    private let greeting: [UInt8] = [5, 0]
    private let granted: [UInt8] = [5, 0, 0, 1, 127, 0, 0, 1, 0x12, 0x34]

    @Test func `SOCKS 5 has the proxy look the name up`() {
        let talk = talk(socks5, [greeting, granted, [7, 8]])
        let name = Array("example.com".utf8)
        #expect(talk.sent == [[5, 1, 0], [5, 1, 0, 3, 11] + name + [1, 187]])
        #expect(talk.isDone)
        #expect(talk.rest == [7, 8])
    }

    @Test func `SOCKS 5 is asked for addresses as numbers`() {
        let four = talk(socks5, "192.0.2.7", 80, [greeting, granted])
        #expect(four.sent.last == [5, 1, 0, 1, 192, 0, 2, 7, 0, 80])
        let six = talk(socks5, "[2001:db8::1]", 80, [greeting, granted])
        #expect(
            six.sent.last
                == [5, 1, 0, 4, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80])
    }

    @Test func `SOCKS 5 replies with each kind of address`() {
        let six: [UInt8] = [5, 0, 0, 4] + [UInt8](repeating: 9, count: 18)
        let name: [UInt8] = [5, 0, 0, 3, 5] + Array("proxy".utf8) + [0, 1]
        let none: [UInt8] = [5, 0, 0, 3, 0, 0, 1]
        for reply in [granted, six, name, none] {
            let talk = talk(socks5, [greeting, reply, [1]])
            #expect(talk.isDone && talk.rest == [1])
        }
    }

    @Test func `SOCKS 5 sends user name and password if the proxy wants them`() throws {
        let proxy = with(socks5, "me", "secret")
        let accepted = talk(proxy, [[5, 2], [1, 0], granted])
        #expect(accepted.isDone)
        try #require(accepted.sent.count == 3)
        #expect(accepted.sent[0] == [5, 2, 0, 2])
        #expect(accepted.sent[1] == [1, 2, 109, 101, 6] + Array("secret".utf8))
        // A proxy that does not want them.
        #expect(talk(proxy, [greeting, granted]).sent.count == 2)
        let refused = talk(proxy, [[5, 2], [1, 1]])
        #expect(refused.error?.kind == .authentication)
        #expect(refused.error?.description.contains("user name and password") == true)
        #expect(talk(socks5, [[5, 0xff]]).error?.kind == .authentication)
        #expect(talk(proxy, [[5, 0xff]]).error?.kind == .authentication)
        // One that was not offered.
        #expect(talk(socks5, [[5, 2]]).error?.kind == .protocolViolation)
        for (name, password) in [
            ("", "x"), (String(repeating: "x", count: 256), "x"), ("x", String(repeating: "x", count: 256)),
        ] {
            #expect(talk(with(socks5, name, password), []).error?.kind == .authentication)
        }
    }

    @Test(arguments: 1...9) func `SOCKS 5 says why it refuses`(code: UInt8) {
        let talk = talk(socks5, [greeting, [5, code, 0, 1, 0, 0, 0, 0, 0, 0]])
        #expect(talk.error?.kind == .refused)
        #expect(talk.error?.code == Int(code))
        #expect(talk.error?.description.contains("example.com") == true)
        #expect(talk.error?.description.contains("proxy:1080") == true)
    }

    @Test func `a proxy that does not speak SOCKS 5 is detected`() {
        for answers in [
            [[4, 0]], [Array("HTTP/1.1 400 Bad Request\r\n".utf8)], [[5, 7]], [greeting, [4, 0, 0, 1]],
            [greeting, [5, 0, 0, 9]], [greeting, [5, 0, 0, 0]],
        ] as [[[UInt8]]] {
            #expect(talk(socks5, answers).error?.kind == .protocolViolation)
        }
        let other = talk(socks5, [[0, 91, 0, 0, 0, 0, 0, 0]]).error?.description
        #expect(other?.contains("its answer is not one of a SOCKS 5 proxy. Check") == true)
        for count in 0..<(greeting + granted).count {
            let talk = talk(socks5, [Array((greeting + granted).prefix(count))])
            #expect(talk.error?.kind == .closed)
        }
    }

    @Test func `a proxy is not asked for an invalid host or port`() {
        let long = String(repeating: "x", count: 256)
        for proxy in [socks4, socks5, http] {
            for (host, port) in [("", 80), (long, 80), ("a\0b", 80), ("a", -1), ("a", 65_536)] {
                let talk = talk(proxy, host, port, [])
                #expect(talk.sent.isEmpty && talk.error?.kind == .refused)
            }
        }
        for host in ["a b", "a\r\nHost: b", "a/b", "a:b", "bücher.example"] {
            #expect(talk(http, host, 80, []).sent.isEmpty)
        }
    }

    // MARK: - SOCKS 4

    @Test func `SOCKS 4 is spoken for an address and 4a for a name`() {
        let reply: [UInt8] = [0, 90, 0, 0, 0, 0, 0, 0]
        let four = talk(socks4, "192.0.2.7", 80, [reply, [1]])
        #expect(four.sent == [[4, 1, 0, 80, 192, 0, 2, 7, 0]])
        #expect(four.isDone && four.rest == [1])
        let name = talk(with(socks4, "me"), [reply])
        #expect(name.sent == [[4, 1, 1, 187, 0, 0, 0, 1, 109, 101, 0] + Array("example.com".utf8) + [0]])
        #expect(talk(socks4, "::1", 80, [reply]).sent == [[4, 1, 0, 80, 0, 0, 0, 1, 0, 58, 58, 49, 0]])
    }

    @Test func `each refusal of a SOCKS 4 proxy has its kind of error`() {
        for (code, kind) in [
            (91, .refused), (92, .authentication), (93, .authentication), (1, .protocolViolation),
        ]
            as [(UInt8, NegotiationError.Kind)]
        {
            #expect(talk(socks4, [[0, code, 0, 0, 0, 0, 0, 0]]).error?.kind == kind)
        }
        #expect(talk(socks4, [[5, 90, 0, 0, 0, 0, 0, 0]]).error?.kind == .protocolViolation)
        #expect(talk(socks4, [[0, 90, 0]]).error?.kind == .closed)
        #expect(talk(with(socks4, "a\0b"), []).error?.kind == .refused)
    }

    // MARK: - CONNECT

    private func text(_ talk: Talk) -> String { String(decoding: talk.sent.flatMap { $0 }, as: UTF8.self) }

    @Test func `CONNECT leaves what comes behind the head`() {
        for head in [
            "HTTP/1.1 200 Connection established\r\n\r\n", "HTTP/1.0 200\r\n\r\n", "HTTP/1.1 204 x\n\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        ] {
            let talk = talk(http, [Array(head.utf8), Array("\r\n\u{16}rest".utf8)])
            #expect(talk.isDone)
            #expect(talk.rest == Array("\r\n\u{16}rest".utf8))
            #expect(text(talk) == "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
        }
    }

    @Test func `CONNECT has the credentials of its proxy, and an IPv6 address in brackets`() {
        let ok = Array("HTTP/1.1 200 OK\r\n\r\n".utf8)
        let named = talk(with(http, "Aladdin", "open sesame"), "::1", 80, [ok])
        #expect(
            text(named)
                == "CONNECT [::1]:80 HTTP/1.1\r\nHost: [::1]:80\r\n"
                + "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n")
        #expect(talk(with(http, "a:b"), [ok]).error?.kind == .authentication)
        // A zone is a name on this machine.
        let zoned = talk(http, "fe80::1%lo", 80, [ok])
        #expect(text(zoned) == "CONNECT [fe80::1]:80 HTTP/1.1\r\nHost: [fe80::1]:80\r\n\r\n")
    }

    @Test func `CONNECT keeps the answer that refuses`() {
        let challenge = "HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\n"
        let refused = talk(http, [Array(challenge.utf8), Array("a body".utf8)])
        #expect(refused.error?.kind == .authentication)
        #expect(refused.error?.code == 407)
        #expect(refused.error.map { String(decoding: $0.response, as: UTF8.self) } == challenge)
        let forbidden = talk(http, [Array("HTTP/1.1 403 Forbidden\r\n\r\n".utf8)])
        #expect(forbidden.error?.kind == .refused && forbidden.error?.code == 403)
        #expect(forbidden.error?.description.contains("403 Forbidden") == true)
    }

    @Test func `a reply that is no response to CONNECT is detected`() {
        for answer in [
            "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 20\r\n\r\n", "HTTP/1.1 2000\r\n\r\n",
            "HTTP/1.1  200\r\n\r\n", "\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n",
            String(repeating: "x", count: ConnectNegotiation.headLimit + 1),
            String(repeating: "HTTP/1.1 100 x\r\n\r\n", count: ConnectNegotiation.interimLimit + 1),
        ] {
            #expect(
                talk(http, [Array(answer.utf8)]).error?.kind == .protocolViolation, "\(answer.prefix(30))")
        }
        let half = talk(http, [Array("HTTP/1.1 200 OK\r\n".utf8)]).error
        #expect(half?.kind == .closed)
        #expect(half?.description.contains("the connection before its answer was complete. Check") == true)
        // The longest that is allowed.
        let field = String(repeating: "x", count: ConnectNegotiation.headLimit - 25)
        #expect(talk(http, [Array("HTTP/1.1 200 OK\r\nX: \(field)\r\n\r\n".utf8)]).isDone)
    }

    /// Bytes without sense, of every length, do no harm and are never taken for a yes.
    @Test func `random bytes do not trap, and are never an HTTP proxy's consent`() {
        var state: UInt64 = 88_172_645_463_325_252
        func next() -> UInt8 {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state >> 24)
        }
        for _ in 0..<2_000 {
            let bytes = (0..<Int(next() % 40)).map { _ in next() }
            for proxy in [socks4, socks5, http, with(socks5, "a", "b")] {
                let found = talk(proxy, [bytes])
                // Four bytes of SOCKS 5, two of 4 have to be right for that.
                if proxy.kind == .httpConnect { #expect(!found.isDone) }
            }
        }
    }

    // MARK: - ST-45

    @Test func `ST-45 a SOCKS proxy is a dictionary of at least host and port`() {
        typealias Key = StreamSOCKSProxyConfiguration
        func proxy(_ dictionary: [String: Any]) -> StreamProxy? {
            let (input, output) = streamsToHost(80, host: "example.com")
            guard input.setProperty(dictionary as NSDictionary, forKey: .socksProxyConfigurationKey) else {
                return nil
            }
            // Rule ST-39.
            #expect(output.property(forKey: .socksProxyConfigurationKey) is NSDictionary)
            return output.property(forKey: .proxyKey) as? StreamProxy
        }
        let least: [String: Any] = [Key.hostKey.rawValue: "proxy", Key.portKey.rawValue: 1_080]
        #expect(proxy(least) == socks5)
        let four = least.merging(
            [Key.versionKey.rawValue: StreamSOCKSProxyVersion.version4.rawValue], uniquingKeysWith: { $1 })
        #expect(proxy(four) == socks4)
        let named = least.merging(
            [Key.userKey.rawValue: "me", Key.passwordKey.rawValue: "secret"], uniquingKeysWith: { $1 })
        #expect(proxy(named) == with(socks5, "me", "secret"))
        // By the values of Apple's constants kCFStreamPropertySOCKSProxyHost and …Port.
        #expect(proxy(["SOCKSProxy": "proxy", "SOCKSPort": 1_080]) == socks5)
        for wrong in [
            [Key.hostKey.rawValue: "proxy"], [Key.portKey.rawValue: 1_080], [:],
            least.merging([Key.versionKey.rawValue: "6"], uniquingKeysWith: { $1 }),
            least.merging([Key.portKey.rawValue: 70_000], uniquingKeysWith: { $1 }),
        ] as [[String: Any]] {
            #expect(proxy(wrong) == nil)
        }
        let (input, _) = streamsToHost(80, host: "example.com")
        #expect(!input.setProperty("proxy" as NSString, forKey: .socksProxyConfigurationKey))
        #expect(input.setProperty(socks4 as AnyObject, forKey: .proxyKey))
        #expect(input.setProperty(nil, forKey: .socksProxyConfigurationKey))
        #expect(input.property(forKey: .proxyKey) == nil)
    }

    @Test func `a proxy that is spoken to by TLS is offered no protocol but the one that is spoken`() {
        var proxy = StreamProxy(.httpConnect, host: "proxy.example", port: 8080, tls: TLSSettings())
        proxy.tls?.alpn = ["h2", "http/1.1"]
        #expect(proxy.route(toHost: "host.example", port: 443).tls?.alpn == ["http/1.1"])
    }
}

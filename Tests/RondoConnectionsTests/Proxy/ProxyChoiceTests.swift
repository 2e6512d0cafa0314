import Rondo
import RondoStreams
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Tests which proxy the environment names for a host.
@Suite(.leavesNoConnections) struct ProxyChoiceTests {
    private static func proxy(
        _ environment: [String: String], _ scheme: String = "http", _ host: String = "host.example",
        port: Int = 80
    ) -> StreamProxy? {
        try? ProxyEnvironment(environment).proxy(scheme: scheme, host: host, port: port)
    }

    @Test(
        arguments: [
            (["http_proxy": "http://p:1"], "http", "p:1"), (["http_proxy": "http://p:1"], "https", nil),
            (["HTTP_PROXY": "http://p:1"], "http", nil), (["https_proxy": "p:2"], "https", "p:2"),
            (["HTTPS_PROXY": "p:2"], "https", "p:2"),
            (["https_proxy": "low:1", "HTTPS_PROXY": "up:1"], "https", "low:1"),
            (["all_proxy": "p:3"], "http", "p:3"), (["ALL_PROXY": "p:3"], "https", "p:3"),
            (["all_proxy": "p:3", "http_proxy": "q:4"], "http", "q:4"),
            (["http_proxy": "", "all_proxy": "p:3"], "http", "p:3"), ([:], "http", nil),
            (["http_proxy": "p"], "http", "p:1080"), (["http_proxy": "http://[::1]:8/"], "http", "::1:8"),
        ] as [([String: String], String, String?)])
    func `the variable for the scheme comes before the one for all`(
        environment: [String: String], scheme: String, expected: String?
    ) {
        let proxy = Self.proxy(environment, scheme)
        #expect(proxy.map { "\($0.host):\($0.port)" } == expected)
    }

    @Test func `where no proxy is named, none has to be looked for`() {
        #expect(ProxyEnvironment(["no_proxy": "*", "http_proxy": "", "HTTP_PROXY": "p"]).isEmpty)
        #expect(!ProxyEnvironment(["all_proxy": "p"]).isEmpty)
        let emptied = ["http_proxy": "p", "no_proxy": "", "NO_PROXY": "a.test"]
        #expect(throws: Never.self) {
            let proxy = try ProxyEnvironment(emptied).proxy(scheme: "http", host: "a.test", port: 80)
            #expect(proxy == nil)
        }
        func isDirect(_ choice: URLConnection.ProxyChoice) -> Bool {
            var configuration = URLConnection.Configuration()
            configuration.proxy = choice
            return URLConnection.Settings(configuration).load.isDirect
        }
        #expect(isDirect(.direct))
        #expect(!isDirect(.by(StreamProxy(.socks5, host: "p", port: 1))))
        #expect(isDirect(.environment) == ProxyEnvironment.process.isEmpty)
    }

    @Test(
        arguments: [
            ("http://p:1", StreamProxy.Kind.httpConnect), ("p:1", .httpConnect), ("socks4://p:1", .socks4),
            ("socks4a://p:1", .socks4), ("SOCKS5://p:1", .socks5), ("socks5h://p:1", .socks5),
            ("socks://p:1", .socks5),
        ])
    func `the scheme of a proxy's URL is its kind`(text: String, kind: StreamProxy.Kind) {
        #expect(ProxyEnvironment.proxy(of: text)?.kind == kind)
    }

    @Test func `a SOCKS proxy at a Unix socket is not taken for one at a port`() {
        #expect(ProxyEnvironment.proxy(of: "socks5h://localhost/run/tor/socks") == nil)
        #expect(ProxyEnvironment.proxy(of: "socks5h://localhost/")?.port == 1080)
        #expect(ProxyEnvironment.proxy(of: "http://localhost/path")?.port == 1080)
    }

    @Test func `a proxy's URL may hold a name and a password`() {
        let proxy = ProxyEnvironment.proxy(of: "http://me:se%20cret@p:1")
        #expect(proxy?.userName == "me")
        #expect(proxy?.password == "se cret")
        #expect(ProxyEnvironment.proxy(of: "ftp://p:1") == nil)
        let secure = ProxyEnvironment.proxy(of: "https://me:x@p")
        #expect(
            secure
                == StreamProxy(
                    .httpConnect, host: "p", port: 443, userName: "me", password: "x", tls: TLSSettings()))
        #expect(proxy?.tls == nil)
        #expect(throws: ProxyEnvironment.Failure.unsupported("ftp://p:1")) {
            try ProxyEnvironment(["http_proxy": "ftp://p:1"]).proxy(scheme: "http", host: "h", port: 80)
        }
    }

    @Test(arguments: ["http://p:99999999999999999999", "p:65536", "socks5://[::1]:70000", "https://p:0"])
    func `a proxy whose port does not exist is none`(text: String) {
        #expect(StreamProxy(url: text) == nil)
        #expect(throws: ProxyEnvironment.Failure.unsupported(text)) {
            try ProxyEnvironment(["http_proxy": text]).proxy(scheme: "http", host: "h", port: 80)
        }
        #expect(StreamProxy(url: "http://p:")?.port == ProxyEnvironment.defaultPort)
    }

    @Test(
        arguments: [
            ("host.example:99999999999999999999", "host.example", 80, false), ("h:65616", "h", 80, false),
            ("*", "any.example", 80, true), ("", "any.example", 80, false),
            ("host.example", "host.example", 80, true), ("host.example", "HOST.example.", 80, true),
            ("host.example", "a.host.example", 80, true), (".host.example", "a.host.example", 80, true),
            (".host.example", "host.example", 80, true), ("host.example", "ghost.example", 80, false),
            ("host.example:8080", "host.example", 80, false),
            ("host.example:8080", "host.example", 8080, true), ("a, host.example b", "b", 80, true),
            ("127.0.0.1", "127.0.0.1", 80, true), ("127.0.0.1", "127.0.0.2", 80, false),
            ("10.0.0.0/8", "10.1.2.3", 80, true), ("10.0.0.0/8", "11.1.2.3", 80, false),
            ("192.168.0.0/17", "192.168.127.1", 80, true), ("192.168.0.0/17", "192.168.128.1", 80, false),
            ("0.0.0.0/0", "1.2.3.4", 80, true), ("10.0.0.0/8", "host10.example", 80, false),
            ("10.0.0.0/33", "10.0.0.1", 80, false), ("::1", "[::1]", 80, true), ("[::1]", "::1", 80, true),
            ("[::1]:81", "::1", 80, false), ("fe80::/10", "fe80::1", 80, true),
            ("fe80::/10", "fec0::1", 80, false), ("1.2.3.4:81", "1.2.3.4", 81, true),
        ])
    func `no_proxy names hosts, networks and ports`(list: String, host: String, port: Int, expected: Bool) {
        #expect(NoProxyList(list).contains(host: host, port: port) == expected)
    }

    /// Digest protects the target of the CONNECT as it is sent (RFC 7616 §3.4).
    @Test
    func `RFC 9110 9.3.6 an IPv6 address is in brackets in the target that a proxy's credentials are for`()
        throws
    {
        let address = try #require(WebAddress(url("https://[::1]/")))
        let pool = ConnectionPool()
        defer { pool.retire() }
        let targets = Box<[String]>([])
        _ = Route(
            to: address, of: pool, tls: TLSSettings(), by: StreamProxy(.httpConnect, host: "p", port: 1)
        ) { target in
            targets.mutate { $0.append(target) }
            return (nil, nil)
        }
        #expect(targets.value == ["[::1]:443"])
    }

    @Test func `RFC 9110 7.2 the Host field is that of the URL, whatever was requested before`() throws {
        let hosts = try onLoopThread { _ -> [String?] in
            let pool = ConnectionPool()
            defer { pool.retire() }
            return ["http://h:80/", "http://h/", "http://h:80/x", "http://h/y"].map { text in
                WebAddress(url(text)).flatMap {
                    RecentRoutes.route(to: $0, of: pool, settings: 1, tls: nil).usualFields?.agreed("Host")
                }
            }
        }
        #expect(hosts == ["h:80", "h", "h:80", "h"])
    }
}

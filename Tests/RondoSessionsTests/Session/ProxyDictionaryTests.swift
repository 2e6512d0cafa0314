import Rondo
import RondoStreams
import Testing

import class Rondo.URLSessionConfiguration

@testable import RondoConnections
@testable import RondoSessions

/// The proxies that a session's dictionary names, without a server.
@Suite struct ProxyDictionaryTests {
    private static func settings(_ dictionary: [AnyHashable: Any]) -> LoadSettings {
        let configuration = URLSessionConfiguration.ephemeral
        // The dictionary takes precedence over it.
        configuration.connection.proxy = .by(StreamProxy(.httpConnect, host: "other", port: 1))
        configuration.connectionProxyDictionary = dictionary
        return configuration.values.settings(ConnectionPool.shared, countsRegisteredClasses: false)
    }

    private static func proxy(_ dictionary: [AnyHashable: Any], _ text: String) throws -> StreamProxy? {
        let address = try #require(URL(string: text).flatMap { WebAddress($0) })
        return try settings(dictionary).proxy(for: address)
    }

    /// The proxy for a URL, or "direct".
    private static func way(_ dictionary: [AnyHashable: Any], _ text: String) throws -> String {
        try proxy(dictionary, text).map { "\($0.kind) \($0.host):\($0.port)" } ?? "direct"
    }

    @Test func `US-15 each scheme has its proxy, and SOCKS serves those without one`() throws {
        let http: [AnyHashable: Any] = ["HTTPEnable": 1, "HTTPProxy": "h", "HTTPPort": 1]
        let https: [AnyHashable: Any] = ["HTTPSEnable": true, "HTTPSProxy": "s", "HTTPSPort": "2"]
        let socks: [AnyHashable: Any] = ["SOCKSEnable": 1, "SOCKSProxy": "k", "SOCKSPort": 3]
        let cases: [([[AnyHashable: Any]], String, String)] = [
            ([http], "httpConnect h:1", "direct"), ([https], "direct", "httpConnect s:2"),
            ([http, https, socks], "httpConnect h:1", "httpConnect s:2"),
            ([socks], "socks5 k:3", "socks5 k:3"),
            ([http, socks], "httpConnect h:1", "socks5 k:3"),
        ]
        for (parts, plain, secure) in cases {
            var dictionary: [AnyHashable: Any] = [:]
            for part in parts { dictionary.merge(part) { $1 } }
            #expect(try Self.way(dictionary, "http://a.example/") == plain)
            #expect(try Self.way(dictionary, "https://a.example/") == secure)
        }
    }

    @Test func `US-15 a dictionary that enables no proxy means none`() throws {
        let off: [[AnyHashable: Any]] = [
            [:], ["HTTPEnable": false, "HTTPSEnable": false], ["SOCKSEnable": 0],
            ["HTTPEnable": 0, "HTTPProxy": "h", "HTTPPort": 1],
        ]
        for dictionary in off { #expect(try Self.way(dictionary, "http://a.example/") == "direct") }
        // This one says nothing about it.
        #expect(try Self.way(["HTTPProxy": "h"], "http://a.example/") == "httpConnect other:1")
    }

    @Test func `US-15 a proxy without a port has the usual one`() throws {
        for (kind, way) in [("HTTP", "httpConnect p:80"), ("SOCKS", "socks5 p:1080")] {
            let dictionary: [AnyHashable: Any] = ["\(kind)Enable": 1, "\(kind)Proxy": "p"]
            #expect(try Self.way(dictionary, "http://a.example/") == way)
        }
    }

    @Test func `US-15 a proxy that cannot be used fails the load, and is not passed by`() throws {
        let unusable: [[AnyHashable: Any]] = [
            ["HTTPEnable": 1], ["HTTPEnable": 1, "HTTPProxy": ""],
            ["HTTPEnable": 1, "HTTPProxy": "p", "HTTPPort": 0],
            ["HTTPEnable": 1, "HTTPProxy": "p", "HTTPPort": 65_536],
            ["HTTPEnable": 1, "HTTPProxy": "p", "HTTPPort": "x", "SOCKSEnable": 1, "SOCKSProxy": "s"],
            [
                "SOCKSEnable": 1, "SOCKSProxy": "s",
                StreamSOCKSProxyConfiguration.versionKey.rawValue: "6",
            ],
        ]
        for dictionary in unusable {
            let ofURL = #expect(throws: LoadFailure.self) {
                try Self.way(dictionary, "http://a.example/")
            }
            let ofConnection = #expect(throws: LoadFailure.self) {
                try Self.settings(dictionary).connection(toHost: "a.example", port: 1, limit: 0)
            }
            for failure in [ofURL, ofConnection] {
                let isOfProxy = if case .unsupportedProxy? = failure { true } else { false }
                #expect(isOfProxy, "\(dictionary): \(String(describing: failure))")
            }
        }
        #expect(try Self.way(unusable[0], "https://a.example/") == "direct")
    }

    @Test(
        arguments: [
            ("*.a.example", "b.a.example", true), ("*.a.example", "b.example", false),
            ("a.example", "a.example", true), ("*", "a.example", true), ("169.254/16", "169.254.1.2", true),
            ("169.254/16", "169.253.1.2", false), ("10.*", "10.1.2.3", true), ("10.*", "11.1.2.3", false),
            ("10.0.0.0/8", "10.1.2.3", true), ("intra", "intra", true), ("a.example", "b.a.example", false),
            ("*.a.example", "a.example", false), ("*a.example", "ba.example", true),
            ("192.168.*.*", "192.168.1.2", true), ("192.168.*.*", "192.16.1.2", false),
            ("a.*.example", "a.b.c.example", true), ("a.*.example", "a.example", false),
            ("*.b.*.d", "a.b.c.d", true), ("*.b.*.d", "a.c.b.d", false), ("aba*bab", "abab", false),
            ("*.A.Example", "B.a.example", true), ("a.example", "a.example.", true),
            ("::1", "[0::1]", true), ("a.example.", "a.example", true), (" a.example ", "a.example", true),
            ("*.", "a.example", false), ("[fe80::*]", "[fe80::1]", true),
        ])
    func `US-15 hosts of the exceptions' list are reached without a proxy`(
        pattern: String, host: String, isDirect: Bool
    ) throws {
        let dictionary: [AnyHashable: Any] = [
            "HTTPEnable": 1, "HTTPProxy": "p", "HTTPPort": 1, "ExceptionsList": ["x.invalid", pattern],
        ]
        #expect(try Self.way(dictionary, "http://\(host)/") == (isDirect ? "direct" : "httpConnect p:1"))
        let connection = try Self.settings(dictionary).connection(toHost: host, port: 80, limit: 0)
        #expect((connection.route == nil) == isDirect)
    }

    @Test func `US-15 hosts with simple names may be reached without a proxy`() throws {
        var dictionary: [AnyHashable: Any] = ["HTTPEnable": 1, "HTTPProxy": "p", "HTTPPort": 1]
        #expect(try Self.way(dictionary, "http://intra/") == "httpConnect p:1")
        dictionary["ExcludeSimpleHostnames"] = 1
        #expect(try Self.way(dictionary, "http://intra/") == "direct")
        #expect(try Self.way(dictionary, "http://a.example/") == "httpConnect p:1")
        #expect(try Self.way(dictionary, "http://[::1]/") == "httpConnect p:1")
    }

    @Test func `US-15 user, password and version of a proxy are respected`() throws {
        typealias Key = StreamSOCKSProxyConfiguration
        let user: [AnyHashable: Any] = ["kCFProxyUsernameKey": "me", "kCFProxyPasswordKey": "secret"]
        let http: [AnyHashable: Any] = ["HTTPEnable": 1, "HTTPProxy": "p", "HTTPPort": 1]
        #expect(
            try Self.proxy(http.merging(user) { $1 }, "http://a.example/")
                == StreamProxy(.httpConnect, host: "p", port: 1, userName: "me", password: "secret"))
        let socks: [AnyHashable: Any] = [
            "SOCKSEnable": 1, Key.hostKey.rawValue: "p", Key.portKey.rawValue: 1,
        ]
        #expect(
            try Self.proxy(socks.merging(user) { $1 }, "http://a.example/")
                == StreamProxy(.socks5, host: "p", port: 1, userName: "me", password: "secret"))
        let own: [AnyHashable: Any] = [
            Key.versionKey.rawValue: StreamSOCKSProxyVersion.version4.rawValue, Key.userKey.rawValue: "own",
        ]
        #expect(
            try Self.proxy(socks.merging(own) { $1 }, "http://a.example/")
                == StreamProxy(.socks4, host: "p", port: 1, userName: "own"))
    }
}

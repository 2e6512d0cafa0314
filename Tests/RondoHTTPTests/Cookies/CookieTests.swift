import Foundation
import RondoHTTP
import Testing

@Suite struct CookieTests {
    private static let now = Date(timeIntervalSince1970: 1_700_000_000)
    private let now = CookieTests.now

    private func origin(_ url: String) throws -> CookieOrigin {
        let parts = try #require(URLComponents(string: url))
        return CookieOrigin(
            host: parts.percentEncodedHost ?? "", path: parts.percentEncodedPath,
            isSecure: parts.scheme == "https")
    }

    /// Returns the field that a table sends to `target` after `fields` came from `source`, a second apart.
    private func sent(_ fields: [String], from source: String, to target: String) throws -> String {
        var table = CookieTable()
        for (index, text) in fields.enumerated() {
            let (then, from) = (now.addingTimeInterval(Double(index)), try origin(source))
            guard let field = SetCookie(text), let cookie = CookieRules.cookie(field, from: from, now: then)
            else { continue }
            _ = table.receive([cookie], from: from, now: then)
        }
        let cookies = table.cookies(for: try origin(target), now: now.addingTimeInterval(100))
        return cookies.isEmpty ? "-" : cookies.map { "\($0.name)=\($0.value)" }.joined(separator: "; ")
    }

    // MARK: Set-Cookie

    private static let pairs: [(String, String?, String?)] = [
        ("a=b", "a", "b"), (" a = b ", "a", "b"), ("a=", "a", ""), ("a=b=c", "a", "b=c"),
        ("a=\"b c\"", "a", "\"b c\""),
        ("a=b;", "a", "b"), ("a=b;;; ;", "a", "b"), ("a=b\tc", "a", "b\tc"), ("a b=c", "a b", "c"),
        ("a=b,c=d", "a", "b,c=d"),
        ("\"a;b\"=c", nil, nil), ("a", nil, nil), ("=b", nil, nil), ("", nil, nil), (";a=b", nil, nil),
        ("a\u{1}=b", nil, nil), ("a=b\u{7F}", nil, nil), ("é=ü", "é", "ü"),
    ]

    @Test(arguments: pairs)
    func `RFC 6265 5.2 name and value of a cookie are read`(_ text: String, _ name: String?, _ value: String?)
    {
        let cookie = SetCookie(text)
        #expect(cookie?.name == name && cookie?.value == value)
    }

    @Test func `RFC 6265bis 5.6 a cookie that is not UTF-8 is left out, and nothing else with it`() {
        var fields = HeaderFields()
        let name = Array("Set-Cookie".utf8)
        let byte: [UInt8] = [0xFC]
        let values: [[UInt8]] = [
            Array("a=".utf8) + byte, byte + Array("=b; path=/".utf8), Array("c=\u{FC}; d=".utf8) + byte,
            Array("e=f".utf8),
        ]
        for value in values {
            name.withUnsafeBufferPointer { name in
                value.withUnsafeBufferPointer { value in fields.append(name: name, value: value) }
            }
        }
        #expect(SetCookie.values(in: fields) == ["c=\u{FC}; d=\u{FC}", "e=f"])
    }

    @Test func `RFC 6265 5.2 attributes, in any case, the last of each`() throws {
        let text =
            "a=b; DOMAIN=.A.Example; path=/x; Path=/y; SECURE=no; httponly; Max-Age=-5; max-age=7; foo=bar"
        let cookie = try #require(SetCookie(text))
        #expect(cookie.domain == "a.example" && cookie.path == "/y" && cookie.isSecure && cookie.isHTTPOnly)
        #expect(cookie.maxAge == 7 && cookie.expires == nil)
        let bare = try #require(SetCookie("a=b; Domain=; Domain; Path=x; Max-Age=1.5; Expires=soon"))
        #expect(bare.domain == nil && bare.path == nil && bare.maxAge == nil && bare.expires == nil)
        #expect(SetCookie("a=b; max-age=99999999999999999999")?.maxAge == .max)
        #expect(SetCookie("a=b; path=/x; path=")?.path == nil)
    }

    @Test func `RFC 6265bis 5.6 sizes are limited`() {
        #expect(SetCookie("a=" + String(repeating: "b", count: 4095)) != nil)
        #expect(SetCookie("a=" + String(repeating: "b", count: 4096)) == nil)
        let path = "/" + String(repeating: "p", count: 1023)
        #expect(SetCookie("a=b; path=\(path)")?.path == path)
        #expect(SetCookie("a=b; path=\(path)p")?.path == nil)
    }

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "06 nov 94 8:49:37", "1994 6 November 08:49:37 CET", "08:49:37 06th Nov 1994 whatever 12",
        "Nov_6@1994`08:49:37", "6-NOV-1994-08:49:37-GMT", "Sun, 06 Nov 1994 08:49:37.123 GMT",
    ])
    func `RFC 6265 5.1.1 dates in any order`(_ date: String) {
        #expect(SetCookie("a=b; expires=\(date)")?.expires == Date(timeIntervalSince1970: 784_111_777))
    }

    @Test(arguments: [
        "", "Nov 6 1994", "32 Nov 1994 08:49:37", "31 Feb 1994 08:49:37", "6 Nov 1600 08:49:37",
        "6 Nov 1994 24:49:37", "6 Nov 1994 08:60:37", "6 Nov 1994 08:49:60", "6 Nov 08:49:37",
        "6 Nov 19945 08:49:37",
        "006 Nov 1994 108:49:37",
    ])
    func `RFC 6265 5.1.1 a text that is not a date is skipped`(_ date: String) {
        #expect(SetCookie("a=b; expires=\(date)").map(\.expires) == .some(nil))
    }

    @Test(arguments: [("69", 2069), ("70", 1970), ("99", 1999), ("00", 2000), ("1601", 1601)])
    func `RFC 6265 5.1.1 a two-digit year is from 1970 to 2069`(_ text: String, _ year: Int) throws {
        let date = try #require(SetCookie("a=b; expires=1 Jan \(text) 00:00:00")?.expires)
        #expect(HTTPDate.format(date).contains(" Jan \(year) "))
    }

    // MARK: Domains

    private static let domains: [(String, String, String, Bool)] = [
        // Host-only without Domain.
        ("a=b", "http://x.example/", "http://x.example/", true),
        ("a=b", "http://x.example/", "http://y.x.example/", false),
        ("a=b", "http://X.Example/", "http://x.EXAMPLE:81/", true),
        // With Domain, for that and below.
        ("a=b; domain=x.example", "http://x.example/", "http://y.x.example/", true),
        ("a=b; domain=.x.example", "http://y.x.example/", "http://x.example/", true),
        ("a=b; domain=x.example", "http://x.example/", "http://notx.example/", false),
        ("a=b; domain=x.example", "http://x.example/", "http://example/", false),
        // Not for another host.
        ("a=b; domain=y.example", "http://x.example/", "http://y.example/", false),
        ("a=b; domain=z.x.example", "http://x.example/", "http://z.x.example/", false),
        ("a=b; domain=..x.example", "http://x.example/", "http://x.example/", false),
        ("a=b; domain=x.example.", "http://x.example/", "http://x.example/", false),
        ("a=b; domain=y.example; domain=x.example", "http://x.example/", "http://x.example/", true),
        // Not for a public suffix, but for a host that is one itself.
        ("a=b; domain=example", "http://x.example/", "http://x.example/", false),
        ("a=b; domain=localhost", "http://localhost/", "http://localhost/", true),
        ("a=b; domain=localhost", "http://localhost/", "http://a.localhost/", false),
        // Addresses are whole or nothing.
        ("a=b", "http://127.0.0.1/", "http://127.0.0.1/", true),
        ("a=b; domain=127.0.0.1", "http://127.0.0.1/", "http://127.0.0.1/", true),
        ("a=b; domain=0.0.1", "http://127.0.0.1/", "http://127.0.0.1/", false),
        ("a=b", "http://[::1]/", "http://[::1]/", true),
    ]

    @Test(arguments: domains)
    func `UC-57 domains as RFC 6265 5.1.3 and 5.3 have them`(
        _ field: String, _ source: String, _ target: String, _ isSent: Bool
    ) throws {
        #expect(try sent([field], from: source, to: target) == (isSent ? "a=b" : "-"))
    }

    @Test(arguments: [
        ("co.uk", "a.co.uk", false), ("a.co.uk", "a.co.uk", true), ("github.io", "a.github.io", false),
        ("com", "a.com", false), ("a.com", "b.a.com", true), ("co.uk", "co.uk", true),
        ("ck", "www.ck", false), ("www.ck", "www.ck", true), ("foo.ck", "a.foo.ck", false),
    ])
    func `UC-57 no cookie for a public suffix`(_ domain: String, _ host: String, _ isSent: Bool) throws {
        let sent = try sent(["a=b; domain=\(domain)"], from: "http://\(host)/", to: "http://\(host)/")
        #expect(sent == (isSent ? "a=b" : "-"))
        // A host that is a suffix itself keeps its cookie to itself.
        let below = try self.sent(
            ["a=b; domain=\(domain)"], from: "http://\(host)/", to: "http://x.\(host)/")
        #expect(below == (isSent && domain != "co.uk" ? "a=b" : "-"))
    }

    /// `http://evil.co.uk./` is a name with the dot of the root at its end, which the public suffix list has not.
    @Test(arguments: [
        ("co.uk.", "evil.co.uk.", false), ("com.", "evil.com.", false),
        ("github.io.", "evil.github.io.", false), ("example.", "a.example.", false),
        ("evil.co.uk.", "evil.co.uk.", true),
        ("evil.co.uk.", "a.evil.co.uk.", true),
    ])
    func `UC-57 no cookie for a public suffix with a dot at its end`(
        _ domain: String, _ host: String, _ isStored: Bool
    ) throws {
        let field = try #require(SetCookie("a=b; Domain=\(domain)"))
        let origin = CookieOrigin(host: host, path: "/", isSecure: true)
        let cookie = CookieRules.cookie(field, from: origin, now: now)
        #expect((cookie != nil) == isStored)
    }

    // MARK: Paths

    private static let paths: [(String, String, String, Bool)] = [
        ("a=b", "/x/y", "/x/y", true), ("a=b", "/x/y", "/x", true), ("a=b", "/x/y", "/x/", true),
        ("a=b", "/x/y", "/x/z/w", true), ("a=b", "/x/y", "/", false), ("a=b", "/x/y", "/xy", false),
        ("a=b", "/x", "/", true), ("a=b", "", "/z", true), ("a=b", "/x/", "/x/z", true),
        ("a=b", "/x/", "/z", false),
        ("a=b; path=/x", "/z", "/x", true), ("a=b; path=/x", "/z", "/x/y", true),
        ("a=b; path=/x", "/z", "/xy", false),
        ("a=b; path=/x/", "/z", "/x", false), ("a=b; path=/x/", "/z", "/x/y", true),
        ("a=b; path=/X", "/z", "/x", false),
        ("a=b; path=x", "/y/z", "/y", true), ("a=b; path=\"/x\"", "/y/z", "/y", true),
        ("a=b; path=/%78", "/", "/x", false),
    ]

    @Test(arguments: paths)
    func `UC-57 paths as RFC 6265 5.1.4 has them`(
        _ field: String, _ source: String, _ target: String, _ isSent: Bool
    ) throws {
        let sent = try sent([field], from: "http://h.example" + source, to: "http://h.example" + target)
        #expect(sent == (isSent ? "a=b" : "-"))
    }

    // MARK: Secure, prefixes, replacement, expiry, order

    private static let prefixes: [(String, String, String, Bool)] = [
        ("a=b; secure", "https", "https", true), ("a=b; secure", "https", "http", false),
        ("a=b; secure", "http", "https", false), ("a=b", "https", "http", true),
        ("__Secure-a=b; secure", "https", "https", true), ("__Secure-a=b", "https", "https", false),
        ("__secure-a=b", "https", "https", false), ("__Host-a=b; secure; path=/", "https", "https", true),
        ("__Host-a=b; secure", "https", "https", false), ("__HOST-a=b; path=/", "https", "https", false),
        ("__Host-a=b; secure; path=/; domain=h.example", "https", "https", false),
        ("a=b; httponly", "http", "http", true),
    ]

    @Test(arguments: prefixes)
    func `UC-57 secure cookies and prefixes, RFC 6265bis 4.1.3 and 5.7`(
        _ field: String, _ source: String, _ target: String, _ isSent: Bool
    ) throws {
        let sent = try sent([field], from: source + "://h.example/x", to: target + "://h.example/x")
        #expect((sent != "-") == isSent)
    }

    @Test func `RFC 6265bis 5.7 plain HTTP does not push out a secure cookie`() throws {
        let secure = Cookie(
            name: "a", value: "s", domain: "x.example", isHostOnly: false, path: "/p", isSecure: true,
            createdAt: now)
        let plain = try origin("http://y.x.example/p/q")
        func may(_ text: String, _ origin: CookieOrigin) throws -> Bool {
            let field = try #require(SetCookie(text))
            let cookie = try #require(CookieRules.cookie(field, from: origin, now: now))
            return CookieRules.mayStore(cookie, from: origin, beside: [secure])
        }
        #expect(try !may("a=b; path=/p", plain))
        #expect(try !may("a=b; path=/p/q", plain))
        #expect(try !may("a=b; domain=x.example; path=/p", plain))
        #expect(try may("a=b; path=/", plain))
        #expect(try may("c=b; path=/p", plain))
        #expect(try may("a=b; path=/p", origin("https://y.x.example/p")))
        #expect(try may("a=b; path=/p", origin("http://z.example/p")))
    }

    private static let replacements: [([String], String)] = [
        (["a=1", "a=2"], "a=2"), (["a=1", "b=1", "a=2"], "a=2; b=1"), (["a=1", "a=2; path=/x"], "a=2; a=1"),
        (["a=1", "a=2; max-age=0"], "-"), (["a=1", "a=2; expires=Thu, 01 Jan 1970 00:00:00 GMT"], "-"),
        (["a=1; max-age=99"], "-"), (["a=1; max-age=101"], "a=1"),
        (["a=1; max-age=101; expires=Thu, 01 Jan 1970 00:00:00 GMT"], "a=1"),
        (["a=1; expires=soon"], "a=1"), (["a=1; max-age=-1"], "-"), (["a=1; max-age=999999999999999"], "a=1"),
        (["a=1; path=/", "b=2; path=/x", "c=3; path=/x/y", "d=4; path=/x"], "c=3; b=2; d=4; a=1"),
        (["a=1; domain=h.example", "a=2"], "a=1; a=2"),
    ]

    @Test(arguments: replacements)
    func `UC-57 cookies replace, expire and are sent in order, RFC 6265 5.3 and 5.4`(
        _ fields: [String], _ expected: String
    ) throws {
        #expect(try sent(fields, from: "http://h.example/x", to: "http://h.example/x/y") == expected)
    }

    @Test func `RFC 6265bis 5.5 no cookie lives longer than 400 days`() throws {
        for text in ["a=b; max-age=99999999999", "a=b; expires=1 Jan 2100 00:00:00"] {
            let cookie = CookieRules.cookie(
                try #require(SetCookie(text)), from: try origin("http://h.example/"), now: now)
            #expect(cookie?.expires == now.addingTimeInterval(400 * 86_400))
        }
    }
}

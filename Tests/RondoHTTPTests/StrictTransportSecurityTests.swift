import Foundation
import RondoHTTP
import Testing

@Suite struct StrictTransportSecurityTests {
    private let now = Date(timeIntervalSince1970: 1_700_000_000)

    private func store(_ fields: (host: String, value: String)...) -> StrictTransportSecurity {
        var store = StrictTransportSecurity()
        for field in fields { store.received(field.value, from: field.host, now: now) }
        return store
    }

    @Test(arguments: [
        ("max-age=10", true), ("MAX-AGE=\"10\" ; includeSubDomains", true), ("; max-age=10 ;;", true),
        ("max-age=10; preload; x=y", true), ("max-age=99999999999999999999", true),
        ("max-age=0", false), ("", false), ("includeSubDomains", false), ("max-age", false),
        ("max-age=", false),
        ("max-age=-1", false), ("max-age=1.5", false), ("max-age=10; max-age=20", false),
        ("x=\"a;b;max-age=20\"; max-age=10", true), ("x; max-age=10", true), ("=; max-age=10", true),
        ("max-age=10, includeSubDomains", false), ("max-age=10; includeSubDomains=1", false),
    ])
    func `RFC 6797 6.1 what the field says`(_ value: String, _ isKept: Bool) {
        #expect(store(("a.example", value)).covers("A.example.", now: now) == isKept)
    }

    @Test func `RFC 6797 8 hosts below only where they are included, addresses never`() {
        let store = store(
            ("a.example", "max-age=10"), ("b.example", "max-age=10; includeSubDomains"),
            ("127.0.0.1", "max-age=10"), ("[::1]", "max-age=10"))
        #expect(store.covers("a.example", now: now) && !store.covers("x.a.example", now: now))
        #expect(store.covers("y.x.b.example", now: now) && !store.covers("xb.example", now: now))
        #expect(!store.covers("127.0.0.1", now: now) && !store.covers("[::1]", now: now))
        #expect(!store.covers("example", now: now) && !store.covers("", now: now))
    }

    @Test func `RFC 6797 8.1 a policy ends, by time or by max-age 0`() {
        var store = store(("a.example", "max-age=10"))
        #expect(store.covers("a.example", now: now.addingTimeInterval(9)))
        #expect(!store.covers("a.example", now: now.addingTimeInterval(10)))
        store.received("max-age=0", from: "a.example", now: now)
        #expect(store.isEmpty)
    }

    @Test(arguments: [
        ("http://a.example/x?y#z", "https://a.example/x?y#z"), ("http://a.example:80/", "https://a.example/"),
        ("http://a.example:8080/", "https://a.example:8080/"),
        ("HTTP://u:p@A.example/", "https://u:p@A.example/"),
        ("https://a.example/", nil), ("http://b.example/", nil), ("ftp://a.example/", nil),
    ])
    func `RFC 6797 8.3 http becomes https`(_ text: String, _ expected: String?) throws {
        let url = try #require(URL(string: text))
        #expect(store(("a.example", "max-age=10")).upgraded(url, now: now)?.absoluteString == expected)
    }

    @Test func `it is written and read, and its size has a limit`() throws {
        var store = store(("a.example", "max-age=10"))
        let data = try JSONEncoder().encode(store)
        #expect(try JSONDecoder().decode(StrictTransportSecurity.self, from: data) == store)
        for index in 0...StrictTransportSecurity.maximumCount {
            store.received("max-age=\(1_000 + index)", from: "h\(index).example", now: now)
        }
        #expect(store.policies.count == StrictTransportSecurity.maximumCount)
        #expect(!store.covers("a.example", now: now) && !store.covers("h0.example", now: now))
        #expect(store.covers("h1.example", now: now))
    }
}

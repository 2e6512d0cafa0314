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
    func `RFC 6797 6.1 only a valid Strict-Transport-Security field makes a host known`(
        _ value: String, _ isKept: Bool
    ) {
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

    @Test func `the list of hosts is written and read, and its size has a limit`() throws {
        var store = store(("a.example", "max-age=10"))
        let data = try JSONEncoder().encode(listing(store))
        let read = StrictTransportSecurity(
            try JSONDecoder().decode(StrictTransportSecurity.Listing.self, from: data))
        #expect(listing(read) == listing(store) && read.covers("a.example", now: now))
        for index in 0...StrictTransportSecurity.maximumCount {
            store.received("max-age=\(1_000 + index)", from: "h\(index).example", now: now)
        }
        #expect(store.count == StrictTransportSecurity.maximumCount)
        #expect(!store.covers("a.example", now: now) && !store.covers("h0.example", now: now))
        #expect(store.covers("h1.example", now: now))
        // All are listed, in however many pieces.
        #expect(listing(store).policies.count == StrictTransportSecurity.maximumCount)
        #expect(StrictTransportSecurity(listing(store)).count == StrictTransportSecurity.maximumCount)
    }

    private func listing(_ store: StrictTransportSecurity) -> StrictTransportSecurity.Listing {
        var listing = StrictTransportSecurity.Listing()
        var position: Int? = 0
        while let next = position { position = store.list(from: next, into: &listing) }
        return listing
    }

    @Test func `a file keeps the form that it has had from the start`() throws {
        let text = #"{"policies":{"a.example":{"expires":721692810,"includesSubdomains":true}}}"#
        let read = try JSONDecoder().decode(
            StrictTransportSecurity.Listing.self, from: Data(text.utf8))
        let store = StrictTransportSecurity(read)
        #expect(store.covers("x.a.example", now: Date(timeIntervalSinceReferenceDate: 721_692_809)))
        #expect(!store.covers("x.a.example", now: Date(timeIntervalSinceReferenceDate: 721_692_810)))
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(String(decoding: try encoder.encode(listing(store)), as: UTF8.self) == text)
    }

    @Test func `at the limit the expired host goes first, then those that expire first`() {
        var store = StrictTransportSecurity()
        let count = StrictTransportSecurity.maximumCount
        for index in 0..<count {
            // In no order: 7919 is prime.
            let rank = index * 7_919 % count
            store.received("max-age=\(100 + rank)", from: "h\(rank).example", now: now)
        }
        // One that is said again moves back, one that is over goes, and so do the next ones.
        store.received("max-age=100000", from: "h0.example", now: now)
        let later = now.addingTimeInterval(101.5)
        #expect(!store.covers("h1.example", now: later))
        for index in 0..<3 { store.received("max-age=5000000", from: "n\(index).example", now: later) }
        #expect(store.count == count)
        let left = listing(store).policies
        #expect(left["h0.example"] != nil && left["n2.example"] != nil)
        #expect(left["h1.example"] == nil && left["h2.example"] == nil && left["h3.example"] == nil)
        #expect(left["h4.example"] != nil)
        // One that would be the first to go is not worth a place.
        let isWorthWriting = store.received("max-age=1", from: "short.example", now: now)
        #expect(!isWorthWriting)
        #expect(!store.covers("short.example", now: now) && store.count == count)
        // Room is used again.
        store.received("max-age=0", from: "h4.example", now: now)
        store.received("max-age=1", from: "short.example", now: now)
        #expect(store.covers("short.example", now: now) && store.count == count)
    }

    @Test func `hosts that come beyond the limit cost no look at all others`() {
        var store = StrictTransportSecurity()
        let clock = ContinuousClock()
        let count = 10 * StrictTransportSecurity.maximumCount
        // A scan of ten thousand for each of ninety thousand hosts takes 45 seconds or more; this takes half of one.
        let duration = clock.measure {
            for index in 0..<count {
                store.received("max-age=\(1_000 + index)", from: "h\(index).example", now: now)
            }
        }
        #expect(store.count == StrictTransportSecurity.maximumCount)
        #expect(duration < .seconds(20))
    }

    @Test func `a repeated policy is written again once its expiry has moved considerably`() {
        var store = StrictTransportSecurity()
        func say(_ value: String, _ seconds: Double) -> Bool {
            store.received(value, from: "a.example", now: now.addingTimeInterval(seconds))
        }
        #expect(say("max-age=1000", 0))
        #expect(!say("max-age=1000", 60))
        // Many small steps are a large one.
        #expect(!say("max-age=1000", 100))
        #expect(say("max-age=1000", 101))
        #expect(!say("max-age=1000", 102))
        #expect(say("max-age=1000; includeSubDomains", 103))
        #expect(say("max-age=10", 103))
        #expect(say("max-age=0", 104))
        #expect(!say("max-age=0", 105))
        // It is remembered to the second all the same.
        #expect(say("max-age=100000", 0) && !say("max-age=100000", 3_000))
        #expect(store.covers("a.example", now: now.addingTimeInterval(102_999)))
    }

    @Test func `a host or an HSTS field that is too long is ignored`() {
        var store = store(("a.example", "max-age=10; includeSubDomains"))
        let longest = String(repeating: "a.", count: 122) + "a.example"
        #expect(longest.utf8.count == 253 && store.covers(longest + ".", now: now))
        #expect(!store.covers("a." + longest, now: now))
        // Refused by its length, before a hundred thousand labels are looked at.
        #expect(!store.covers(String(repeating: "a.", count: 100_000) + "a.example", now: now))
        let directives = String(repeating: ";", count: StrictTransportSecurity.maximumFieldLength)
        store.received("max-age=10" + directives, from: "b.example", now: now)
        store.received("max-age=10", from: "a." + longest, now: now)
        #expect(store.count == 1)
    }
}

import Foundation
import RondoHTTP
import Testing

/// The cookies that are kept, as a value (rule UC-57).
@Suite struct CookieTableTests {
    private let now = Date(timeIntervalSince1970: 1_700_000_000)

    private func cookie(
        _ name: String, _ domain: String = "a.example", path: String = "/", expires: Date? = nil,
        isSecure: Bool = false, after seconds: Double = 0
    ) -> Cookie {
        Cookie(
            name: name, value: "", domain: domain, isHostOnly: true, path: path, expires: expires,
            isSecure: isSecure, createdAt: now.addingTimeInterval(seconds))
    }

    private func origin(_ host: String, isSecure: Bool = false) -> CookieOrigin {
        CookieOrigin(host: host, path: "/", isSecure: isSecure)
    }

    private func names(_ table: CookieTable) -> Set<String> { Set(table.all.map(\.name)) }

    @Test func `RFC 6265bis 5.7 the expired and the oldest of a domain make room`() {
        var table = CookieTable()
        table.insert(cookie("expired", expires: now, after: 500))
        table.insert(cookie("other", "b.example", expires: now))
        let changed = table.receive(
            (0..<185).map { cookie("c\($0)", after: Double($0)) }, from: origin("a.example"), now: now)
        #expect(names(table) == Set((5..<185).map { "c\($0)" } + ["other"]))
        #expect(Set(changed.map(\.name)) == Set((0..<185).map { "c\($0)" } + ["expired"]))
        #expect(table.count == 181)
    }

    @Test func `RFC 6265 6_1 the expired and the oldest of all make room`() {
        var table = CookieTable()
        for index in 0..<3_299 {
            table.insert(cookie("c\(index)", "h\(index / 100).example", after: Double(index)))
        }
        table.insert(cookie("expired", "x.example", expires: now))
        let new = [cookie("n0", after: 5_000), cookie("n1", after: 5_001), cookie("n2", after: 5_002)]
        let changed = table.receive(new, from: origin("a.example"), now: now)
        #expect(Set(changed.map(\.name)) == ["n0", "n1", "n2", "expired", "c0", "c1"])
        #expect(table.count == CookieRules.maximumCount)
    }

    @Test func `RFC 6265bis 5.7 of a full domain the secure cookies, and those that were set again, stay`() {
        var table = CookieTable()
        table.insert(cookie("login"))
        table.insert(cookie("secure", isSecure: true, after: 1))
        for index in 0..<178 { table.insert(cookie("c\(index)", after: Double(2 + index))) }
        _ = table.receive([cookie("login", after: 500)], from: origin("a.example"), now: now)
        let new = [cookie("n0", after: 501), cookie("n1", after: 502)]
        _ = table.receive(new, from: origin("a.example"), now: now)
        #expect(names(table) == Set((2..<178).map { "c\($0)" } + ["login", "secure", "n0", "n1"]))
    }

    @Test func `RFC 6265 5_3 of too many cookies in all one that was set again stays`() {
        var table = CookieTable()
        for index in 0..<3_300 {
            table.insert(cookie("c\(index)", "h\(index / 100).example", after: Double(index)))
        }
        let again = cookie("c0", "h0.example", after: 5_000)
        _ = table.receive([again], from: origin("h0.example"), now: now)
        _ = table.receive([cookie("n0", after: 5_001)], from: origin("a.example"), now: now)
        #expect(table.count == CookieRules.maximumCount)
        #expect(table[again.key] != nil)
        #expect(table[cookie("c1", "h0.example").key] == nil)
    }

    @Test func `RFC 6265 5_3 a cookie that was set often makes room in its turn`() {
        var table = CookieTable()
        // At one of these numbers the order is cleared of what has been replaced.
        for index in 0..<67 { table.insert(cookie("often", after: Double(index))) }
        for index in 0..<3_300 {
            table.insert(cookie("c\(index)", "h\(index / 100).example", after: Double(100 + index)))
        }
        #expect(table.makeRoom(now: now).map(\.name) == ["often"])
    }

    @Test func `UC-57 a cookie that is replaced keeps its age, one that comes back does not`() {
        var table = CookieTable()
        table.insert(cookie("a"))
        table.insert(cookie("b", after: 1))
        _ = table.receive([cookie("a", after: 2)], from: origin("a.example"), now: now)
        let first = table.cookies(for: origin("a.example"), now: now).map(\.name)
        #expect(first == ["a", "b"])
        table.remove(cookie("a").key)
        _ = table.receive([cookie("a", after: 3)], from: origin("a.example"), now: now)
        let second = table.cookies(for: origin("a.example"), now: now).map(\.name)
        #expect(second == ["b", "a"])
    }

    @Test func `RFC 6265bis 5.7 a secure cookie that has expired keeps none from plain HTTP out`() {
        var table = CookieTable()
        let secure = cookie("s", expires: now.addingTimeInterval(60), isSecure: true)
        _ = table.receive([secure], from: origin("a.example", isSecure: true), now: now)
        let plain = cookie("s", after: 1)
        #expect(table.receive([plain], from: origin("a.example"), now: now).isEmpty)
        let later = now.addingTimeInterval(120)
        #expect(Set(table.receive([plain], from: origin("a.example"), now: later)) == [plain.key])
        #expect(table.cookies(for: origin("a.example"), now: later).map(\.name) == ["s"])
    }

    @Test func `RFC 6265bis 5.7 more secure cookies than can be compared with let none from plain HTTP in`() {
        var table = CookieTable()
        for index in 0..<200 { table.insert(cookie("s", "h\(index).b.example", isSecure: true)) }
        let paths = (0..<150).map { cookie("s", path: "/\($0)") }
        let changed = table.receive(paths, from: origin("a.example"), now: now)
        #expect(changed.count == CookieTable.maximumComparisons / 200)
        #expect(table.receive(paths, from: origin("a.example", isSecure: true), now: now).count == 150)
    }

    @Test func `RFC 6265bis 5.7 secure cookies that have expired are none to compare with`() {
        var table = CookieTable()
        for index in 0..<200 {
            table.insert(cookie("s", "h\(index).b.example", expires: now, isSecure: true))
        }
        let paths = (0..<150).map { cookie("s", path: "/\($0)") }
        let changed = table.receive(paths, from: origin("a.example"), now: now)
        #expect(table.cookies(ofDomain: "a.example").count == 150)
        // With those that are gone.
        #expect(changed.count == 350)
        #expect(table.count == 150)
    }

    @Test func `removed and expired cookies leave nothing behind in their table`() {
        var table = CookieTable()
        for index in 0..<1_000 {
            let new = cookie("c\(index)", expires: now.addingTimeInterval(1), after: Double(index))
            _ = table.receive([new], from: origin("a.example"), now: now)
            if index > 10 { table.remove(cookie("c\(index)").key) }
        }
        #expect(table.count == 11)
        #expect(Set(table.removeExpired(now: now.addingTimeInterval(1)).map(\.name)).count == 11)
        #expect(table.count == 0)
        #expect(table.all.isEmpty)
    }
}

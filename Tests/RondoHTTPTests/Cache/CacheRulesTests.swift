import Foundation
import RondoHTTP
import Testing

@Suite struct CacheRulesTests {
    private static let start = Date(timeIntervalSince1970: 1_700_000_000)
    private let start = CacheRulesTests.start

    private static func date(_ seconds: Double) -> String {
        HTTPDate.format(start.addingTimeInterval(seconds))
    }

    private func fields(_ lines: [String]) -> HeaderFields {
        HeaderFields(
            lines.map { line in
                let colon = line.firstIndex(of: ":") ?? line.endIndex
                let value = line[colon...].dropFirst().trimmingCharacters(in: .whitespaces)
                return (String(line[..<colon]), value)
            })
    }

    private func entry(_ lines: [String], status: Int = 200, request: [String] = []) -> CacheEntry {
        CacheEntry(
            ResponseHead(status: status, fields: fields(lines)), to: fields(request), requestedAt: start,
            receivedAt: start)
    }

    /// Returns the decision about a request that is made `age` seconds after `lines` came.
    private func decision(
        _ lines: [String], after age: Double, request: [String] = [], policy: CachePolicy = .protocolRules,
        status: Int = 200, first: [String] = []
    ) -> CacheRules.Decision {
        CacheRules.decide(
            policy, request: fields(request), entry: entry(lines, status: status, request: first),
            now: start.addingTimeInterval(age))
    }

    // MARK: Freshness

    private static let freshness: [([String], Double, Bool)] = [
        // max-age, and the first of several.
        (["Cache-Control: max-age=100"], 99, true), (["Cache-Control: max-age=100"], 100, false),
        (["Cache-Control: MAX-AGE=\"100\""], 99, true),
        (["Cache-Control: foo, max-age=100, bar=\"a, max-age=1\""], 99, true),
        (["Cache-Control: max-age=100, max-age=1"], 99, true),
        (["Cache-Control: a", "Cache-Control: max-age=100"], 99, true),
        (["Cache-Control: foo=\"max-age=100\""], 1, false), (["Cache-Control: max-age = 100"], 99, true),
        // Values that are none, and such that do not fit.
        (["Cache-Control: max-age=1.5"], 1, false), (["Cache-Control: max-age=-100"], 1, false),
        (["Cache-Control: max-age=a"], 1, false), (["Cache-Control: max-age="], 1, false),
        (["Cache-Control: max-age=99999999999999999999"], 1_000_000_000, true),
        // For shared caches only.
        (["Cache-Control: s-maxage=100"], 1, false), (["Cache-Control: max-age=100, s-maxage=1"], 99, true),
        (["Cache-Control: max-age=100, private"], 99, true),
        (["Cache-Control: max-age=100, proxy-revalidate"], 99, true),
        // Expires, by the server's clock; max-age goes before it.
        (["Expires: \(date(100))", "Date: \(date(0))"], 99, true),
        (["Expires: \(date(100))", "Date: \(date(0))"], 100, false),
        (["Expires: \(date(100))"], 99, true), (["Expires: 0", "Last-Modified: \(date(-1_000))"], 1, false),
        (["Expires: \(date(-100))", "Cache-Control: max-age=100"], 99, true),
        (["Expires: \(date(1_000))", "Cache-Control: max-age=100"], 101, false),
        (["Expires: \(date(100))", "Date: \(date(50))"], 49, true),
        (["Expires: \(date(100))", "Date: \(date(50))"], 51, false),
        // Age, which was spent on the way; also what Date betrays.
        (["Cache-Control: max-age=100", "Age: 60"], 39, true),
        (["Cache-Control: max-age=100", "Age: 60"], 40, false),
        (["Cache-Control: max-age=100", "Age: 60, 10"], 40, false),
        (["Cache-Control: max-age=100", "Age: x"], 99, true),
        (["Cache-Control: max-age=100", "Age: 99999999999"], 0, false),
        (["Cache-Control: max-age=100", "Date: \(date(-60))"], 39, true),
        (["Cache-Control: max-age=100", "Date: \(date(-60))"], 40, false),
        (["Cache-Control: max-age=100", "Date: \(date(60))"], 99, true),
        (["Cache-Control: max-age=100", "Date: now"], 99, true),
        // Heuristics: a tenth of its age, never more than a week.
        (["Last-Modified: \(date(-1_000))"], 99, true), (["Last-Modified: \(date(-1_000))"], 101, false),
        (["Last-Modified: \(date(-1_000_000_000))"], 604_799, true),
        (["Last-Modified: \(date(-1_000_000_000))"], 604_801, false),
        (["Last-Modified: \(date(1_000))"], 1, false), (["Last-Modified: x"], 1, false),
        (["ETag: \"a\""], 1, false), ([], 1, false),
        (["Cache-Control: public"], 1, false),
    ]

    @Test(arguments: freshness)
    func `RFC 9111 4.2 lifetime and age decide whether a response is fresh`(
        _ lines: [String], _ age: Double, _ isFresh: Bool
    ) {
        #expect((decision(lines, after: age) == .use) == isFresh)
    }

    @Test func `RFC 9111 4.2.3 the time under way counts, a clock that went back does not`() {
        var entry = entry(["Cache-Control: max-age=100"])
        entry.requestedAt = start.addingTimeInterval(-30)
        #expect(entry.age(at: start) == 30)
        #expect(entry.age(at: start.addingTimeInterval(-1_000)) == 30)
        entry.requestedAt = start.addingTimeInterval(30)
        #expect(entry.age(at: start) == 0)
    }

    @Test func `RFC 9110 15.1 a lifetime is guessed only for some statuses`() {
        for (status, isFresh) in [(200, true), (203, true), (204, true), (201, false), (202, false)] {
            let lines = ["Last-Modified: \(Self.date(-1_000))"]
            #expect((decision(lines, after: 50, status: status) == .use) == isFresh)
            #expect(decision(lines + ["Cache-Control: public"], after: 50, status: status) == .use)
            #expect(decision(["Cache-Control: max-age=100"], after: 50, status: status) == .use)
        }
    }

    // MARK: Directives

    private static let tag = "ETag: \"a\""

    private static let directives: [([String], [String], Double, CacheRules.Decision)] = [
        // Of the response.
        (["Cache-Control: max-age=100, no-cache"], [], 1, .revalidate),
        (["Cache-Control: max-age=100, no-cache=\"set-cookie\""], [], 1, .revalidate),
        (["Cache-Control: max-age=100, must-revalidate"], [], 99, .use),
        (["Cache-Control: max-age=100, must-revalidate"], ["Cache-Control: max-stale"], 101, .revalidate),
        (["Cache-Control: max-age=100, immutable"], [], 99, .use),
        (["Cache-Control: max-age=100, immutable"], [], 101, .revalidate),
        (["Pragma: no-cache", "Cache-Control: max-age=100"], [], 1, .use),
        (["Cache-Control: max-age=100, stale-while-revalidate=50"], [], 149, .useAndRevalidate),
        (["Cache-Control: max-age=100, stale-while-revalidate=50"], [], 150, .useAndRevalidate),
        (["Cache-Control: max-age=100, stale-while-revalidate=50"], [], 151, .revalidate),
        (["Cache-Control: max-age=100, stale-while-revalidate=50, must-revalidate"], [], 149, .revalidate),
        // Of the request.
        (["Cache-Control: max-age=100"], ["Cache-Control: no-cache"], 1, .revalidate),
        (["Cache-Control: max-age=100"], ["Pragma: no-cache"], 1, .revalidate),
        (["Cache-Control: max-age=100"], ["Pragma: no-cache", "Cache-Control: foo"], 1, .use),
        (["Cache-Control: max-age=100"], ["Cache-Control: max-age=0"], 1, .revalidate),
        (["Cache-Control: max-age=100"], ["Cache-Control: max-age=10"], 9, .use),
        (["Cache-Control: max-age=100"], ["Cache-Control: max-age=10"], 10, .use),
        (["Cache-Control: max-age=100"], ["Cache-Control: max-age=10"], 11, .revalidate),
        (["Cache-Control: max-age=100"], ["Cache-Control: max-age=1000"], 101, .revalidate),
        (["Cache-Control: max-age=100"], ["Cache-Control: min-fresh=50"], 50, .use),
        (["Cache-Control: max-age=100"], ["Cache-Control: min-fresh=50"], 51, .revalidate),
        (["Cache-Control: max-age=100"], ["Cache-Control: max-stale=50"], 150, .use),
        (["Cache-Control: max-age=100"], ["Cache-Control: max-stale=50"], 151, .revalidate),
        (["Cache-Control: max-age=100"], ["Cache-Control: max-stale"], 1_000_000, .use),
        (["Cache-Control: max-age=100"], ["Cache-Control: only-if-cached"], 1, .use),
        (["Cache-Control: max-age=100"], ["Cache-Control: only-if-cached"], 101, .fail),
        (
            ["Cache-Control: max-age=100, stale-while-revalidate=50"], ["Cache-Control: only-if-cached"], 101,
            .use
        ),
        (["Cache-Control: max-age=100"], ["Cache-Control: only-if-cached, max-stale"], 101, .use),
    ]

    @Test(arguments: directives)
    func `RFC 9111 5.2 cache directives decide whether an entry is used, asked about or loaded`(
        _ lines: [String], _ request: [String], _ age: Double, _ expected: CacheRules.Decision
    ) {
        #expect(decision(lines + [Self.tag], after: age, request: request) == expected)
        // Nothing can be asked about without a validator.
        let bare = decision(lines, after: age, request: request)
        #expect(bare == (expected == .revalidate ? .load : expected))
    }

    // MARK: Policies

    private static let policies: [(CachePolicy, [CacheRules.Decision])] = [
        // Fresh, stale, without a validator, none: the whole table.
        (.protocolRules, [.use, .revalidate, .load, .load]),
        (.reload, [.load, .load, .load, .load]), (.cacheElseLoad, [.use, .use, .use, .load]),
        (.cacheOnly, [.use, .use, .use, .fail]), (.reloadEndToEnd, [.load, .load, .load, .load]),
        (.revalidate, [.revalidate, .revalidate, .load, .load]),
    ]

    @Test(arguments: policies)
    func `UC-56 every policy behaves as listed`(_ policy: CachePolicy, _ expected: [CacheRules.Decision]) {
        let fresh = ["Cache-Control: max-age=100", Self.tag]
        #expect(decision(fresh, after: 1, policy: policy) == expected[0])
        #expect(decision(fresh, after: 101, policy: policy) == expected[1])
        #expect(decision(["Cache-Control: max-age=100"], after: 101, policy: policy) == expected[2])
        let none = CacheRules.decide(policy, request: HeaderFields(), entry: nil, now: start)
        #expect(none == expected[3])
        // An entry for another request is none.
        let other = decision(
            fresh + ["Vary: Accept"], after: 1, request: ["Accept: a"], policy: policy, first: ["Accept: b"])
        #expect(other == expected[3])
    }

    @Test func `UC-56 a reload tells the caches on the way`() {
        for policy in CachePolicy.allCases {
            let names = CacheRules.endToEndFields(policy).map { "\($0.name): \($0.value)" }
            switch policy {
            case .reloadEndToEnd: #expect(names == ["Cache-Control: no-cache", "Pragma: no-cache"])
            case .revalidate: #expect(names == ["Cache-Control: max-age=0"])
            case .protocolRules, .reload, .cacheElseLoad, .cacheOnly: #expect(names.isEmpty)
            }
        }
        let nothing = CacheRules.decide(
            .protocolRules, request: fields(["Cache-Control: only-if-cached"]), entry: nil, now: start)
        #expect(nothing == .fail)
    }

    // MARK: Vary

    private static let variations: [([String], [String], [String], Bool)] = [
        (["Vary: Accept"], ["Accept: a"], ["Accept: a"], true),
        (["Vary: Accept"], ["Accept: a"], ["Accept: b"], false),
        (["Vary: ACCEPT"], ["accept: a"], ["Accept: a"], true), (["Vary: Accept"], [], [], true),
        (["Vary: Accept"], ["Accept: a"], [], false), (["Vary: Accept"], [], ["Accept: a"], false),
        (["Vary: Accept"], ["Accept: a, b"], ["Accept: a,b"], true),
        (["Vary: Accept"], ["Accept: a, b"], ["Accept: b, a"], false),
        (["Vary: Accept"], ["Accept: a", "Accept: b"], ["Accept: a, b"], true),
        (["Vary: Accept, Foo"], ["Accept: a", "Foo: 1"], ["Accept: a", "Foo: 1"], true),
        (["Vary: Accept", "Vary: Foo"], ["Accept: a", "Foo: 1"], ["Accept: a", "Foo: 2"], false),
        (["Vary: , Accept ,"], ["Accept: a", "Foo: 1"], ["Accept: a"], true), (["Vary: *"], [], [], false),
        (["Vary: Accept, *"], [], [], false), (["Vary: Cookie"], ["Cookie: a=b"], ["Cookie: a=c"], false),
    ]

    @Test(arguments: variations)
    func `RFC 9111 4.1 an entry answers only the requests that Vary allows`(
        _ vary: [String], _ first: [String], _ second: [String], _ isUsed: Bool
    ) {
        let lines = vary + ["Cache-Control: max-age=100", Self.tag]
        #expect((decision(lines, after: 1, request: second, first: first) == .use) == isUsed)
    }

    /// The hash is what `sha256sum` prints for the value.
    private static let hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"

    @Test(arguments: [
        ("Authorization", hash), ("Proxy-Authorization", hash), ("Cookie", hash), ("Accept", "secret"),
    ])
    func `UC-54 of passwords and cookies that Vary names a hash is kept, of other fields the value`(
        _ name: String, _ kept: String
    ) {
        let selecting = CacheEntry.selecting(fields(["Vary: \(name)"]), fields(["\(name): secret"]))
        #expect(selecting == [name.lowercased(): kept])
    }

    // MARK: Storing

    private static let storing: [(Int, [String], [String], Bool)] = [
        (200, [], [], true), (200, ["Cache-Control: no-store"], [], false),
        (200, ["Cache-Control: no-store, max-age=100"], [], false),
        (200, ["Cache-Control: NO-STORE"], [], false),
        (200, ["Cache-Control: max-age=100"], ["Cache-Control: no-store"], false),
        (200, ["Cache-Control: no-cache"], [], true), (200, ["Cache-Control: private, max-age=1"], [], true),
        (200, ["Cache-Control: max-age=100"], ["Authorization: Basic x"], true),
        (200, ["Vary: *"], [], false),
        (200, ["Set-Cookie: a=b", "Cache-Control: max-age=1"], [], true),
        (201, [], [], false), (201, ["Cache-Control: max-age=1"], [], true), (202, ["Expires: 0"], [], true),
        (299, ["Cache-Control: public"], [], true), (299, [], [], false), (204, [], [], true),
        (206, ["Cache-Control: max-age=100"], [], false), (301, ["Cache-Control: max-age=100"], [], false),
        (404, ["Cache-Control: max-age=100"], [], false), (500, ["Cache-Control: max-age=100"], [], false),
        // A cache that knows the status need not mind no-store (§5.2.2.3).
        (200, ["Cache-Control: max-age=100, no-store, must-understand"], [], true),
        (200, ["Cache-Control: must-understand, max-age=100"], [], true),
        (299, ["Cache-Control: max-age=100, no-store, must-understand"], [], false),
        (299, ["Cache-Control: max-age=100, must-understand"], [], false),
        (200, ["Cache-Control: must-understand, no-store"], ["Cache-Control: no-store"], false),
    ]

    @Test(arguments: storing)
    func `UC-53 responses that may be stored, RFC 9111 3`(
        _ status: Int, _ lines: [String], _ request: [String], _ mayStore: Bool
    ) {
        let response = ResponseHead(status: status, fields: fields(lines))
        #expect(CacheRules.mayStore(response, to: fields(request)) == mayStore)
    }

    @Test func `RFC 9111 3_1 fields that apply to one connection are not stored`() {
        let kept = entry([
            "Connection: a, B", "A: 1", "b: 2", "C: 3", "Keep-Alive: timeout=5", "Transfer-Encoding: chunked",
            "TE: x", "Upgrade: h2c", "Proxy-Authenticate: Basic", "Proxy-Authentication-Info: x",
            "Proxy-Authorization: x", "Proxy-Connection: close", "Set-Cookie: a=b",
        ])
        #expect(kept.fields.map(\.name) == ["C", "Set-Cookie"])
    }

    private static let dates: [(String, Bool)] = [
        ("Thu, 18 Aug 2050 02:01:18 GMT", true), ("thu, 18 aug 2050 02:01:18 gmt", true),
        ("Thursday, 18-Aug-50 02:01:18 GMT", true), ("Thu Aug 18 02:01:18 2050", true),
        ("Thu Aug  8 02:01:18 2050", true),
        ("Thu, 18 Aug 2050 02:01:18 UTC", false), ("Thu, 18 Aug 2050 02:01:18 AEST", false),
        ("Thu, 18 Aug 50 02:01:18 GMT", false), ("Thu 18 Aug 2050 02:01:18 GMT", false),
        ("Thu, 18  Aug  2050 02:01:18 GMT", false), ("Thu, 18-Aug-2050 02:01:18 GMT", false),
        ("Thu, 18 Aug 2050 02.01.18 GMT", false), ("Thu, 18 Aug 2050 2:01:18 GMT", false),
        ("Thu, 8 Aug 2050 02:01:18 GMT", false), ("Thu-18-Aug-50 02:01:18 GMT", false),
        ("Thu, 31 Feb 2050 02:01:18 GMT", false), ("2050-08-18T02:01:18Z", false), ("0", false), ("", false),
    ]

    @Test(arguments: dates)
    func `RFC 9111 5_3 a date that is written wrong has passed`(_ date: String, _ isFresh: Bool) {
        #expect((decision(["Expires: \(date)"], after: 1) == .use) == isFresh)
    }

    private static let concerns: [(String, [String], Bool)] = [
        ("GET", [], true), ("HEAD", [], false), ("POST", [], false), ("get", [], false),
        ("GET", ["Range: bytes=0-1"], false), ("GET", ["If-None-Match: \"a\""], false),
        ("GET", ["if-modified-since: x"], false), ("GET", ["Accept: x"], true),
    ]

    @Test(arguments: concerns)
    func `RFC 9111 3.3 ranges and conditions of the program's own are none of the cache's business`(
        _ method: String, _ request: [String], _ isConcerned: Bool
    ) {
        #expect(CacheRules.concerns(method: method, fields: fields(request)) == isConcerned)
    }

    // MARK: Validation

    @Test func `RFC 9111 4.3.1 an entry's tag and date become the conditions of a request`() {
        let both = entry([Self.tag, "Last-Modified: yesterday"]).conditions
        #expect(both.map(\.name) == ["If-None-Match", "If-Modified-Since"])
        #expect(both.map(\.value) == ["\"a\"", "yesterday"])
        #expect(entry([]).conditions.isEmpty)
    }

    @Test func `RFC 9110 8.8.3 a tag that would be sent back in other bytes counts as none`() throws {
        func tagged(_ tag: [UInt8]) -> HeaderFields {
            var fields = HeaderFields()
            tag.withUnsafeBufferPointer { fields.set(name: "ETag", value: $0) }
            return fields
        }
        func entry(_ fields: HeaderFields) -> CacheEntry {
            CacheEntry(
                ResponseHead(status: 200, fields: fields), to: HeaderFields(), requestedAt: start,
                receivedAt: start)
        }
        let known = entry(tagged(Array("\"\u{FC}\"".utf8)))
        #expect(known.conditions.map(\.value) == ["\"\u{FC}\""])
        let fields = tagged([0x22, 0xFC, 0x22])
        #expect(entry(fields).conditions.isEmpty)
        #expect(!CacheRules.isOfUse(ResponseHead(status: 200, fields: fields), .protocolRules, now: start))
        let renewed = try #require(
            entry(HeaderFields()).freshened(
                by: ResponseHead(status: 304, fields: fields), requestedAt: start, receivedAt: start))
        #expect(renewed.conditions.isEmpty)
    }

    @Test func `RFC 9111 3.2 a 304 renews the entry's fields, but not those of its content`() throws {
        let old = entry([
            "Cache-Control: max-age=1", "X: old", "Content-Type: a/b", "Content-Encoding: gzip",
            "Content-Length: 5",
            "Age: 60", Self.tag, "X: older",
        ])
        let later = start.addingTimeInterval(1_000)
        let response = ResponseHead(
            status: 304,
            fields: fields([
                "Cache-Control: max-age=50", "x: new", "Content-Type: c/d", "Content-Encoding: br",
                "Content-Length: 0",
                "Connection: close, Hop", "Hop: x", "ETag: W/\"a\"", "New: 1", "New: 2",
                "Transfer-Encoding: chunked",
            ]))
        let renewed = try #require(old.freshened(by: response, requestedAt: later, receivedAt: later))
        #expect(renewed.fields["X"] == "new" && renewed.fields["Content-Type"] == "a/b")
        #expect(renewed.fields["Content-Encoding"] == "gzip" && renewed.fields["Content-Length"] == "5")
        #expect(renewed.fields["Connection"] == nil && renewed.fields["Hop"] == nil)
        #expect(renewed.fields["Age"] == nil && renewed.fields["New"] == "1, 2")
        #expect(renewed.fields["Transfer-Encoding"] == nil)
        let fresh = CacheRules.decide(
            .protocolRules, request: HeaderFields(), entry: renewed, now: later.addingTimeInterval(49))
        #expect(fresh == .use)
        #expect(renewed.status == 200)
    }

    @Test func `RFC 9110 6.6.1 a 304 without a date has the one at which it came`() throws {
        let old = entry(["Date: \(Self.date(0))", "Cache-Control: max-age=100", Self.tag])
        let response = ResponseHead(status: 304, fields: fields([Self.tag]))
        let later = start.addingTimeInterval(1_000)
        let renewed = try #require(old.freshened(by: response, requestedAt: later, receivedAt: later))
        #expect(renewed.fields["Date"] == Self.date(1_000))
        #expect(renewed.age(at: later) == 0)
        let decision = CacheRules.decide(
            .protocolRules, request: HeaderFields(), entry: renewed, now: later.addingTimeInterval(99))
        #expect(decision == .use)
    }

    @Test
    func
        `RFC 9111 4.3.4 after a 304 with another Vary the entry answers requests like the one that it answered`()
        throws
    {
        let old = entry([Self.tag])
        let response = ResponseHead(status: 304, fields: fields(["Vary: Authorization"]))
        let (asked, other) = (fields(["Authorization: a"]), fields(["Authorization: b"]))
        let renewed = try #require(
            old.freshened(by: response, to: asked, requestedAt: start, receivedAt: start))
        #expect(renewed.matches(asked))
        #expect(!renewed.matches(other) && !renewed.matches(HeaderFields()))
    }

    @Test func `RFC 9111 4.3.4 a 304 for another entity tag renews nothing`() {
        let response = ResponseHead(status: 304, fields: fields(["ETag: \"b\""]))
        #expect(entry([Self.tag]).freshened(by: response, requestedAt: start, receivedAt: start) == nil)
        #expect(entry([]).freshened(by: response, requestedAt: start, receivedAt: start) != nil)
    }

    // MARK: Errors and invalidation

    private static let standIns: [([String], [String], Double, Int?, Bool)] = [
        (["Cache-Control: max-age=100, stale-if-error=50"], [], 149, 503, true),
        (["Cache-Control: max-age=100, stale-if-error=50"], [], 150, 503, true),
        (["Cache-Control: max-age=100, stale-if-error=50"], [], 151, 503, false),
        (["Cache-Control: max-age=100, stale-if-error=50"], [], 149, nil, true),
        (["Cache-Control: max-age=100, stale-if-error=50"], [], 149, 404, false),
        (["Cache-Control: max-age=100, stale-if-error=50"], [], 149, 501, false),
        (["Cache-Control: max-age=100, stale-if-error=50, must-revalidate"], [], 149, 503, false),
        (["Cache-Control: max-age=100, stale-if-error=50, no-cache"], [], 149, 503, false),
        (["Cache-Control: max-age=100"], ["Cache-Control: stale-if-error=50"], 149, 500, true),
        (["Cache-Control: max-age=100, stale-if-error=50"], ["Cache-Control: no-cache"], 149, 503, false),
        (["Cache-Control: max-age=100"], [], 101, 503, false),
        (["Cache-Control: max-age=100"], [], 101, nil, false),
    ]

    @Test(arguments: standIns)
    func `RFC 5861 4 a stale entry stands in for a server that failed`(
        _ lines: [String], _ request: [String], _ age: Double, _ status: Int?, _ mayServeStale: Bool
    ) {
        let now = start.addingTimeInterval(age)
        let result = CacheRules.mayServeStale(
            entry(lines), for: status, request: fields(request), policy: .protocolRules, now: now)
        #expect(result == mayServeStale)
        #expect(
            !CacheRules.mayServeStale(
                entry(lines), for: status, request: fields(request), policy: .reload, now: now))
    }

    @Test(
        arguments: [
            (["ETag: \"a\"", "Content-Length: 5"], false), (["ETag: \"b\"", "Content-Length: 5"], true),
            (["Content-Length: 6"], true), (["Last-Modified: today"], true), (["X: new"], false), ([], false),
        ] as [([String], Bool)])
    func `RFC 9111 4.3.5 a response to HEAD that differs outdates an entry`(
        _ lines: [String], _ isOutdated: Bool
    ) {
        let old = entry([Self.tag, "Content-Length: 5", "Last-Modified: yesterday", "X: old"])
        let response = ResponseHead(status: 200, fields: fields(lines))
        #expect(CacheRules.outdates(old, byHead: response) == isOutdated)
    }

    @Test(
        arguments: [
            (["ETag: \"a\"", "Content-Length: 500"], false),
            (["ETag: W/\"a\"", "Content-Encoding: gzip", "Content-Length: 5"], false),
            (["ETag: W/\"a\"", "Content-Encoding: gzip", "Content-Length: 6"], true),
            (["ETag: \"b\"", "Content-Length: 500"], true),
        ] as [([String], Bool)])
    func `RFC 9111 4.3.5 a response to HEAD without the coding of an entry does not outdate it`(
        _ lines: [String], _ isOutdated: Bool
    ) {
        let old = entry(["ETag: W/\"a\"", "Content-Encoding: gzip", "Content-Length: 5"])
        let response = ResponseHead(status: 200, fields: fields(lines))
        #expect(CacheRules.outdates(old, byHead: response) == isOutdated)
    }

    private static let invalidations: [(String, Int, [String], [String])] = [
        ("POST", 200, [], ["http://h.example/a/b"]), ("PUT", 204, [], ["http://h.example/a/b"]),
        ("FOO", 303, ["Location: /c"], ["http://h.example/a/b", "http://h.example/c"]),
        (
            "DELETE", 200, ["Content-Location: c#f", "Location: http://h.example:80/d"],
            ["http://h.example/a/b", "http://h.example:80/d", "http://h.example/a/c"]
        ),
        (
            "POST", 201, ["Location: http://evil.example/c", "Content-Location: https://h.example/"],
            ["http://h.example/a/b"]
        ),
        ("POST", 404, [], []), ("POST", 500, ["Location: /c"], []), ("GET", 200, ["Location: /c"], []),
        ("HEAD", 200, [], []), ("OPTIONS", 200, [], []), ("TRACE", 200, [], []),
    ]

    @Test(arguments: invalidations)
    func `RFC 9111 4.4 unsafe requests make entries doubtful`(
        _ method: String, _ status: Int, _ lines: [String], _ expected: [String]
    ) throws {
        let url = try #require(URL(string: "http://h.example/a/b"))
        let response = ResponseHead(status: status, fields: fields(lines))
        let urls = CacheRules.invalidated(by: response, method: method, url: url)
        #expect(urls.map(\.absoluteString) == expected)
    }
}

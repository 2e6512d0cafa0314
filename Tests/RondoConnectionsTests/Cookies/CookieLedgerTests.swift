import Rondo
import RondoHTTP
import Testing

@testable import RondoConnections

/// Tests the value that knows a cookie store's cookies: what loads receive, what the program does, and what goes where.
@Suite struct CookieLedgerTests {
    private let now = Date()
    private let origin = CookieOrigin(host: "a.example", path: "/", isSecure: true)

    private func cookie(
        _ name: String, _ value: String = "1", path: String = "/", expires: Double? = 3600,
        after seconds: Double = 0
    ) -> Cookie {
        Cookie(
            name: name, value: value, domain: "a.example", isHostOnly: true, path: path,
            expires: expires.map { now.addingTimeInterval($0) }, createdAt: now.addingTimeInterval(seconds))
    }

    private func programCookie(_ name: String, _ value: String = "p") throws -> HTTPCookie {
        try #require(
            HTTPCookie(properties: [
                .name: name, .value: value, .path: "/", .domain: "a.example",
                .expires: now.addingTimeInterval(900),
            ]))
    }

    /// A ledger and the storage that it is shown in.
    private struct Scene {
        var ledger = CookieLedger()
        var objects: [HTTPCookie] = []
        /// The cookies in Foundation's file.
        var filed: [HTTPCookie] = []
        var rows: [Cookie.Key: CookieRow] = [:]
        let now: Date
        private let observer = StorageChangeObserver {}

        init(now: Date) { self.now = now }

        mutating func receive(_ cookies: Cookie..., isAfterExamination: Bool = true) {
            if isAfterExamination { examine() }
            let origin = CookieOrigin(host: "a.example", path: "/", isSecure: true)
            ledger.receive(cookies, from: origin, isAfterExamination: isAfterExamination, now: now)
        }

        mutating func examine() { ledger.examine(objects, now: now) }

        mutating func write() {
            for row in ledger.takeRows(now: now) {
                rows[row.key] = row.cookie == nil && row.replaced == nil ? nil : row
            }
        }

        /// Shows what waits, up to so many steps.
        mutating func show(_ count: Int = .max) throws {
            for _ in 0..<count {
                switch ledger.nextStep(now: now) {
                case .set(let cookie):
                    let object = try #require(StoredCookie(cookie, observer: observer))
                    ledger.willShow(object)
                    set(object)
                case .delete(let object):
                    ledger.willRemove(object)
                    objects.removeAll {
                        CookieLedger.storageKey(of: $0) == CookieLedger.storageKey(of: object)
                    }
                case nil: return
                }
            }
        }

        /// Foundation writes its file.
        mutating func file() {
            filed = objects
            ledger.noteFiled()
        }

        /// The program sets a cookie, which has Foundation write its file.
        mutating func programSets(_ object: HTTPCookie) {
            set(object)
            filed = objects
        }

        mutating func set(_ object: HTTPCookie) {
            objects.removeAll { CookieLedger.storageKey(of: $0) == CookieLedger.storageKey(of: object) }
            objects.append(object)
        }

        mutating func settle() throws {
            examine()
            write()
            try show()
            file()
            write()
        }

        var sent: String {
            let origin = CookieOrigin(host: "a.example", path: "/x", isSecure: true)
            return ledger.table.cookies(for: origin, now: now).map { "\($0.name)=\($0.value)" }
                .joined(separator: "; ")
        }
        var seen: Set<String> { Set(objects.map { "\($0.name)=\($0.value)" }) }
        var kept: Set<String> { Set(rows.values.compactMap { $0.cookie.map { "\($0.name)=\($0.value)" } }) }
    }

    @Test func `UC-57 a received cookie is written and shown, and a session cookie is only shown`() throws {
        var scene = Scene(now: now)
        scene.receive(cookie("a"), cookie("b", expires: nil, after: 1))
        try scene.settle()
        #expect(scene.sent == "a=1; b=1")
        #expect(scene.seen == ["a=1", "b=1"])
        #expect(scene.kept == ["a=1"])
    }

    @Test func `UC-57 a cookie of the session that changes leaves nothing to write, unless one was kept`()
        throws
    {
        var scene = Scene(now: now)
        for second in 0..<3 {
            scene.receive(cookie("a", expires: nil, after: Double(second)))
            #expect(!scene.ledger.hasDirtyRows)
            try scene.show()
            #expect(!scene.ledger.isUnfiled)
        }
        scene.receive(cookie("k", after: 5))
        try scene.settle()
        #expect(scene.kept == ["k=1"])
        scene.receive(cookie("k", expires: nil, after: 6))
        #expect(scene.ledger.hasDirtyRows)
        try scene.show()
        #expect(scene.ledger.isUnfiled)
        try scene.settle()
        #expect(scene.kept == [])
        #expect(scene.sent == "a=1; k=1")
    }

    @Test func `UC-57 a cookie that the program sets is sent, and stored by Foundation`() throws {
        var scene = Scene(now: now)
        scene.receive(cookie("a"))
        try scene.settle()
        scene.set(try programCookie("a"))
        scene.set(try programCookie("b"))
        try scene.settle()
        #expect(scene.sent == "a=p; b=p")
        #expect(scene.kept == [])
    }

    @Test func `UC-57 a cookie that the program deletes is not sent any more, and not stored`() throws {
        var scene = Scene(now: now)
        scene.receive(cookie("a"), cookie("b", after: 1))
        try scene.settle()
        scene.objects.removeAll { $0.name == "a" }
        try scene.settle()
        #expect(scene.sent == "b=1")
        #expect(scene.kept == ["b=1"])
    }

    @Test func `UC-57 a change by the program counts while the next value waits to be shown`() throws {
        var scene = Scene(now: now)
        scene.receive(cookie("a"), cookie("b", after: 1))
        try scene.settle()
        scene.receive(cookie("a", "2", after: 2), cookie("b", "2", after: 3))
        scene.objects.removeAll { $0.name == "a" }
        scene.set(
            try #require(
                StoredCookie(cookie("b", "p", after: 4), observer: StorageChangeObserver {})))
        try scene.settle()
        #expect(scene.sent == "b=p")
        #expect(scene.seen == ["b=p"])
        #expect(scene.kept == ["b=p"])
    }

    @Test func `UC-57 a deletion that may have come before what was received does not undo it`() throws {
        var scene = Scene(now: now)
        scene.receive(cookie("a"))
        try scene.settle()
        scene.objects = []
        scene.receive(cookie("a", "2", after: 2), isAfterExamination: false)
        try scene.settle()
        #expect(scene.seen == ["a=2"])
    }

    @Test func `UC-57 a cookie that Foundation removes because it has expired is not deleted by the program`()
        throws
    {
        var scene = Scene(now: now)
        scene.receive(cookie("a", expires: 100))
        try scene.settle()
        // Not worth showing.
        scene.receive(cookie("a", expires: 105, after: 1))
        #expect(scene.ledger.waitingCount == 0)
        let object = try #require(StoredCookie(cookie("a", expires: -1), observer: StorageChangeObserver {}))
        scene.ledger.willShow(object)
        scene.set(object)
        scene.examine()
        scene.objects = []
        try scene.settle()
        #expect(scene.seen == ["a=1"])
    }

    @Test
    func `an expiry that moves by less than a minute is neither written nor shown, one that drifts away is`()
        throws
    {
        var scene = Scene(now: now)
        scene.receive(cookie("a"))
        try scene.settle()
        var shown = 0
        for second in 1...130 {
            scene.receive(cookie("a", expires: 3600 + Double(second), after: Double(second)))
            if scene.ledger.waitingCount > 0 { shown += 1 }
            try scene.settle()
        }
        #expect(shown == 2)
    }

    @Test func `two cookies that Foundation takes for the same are both sent`() throws {
        var scene = Scene(now: now)
        scene.receive(cookie("ab", path: "/"), cookie("b", path: "/a", after: 1))
        try scene.settle()
        scene.receive(cookie("c", after: 2))
        try scene.settle()
        let below = CookieOrigin(host: "a.example", path: "/a", isSecure: true)
        #expect(scene.ledger.table.cookies(for: below, now: now).map(\.name) == ["b", "ab", "c"])
        #expect(scene.objects.count == 2)
    }

    // MARK: From one process to the next

    /// Returns the cookies as Foundation reads them from its file: without Secure, and made a moment ago.
    private func reread(_ objects: [HTTPCookie]) -> [HTTPCookie] {
        objects.compactMap { old in
            guard let expires = old.expiresDate else { return nil }
            return HTTPCookie(properties: [
                .name: old.name, .value: old.value, .path: old.path, .domain: old.domain, .expires: expires,
            ])
        }
    }

    private func restart(_ scene: Scene, foundation: [HTTPCookie], isLost: Bool = false) -> Scene {
        var next = Scene(now: now)
        next.rows = scene.rows
        next.objects = reread(foundation)
        next.examine()
        next.ledger.merge(Array(scene.rows.values), now: now) { _ in isLost }
        return next
    }

    @Test func `UC-57 a process finds the cookies of the one before, and shows none of them anew`() throws {
        var scene = Scene(now: now)
        var secure = cookie("s", after: 1)
        secure.isSecure = true
        scene.receive(cookie("b"), secure, cookie("a", after: 2))
        try scene.settle()
        var next = restart(scene, foundation: scene.objects)
        #expect(next.ledger.waitingCount == 0)
        #expect(!next.ledger.hasDirtyRows)
        #expect(next.sent == "b=1; s=1; a=1")
        #expect(next.ledger.table[secure.key]?.isSecure == true)
        next.objects.removeAll { $0.name == "b" }
        try next.settle()
        #expect(next.kept == ["s=1", "a=1"])
    }

    @Test func `UC-57 a cookie that was received before the file was opened is not one that was only read`() {
        var scene = Scene(now: now)
        let own = cookie("a", "2")
        scene.receive(own)
        let others = [cookie("a", "1", after: 1), cookie("b", after: 1)]
        scene.ledger.merge(others.map { CookieRow(key: $0.key, cookie: $0, replaced: nil) }, now: now) { _ in
            false
        }
        let rows = scene.ledger.takeRows(now: now).sorted { $0.key.name < $1.key.name }
        #expect(rows.map { $0.cookie?.value } == ["2", "1"])
        #expect(rows.map(\.isOnlyRead) == [false, true])
    }

    @Test(arguments: 0...5)
    func `a process killed before it shows all cookies leaves them to the next`(_ steps: Int) throws {
        var scene = Scene(now: now)
        scene.receive(cookie("a"), cookie("b", after: 1), cookie("c", after: 2))
        try scene.settle()
        scene.programSets(try programCookie("c", "p"))
        scene.examine()
        scene.receive(
            cookie("a", "2", after: 3), cookie("b", expires: -1, after: 4), cookie("c", "2", after: 5))
        scene.write()
        try scene.show(min(steps, 3))
        if steps > 3 {
            scene.write()
            scene.file()
        }
        if steps > 4 { scene.write() }
        var next = restart(scene, foundation: scene.filed)
        #expect(next.sent == "a=2; c=2")
        try next.settle()
        #expect(next.seen == ["a=2", "c=2"])
        #expect(next.kept == ["a=2", "c=2"])
        #expect(next.rows.count == 2)
    }

    @Test(arguments: [false, true])
    func `a process killed while Foundation's file is behind leaves the newest cookies to the next`(
        isFiled: Bool
    ) throws {
        var scene = Scene(now: now)
        scene.receive(cookie("a"), cookie("gone", after: 1))
        try scene.settle()
        for (round, value) in ["2", "3", "4"].enumerated() {
            scene.receive(
                cookie("a", value, after: Double(round) + 2), cookie("new", value, after: Double(round) + 2))
            if round == 1 { scene.receive(cookie("gone", expires: -1, after: 3)) }
            scene.write()
            try scene.show()
            // The program's own cookie takes ours along into the file.
            if isFiled, round == 1 {
                scene.programSets(try programCookie("p"))
                scene.examine()
                scene.write()
            }
        }
        var next = restart(scene, foundation: scene.filed, isLost: true)
        #expect(next.sent == (isFiled ? "a=4; p=p; new=4" : "a=4; new=4"))
        try next.settle()
        #expect(next.seen == (isFiled ? ["p=p", "a=4", "new=4"] : ["a=4", "new=4"]))
        #expect(next.kept == ["a=4", "new=4"])
        #expect(next.rows.count == 2)
        // What the program has deleted before its first load does not come back.
        let last = restart(next, foundation: [], isLost: true)
        #expect(last.sent.isEmpty)
    }

    @Test func `a process killed before it has written cookies leaves the earlier ones to the next`() throws {
        var scene = Scene(now: now)
        scene.receive(cookie("a"))
        try scene.settle()
        scene.receive(cookie("a", "2", after: 1))
        let next = restart(scene, foundation: scene.objects)
        #expect(next.sent == "a=1")
    }

    @Test func `a cookie that the program has set since, or deleted before its first load, counts`() throws {
        var scene = Scene(now: now)
        scene.receive(cookie("a"), cookie("b", after: 1))
        try scene.settle()
        var next = restart(scene, foundation: [try programCookie("a", "p")], isLost: true)
        #expect(next.sent == "a=p")
        try next.settle()
        #expect(next.rows.isEmpty)
    }

    @Test func `a cookie row that was altered on the disk is dropped`() throws {
        var secure = cookie("s", after: 1)
        secure.isSecure = true
        let row = CookieRow(key: secure.key, cookie: secure, replaced: 7)
        let columns = row.columns
        let read = try #require(CookieRow(columns, digest: columns.digest, now: now))
        #expect(read.cookie?.value == "1")
        #expect(read.cookie?.isSecure == true)
        #expect(read.replaced == 7)
        for change: (inout CookieRow.Columns) -> Void in [
            { $0.domain = "b.example" }, { $0.isHostOnly = 0 }, { $0.path = "/x" }, { $0.name = "t" },
            { $0.value = "2" }, { $0.value = nil }, { $0.expires += 1 }, { $0.created += 1 },
            { $0.updated += 1 },
            { $0.flags = 0 }, { $0.replaced = nil },
        ] {
            var changed = columns
            change(&changed)
            #expect(CookieRow(changed, digest: columns.digest, now: now) == nil, "\(changed)")
        }
        let replacesZero = CookieRow(key: secure.key, cookie: secure, replaced: 0).columns
        var replacesNothing = replacesZero
        replacesNothing.replaced = nil
        #expect(CookieRow(replacesNothing, digest: replacesZero.digest, now: now) == nil)
        for change: (inout CookieRow.Columns) -> Void in [
            { $0.value = "a\r\nb: c" }, { $0.name = "a;b" }, { $0.name = "" }, { $0.path = "x" },
            { $0.expires = .infinity }, { $0.created = .nan }, { $0.domain = "" },
            { $0.value = String(repeating: "x", count: 5000) },
        ] {
            var changed = columns
            change(&changed)
            #expect(CookieRow(changed, digest: changed.digest, now: now) == nil, "\(changed)")
        }
    }
}

import Rondo
import RondoHTTP
import RondoMutex
import RondoProbeSupport
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Cookie stores: their file, their thread, and the loads that use them.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct CookieStoreTests {
    /// In place of Foundation's storage, with notes of its changes.
    private final class Window: VisibleCookies {
        private struct State {
            var cookies: [HTTPCookie] = []
            var policy = HTTPCookie.AcceptPolicy.always
            /// By the kernel's numbers: the thread library gives the identity of one that has ended to the next.
            var changingThreads: Set<String> = []
            var changes = 0
            var writes = 0
            /// The cookies at the last write.
            var written: Set<String> = []
            var isHeld = false
        }

        private let state = Mutex(State())
        /// Called by the next reader, when it has read; once.
        let onRead = Box<(@Sendable () -> Void)?>(nil)

        var cookies: [HTTPCookie] {
            let cookies = state.withLock { $0.cookies }
            onRead.mutate { onRead -> (@Sendable () -> Void)? in
                defer { onRead = nil }
                return onRead
            }?()
            return cookies
        }
        var policy: HTTPCookie.AcceptPolicy {
            get { state.withLock { $0.policy } }
            set { state.withLock { $0.policy = newValue } }
        }

        func set(_ cookie: HTTPCookie) {
            note()
            state.withLock { state in
                // As Foundation's does.
                if state.policy == .never { return }
                state.cookies.removeAll {
                    CookieLedger.storageKey(of: $0) == CookieLedger.storageKey(of: cookie)
                }
                state.cookies.append(cookie)
            }
        }

        func delete(_ cookie: HTTPCookie) {
            note()
            state.withLock { state in
                state.cookies.removeAll {
                    CookieLedger.storageKey(of: $0) == CookieLedger.storageKey(of: cookie)
                }
            }
        }

        func write() {
            state.withLock { state in
                state.writes += 1
                state.written = Self.texts(state.cookies)
            }
        }

        private static func texts(_ cookies: [HTTPCookie]) -> Set<String> {
            Set(cookies.map { "\($0.name)=\($0.value)" })
        }

        private func note() {
            state.withLock { state in
                state.changingThreads.insert(kernelThread)
                state.changes += 1
            }
            while state.withLock({ $0.isHeld }) { poll(nil, 0, 1) }
        }

        /// Changes wait until it is let go.
        func hold(_ isHeld: Bool) { state.withLock { $0.isHeld = isHeld } }

        /// A reader has come since `onRead` was set.
        var wasRead: Bool { onRead.value == nil }
        var changingThreads: Set<String> { state.withLock { $0.changingThreads } }
        func forgetChangingThreads() { state.withLock { $0.changingThreads = [] } }
        var changes: Int { state.withLock { $0.changes } }
        var writes: Int { state.withLock { $0.writes } }
        var written: Set<String> { state.withLock { $0.written } }
        var seen: Set<String> { Self.texts(cookies) }

        /// Returns a window with the cookies that Foundation would read from its file in the next process.
        func restarted() -> Window {
            let next = Window()
            let cookies = cookies.compactMap { old -> HTTPCookie? in
                guard let expires = old.expiresDate else { return nil }
                return HTTPCookie(properties: [
                    .name: old.name, .value: old.value, .path: old.path, .domain: old.domain,
                    .expires: expires,
                ])
            }
            next.state.withLock { $0.cookies = cookies }
            return next
        }
    }

    private func withFolder(_ body: (URL) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "rondo-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder)
    }

    private static let origin = CookieOrigin(host: "a.example", path: "/", isSecure: false)

    private func settle(_ store: CookieStore) throws {
        try waitFor("a cookie store to come to rest") {
            store.state.withLock { $0.isOpen && !$0.isWorking } ? () : nil
        }
    }

    private func opened(_ window: Window, _ file: URL?) throws -> CookieStore {
        let store = CookieStore(window, file: file)
        if !store.prepareReading(orTell: { {} }) { try settle(store) }
        return store
    }

    @discardableResult
    private func receive(_ fields: [String], _ store: CookieStore) throws -> CookieStore {
        _ = store.receive(fields, from: Self.origin) { {} }
        try settle(store)
        return store
    }

    @Test func `UC-57 the lock of a store is free while a load reads the program's storage`() throws {
        let window = Window()
        let store = try opened(window, nil)
        let check = { @Sendable in
            let isFree = Latch()
            Thread.detachNewThread {
                store.state.withLock { _ in }
                isFree.open()
            }
            do { try isFree.wait() } catch { Issue.record(error) }
        }
        window.onRead.value = check
        #expect(store.readCookies(for: Self.origin).isEmpty)
        #expect(window.wasRead)
        window.onRead.value = check
        try receive(["a=1"], store)
        #expect(window.wasRead)
    }

    @Test func `UC-57 what a load has read before the store brought a cookie there does not remove it`()
        throws
    {
        let window = Window()
        let store = try receive(["a=1"], try opened(window, nil))
        // So many that the thread takes them in, which waits for no load that reads.
        let many = (0...CookieStore.maximumOnLoop).map { "b\($0)=2" }
        window.onRead.value = { [self] in
            do { try receive(many, store) } catch { Issue.record(error) }
        }
        #expect(sent(store) == (["a=1"] + many).joined(separator: "; "))
        try settle(store)
        #expect(window.seen == Set(["a=1"] + many))
    }

    @Test func `US-78 a flush is told when what came before it is in the file, and every load of its end`()
        throws
    {
        try withFolder { folder in
            let file = folder.appendingPathComponent("cookies.sqlite")
            let (window, log) = (Window(), EventLog())
            let store = try opened(window, file)
            window.hold(true)
            #expect(store.receive(["a=1; Max-Age=1000"], from: Self.origin) { { log.note("a is there") } })
            // The store's thread is at work, and goes on only below.
            #expect(store.receive(["b=2; Max-Age=1000"], from: Self.origin) { { log.note("b is there") } })
            store.flush {
                let rows = (try? CookieFile(file).read(now: Date()).rows) ?? []
                log.note("flushed \(rows.compactMap { $0.cookie?.name }.sorted())")
            }
            window.hold(false)
            try waitFor("three calls") { log.entries.count == 3 ? () : nil }
            #expect(Set(log.entries.filter { $0.hasSuffix("there") }) == ["a is there", "b is there"])
            #expect(log.entries.contains("flushed [\"a\", \"b\"]"))
            store.flush { log.note("flushed again") }
            try waitFor("the second flush") { log.entries.last == "flushed again" ? () : nil }
        }
    }

    @Test
    func `US-78 a flush has what the program has changed while a load examined the storage too`() throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("cookies.sqlite")
            let (window, log) = (Window(), EventLog())
            let store = try receive(
                ["a=1; Max-Age=1000", "b=1; Max-Age=1000", "c=1; Max-Age=1000"], try opened(window, file))
            let delete = { @Sendable (name: String) in
                for cookie in window.cookies where cookie.name == name { window.delete(cookie) }
            }
            // The thread has read. A load finds the first change, and the second one comes behind it.
            window.onRead.value = { [self] in
                delete("a")
                #expect(sent(store) == "b=1; c=1")
                delete("b")
            }
            store.flush {
                let rows = (try? CookieFile(file).read(now: Date()).rows) ?? []
                log.note("flushed \(rows.compactMap { $0.cookie?.name })")
            }
            try waitFor("the flush") { log.entries.isEmpty ? nil : () }
            #expect(window.wasRead)
            #expect(log.entries == ["flushed [\"c\"]"])
        }
    }

    @Test func `US-78 all cookies are removed by the store's thread, and a later request has none`() throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("cookies.sqlite")
            let (window, log) = (Window(), EventLog())
            let store = try receive(["a=1; Max-Age=1000", "b=1"], try opened(window, file))
            let own = try #require(
                HTTPCookie(properties: [.name: "own", .value: "1", .path: "/", .domain: "a.example"]))
            window.set(own)
            window.forgetChangingThreads()
            #expect(sent(store) == "a=1; b=1; own=1")
            window.hold(true)
            // Received, but not taken in yet.
            let many = (0...CookieStore.maximumOnLoop).map { "c\($0)=2; Max-Age=1000" }
            _ = store.receive(many, from: Self.origin) { {} }
            store.removeAll()
            store.flush { log.note("flushed \(window.seen)") }
            let isReadable = store.prepareReading { [self] in
                { log.note("a request sends '\(sent(store))'") }
            }
            #expect(!isReadable, "a request waits until the cookies are removed")
            window.hold(false)
            try waitFor("two calls") { log.entries.count == 2 ? () : nil }
            #expect(Set(log.entries) == ["flushed []", "a request sends ''"])
            try settle(store)
            #expect(!window.changingThreads.contains(kernelThread))
            try receive(["d=3; Max-Age=1000"], store)
            #expect(window.seen == ["d=3"])
            #expect(sent(try opened(window.restarted(), file)) == "d=3")
        }
    }

    @Test func `US-78 a store that no load has used yet removes what is in its file`() throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("cookies.sqlite")
            let window = Window()
            try receive(["a=1; Max-Age=1000"], try opened(window, file))
            let next = window.restarted()
            let store = CookieStore(next, file: file)
            store.removeAll()
            try settle(store)
            #expect(next.seen == [])
            #expect(sent(try opened(next.restarted(), file)) == "")
        }
    }

    @Test func `US-78 cookies are removed though the program accepts none`() throws {
        let window = Window()
        let store = try receive(["a=1; Max-Age=1000", "b=1"], try opened(window, nil))
        window.policy = .never
        store.removeAll()
        try settle(store)
        #expect(window.seen == [])
        #expect(sent(store) == "")
    }

    @Test func `US-78 a cookie that comes during a removal is kept where none is accepted`() throws {
        let window = Window()
        let store = try receive(["a=1", "b=1"], try opened(window, nil))
        window.policy = .never
        window.hold(true)
        let changes = window.changes
        store.removeAll()
        try waitFor("the first deletion") { window.changes > changes ? () : nil }
        // One of them is being deleted, the other waits for that.
        _ = store.receive(["a=2", "b=2"], from: Self.origin) { {} }
        window.hold(false)
        try settle(store)
        #expect(window.seen == [])
        #expect(sent(store) == "a=2; b=2")
        window.policy = .always
        #expect(sent(store) == "a=2; b=2")
        try settle(store)
        #expect(window.seen == ["a=2", "b=2"])
    }

    @Test
    func `US-78 a cookie that comes behind a removal of cookies not yet in the storage is kept`() throws {
        let window = Window()
        let store = try opened(window, nil)
        window.policy = .never
        try receive(["a=1"], store)
        // The store's thread reads the storage, and then finds both.
        window.onRead.value = {
            store.removeAll()
            _ = store.receive(["b=1"], from: Self.origin) { {} }
        }
        store.flush {}
        try settle(store)
        #expect(window.wasRead)
        #expect(sent(store) == "b=1")
        window.policy = .always
        #expect(sent(store) == "b=1")
        try settle(store)
        #expect(window.seen == ["b=1"])
    }

    private func sent(_ store: CookieStore) -> String {
        store.readCookies(for: Self.origin).map { "\($0.name)=\($0.value)" }.joined(separator: "; ")
    }

    @Test func `UC-57 a store without cookies sends each one from the next request on`() throws {
        let window = Window()
        let store = try opened(window, nil)
        #expect(sent(store) == "")
        // The program's.
        let own = try programCookie("own")
        window.set(own)
        #expect(sent(store) == "own=1")
        window.delete(own)
        #expect(sent(store) == "")
        try settle(store)
        // One that another loop has received, while the thread brings it to the storage.
        window.hold(true)
        let isReceived = Latch()
        Thread.detachNewThread {
            _ = store.receive(["a=1"], from: Self.origin) { {} }
            isReceived.open()
        }
        try isReceived.wait()
        #expect(sent(store) == "a=1")
        window.hold(false)
        try settle(store)
        store.removeAll()
        try waitUntilReadable(store)
        #expect(sent(store) == "")
        try settle(store)
        #expect(sent(store) == "")
        // Those that the thread takes in.
        let many = (0...CookieStore.maximumOnLoop).map { "b\($0)=2" }
        _ = store.receive(many, from: Self.origin) { {} }
        try waitUntilReadable(store)
        #expect(sent(store) == many.joined(separator: "; "))
    }

    private func waitUntilReadable(_ store: CookieStore) throws {
        let isReadable = Latch()
        if !store.prepareReading(orTell: { { isReadable.open() } }) { try isReadable.wait() }
    }

    @Test func `a request takes the lock of a store only where there are cookies`() throws {
        let store = try opened(Window(), nil)
        let (isHeld, isDone) = (Latch(), Latch())
        Thread.detachNewThread {
            store.state.withLock { _ in
                isHeld.open()
                do { try isDone.wait() } catch { Issue.record(error) }
            }
        }
        try isHeld.wait()
        #expect(store.prepareReading { {} })
        #expect(sent(store) == "")
        isDone.open()
    }

    @Test func `the outline of a store's state says what a request finds there`() throws {
        var state = CookieStoreState(hasFile: false)
        #expect(state.outline.isReadable && state.outline.isExaminable && state.outline.isEmpty)
        let version = state.outline.version
        state.examine([try programCookie("own")], isRefused: nil)
        #expect(state.outline.version != version)
        #expect(state.outline.isReadable && !state.outline.isEmpty)
        state.examine([], isRefused: nil)
        state.enqueue(.removal)
        #expect(!state.outline.isReadable && state.outline.isExaminable && !state.outline.isEmpty)
        let unread = CookieStoreState(hasFile: true).outline
        #expect(!unread.isReadable && !unread.isExaminable && !unread.isEmpty)
    }

    // MARK: The file

    @Test func `UC-57 cookies with an expiry outlive the process, in a file for the user alone`() throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("x/cookies.sqlite")
            let window = Window()
            let store = try opened(window, file)
            try receive(["a=1; max-age=1000", "b=2", "c=3; max-age=1000; httponly"], store)
            #expect(window.seen == ["a=1", "b=2", "c=3"])
            for name in ["cookies.sqlite", "cookies.sqlite-wal"] {
                let path = folder.appendingPathComponent("x/\(name)").path
                let attributes = try FileManager.default.attributesOfItem(atPath: path)
                #expect(attributes[.posixPermissions] as? Int == 0o600)
            }
            withExtendedLifetime(store) {}
            let next = try opened(window.restarted(), file)
            #expect(sent(next) == "a=1; c=3")
            #expect(next.readCookies(for: Self.origin).last?.isHTTPOnly == true)
            // And where Foundation has lost them all.
            let other = Window()
            #expect(sent(try opened(other, file)) == "a=1; c=3")
            #expect(other.seen == ["a=1", "c=3"])
        }
    }

    @Test func `UC-57 a cookie that the program deletes does not come back`() throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("cookies.sqlite")
            let window = Window()
            let store = try opened(window, file)
            try receive(["a=1; max-age=1000", "b=2; max-age=1000"], store)
            window.delete(try #require(window.cookies.first { $0.name == "a" }))
            #expect(sent(store) == "b=2")
            try settle(store)
            #expect(sent(try opened(window.restarted(), file)) == "b=2")
        }
    }

    @Test func `two processes keep each other's cookies`() throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("cookies.sqlite")
            let (first, second) = (try opened(Window(), file), try opened(Window(), file))
            for index in 0..<10 {
                try receive(["a\(index)=1; max-age=1000"], first)
                try receive(["b\(index)=1; max-age=1000"], second)
            }
            #expect(try opened(Window(), file).readCookies(for: Self.origin).count == 20)
        }
    }

    @Test func `UC-57 a process does not write what it has read over what another one has received since`()
        throws
    {
        try withFolder { folder in
            let file = folder.appendingPathComponent("cookies.sqlite")
            try receive(["x=1; max-age=1000"], try opened(Window(), file))
            let window = Window()
            window.hold(true)
            let first = CookieStore(window, file: file)
            _ = first.prepareReading(orTell: { {} })
            // It has read the row. When the cookie is in its storage it writes the row anew.
            try waitFor("a change to begin") { window.changes > 0 ? () : nil }
            try receive(["x=2; max-age=1000"], try opened(Window(), file))
            window.hold(false)
            try settle(first)
            #expect(window.writes == 1)
            let rows = try CookieFile(file).read(now: Date()).rows
            #expect(rows.map { $0.cookie?.value } == ["2"])
        }
    }

    @Test func `UC-57 a process does not write anew what it has read and another one has removed since`()
        throws
    {
        try withFolder { folder in
            let file = folder.appendingPathComponent("cookies.sqlite")
            try receive(["x=1; max-age=1000", "y=1; max-age=1000"], try opened(Window(), file))
            let window = Window()
            window.hold(true)
            let store = CookieStore(window, file: file)
            _ = store.prepareReading(orTell: { {} })
            try waitFor("a change to begin") { window.changes > 0 ? () : nil }
            // As another process that has received their deletion.
            let other = try CookieFile(file)
            let read = other.read(now: Date()).rows
            #expect(read.count == 2)
            try other.write(
                read.map { CookieRow(key: $0.key, cookie: nil, replaced: nil, updatedAt: Date()) })
            window.hold(false)
            try settle(store)
            #expect(window.writes == 1 && sent(store) == "x=1; y=1")
            #expect(other.read(now: Date()).rows.isEmpty)
            // What it receives itself it writes.
            try receive(["y=2; max-age=1000"], store)
            #expect(other.read(now: Date()).rows.map { $0.cookie?.value } == ["2"])
        }
    }

    @Test func `UC-57 a row that has been changed later than is known is neither replaced nor removed`()
        throws
    {
        try withFolder { folder in
            let file = try CookieFile(folder.appendingPathComponent("cookies.sqlite"))
            let now = Date()
            func cookie(_ value: String, after seconds: Double) -> Cookie {
                Cookie(
                    name: "a", value: value, domain: "a.example", isHostOnly: true, path: "/",
                    expires: now.addingTimeInterval(1000), createdAt: now.addingTimeInterval(seconds))
            }
            func values() -> [String?] { file.read(now: now).rows.map { $0.cookie?.value } }
            let (old, new) = (cookie("1", after: 1), cookie("2", after: 2))
            for cookie in [new, old] {
                try file.write([CookieRow(key: cookie.key, cookie: cookie, replaced: nil)])
            }
            #expect(values() == ["2"])
            for replaced in [nil, 7] as [Int64?] {
                try file.write([
                    CookieRow(key: old.key, cookie: nil, replaced: replaced, updatedAt: old.updatedAt)
                ])
                #expect(values() == ["2"])
            }
            // What keeps its time may name another digest.
            try file.write([CookieRow(key: new.key, cookie: new, replaced: 7)])
            #expect(file.read(now: now).rows.map(\.replaced) == [7])
            try file.write([CookieRow(key: new.key, cookie: nil, replaced: nil, updatedAt: new.updatedAt)])
            #expect(values().isEmpty)
        }
    }

    @Test func `a file that is broken anywhere gives what is whole, and goes on being used`() throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("cookies.sqlite")
            let names = (0..<100).map { "c\($0)" }
            do {
                let store = try opened(Window(), file)
                try receive(names.map { "\($0)=\($0)-value; max-age=31536000" }, store)
                // So that all of it is in the one file.
                store.disk?.close()
            }
            let whole = try Data(contentsOf: file)
            // The last two break the order of the rows, which no statement that reads them notices.
            for seed in Array(0..<40) + [253, 466] {
                var generator = Random(seed: UInt64(seed))
                var broken = whole
                for _ in 0..<Int.random(in: 1...20, using: &generator) {
                    broken[Int.random(in: 0..<broken.count, using: &generator)] = .random(
                        in: 0...255, using: &generator)
                }
                if Bool.random(using: &generator) {
                    broken = broken.prefix(.random(in: 0..<broken.count, using: &generator))
                }
                Database.remove(file)
                try broken.write(to: file)
                // What is broken may be found as late as when the file is read again, and it is made anew then.
                for _ in 0..<2 {
                    let store = try opened(Window(), file)
                    for cookie in store.readCookies(for: Self.origin) where cookie.name != "new" {
                        #expect(cookie.value == cookie.name + "-value")
                    }
                    try receive(["new=1; max-age=31536000"], store)
                    store.disk?.close()
                }
                #expect(sent(try opened(Window(), file)).contains("new=1"), "\(seed)")
            }
        }
    }

    @Test func `a file that cannot be made leaves cookies in memory`() throws {
        try withFolder { folder in
            try Data().write(to: folder)
            let window = Window()
            let store = try opened(window, folder.appendingPathComponent("x/cookies.sqlite"))
            try receive(["a=1; max-age=1000"], store)
            #expect(sent(store) == "a=1")
            #expect(window.seen == ["a=1"])
        }
    }

    @Test func `a file that another holds for too long is written with what comes next`() throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("cookies.sqlite")
            let store = try opened(Window(), file)
            try receive(["0=1; max-age=1000"], store)
            let other = try Database(file, .readWrite)
            try other.execute("BEGIN IMMEDIATE")
            try receive(["a=1; max-age=1000", "0=1; max-age=0"], store)
            #expect(sent(store) == "a=1")
            #expect(store.state.withLock { $0.file == .failing })
            try other.execute("ROLLBACK")
            try receive(["b=1; max-age=1000"], store)
            #expect(sent(try opened(Window(), file)) == "a=1; b=1")
        }
    }

    @Test func `without a cookie that is to be kept no file is made`() throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("cookies.sqlite")
            let store = try opened(Window(), file)
            try receive(["a=1", "b=1; max-age=0"], store)
            #expect(sent(store) == "a=1")
            #expect(!FileManager.default.fileExists(atPath: folder.path))
            try receive(["a=2; max-age=1000"], store)
            #expect(sent(try opened(Window(), file)) == "a=2")
        }
    }

    // MARK: The thread

    @Test func `UC-57 while the storage is being changed a load waits until it is examined again`() throws {
        let window = Window()
        let store = try opened(window, nil)
        window.hold(true)
        _ = store.receive(["a=1"], from: Self.origin) { {} }
        try waitFor("a change to begin") { window.changes > 0 ? () : nil }
        let told = Latch()
        #expect(!store.prepareReading { { told.open() } })
        #expect(sent(store) == "a=1")
        window.hold(false)
        try told.wait()
        try settle(store)
        #expect(store.prepareReading { { told.open() } })
    }

    @Test func `UC-57 many cookies of one response are taken in by the thread, before the next request`()
        throws
    {
        let window = Window()
        let store = try opened(window, nil)
        window.hold(true)
        _ = store.receive(["a=1"], from: Self.origin) { {} }
        try waitFor("a change to begin") { window.changes > 0 ? () : nil }
        let seen = Latch()
        let many = (0..<100).map { "c\($0)=1" }
        #expect(store.receive(many, from: Self.origin) { { seen.open() } })
        // What comes later counts, although it is little.
        _ = store.receive(["c0=2", "c1=; max-age=0"], from: Self.origin) { {} }
        #expect(sent(store) == "a=1")
        let readable = Latch()
        #expect(!store.prepareReading { { readable.open() } })
        window.hold(false)
        try readable.wait()
        let wanted = ["a=1", "c0=2"] + (2..<100).map { "c\($0)=1" }
        #expect(sent(store) == wanted.joined(separator: "; "))
        try seen.wait()
        try settle(store)
        #expect(window.seen == Set(wanted))
    }

    @Test func `the end of a load waits for a limited number of cookies, and the others are shown later`()
        throws
    {
        let window = Window()
        let store = try opened(window, nil)
        window.hold(true)
        var waits: [Bool] = []
        for response in 0..<4 {
            let fields = (0..<150).map { "c\(response)-\($0)=1" }
            waits.append(
                store.receive(
                    fields, from: CookieOrigin(host: "h\(response).example", path: "/", isSecure: false),
                    tell: { {} }))
        }
        #expect(waits.first == true)
        #expect(waits.last == false)
        window.hold(false)
        try settle(store)
        #expect(window.cookies.count == 600)
    }

    @Test func `UC-57 a storage that accepts nothing keeps no load waiting, and loses nothing`() throws {
        let window = Window()
        let store = try opened(window, nil)
        try receive(["a=1"], store)
        window.policy = .never
        let told = Latch()
        let waits = store.receive(["a=2", "b=1"], from: Self.origin) { { told.open() } }
        if waits { try told.wait() }
        #expect(sent(store) == "a=2; b=1")
        #expect(window.seen == ["a=1"])
        try settle(store)
        window.policy = .always
        #expect(sent(store) == "a=2; b=1")
        try settle(store)
        #expect(window.seen == ["a=2", "b=1"])
    }

    // MARK: Over connections

    @Test
    func `UC-57 a response with 180 cookies: no loop changes the storage, and they are seen at the end`()
        throws
    {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                let fields = (0..<180).map {
                    "Set-Cookie: c\($0)=\(request.target.dropFirst()); Max-Age=1000"
                }
                try peer.respond("200 OK", fields, body: "\(request.value("Cookie")?.utf8.count ?? 0)")
            }
        }
        try withFolder { folder in
            let (window, jar) = (Window(), Jar())
            let store = CookieStore(window, file: folder.appendingPathComponent("cookies.sqlite"))
            CookieStores.use(store, for: jar.storage)
            defer { store.disk?.close() }
            let loops = Mutex<Set<String>>([])
            for round in 1...3 {
                let seenAtEnd = Mutex(0)
                let recorder = Recorder { call, _ in
                    loops.withLock { _ = $0.insert(kernelThread) }
                    if call == .finish {
                        seenAtEnd.withLock { $0 = window.cookies.count { $0.value == "\(round)" } }
                    }
                }
                try load(URLRequest(url: server.url("/\(round)")), recorder: recorder) {
                    $0.configuration.cookieStorage = jar.storage
                }
                #expect(seenAtEnd.withLock { $0 } == 180)
                #expect(recorder.text == "0" || round > 1)
                try settle(store)
            }
            #expect(window.changes == 540)
            // Those that a response sets are brought to the storage together.
            #expect((1...3).contains(window.writes))
            #expect(window.changingThreads.isDisjoint(with: loops.withLock { $0 }))
        }
    }

    @Test func `UC-57 a load that is cancelled while its cookies are brought to the storage lets go`() throws
    {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("200 OK", ["Set-Cookie: a=1"], body: "x")
            }
        }
        let (window, jar) = (Window(), Jar())
        CookieStores.use(try opened(window, nil), for: jar.storage)
        window.hold(true)
        let recorder = Recorder { call, connection in if call == .data { connection.cancel() } }
        try load(URLRequest(url: server.url("/")), recorder: recorder) {
            $0.configuration.cookieStorage = jar.storage
        }
        #expect(recorder.calls.last == "data")
        window.hold(false)
    }

    /// `@unchecked Sendable`: the storage has a lock of its own.
    private final class Jar: @unchecked Sendable {
        private let name = UUID().uuidString
        let storage: HTTPCookieStorage

        init() { storage = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: name) }

        /// The values in Foundation's file by their names; nil: it has not been written.
        func filed() -> [String: String]? {
            guard let folder = CookieFolder.url,
                let data = try? Data(contentsOf: folder.appendingPathComponent(".cookies.\(name)")),
                let cookies = try? PropertyListSerialization.propertyList(from: data, format: nil)
                    as? [String: [String: Any]]
            else { return nil }
            return Dictionary(
                uniqueKeysWithValues: cookies.values.compactMap { cookie in
                    (cookie["Name"] as? String).map { ($0, cookie["Value"] as? String ?? "") }
                })
        }
    }

    // MARK: Foundation's storage

    @Test func `UC-57 Foundation's own storage: what the program does there is heard of without a load`()
        throws
    {
        try withFolder { folder in
            let file = folder.appendingPathComponent("cookies.sqlite")
            let jar = Jar()
            let window = FoundationCookies(jar.storage)
            let store = CookieStore(window, file: file)
            if !store.prepareReading(orTell: { {} }) { try settle(store) }
            try receive(["a=1; max-age=1000", "b=2; max-age=1000"], store)
            #expect(Set((jar.storage.cookies ?? []).map(\.name)) == ["a", "b"])
            #expect(jar.storage.cookies?.first { $0.name == "a" }?.isSessionOnly == false)
            jar.storage.removeCookies(since: .distantPast)
            try waitFor("the deletion to be heard of") {
                store.state.withLock { $0.ledger.table.count == 0 && !$0.isWorking } ? () : nil
            }
            #expect(try opened(Window(), file).readCookies(for: Self.origin).isEmpty)
            try receive(["c=1; max-age=1000"], store)
            jar.storage.removeCookies(since: Date())
            #expect(sent(store) == "c=1")
        }
    }

    @Test func `UC-57 Foundation's own storage: it writes no file with a cookie that keeps it from that`()
        throws
    {
        let jar = Jar()
        let observer = StorageChangeObserver {}
        for index in 0..<6 {
            let cookie = Cookie(
                name: "c\(index)", value: "1", domain: "a.example", isHostOnly: true, path: "/",
                expires: index % 2 == 0 ? Date(timeIntervalSinceNow: 1000) : nil, createdAt: Date())
            let object = try #require(StoredCookie(cookie, observer: observer))
            observer.keepingFile(by: object) { jar.storage.setCookie(object) }
        }
        let cookies = try #require(jar.storage.cookies)
        try #require(cookies.count == 6)
        #expect(cookies.allSatisfy { $0.portList == nil })
        #expect(cookies.filter(\.isSessionOnly).count == 3)
        #expect(jar.filed() == nil)
        // A program's own cookie is in the file at once, with all others.
        jar.storage.setCookie(try programCookie("p"))
        #expect(jar.filed()?.keys.sorted() == ["c0", "c2", "c4", "p"])
        let (gone, other) = (cookies[0], try #require(cookies[1] as? StoredCookie))
        observer.keepingFile(by: other) { jar.storage.deleteCookie(gone) }
        #expect(jar.storage.cookies?.count == 6)
        #expect(jar.filed()?.count == 4)
        observer.keepingFile(by: nil) { FoundationCookies(jar.storage).write() }
        #expect(jar.filed()?.keys.contains(gone.name) == false)
    }

    @Test
    func `UC-57 Foundation's own storage: the file has what came at the end of a load, or a second later`()
        throws
    {
        try withFolder { folder in
            let jar = Jar()
            let store = CookieStore(
                FoundationCookies(jar.storage), file: folder.appendingPathComponent("cookies.sqlite"))
            let filed = { @Sendable (value: Int) in jar.filed()?.values.count { $0 == "\(value)" } ?? 0 }
            // What one load receives is in the file when it ends.
            #expect(try Self.receiveMany(1, store) { filed(1) } == 100)
            // What comes right afterwards is seen at the end, and written with all that follows.
            for value in 2...4 {
                let seen = try Self.receiveMany(value, store) {
                    jar.storage.cookies?.count { $0.value == "\(value)" } ?? 0
                }
                #expect(seen == 100)
            }
            try waitFor("the file") { filed(4) == 100 ? () : nil }
        }
    }

    /// A hundred cookies of this value, from one response.
    ///
    /// - Returns: What `count` says at the end of the load.
    private static func receiveMany(
        _ value: Int, _ store: CookieStore, _ count: @escaping @Sendable () -> Int
    ) throws -> Int {
        let found = Mutex<Int?>(nil)
        let fields = (0..<100).map { "c\($0)=\(value); max-age=1000" }
        let mustWait = store.receive(fields, from: origin) { { found.withLock { $0 = count() } } }
        #expect(mustWait)
        return try waitFor("the end of a load") { found.withLock { $0 } }
    }

    @Test func `UC-57 cookies that change all the time have Foundation write its file once a second`() throws
    {
        try withFolder { folder in
            let window = Window()
            let store = try opened(window, folder.appendingPathComponent("cookies.sqlite"))
            let began = ContinuousClock.now
            for value in 1...200 {
                try receive(["a=\(value); max-age=1000"], store)
                #expect(window.seen == ["a=\(value)"])
            }
            // The first one, and those for which there was time.
            #expect(window.writes <= 1 + Int((ContinuousClock.now - began) / .seconds(1)))
            try waitFor("the last one") { window.written == ["a=200"] ? () : nil }
            #expect(sent(try opened(Window(), folder.appendingPathComponent("cookies.sqlite"))) == "a=200")
        }
    }

    @Test func `UC-57 without a file of its own a store has Foundation write at the end of each load`() throws
    {
        let window = Window()
        let store = try opened(window, nil)
        for value in 1...5 {
            try receive(["a=\(value); max-age=1000"], store)
            #expect(window.writes == value)
        }
    }

    @Test func `UC-57 at the end of the program Foundation writes what waits for it`() throws {
        try withFolder { folder in
            let window = Window()
            let store = try opened(window, folder.appendingPathComponent("cookies.sqlite"))
            try receive(["a=1; max-age=1000"], store)
            try receive(["a=2; max-age=1000"], store)
            #expect(window.writes == 1)
            store.writeLast()
            #expect(window.writes == 2)
            store.writeLast()
            #expect(window.writes == 2)
        }
    }

    @Test func `UC-57 a cookie of the session that changes is written to no file`() throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("cookies.sqlite")
            let window = Window()
            let store = try opened(window, file)
            try receive(["k=1; max-age=1000"], store)
            let (writes, changed) = (window.writes, try self.changed(file))
            for value in 1...5 { try receive(["a=\(value)"], store) }
            #expect(window.seen == ["k=1", "a=5"])
            store.writeLast()
            #expect(window.writes == writes)
            #expect(try self.changed(file) == changed)
            // One that was kept is not any more.
            try receive(["k=2"], store)
            #expect(sent(try opened(window.restarted(), file)) == "")
        }
    }

    /// Returns the size of the database's journal, which every write makes larger.
    private func changed(_ file: URL) throws -> Int {
        try Data(contentsOf: URL(fileURLWithPath: file.path + "-wal")).count
    }

    @Test func `Foundation's unfinished files are made private, and removed when they are old`() throws {
        let folder = try #require(CookieFolder.url)
        CookieFolder.prepare()
        let files = ["old", "new"].map {
            folder.appendingPathComponent(".dat.nosync.\($0).\(UUID().uuidString)")
        }
        defer { for file in files { unlink(file.path) } }
        for file in files {
            try Data("a".utf8).write(to: file)
            chmod(file.path, 0o644)
        }
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -PrivateFile.remainsAge - 10)],
            ofItemAtPath: files[0].path)
        CookieFolder.hideFiles()
        #expect(!FileManager.default.fileExists(atPath: files[0].path))
        var status = stat()
        #expect(stat(files[1].path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    }

    private func programCookie(_ name: String) throws -> HTTPCookie {
        try #require(
            HTTPCookie(properties: [
                .name: name, .value: "1", .path: "/", .domain: "a.example",
                .expires: Date(timeIntervalSinceNow: 900),
            ]))
    }
}

/// The kernel's name of the calling thread; its number is not given to another one soon.
private var kernelThread: String {
    (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")) ?? "?"
}

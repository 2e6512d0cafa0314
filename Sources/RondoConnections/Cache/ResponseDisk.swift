internal import Foundation
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex

/// Responses on the disk: a database, what waits to be written to it, and which URLs it has.
///
/// Run loops only note responses; a thread of its own writes them, in one transaction all those that came within
/// `writeDelay` or more. Responses that come faster than that are dropped: they stay in memory, and are loaded again one
/// day. A look-up on a run loop touches the disk only where the database has the URL.
///
/// Caches with the same file share one of these, also where one of them is gone and its last responses are not written yet.
final class ResponseDisk: Sendable {
    /// Seconds that responses are gathered before they are written. After more of them than `usualCount` it is as much
    /// longer, which bounds what the disk costs a program that stores all the time: a twentieth of a core.
    static let writeDelay = 0.05
    static let usualCount = 128
    /// Responses that wait, and bytes of them, at most: what comes beyond that is dropped.
    static let maximumWaiting = 1024
    static let maximumWaitingBytes = 4 << 20
    /// Bytes of the largest response: SQLite takes a row of 1 GB.
    static let maximumSize = 256 << 20
    /// Removals that wait, at most; for more of them everything is removed.
    static let maximumWaitingRemovals = 65_536

    private let url: URL
    private let state = Mutex(State())
    private let looking = Mutex(Looking())
    /// Used by the writer's thread alone, but for its owner's lock.
    private let writing = Mutex(Writing())
    private let writer = Mutex<DeferredWriter?>(nil)

    fileprivate struct State {
        var capacity = 0
        /// What waits to be written, by URL.
        var waiting: [Int64: [KeptResponse]] = [:]
        var waitingCount = 0
        var waitingBytes = 0
        /// URLs of which nothing is to be left but what waits.
        var removals: Set<Int64> = []
        var removesAll = false
        /// The transaction under way: its responses are still found here.
        var underway = Work()
        /// Responses that were written last.
        var lastCount = 0
        /// Numbers of the URLs that the database has; nil as long as that has not been read: then it is asked.
        var known: Set<Int64>?
        /// Bytes that the database uses.
        var usage = 0
    }

    /// The changes of one transaction: first the removals.
    fileprivate struct Work {
        var responses: [Int64: [KeptResponse]] = [:]
        var removals: Set<Int64> = []
        var removesAll = false
    }

    /// The connection that look-ups use.
    fileprivate struct Looking {
        // Not Sendable; behind the lock. They never leave it.
        var query: Database.Statement?
    }

    private struct Writing {
        var tools: Tools?
        /// No word more about a disk that cannot be written to, until it can.
        var hasFailed = false
    }

    /// The connection that writes, and what it runs again and again.
    fileprivate struct Tools {
        let database: Database
        let writer: ResponseRow.Writer
        let deletion: Database.Statement
        private let pageCount: Database.Statement
        private let unusedCount: Database.Statement
        private let pageSize: Int64

        init(_ url: URL) throws(DatabaseError) {
            database = try Database.open(url, version: ResponseRow.version, schema: ResponseRow.schema)
            writer = try ResponseRow.Writer(database)
            deletion = try database.prepare(
                "DELETE FROM response WHERE id BETWEEN ?1 AND ?1 + \(KeptResponse.variantsPerURL - 1)")
            pageCount = try database.prepare("PRAGMA page_count")
            unusedCount = try database.prepare("PRAGMA freelist_count")
            pageSize = try database.number("PRAGMA page_size")
        }

        /// Bytes that the database uses.
        func usage() throws(DatabaseError) -> Int {
            Int(try (pageCount.number() - unusedCount.number()) * pageSize)
        }
    }

    // MARK: Making

    private struct Reference {
        weak var disk: ResponseDisk?
    }

    private static let all = Mutex<[String: Reference]>([:])

    /// The one for the file at `url`.
    static func at(_ url: URL) -> ResponseDisk {
        all.withLock { all in
            if let disk = all[url.path]?.disk { return disk }
            all = all.filter { $0.value.disk != nil }
            let disk = ResponseDisk(url)
            all[url.path] = Reference(disk: disk)
            return disk
        }
    }

    private init(_ url: URL) {
        self.url = url
        var status = stat()
        let exists = stat(url.path, &status) == 0
        state.withLock { state in
            state.usage = exists ? Int(status.st_size) : 0
            // Nothing to ask.
            if !exists { state.known = [] }
        }
        let writer = DeferredWriter("rondo.cache", delay: { [weak self] in self?.delay ?? 0 }) {
            [weak self] in
            self?.write()
        }
        self.writer.withLock { $0 = writer }
        // So that look-ups need not ask any more.
        if exists { ask() }
    }

    private func ask() { writer.withLock { $0 }?.ask(keeping: self) }

    // MARK: Noting

    /// Bytes that the database may use. A smaller number takes effect when something is written next.
    func setCapacity(_ capacity: Int) {
        let isLess = state.withLock { state in
            defer { state.capacity = capacity }
            return capacity < state.capacity && state.usage > capacity
        }
        if isLess { ask() }
    }

    /// Bytes that the database uses.
    var usage: Int { state.withLock { $0.usage } }

    /// Has a response written in place of the one that it replaces, or, where too much waits, that one removed.
    func insert(_ response: KeptResponse) {
        let key = response.key
        let (gone, needsWriter) = state.withLock { state -> ([KeptResponse], Bool) in
            let gone = state.takeWaiting(key) { $0.isReplaced(by: response) }
            let isFull =
                state.waitingCount >= Self.maximumWaiting
                || state.waitingCount > 0 && state.waitingBytes + response.cost > Self.maximumWaitingBytes
            // What the database has is older; and one that does not vary takes the place of all variants.
            let removes = (isFull || response.selecting.isEmpty) && state.mayHave(key)
            if removes { state.noteRemoval(key) }
            if isFull { return (gone, removes) }
            state.waiting[key, default: []].append(response)
            state.waitingCount += 1
            state.waitingBytes += response.cost
            return (gone, true)
        }
        withExtendedLifetime(gone) {}
        if needsWriter { ask() }
    }

    func remove(_ key: Int64) {
        let (gone, isThere) = state.withLock { state -> ([KeptResponse], Bool) in
            let isThere = state.mayHave(key)
            let gone = state.takeWaiting(key) { _ in true }
            if isThere { state.noteRemoval(key) }
            return (gone, isThere)
        }
        withExtendedLifetime(gone) {}
        if isThere { ask() }
    }

    func removeAll() {
        let gone = state.withLock { state in
            let gone = state.waiting
            state.noteRemovalOfAll()
            return gone
        }
        withExtendedLifetime(gone) {}
        ask()
    }

    /// Removes what was stored later than `date`, and waits for the disk.
    func remove(since date: Date) {
        let gone = state.withLock { state in
            state.waiting.keys.flatMap { key in state.takeWaiting(key) { $0.date > date } }
        }
        withExtendedLifetime(gone) {}
        flush()
        writing.withLock { writing in
            guard let database = writing.tools?.database else { return }
            do throws(DatabaseError) {
                let deletion = try database.prepare("DELETE FROM response WHERE date > ?1")
                deletion.bind(date.timeIntervalSince1970, at: 1)
                try deletion.run()
            } catch {
                fail(error, &writing)
            }
        }
        // Some URLs are gone; which ones is not known.
        state.withLock { $0.known = nil }
        ask()
    }

    /// Has what waits written, and returns when it is.
    func flush() { writer.withLock { $0 }?.flush() }

    // MARK: Looking up

    /// The responses kept for a URL, with its variants; empty if there are none.
    func find(_ name: String, _ key: Int64) -> [KeptResponse] {
        let (waiting, mayAsk) = state.withLock { state -> ([KeptResponse], Bool) in
            let isRemoved = state.removesAll || state.removals.contains(key)
            var waiting = state.waiting[key] ?? []
            if !isRemoved, let underway = state.underway.responses[key] {
                waiting = underway.filter { old in !waiting.contains { old.isReplaced(by: $0) } } + waiting
            }
            waiting.removeAll { $0.name != name }
            let isBeingRemoved = state.underway.removesAll || state.underway.removals.contains(key)
            return (waiting, !isRemoved && !isBeingRemoved && state.known?.contains(key) ?? true)
        }
        if !mayAsk { return waiting }
        switch looking.withLock({ looking in looking.find(name, key, in: url) }) {
        case .success(let found):
            return found.filter { old in !waiting.contains { old.isReplaced(by: $0) } } + waiting
        case .failure(let error):
            if error.saysThatFileIsBroken { state.withLock { $0.noteRemovalOfAll() } }
            ask()
            return waiting
        }
    }

    // MARK: Writing

    /// On the writer's thread.
    private func write() {
        let (work, capacity, wantsNumbers) = state.withLock { state in
            state.lastCount = state.waitingCount
            state.underway = Work(
                responses: state.takeWaiting(), removals: state.removals, removesAll: state.removesAll)
            (state.removals, state.removesAll) = ([], false)
            return (state.underway, state.capacity, state.known == nil)
        }
        writing.withLock { writing in
            do throws(DatabaseError) {
                // Of nothing no file is made.
                let isNeeded = !work.responses.isEmpty || FileManager.default.fileExists(atPath: url.path)
                if writing.tools == nil, isNeeded { writing.tools = try Tools(url) }
                guard let tools = writing.tools else { return }
                try perform(work, by: tools)
                let usage = try makeRoom(by: tools, capacity)
                let known = wantsNumbers ? try numbers(in: tools.database) : nil
                writing.hasFailed = false
                state.withLock { $0.hasWritten(work, known: known, usage: usage) }
            } catch {
                fail(error, &writing)
                state.withLock { $0.hasNotWritten(work) }
            }
        }
        let underway = state.withLock { state in
            defer { state.underway = Work() }
            return state.underway
        }
        withExtendedLifetime(underway) {}
    }

    /// Seconds until the next write.
    private var delay: Double {
        Self.writeDelay * max(1, Double(state.withLock { $0.lastCount }) / Double(Self.usualCount))
    }

    private func perform(_ work: Work, by tools: Tools) throws(DatabaseError) {
        if work.removesAll { try tools.database.execute("DELETE FROM response") }
        if work.removals.isEmpty, work.responses.isEmpty { return }
        try tools.database.transaction { () throws(DatabaseError) in
            for key in work.removals {
                tools.deletion.bind(key, at: 1)
                try tools.deletion.run()
            }
            for variants in work.responses.values {
                for response in variants { try tools.writer.write(response) }
            }
        }
    }

    /// The disk is full or may not be written to, or the file is broken: the cache is one of memory until a write succeeds
    /// again.
    private func fail(_ error: DatabaseError, _ writing: inout Writing) {
        writing.tools = nil
        if error.saysThatFileIsBroken {
            looking.withLock { $0 = Looking() }
            Database.remove(url)
            state.withLock { state in
                state.known = []
                state.usage = 0
            }
        }
        if writing.hasFailed { return }
        writing.hasFailed = true
        Log.connections.warning("Responses cannot be kept in \(url.path): \(error)")
    }

    /// Where the database is larger than its capacity, removes the responses that were written first until it takes seven
    /// eighths of it.
    ///
    /// - Returns: Bytes that it uses then.
    private func makeRoom(by tools: Tools, _ capacity: Int) throws(DatabaseError) -> Int {
        var usage = try tools.usage()
        if usage <= capacity { return usage }
        let deletion = try tools.database.prepare(
            """
            DELETE FROM response WHERE place IN (SELECT place FROM response ORDER BY place LIMIT ?1) RETURNING id
            """)
        var number = try tools.database.number("SELECT count(*) FROM response") / 8 + 1
        while usage > capacity / 8 * 7 {
            var gone: [Int64] = []
            deletion.bind(number, at: 1)
            while try deletion.step() { gone.append(deletion.integer(0)) }
            if gone.isEmpty { break }
            // Where another variant is still there, it is loaded again one day.
            state.withLock { state in
                for id in gone { state.known?.remove(id & ~(KeptResponse.variantsPerURL - 1)) }
            }
            number = max(1, number / 2)
            usage = try tools.usage()
        }
        return usage
    }

    private func numbers(in database: Database) throws(DatabaseError) -> Set<Int64> {
        var numbers: Set<Int64> = []
        let query = try database.prepare("SELECT id FROM response")
        while try query.step() { numbers.insert(query.integer(0) & ~(KeptResponse.variantsPerURL - 1)) }
        return numbers
    }
}

extension ResponseDisk.State {
    /// The database may have something for that URL, now or after the transaction under way.
    fileprivate func mayHave(_ key: Int64) -> Bool {
        (known?.contains(key) ?? true) || underway.responses[key] != nil
    }

    fileprivate mutating func takeWaiting(
        _ key: Int64, where isTaken: (KeptResponse) -> Bool
    ) -> [KeptResponse] {
        guard let variants = waiting[key] else { return [] }
        let gone = variants.filter(isTaken)
        let rest = variants.filter { !isTaken($0) }
        waiting[key] = rest.isEmpty ? nil : rest
        waitingCount -= gone.count
        waitingBytes -= gone.reduce(0) { $0 + $1.cost }
        return gone
    }

    /// The responses of the next transaction.
    fileprivate mutating func takeWaiting() -> [Int64: [KeptResponse]] {
        defer { (waiting, waitingCount, waitingBytes) = ([:], 0, 0) }
        return waiting
    }

    fileprivate mutating func hasWritten(_ work: ResponseDisk.Work, known numbers: Set<Int64>?, usage: Int) {
        if let numbers, known == nil, !removesAll { known = numbers }
        for key in work.responses.keys {
            // Unless it was removed meanwhile.
            if !removesAll, !removals.contains(key) { known?.insert(key) }
        }
        if !removesAll { self.usage = usage }
    }

    fileprivate mutating func hasNotWritten(_ work: ResponseDisk.Work) {
        removals.formUnion(work.removals)
        removesAll = removesAll || work.removesAll
        // Nothing is asked any more of a disk that does not work.
        if known == nil { known = [] }
    }

    fileprivate mutating func noteRemoval(_ key: Int64) {
        if removals.count >= ResponseDisk.maximumWaitingRemovals { return noteRemovalOfAll() }
        removals.insert(key)
        known?.remove(key)
    }

    fileprivate mutating func noteRemovalOfAll() {
        (waiting, waitingCount, waitingBytes) = ([:], 0, 0)
        removals = []
        removesAll = true
        known = []
        usage = 0
    }
}

extension ResponseDisk.Looking {
    fileprivate mutating func find(
        _ name: String, _ key: Int64, in url: URL
    ) -> Result<[KeptResponse], DatabaseError> {
        do throws(DatabaseError) {
            if query == nil {
                // A file that is not there is no error, and is there once something was written.
                query = try Database(url, .lookUp).prepare(ResponseRow.query)
            }
            guard let query else { return .success([]) }
            defer { query.reset() }
            query.bind(key, at: 1)
            var found: [KeptResponse] = []
            while try query.step() {
                if let response = ResponseRow.read(name, query) { found.append(response) }
            }
            return .success(found)
        } catch {
            query = nil
            return .failure(error)
        }
    }
}

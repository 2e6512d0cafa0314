internal import Foundation
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex

/// Responses on the disk: a database, the changes that wait to be written to it, and which URLs it has.
///
/// Run loops only note responses. A thread of its own writes them, in one transaction for all that came
/// within `writeDelay` or more. Responses that come faster than that are dropped from the disk: they stay in
/// memory, and may be loaded again later. A look-up on a run loop touches the disk only if the database has
/// the URL.
///
/// Caches with the same file share one instance, even if one of them is gone and its last responses are not
/// written yet.
final class ResponseDisk: Sendable {
    /// The seconds for which responses are gathered before they are written. After a write of more than
    /// `usualCount` responses the delay grows in proportion to their number, so that the disk costs a program
    /// that stores all the time at most a twentieth of a core.
    static let writeDelay = 0.05
    static let usualCount = 128
    /// The maximum of responses that wait, and of their bytes: further responses are dropped.
    static let maximumWaiting = 1024
    static let maximumWaitingBytes = 4 << 20
    /// The maximum size of a response, in bytes: SQLite's limit for a row is 1 GB.
    static let maximumSize = 256 << 20
    /// The maximum of removals that wait; beyond it everything is removed.
    static let maximumWaitingRemovals = 65_536

    private let url: URL
    private let state = Mutex(State())
    private let reader = Mutex(Reader())
    /// Used by the writer's thread alone, except where a caller holds the writer's lock.
    private let writing = Mutex(Writing())
    private let writer = Mutex<BackgroundWriter?>(nil)

    fileprivate struct State {
        var capacity = 0
        /// Responses that wait to be written, by URL.
        var waiting: [Int64: [StoredResponse]] = [:]
        var waitingCount = 0
        var waitingBytes = 0
        /// URLs whose rows are to be removed from the database before the waiting responses are written.
        var removals: Set<Int64> = []
        var removesAll = false
        /// The transaction under way: look-ups still find its responses here.
        var underway = Work()
        /// How many responses the last transaction wrote.
        var lastCount = 0
        /// The keys of the URLs for which look-ups ask the database: those that it had when they were read
        /// last, and those written since. Nil until they have been read: until then look-ups always ask.
        var known: Set<Int64>?
        /// Whether the keys could not be read: the database may have others than those in `known`.
        var couldNotRead = false
        /// Bytes that the database uses.
        var usage = 0
    }

    /// The changes of one transaction; its removals are made first.
    fileprivate struct Work {
        var responses: [Int64: [StoredResponse]] = [:]
        var removals: Set<Int64> = []
        var removesAll = false
    }

    /// The connection that look-ups use.
    fileprivate struct Reader {
        // A statement is not Sendable: it stays behind the lock.
        var query: Database.Statement?
    }

    private struct Writing {
        var tools: Tools?
        /// Set once a failure has been logged, so that further failures are not logged until a write
        /// succeeds.
        var hasFailed = false
    }

    /// The connection that writes, and its prepared statements.
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
                "DELETE FROM response WHERE id BETWEEN ?1 AND ?1 + \(StoredResponse.variantsPerURL - 1)")
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

    /// The instance for the file at `url`, which has `capacity` from now on.
    static func at(_ url: URL, capacity: Int) -> ResponseDisk {
        let disk = all.withLock { all -> ResponseDisk in
            if let disk = all[url.path]?.disk { return disk }
            all = all.filter { $0.value.disk != nil }
            let disk = ResponseDisk(url, capacity)
            all[url.path] = Reference(disk: disk)
            return disk
        }
        disk.setCapacity(capacity)
        return disk
    }

    private init(_ url: URL, _ capacity: Int) {
        self.url = url
        var status = stat()
        let exists = stat(url.path, &status) == 0
        state.withLock { state in
            // Before the writer is asked, which removes what exceeds it.
            state.capacity = capacity
            state.usage = exists ? Int(status.st_size) : 0
            // Without a file there is nothing to ask.
            if !exists { state.known = [] }
        }
        let writer = BackgroundWriter("rondo.cache", delay: { [weak self] in self?.delay ?? 0 }) {
            [weak self] in
            self?.write()
        }
        self.writer.withLock { $0 = writer }
        // Reads which URLs the database has, so that look-ups need not ask any more.
        if exists { ask() }
    }

    private func ask() { writer.withLock { $0 }?.ask(keeping: self) }

    // MARK: Noting

    /// Sets the maximum of bytes that the database uses. A smaller number takes effect at the next write.
    func setCapacity(_ capacity: Int) {
        let isLess = state.withLock { state in
            defer { state.capacity = capacity }
            return capacity < state.capacity && state.usage > capacity
        }
        if isLess { ask() }
    }

    /// Bytes that the database uses.
    var usage: Int { state.withLock { $0.usage } }

    /// Notes a response to be written in place of the one that it replaces. If too much waits, the response
    /// is dropped and the replaced one removed.
    func insert(_ response: StoredResponse) {
        let key = response.key
        let (gone, needsWriter) = state.withLock { state -> ([StoredResponse], Bool) in
            let gone = state.takeWaiting(key) { $0.isReplaced(by: response) }
            let isFull =
                state.waitingCount >= Self.maximumWaiting
                || state.waitingCount > 0 && state.waitingBytes + response.cost > Self.maximumWaitingBytes
            // What the database has is older; and a response that does not vary replaces all variants.
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

    /// Notes the removal of a URL's responses, those included that only another process knows of.
    func remove(_ key: Int64) {
        let gone = state.withLock { state in
            let gone = state.takeWaiting(key) { _ in true }
            state.noteRemoval(key)
            return gone
        }
        withExtendedLifetime(gone) {}
        ask()
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
        // Some URLs were removed, but which ones is not known.
        state.withLock { $0.known = nil }
        ask()
    }

    /// Writes everything that waits, and returns when that is done.
    func flush() { writer.withLock { $0 }?.flush() }

    // MARK: Looking up

    /// Whether `find` may return a response for that URL, as far as this process knows.
    func mayHave(_ key: Int64) -> Bool { state.withLock { $0.waiting[key] != nil || $0.mayHave(key) } }

    /// Whether `mayHave` may be true for any URL.
    var mayHaveAny: Bool {
        state.withLock {
            $0.couldNotRead || !($0.known?.isEmpty ?? false) || $0.waitingCount > 0
                || !$0.underway.responses.isEmpty
        }
    }

    /// The responses kept for a URL, including variants; empty if there are none.
    func find(_ name: String, _ key: Int64) -> [StoredResponse] {
        let (waiting, mayAsk) = state.withLock { state -> ([StoredResponse], Bool) in
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
        switch reader.withLock({ reader in reader.find(name, key, in: url) }) {
        case .success(let found):
            return found.filter { old in !waiting.contains { old.isReplaced(by: $0) } } + waiting
        case .failure(let error):
            if error.isCorruption { state.withLock { $0.noteRemovalOfAll() } }
            ask()
            return waiting
        }
    }

    // MARK: Writing

    /// Runs on the writer's thread.
    private func write() {
        let (work, capacity, knows) = state.withLock { state in
            state.lastCount = state.waitingCount
            state.underway = Work(
                responses: state.takeWaiting(), removals: state.removals, removesAll: state.removesAll)
            (state.removals, state.removesAll) = ([], false)
            return (state.underway, state.capacity, state.known != nil)
        }
        writing.withLock { writing in
            do throws(DatabaseError) {
                // No file is made unless there are responses to write.
                let isNeeded = !work.responses.isEmpty || FileManager.default.fileExists(atPath: url.path)
                if writing.tools == nil, isNeeded { writing.tools = try Tools(url) }
                guard let tools = writing.tools else { return }
                try perform(work, by: tools)
                let isFull = try tools.usage() > capacity
                if isFull { try makeRoom(by: tools, capacity) }
                let usage = try tools.usage()
                // After a failure look-ups do not ask the database for the rows that it has.
                let isCurrent = knows && !isFull && !writing.hasFailed
                let known = isCurrent ? nil : try numbers(in: tools.database)
                writing.hasFailed = false
                state.withLock { $0.noteWritten(work, known: known, usage: usage) }
            } catch {
                fail(error, &writing)
                let mustRepeat = state.withLock { state -> Bool in
                    state.noteNotWritten(work)
                    return state.removesAll || !state.removals.isEmpty
                }
                if mustRepeat { writer.withLock { $0 }?.noteFailure() }
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

    /// Handles a disk that is full or read-only, or a file that is broken: the cache keeps responses in
    /// memory only until a write succeeds again.
    private func fail(_ error: DatabaseError, _ writing: inout Writing) {
        writing.tools = nil
        if error.isCorruption {
            reader.withLock { $0 = Reader() }
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

    /// Removes the oldest responses until the database uses seven eighths of its capacity. Their number is
    /// the share of the bytes that are too many; where the oldest are smaller than others, it takes several
    /// rounds.
    private func makeRoom(by tools: Tools, _ capacity: Int) throws(DatabaseError) {
        let deletion = try tools.database.prepare(
            "DELETE FROM response WHERE place IN (SELECT place FROM response ORDER BY place LIMIT ?1)")
        let target = capacity / 8 * 7
        while true {
            let usage = try tools.usage()
            let count = try tools.database.number("SELECT count(*) FROM response")
            if usage <= target || count == 0 { return }
            let share = Double(usage - target) / Double(usage)
            deletion.bind(Int64((share * Double(count)).rounded(.up)), at: 1)
            try deletion.run()
        }
    }

    private func numbers(in database: Database) throws(DatabaseError) -> Set<Int64> {
        var numbers: Set<Int64> = []
        let query = try database.prepare("SELECT id FROM response")
        while try query.step() { numbers.insert(query.integer(0) & ~(StoredResponse.variantsPerURL - 1)) }
        return numbers
    }
}

extension ResponseDisk.State {
    /// Whether the database may have a response for that URL, now or after the transaction under way.
    fileprivate func mayHave(_ key: Int64) -> Bool {
        couldNotRead || (known?.contains(key) ?? true) || underway.responses[key] != nil
    }

    fileprivate mutating func takeWaiting(
        _ key: Int64, where isTaken: (StoredResponse) -> Bool
    ) -> [StoredResponse] {
        guard let variants = waiting[key] else { return [] }
        let gone = variants.filter(isTaken)
        let rest = variants.filter { !isTaken($0) }
        waiting[key] = rest.isEmpty ? nil : rest
        waitingCount -= gone.count
        waitingBytes -= gone.reduce(0) { $0 + $1.cost }
        return gone
    }

    /// Takes the responses for the next transaction.
    fileprivate mutating func takeWaiting() -> [Int64: [StoredResponse]] {
        defer { (waiting, waitingCount, waitingBytes) = ([:], 0, 0) }
        return waiting
    }

    fileprivate mutating func noteWritten(_ work: ResponseDisk.Work, known numbers: Set<Int64>?, usage: Int) {
        couldNotRead = false
        if let numbers, !removesAll { known = numbers.subtracting(removals) }
        for key in work.responses.keys {
            // A URL that was removed meanwhile is left out.
            if !removesAll, !removals.contains(key) { known?.insert(key) }
        }
        if !removesAll { self.usage = usage }
    }

    fileprivate mutating func noteNotWritten(_ work: ResponseDisk.Work) {
        removals.formUnion(work.removals)
        removesAll = removesAll || work.removesAll
        // A disk that does not work is not asked any more. Once it works again, the keys are read again.
        if known == nil { (known, couldNotRead) = ([], true) }
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

extension ResponseDisk.Reader {
    /// The responses in the order in which they were written, without those that a later one replaces: their
    /// rows stay when the URL begins to vary, or varies by other fields.
    fileprivate mutating func find(
        _ name: String, _ key: Int64, in url: URL
    ) -> Result<[StoredResponse], DatabaseError> {
        do throws(DatabaseError) {
            if query == nil {
                // A missing file is not an error: it is created by the first write.
                query = try Database(url, .lookUp).prepare(ResponseRow.query)
            }
            guard let query else { return .success([]) }
            defer { query.reset() }
            query.bind(key, at: 1)
            var rows: [(place: Int64, response: StoredResponse)] = []
            while try query.step() {
                guard let response = ResponseRow.read(name, query) else { continue }
                rows.append((ResponseRow.place(query), response))
            }
            rows.sort { $0.place < $1.place }
            var found: [StoredResponse] = []
            for (_, response) in rows {
                found.removeAll { $0.isReplaced(by: response) }
                found.append(response)
            }
            return .success(found)
        } catch {
            query = nil
            return .failure(error)
        }
    }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex

/// A store for responses in memory and on the disk, the one behind `URLConnection.Cache`.
///
/// A table in memory has the responses that were used last; a database on the disk is written by a thread of
/// its own. Any thread may call any method.
final class ResponseCache: Sendable {
    private let state: UnfairMutex<State>
    private let path: String?

    private struct State {
        var table: MemoryTable
        var diskCapacity: Int
        /// Counts the changes by stores and removals. A response that was read from the disk at an older
        /// count is not put into the table, where it would replace a newer one, or come back after its
        /// removal.
        var changes = 0
        /// Nil also if there is no folder for it.
        private var opened: ResponseDisk?
        private var hasLookedForDisk = false

        init(table: MemoryTable, diskCapacity: Int) {
            (self.table, self.diskCapacity) = (table, diskCapacity)
        }

        /// Nil if nothing is to be stored on the disk.
        mutating func disk(in path: String?) -> ResponseDisk? {
            if diskCapacity == 0, !hasLookedForDisk { return nil }
            if !hasLookedForDisk {
                hasLookedForDisk = true
                opened = ResponseCache.folder(path).map {
                    ResponseDisk.at($0.appendingPathComponent("responses.sqlite"), capacity: diskCapacity)
                }
            }
            return opened
        }
    }

    /// - Parameter path: A folder; nil for the program's folder in the user's folder for caches.
    init(memoryCapacity: Int, diskCapacity: Int, path: String?) {
        self.path = path
        state = UnfairMutex(State(table: MemoryTable(capacity: memoryCapacity), diskCapacity: diskCapacity))
    }

    // MARK: For programs

    /// The response that is stored for the URL of `request`. Among variants, the one that matches the
    /// request's fields, or else the newest.
    func response(for request: URLRequest) -> CachedURLResponse? {
        guard let url = request.url else { return nil }
        let responses = find(Self.name(url))
        let fields = HeaderFields((request.allHTTPHeaderFields ?? [:]).map { ($0.key, $0.value) })
        let found = responses.last { $0.matches { fields } } ?? responses.last
        return found?.cached(url)
    }

    /// Keeps a response in place of everything that is stored for `url`.
    func store(_ cached: CachedURLResponse, for url: URL) {
        store(StoredResponse(Self.name(url), CacheEntry(storedByProgram: cached), cached))
    }

    func removeAll() {
        // The disk comes first, here and below: a look-up that has found an older response there puts it into
        // the table before the table is changed, or not at all.
        disk?.removeAll()
        let gone = state.withLock { state in
            state.changes += 1
            return state.table.removeAll()
        }
        withExtendedLifetime(gone) {}
    }

    /// Removes what was stored later than `date`, and waits for the disk.
    func remove(since date: Date) {
        disk?.remove(since: date)
        let gone = state.withLock { state in
            state.changes += 1
            return state.table.all.filter { $0.date > date }.flatMap { state.table.remove($0.key) }
        }
        withExtendedLifetime(gone) {}
    }

    var memoryCapacity: Int {
        get { state.withLock { $0.table.capacity } }
        set {
            let gone = state.withLock { state in
                state.table.capacity = newValue
                return state.table.trim()
            }
            withExtendedLifetime(gone) {}
        }
    }

    var diskCapacity: Int {
        get { state.withLock { $0.diskCapacity } }
        set {
            // The disk is opened first, so that the database of an earlier process is trimmed too.
            let disk = disk
            state.withLock { $0.diskCapacity = newValue }
            disk?.setCapacity(newValue)
        }
    }

    var memoryUsage: Int { state.withLock { $0.table.cost } }

    /// Bytes that the database uses; responses that wait to be written do not count.
    var diskUsage: Int { disk?.usage ?? 0 }

    // MARK: Finding and keeping

    /// The key of a URL, made from its canonical form, so that a program finds what loads have stored (rule
    /// UC-73).
    private static func name(_ url: URL) -> String {
        if let address = WebAddress(url), address.isPlain { return address.name }
        return WebAddress.name(of: CanonicalRequest.of(URLRequest(url: url))?.url ?? url)
    }

    private var disk: ResponseDisk? { state.withLock { $0.disk(in: path) } }

    fileprivate static func folder(_ path: String?) -> URL? {
        if let path { return URL(fileURLWithPath: path, isDirectory: true) }
        let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
        let name = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
        return caches?.appendingPathComponent("org.rondo.URLCache", isDirectory: true)
            .appendingPathComponent(String(name.map { $0 == "/" ? "_" : $0 }), isDirectory: true)
    }

    /// The responses stored for a URL, the newest last.
    private func find(_ name: String) -> [StoredResponse] {
        let key = StoredResponse.key(name)
        let (responses, disk, changes) = state.withLock { state -> ([StoredResponse], ResponseDisk?, Int) in
            let responses = state.table.find(name, key)
            // A response that varies may have other variants on the disk.
            let isWhole = responses.first?.selecting.isEmpty ?? false
            return (responses, isWhole ? nil : state.disk(in: path), state.changes)
        }
        guard let disk else { return responses }
        var found = disk.find(name, key)
        if found.isEmpty { return responses }
        found.removeAll { old in responses.contains { old.isReplaced(by: $0) } }
        var gone: [StoredResponse] = []
        state.withLock { state in
            guard state.changes == changes else { return }
            for response in found { gone += state.table.insert(response) }
        }
        withExtendedLifetime(gone) {}
        return found + responses
    }

    /// - Parameter isOnDisk: Whether the disk already has an equivalent response.
    private func store(_ response: StoredResponse, isOnDisk: Bool = false) {
        guard response.mayBeStored else { return }
        let (disk, capacity) = state.withLock { (isOnDisk ? nil : $0.disk(in: path), $0.diskCapacity) }
        if let disk {
            if response.mayGoToDisk, response.cost <= min(capacity, ResponseDisk.maximumSize) {
                disk.insert(response)
            } else {
                disk.remove(response.key)
            }
        }
        let gone = state.withLock { state in
            state.changes += 1
            return state.table.insert(response)
        }
        withExtendedLifetime(gone) {}
    }

    /// Writes what waits to the disk, and returns when that is done.
    func flush() { disk?.flush() }
}

// MARK: - For loads

extension ResponseCache: ResponseStore {
    private func key(_ request: LoadRequest) -> String? {
        request.address?.name ?? request.url.map(WebAddress.name(of:))
    }

    func find(_ request: LoadRequest, mayOverlook: Bool, fields: () -> HeaderFields) -> FoundResponse? {
        guard let name = key(request), let url = request.url else { return nil }
        return Self.choose(from: find(name), fields)?.found(url)
    }

    func findEntry(_ request: LoadRequest, fields: () -> HeaderFields) -> CacheEntry? {
        guard let name = key(request) else { return nil }
        let responses = state.withLock { $0.table.find(name, StoredResponse.key(name)) }
        return Self.choose(from: responses, fields)?.entry
    }

    private static func choose(
        from responses: [StoredResponse], _ fields: () -> HeaderFields
    ) -> StoredResponse? {
        responses.count < 2 ? responses.last : responses.last { $0.matches(fields) }
    }

    func find(ofProtocol request: LoadRequest) -> CachedURLResponse? {
        guard let name = key(request), let url = request.url else { return nil }
        return find(name).last?.cached(url)
    }

    var mayBlock: Bool { false }

    var maximumSize: Int {
        state.withLock { ($0.diskCapacity > 0 ? $0.diskCapacity : $0.table.capacity) / 20 }
    }

    /// The seconds in which the same response is not stored again; the stored response is at most that much
    /// less fresh.
    static let rewriteInterval = 1.0

    func hasJustStored(_ head: ResponseHead, size: Int64, for request: LoadRequest) -> Bool {
        guard let name = key(request),
            let stored = state.withLock({ $0.table.peek(name, StoredResponse.key(name)) })
        else {
            return false
        }
        // Without a strong ETag the same head may come with another content of the same length.
        return stored.isOf(head) && head.fields.hasStrongTag && Int64(stored.content.count) == size
            && stored.selecting.isEmpty
            && LoopClock.systemNow.seconds(since: stored.storedAt) < Self.rewriteInterval
    }

    func store(_ response: ReceivedResponse, for request: LoadRequest) -> CacheDecision {
        guard let name = key(request) else { return .nothing }
        store(StoredResponse(name, response))
        return .nothing
    }

    func store(
        _ found: FoundResponse, confirmed: CacheEntry, _ cached: CachedURLResponse, for request: LoadRequest
    ) -> CacheDecision {
        guard let name = key(request) else { return .nothing }
        let length = Int64(found.content.count)
        let stored =
            found.isOfEntry
            ? StoredResponse(name, confirmed, content: found.content, bodyLength: length, date: Date())
            : StoredResponse(name, confirmed, cached)
        // The old response varies by other fields: no request is to select it any more.
        let varies = confirmed.selecting.keys != found.entry.selecting.keys
        if varies { disk?.remove(stored.key) }
        // If neither the response nor the copy on the disk is fresh, the next load asks the server again,
        // with the same conditions: the copy serves that as well.
        let now = Date()
        let isOnDisk = !varies && [found.entry, confirmed].allSatisfy { $0.lifetime <= $0.age(at: now) }
        store(stored, isOnDisk: isOnDisk)
        return .nothing
    }

    func store(ofProtocol cached: CachedURLResponse, for request: LoadRequest) -> CacheDecision {
        guard let name = key(request) else { return .nothing }
        store(StoredResponse(name, nil, cached))
        return .nothing
    }

    func mayHave(_ request: LoadRequest) -> Bool {
        let (hasAny, disk) = state.withLock { ($0.table.count > 0, $0.disk(in: path)) }
        // Most programs whose loads are never stored store nothing at all.
        guard hasAny || disk?.mayHaveAny ?? false, let name = key(request) else { return false }
        let number = StoredResponse.key(name)
        return hasAny && state.withLock { $0.table.has(number) } || disk?.mayHave(number) ?? false
    }

    func remove(_ url: URL) {
        let key = StoredResponse.key(Self.name(url))
        disk?.remove(key)
        let gone = state.withLock { state in
            state.changes += 1
            return state.table.remove(key)
        }
        withExtendedLifetime(gone) {}
    }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import Synchronization

/// Foundation's URLCache, used as a store and no more: what may be kept and reused is decided by `CacheRules`.
///
/// On Linux it tells URLs apart by host, port and path alone; so what comes back is looked at before it is
/// taken for an answer (rule UC-73). It knows nothing of when a response came and which request it answered:
/// that goes with the response, in the user info under `recordKey`.
struct CacheStore {
    let cache: URLCache

    /// The key in a cached response's user info of what Rondo has to know of it: a property list in JSON.
    static let recordKey = "org.rondo.cache-record"

    // MARK: What is known of a store

    private struct Key: Hashable {
        let cache: ObjectIdentifier
        let url: String
    }

    /// A miss costs a look into a directory, as often as a program loads what is never stored: so it is
    /// remembered for a moment. What a program stores by itself meanwhile is found after that.
    private static let missLifetime = 1.0
    /// An entry that would only be renewed is not written again for as long.
    private static let rewriteInterval = 1.0
    private static let maximumRemembered = 1024

    private struct Written {
        let at: LoopInstant
        let tag: String?
        let modified: String?
        let control: String?
        let size: Int
    }

    private struct Memory {
        var misses: [Key: LoopInstant] = [:]
        var written: [Key: Written] = [:]
        /// Records as they were read last: reading one takes longer than asking a server.
        var records: [Key: (text: String, entry: CacheEntry)] = [:]
    }

    private static let memory = Mutex(Memory())

    private func key(_ url: URL) -> Key { Key(cache: ObjectIdentifier(cache), url: Self.name(url)) }

    /// The whole URL without its fragment, which no server sees.
    private static func name(_ url: URL) -> String {
        let text = url.absoluteString
        guard let hash = text.utf8.firstIndex(of: UInt8(ascii: "#")) else { return text }
        return String(text[..<hash])
    }

    // MARK: Reading

    /// - Parameter mayOverlook: A miss a moment ago may stand for one now.
    func entry(for request: URLRequest, mayOverlook: Bool) -> (CacheEntry, CachedURLResponse)? {
        guard let url = request.url else { return nil }
        let key = key(url)
        if mayOverlook {
            let missed = Self.memory.withLock { memory in memory.misses.isEmpty ? nil : memory.misses[key] }
            if let missed, LoopClock.now.seconds(since: missed) < Self.missLifetime { return nil }
        }
        guard let cached = cache.cachedResponse(for: request), let entry = Self.entry(of: cached, key),
            cached.response.url.map(Self.name) == key.url
        else {
            Self.memory.withLock { memory in
                if memory.misses.count >= Self.maximumRemembered { memory.misses = [:] }
                memory.misses[key] = LoopClock.now
            }
            return nil
        }
        return (entry, cached)
    }

    /// What the rules look at; nil for what is no HTTP. A response that a program has stored by itself has no
    /// record: it came when it says that it was made, and answers any request.
    private static func entry(of cached: CachedURLResponse, _ key: Key) -> CacheEntry? {
        if let text = cached.userInfo?[recordKey] as? String {
            if let known = memory.withLock({ $0.records[key] }), known.text == text { return known.entry }
            if let record = try? JSONDecoder().decode(Record.self, from: Data(text.utf8)) {
                let entry = record.entry
                memory.withLock { memory in
                    if memory.records.count >= maximumRemembered { memory.records = [:] }
                    memory.records[key] = (text, entry)
                }
                return entry
            }
        }
        guard let response = cached.response as? HTTPURLResponse else { return nil }
        var fields = HeaderFields()
        for (name, value) in response.allHeaderFields {
            if let name = name as? String, let value = value as? String {
                fields.append(name: name, value: value)
            }
        }
        let date = fields["Date"].flatMap { HTTPDate.parse($0) } ?? .distantPast
        var entry = CacheEntry(
            status: response.statusCode, fields: fields, requestedAt: date, receivedAt: date)
        if !entry.matches(HeaderFields()) { entry.fields.remove("Vary") }
        return entry
    }

    /// A `CacheEntry` as it is written.
    private struct Record: Codable {
        let status: Int
        let fields: [[String]]
        let requestedAt: Double
        let receivedAt: Double
        let selecting: [String: String?]

        init(_ entry: CacheEntry) {
            status = entry.status
            fields = entry.fields.map { [$0.name, $0.value] }
            requestedAt = entry.requestedAt.timeIntervalSince1970
            receivedAt = entry.receivedAt.timeIntervalSince1970
            selecting = entry.selecting
        }

        var entry: CacheEntry {
            CacheEntry(
                status: status,
                fields: HeaderFields(fields.compactMap { $0.count == 2 ? ($0[0], $0[1]) : nil }),
                requestedAt: Date(timeIntervalSince1970: requestedAt),
                receivedAt: Date(timeIntervalSince1970: receivedAt), selecting: selecting)
        }
    }

    // MARK: Writing

    /// The largest content that may be stored: a twentieth of the store (rule UC-53).
    var maximumSize: Int { (cache.diskCapacity > 0 ? cache.diskCapacity : cache.memoryCapacity) / 20 }

    private static func record(_ entry: CacheEntry) -> [AnyHashable: Any] {
        let data = try? JSONEncoder().encode(Record(entry))
        return data.map { [recordKey: String(decoding: $0, as: UTF8.self)] } ?? [:]
    }

    /// Stores what the delegate has made of a proposal (rule UC-54).
    func store(_ cached: CachedURLResponse, _ entry: CacheEntry, for request: URLRequest, isChanged: Bool) {
        guard let url = request.url, cached.storagePolicy != .notAllowed else { return }
        let key = key(url)
        let written = Written(
            at: LoopClock.now, tag: entry.fields["ETag"], modified: entry.fields["Last-Modified"],
            control: entry.fields["Cache-Control"], size: cached.data.count)
        let isRecent = Self.memory.withLock { memory -> Bool in
            memory.misses[key] = nil
            defer {
                if memory.written.count >= Self.maximumRemembered { memory.written = [:] }
            }
            guard !isChanged, written.tag != nil, let last = memory.written[key],
                written.at.seconds(since: last.at) < Self.rewriteInterval, last.tag == written.tag,
                last.modified == written.modified, last.control == written.control, last.size == written.size
            else {
                memory.written[key] = isChanged ? nil : written
                return false
            }
            return true
        }
        if isRecent { return }
        // What the delegate has put there stays (rule UC-54).
        let userInfo = (cached.userInfo ?? [:]).merging(Self.record(entry)) { _, ours in ours }
        cache.storeCachedResponse(
            CachedURLResponse(
                response: cached.response, data: cached.data, userInfo: userInfo,
                storagePolicy: cached.storagePolicy),
            for: request)
    }

    func remove(_ url: URL) {
        Self.memory.withLock { $0.written[key(url)] = nil }
        cache.removeCachedResponse(for: URLRequest(url: url))
    }
}

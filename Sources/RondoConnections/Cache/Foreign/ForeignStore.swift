internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex

/// A URLCache of the program, of Foundation's class or a class of its own, which only stores: `CacheRules`
/// decides what may be kept and reused.
///
/// On Linux a URLCache tells URLs apart by host, port and path only. So a response that it returns is
/// compared with the wanted URL before it is used (rule UC-73), and a response that would overwrite another
/// URL's gets a location of its own (`ForeignStore+Locations`). A URLCache does not record when a response
/// came and which request it answered: Rondo adds that to the response's user info, under `recordKey`.
final class ForeignStore: ResponseStore {
    let cache: URLCache

    init(cache: URLCache) { self.cache = cache }

    /// The key, in a cached response's user info, of Rondo's record of it: a property list in JSON.
    static let recordKey = "org.rondo.cache-record"

    // MARK: What loads remember of a store

    struct Key: Hashable {
        let cache: ObjectIdentifier
        let url: String
        /// The request's values of the fields that Vary names.
        var variant = ""
    }

    /// A miss costs a look into a directory, each time a program loads a response that is never stored. So a
    /// miss, or a removal, is remembered for `missLifetime` seconds; a response that a program stores by
    /// itself in that time is found only afterwards.
    private static let missLifetime = 1.0
    /// An entry that would only be renewed is not written again within this many seconds. (If the program
    /// removes it in that time, it is written again once a load has looked for it, or the time is over.)
    static let rewriteInterval = 1.0
    private static let maximumRemembered = 1024

    fileprivate struct Written {
        let at: LoopInstant
        /// The hash of what tells one response from another.
        let hash: Int
        let size: Int
        /// The head, if its ETag identifies the content; otherwise nil.
        var head: ResponseHead?
    }

    private struct Memory: ~Copyable {
        /// The cache that was used last, nearly always the only one, and the owner of all notes here.
        private weak var last: URLCache?
        private var caches: [ObjectIdentifier: WeakCache] = [:]

        private struct WeakCache {
            weak var cache: URLCache?
        }

        var misses: [Key: LoopInstant] = [:]
        var written: [Key: Written] = [:]
        /// Records as they were read last: decoding one takes longer than asking a server.
        var records: [Key: (text: String, record: Record)] = [:]

        /// Call it before notes are read: it drops the notes of a cache that was released and whose address
        /// `cache` has now.
        mutating func dropStaleNotes(for cache: URLCache) {
            if last === cache { return }
            last = cache
            let id = ObjectIdentifier(cache)
            if caches[id]?.cache === cache { return }
            misses = misses.filter { $0.key.cache != id }
            written = written.filter { $0.key.cache != id }
            caches = caches.filter { $0.value.cache != nil }
            caches[id] = WeakCache(cache: cache)
        }

        /// Notes that the store has nothing for the URL of `key`.
        mutating func noteMiss(_ key: Key) {
            if misses.count >= ForeignStore.maximumRemembered { misses = [:] }
            misses[key] = LoopClock.systemNow
            // Either the response was removed since, or it is still being written and will be written twice.
            if written[key] != nil { forgetWritten(key) }
        }

        /// Forgets the notes of the variants too.
        mutating func forgetWritten(_ key: Key) {
            written = written.filter { $0.key.cache != key.cache || $0.key.url != key.url }
        }
    }

    private static let memory = Mutex(Memory())

    func key(_ url: URL) -> Key { Key(cache: ObjectIdentifier(cache), url: WebAddress.name(of: url)) }

    private func key(_ request: LoadRequest, _ url: URL) -> Key {
        Key(cache: ObjectIdentifier(cache), url: request.address?.name ?? WebAddress.name(of: url))
    }

    // MARK: Reading

    func find(_ request: LoadRequest, mayOverlook: Bool, fields: () -> HeaderFields) -> FoundResponse? {
        guard let url = request.url else { return nil }
        let key = key(request, url)
        if mayOverlook, hasJustMissed(key) { return nil }
        guard let found = base(for: url) else {
            Self.memory.withLock { memory in
                memory.dropStaleNotes(for: cache)
                memory.noteMiss(key)
            }
            return nil
        }
        let varies = found.record.entry.fields.has("Vary")
        let variant = varies ? self.variant(of: found, url, fields()) : nil
        let chosen = variant ?? found
        return FoundResponse(chosen.record.entry, chosen.cached)
    }

    func findEntry(_ request: LoadRequest, fields: () -> HeaderFields) -> CacheEntry? {
        find(request, mayOverlook: true, fields: fields)?.entry
    }

    /// Whether a look-up less than `missLifetime` ago has found nothing, or a removal has left nothing.
    private func hasJustMissed(_ key: Key) -> Bool {
        let missed = Self.memory.withLock { memory -> LoopInstant? in
            if memory.misses.isEmpty { return nil }
            memory.dropStaleNotes(for: cache)
            return memory.misses[key]
        }
        return missed.map { LoopClock.systemNow.seconds(since: $0) < Self.missLifetime } ?? false
    }

    func mayHave(_ request: LoadRequest) -> Bool {
        guard let url = request.url else { return false }
        // A look-up may have missed what is being stored.
        return CacheWriter.shared.isBusy || !hasJustMissed(key(request, url))
    }

    /// The record by which the cache rules judge a response; nil for a response that is not HTTP. A response
    /// that a program has stored by itself has no record: its time of arrival is taken from its `Date` field,
    /// and it answers any request.
    static func record(of cached: CachedURLResponse, _ key: Key) -> Record? {
        if let text = cached.userInfo?[recordKey] as? String {
            if let known = memory.withLock({ $0.records[key] }), known.text == text { return known.record }
            // A record that cannot be read counts as none.
            if let written = try? JSONDecoder().decode(ForeignRecordForm.self, from: Data(text.utf8)) {
                let record = Record(entry: written.entry, variants: written.variants)
                memory.withLock { memory in
                    if memory.records.count >= maximumRemembered { memory.records = [:] }
                    memory.records[key] = (text, record)
                }
                return record
            }
        }
        return CacheEntry(storedByProgram: cached).map { Record(entry: $0, variants: nil) }
    }

    /// Rondo's record of a kept response.
    struct Record {
        let entry: CacheEntry
        /// The name by which its variants are found; nil if there are none.
        let variants: String?
    }

    // MARK: Writing

    /// A removal looks for the response first, perhaps on the disk, and a program's own class may do
    /// anything.
    var mayBlock: Bool { true }

    /// The largest content that may be stored: a twentieth of the store (rule UC-53).
    var maximumSize: Int { (cache.diskCapacity > 0 ? cache.diskCapacity : cache.memoryCapacity) / 20 }

    private static func record(_ entry: CacheEntry, _ variants: String?) -> [AnyHashable: Any] {
        // Impossible for a record that was made by Rondo; without it the response counts as a program's.
        let data = try? JSONEncoder().encode(ForeignRecordForm(entry, variants: variants))
        return data.map { [recordKey: String(decoding: $0, as: UTF8.self)] } ?? [:]
    }

    func store(_ response: ReceivedResponse, for request: LoadRequest) -> CacheDecision {
        guard let url = request.url else { return .nothing }
        let key = key(request, url)
        let content = response.approved?.data ?? response.content
        if !response.isChanged, isWritten(content.count, response.head, key) { return .isWritten }
        let note = note(content, response.head, response.requestFields, key)
        if response.isChanged { forgetWritten(note) } else if isWritten(note) { return .isWritten }
        return .write(
            ForeignWrite(
                store: self, cached: response.cached, entry: response.entry, url: url,
                note: response.isChanged ? nil : note))
    }

    /// The decision for a confirmed response, which does not depend on what was written before.
    func store(
        _ found: FoundResponse, confirmed: CacheEntry, _ cached: CachedURLResponse, for request: LoadRequest
    ) -> CacheDecision {
        guard let url = request.url, cached.storagePolicy != .notAllowed else { return .nothing }
        forgetWritten(url)
        return .write(ForeignWrite(store: self, cached: cached, entry: confirmed, url: url, note: nil))
    }

    func write(_ cached: CachedURLResponse, _ entry: CacheEntry, _ url: URL) {
        Self.locations.withLock { _ in
            guard let (location, variants) = location(for: entry, url) else { return }
            // Entries that the delegate has added to the user info stay (rule UC-54).
            let userInfo = (cached.userInfo ?? [:]).merging(Self.record(entry, variants)) { _, ours in ours }
            put(
                CachedURLResponse(
                    response: LoadedResponse(toStore: cached.response) ?? cached.response, data: cached.data,
                    userInfo: userInfo, storagePolicy: cached.storagePolicy),
                at: location)
        }
        forgetMiss(url)
    }

    /// Call it when a response for `url` is written: an earlier removal, or a load that looked for it
    /// meanwhile, has noted a miss.
    func forgetMiss(_ url: URL) {
        let key = key(url)
        Self.memory.withLock { memory in
            if !memory.misses.isEmpty { memory.misses[key] = nil }
        }
    }

    /// Whether a response with this head, and content of `size` bytes, was written within `rewriteInterval`.
    /// Then it is not written again, and its content need not be collected.
    func hasJustStored(_ head: ResponseHead, size: Int64, for request: LoadRequest) -> Bool {
        guard let url = request.url, let size = Int(exactly: size) else { return false }
        return isWritten(size, head, key(request, url))
    }

    /// A note that a response is written.
    struct Note {
        fileprivate let key: Key
        /// The key under which the base of this variant is noted; nil if the response is not a variant.
        fileprivate let base: Key?
        fileprivate let written: Written
    }

    private func note(_ data: Data, _ head: ResponseHead, _ request: HeaderFields, _ base: Key) -> Note {
        var key = base
        let fields = head.fields
        let varies = fields.has("Vary")
        if varies {
            key.variant = Self.variantName(CacheEntry.selecting(fields, request))
        }
        var hasher = Hasher()
        fields.hashValues(of: "ETag", into: &hasher)
        fields.hashValues(of: "Last-Modified", into: &hasher)
        fields.hashValues(of: "Cache-Control", into: &hasher)
        // The content is hashed only if no ETag identifies it.
        let hasTag = fields.hasStrongTag
        if !hasTag { data.withUnsafeBytes { hasher.combine(bytes: $0) } }
        let isTold = hasTag && !varies && fields.size <= ResponseHead.maximumRemembered
        return Note(
            key: key, base: varies ? base : nil,
            written: Written(
                at: LoopClock.systemNow, hash: hasher.finalize(), size: data.count, head: isTold ? head : nil
            ))
    }

    /// Whether the same response was written within `rewriteInterval`.
    private func isWritten(_ note: Note) -> Bool {
        Self.memory.withLock { memory -> Bool in
            memory.dropStaleNotes(for: cache)
            if !memory.misses.isEmpty { memory.misses[note.base ?? note.key] = nil }
            guard let last = memory.written[note.key],
                note.written.at.seconds(since: last.at) < Self.rewriteInterval,
                last.size == note.written.size, last.hash == note.written.hash
            else { return false }
            memory.written[note.key]?.head = note.written.head
            return true
        }
    }

    /// Call it once the response is written, or is certain to be written before all later work: other loads
    /// do not write the noted response again.
    func noteAsWritten(_ note: Note) {
        Self.memory.withLock { memory in
            memory.dropStaleNotes(for: cache)
            if memory.written.count >= Self.maximumRemembered { memory.written = [:] }
            memory.written[note.key] = note.written
            if let base = note.base { memory.written[base] = Written(at: note.written.at, hash: 0, size: -1) }
        }
    }

    /// Forgets the note of a response that the delegate has changed: the written one would not be recognised
    /// again.
    private func forgetWritten(_ note: Note) {
        Self.memory.withLock { memory in
            memory.dropStaleNotes(for: cache)
            if !memory.misses.isEmpty { memory.misses[note.base ?? note.key] = nil }
            if note.base == nil { memory.forgetWritten(note.key) } else { memory.written[note.key] = nil }
        }
    }

    /// Whether the response that was written has this very head object, so that nothing has to be compared
    /// again, and was written within `rewriteInterval`.
    private func isWritten(_ size: Int, _ head: ResponseHead, _ key: Key) -> Bool {
        Self.memory.withLock { memory in
            memory.dropStaleNotes(for: cache)
            guard let written = memory.written[key], written.head === head, written.size == size,
                LoopClock.systemNow.seconds(since: written.at) < Self.rewriteInterval
            else { return false }
            if !memory.misses.isEmpty { memory.misses[key] = nil }
            return true
        }
    }

    /// Forgets that a response for `url` was noted as written, because it was not.
    func forgetWritten(_ url: URL) {
        let key = key(url)
        Self.memory.withLock { $0.forgetWritten(key) }
    }

    /// Removes the response kept for `url`, and thereby its variants.
    func remove(_ url: URL) {
        let key = key(url)
        Self.locations.withLock { _ in
            for location in [Self.own(url), apart(url)].compactMap({ $0 })
            where found(at: location, url) != nil {
                cache.removeCachedResponse(for: location)
            }
            // Before another thread writes a response, and forgets the miss.
            Self.memory.withLock { memory in
                memory.dropStaleNotes(for: cache)
                memory.noteMiss(key)
            }
        }
    }
}

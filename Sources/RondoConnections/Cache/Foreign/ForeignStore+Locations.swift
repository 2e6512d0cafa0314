internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex

// The locations of responses in a URLCache.
//
// Foundation's URLCache on Linux tells requests apart by host, port and path only. Requests that share these
// three would overwrite each other's responses: other queries, http and https, and the variants of one URL
// that Vary tells apart (RFC 9111 §4.1). Therefore the first response of a URL, its base, is stored where the
// URLCache itself would store it, and where a program finds it. If that location holds a response of another
// URL, the base is stored apart, at a path that is a hash of its URL.
//
// Variants of a URL are stored apart too, each at a hash of what the request said in the fields that Vary
// names. They are found only through the base: through its Vary, and through a name that the base gives to
// all of them. If the base is removed, that name is lost, and its variants are not found any more. So an
// unsafe request can forget all variants without knowing them (RFC 9111 §4.4); the URLCache evicts them in
// time.
//
// A URLCache of a class of the program's own may tell more requests apart: then no location is ever taken by
// another URL.
extension ForeignStore {
    /// A response and the location where it is stored.
    struct Found {
        let record: Record
        let cached: CachedURLResponse
    }

    /// Held while locations are looked for and filled, so that only one thread does so at a time.
    static let locations = Mutex(())

    /// The location where the URLCache itself would store a response for `url`.
    static func own(_ url: URL) -> URLRequest { URLRequest(url: url) }

    /// A separate location for a URL, or for one of its variants.
    func apart(_ url: URL, variants: String = "", _ variant: String = "") -> URLRequest? {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return nil }
        parts.percentEncodedPath = "/" + Self.hash(of: "\(WebAddress.name(of: url))\n\(variants)\n\(variant)")
        (parts.query, parts.fragment, parts.user, parts.password) = (nil, nil, nil, nil)
        return parts.url.map { URLRequest(url: $0) }
    }

    /// FNV-1a of 128 bits, in hexadecimal digits.
    ///
    /// Not a cryptographic hash, and none is needed: the URL of the response found at a location is compared
    /// with the wanted URL before the response is used. A server whose URLs collide only loses responses of
    /// its own. SHA-256 would initialise libcrypto, 2 MB of memory, in programs that need it for nothing
    /// else.
    static func hash(of text: String) -> String {
        var hash: UInt128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d
        for byte in text.utf8 {
            hash ^= UInt128(byte)
            hash &*= 0x0000_0000_0100_0000_0000_0000_0000_013b
        }
        return String(hash, radix: 16)
    }

    /// The response at `location`, if it is for `url`.
    func found(at location: URLRequest, _ url: URL) -> Found? {
        look(at: location, url).found
    }

    private func look(at location: URLRequest, _ url: URL) -> (found: Found?, isTaken: Bool) {
        guard let cached = cached(at: location) else { return (nil, false) }
        guard cached.response.url.map(WebAddress.name(of:)) == WebAddress.name(of: url),
            let locationURL = location.url,
            let record = Self.record(of: cached, key(locationURL))
        else { return (nil, true) }
        return (Found(record: record, cached: cached), true)
    }

    /// The base of `url`.
    func base(for url: URL) -> Found? {
        let (found, isTaken) = look(at: Self.own(url), url)
        // If the URL's own location were free, the base would be stored there.
        guard found == nil, isTaken, let apart = apart(url) else { return found }
        return self.found(at: apart, url)
    }

    /// The variant for a request with `fields`; nil if there is none, though the base itself may match.
    func variant(of base: Found, _ url: URL, _ fields: HeaderFields) -> Found? {
        guard !base.record.entry.matches(fields), let variants = base.record.variants,
            let selecting = base.record.entry.selection(for: fields),
            let location = apart(url, variants: variants, Self.variantName(selecting)),
            let found = found(at: location, url), found.record.entry.matches(fields)
        else { return nil }
        return found
    }

    /// The values that tell a variant from the others, as one text.
    static func variantName(_ selecting: [String: String?]) -> String {
        selecting.sorted { $0.key < $1.key }.map { name, value in "\(name)=\(value ?? "\0")" }
            .joined(separator: "\n")
    }

    /// The location where `entry` is to be stored, and the name of its variants; nil if it cannot be stored.
    ///
    /// Call it with `locations` locked.
    func location(for entry: CacheEntry, _ url: URL) -> (URLRequest, variants: String?)? {
        let (own, isTaken) = look(at: Self.own(url), url)
        let apart = apart(url)
        let base: (Found, URLRequest)?
        if let own {
            base = (own, Self.own(url))
        } else if isTaken, let apart {
            base = found(at: apart, url).map { ($0, apart) }
        } else {
            // A response stored apart dates from a time when the URL's own location was taken.
            if let apart { cache.removeCachedResponse(for: apart) }
            base = nil
        }
        let free = isTaken && own == nil ? apart : Self.own(url)
        guard !entry.selecting.isEmpty else { return (base?.1 ?? free).map { ($0, nil) } }
        guard let base, let variants = base.0.record.variants,
            base.0.record.entry.selecting.keys.sorted() == entry.selecting.keys.sorted()
        else { return (base?.1 ?? free).map { ($0, UUID().uuidString) } }
        if base.0.record.entry.selecting == entry.selecting { return (base.1, variants) }
        return self.apart(url, variants: variants, Self.variantName(entry.selecting)).map { ($0, variants) }
    }

    // MARK: - Protocols of the program

    /// The response kept for a request that a protocol of the program loads, whatever its age.
    func find(ofProtocol request: LoadRequest) -> CachedURLResponse? {
        guard let url = request.url else { return nil }
        for location in [Self.own(url), apart(url)].compactMap({ $0 }) {
            guard let cached = cached(at: location) else { return nil }
            if cached.response.url.map(WebAddress.name(of:)) == WebAddress.name(of: url) { return cached }
        }
        return nil
    }

    /// The write that stores `cached`, as the protocol allows it and the delegate has changed it.
    func store(ofProtocol cached: CachedURLResponse, for request: LoadRequest) -> CacheDecision {
        guard let url = request.url, cached.storagePolicy != .notAllowed else { return .nothing }
        return .write(ForeignWrite(store: self, cached: cached, entry: nil, url: url, note: nil))
    }

    func write(_ cached: CachedURLResponse, _ url: URL) {
        Self.locations.withLock { _ in
            let own = cache.cachedResponse(for: Self.own(url))
            let isTaken =
                own.map { $0.response.url.map(WebAddress.name(of:)) != WebAddress.name(of: url) } ?? false
            if let location = isTaken ? apart(url) : Self.own(url) { put(cached, at: location) }
        }
        forgetMiss(url)
    }

    // MARK: - Putting

    /// Stores a response at a location, instead of the response that is there.
    ///
    /// The old response is removed first: a URLCache on Linux that was given two responses for one location
    /// crashes the process when it makes room. Call it with `locations` locked.
    func put(_ cached: CachedURLResponse, at location: URLRequest) {
        Self.pendingWrites.withLock {
            $0.begin(PendingWrite(cache: cache, location: location, cached: cached))
        }
        cache.removeCachedResponse(for: location)
        cache.storeCachedResponse(cached, for: location)
        Self.pendingWrites.withLock { $0.end() }
    }

    /// The response at a location, or the one that is just being put there: for a moment the URLCache has
    /// neither the new response nor the one it replaces.
    private func cached(at location: URLRequest) -> CachedURLResponse? {
        let before = Self.pendingWrites.withLock { $0.changes }
        if let cached = cache.cachedResponse(for: location) { return cached }
        let (pendingWrite, after) = Self.pendingWrites.withLock { ($0.pendingWrite, $0.changes) }
        if let pendingWrite, pendingWrite.cache === cache, pendingWrite.location.url == location.url {
            return pendingWrite.cached
        }
        // A response may have been put there meanwhile.
        return before == after ? nil : cache.cachedResponse(for: location)
    }

    private struct PendingWrites: ~Copyable {
        private(set) var pendingWrite: PendingWrite?
        /// How often `pendingWrite` has changed.
        private(set) var changes = 0

        mutating func begin(_ pendingWrite: PendingWrite) {
            self.pendingWrite = pendingWrite
            changes += 1
        }

        mutating func end() {
            pendingWrite = nil
            changes += 1
        }
    }

    /// A response that is being stored, and its location in the cache. `@unchecked Sendable`: a URLCache has
    /// a lock of its own, and a cached response does not change.
    private struct PendingWrite: @unchecked Sendable {
        let cache: URLCache
        let location: URLRequest
        let cached: CachedURLResponse
    }

    private static let pendingWrites = Mutex(PendingWrites())
}

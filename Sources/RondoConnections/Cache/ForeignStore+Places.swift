internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex

// Where responses stand in a URLCache.
//
// Foundation's URLCache on Linux tells requests apart by host, port and path. What has these three in common would
// take each other's place: another query, http and https, and the variants of one URL that Vary tells apart (RFC
// 9111 §4.1). So the first of them, the base of its URL, stands where the URLCache itself would put it, and where a
// program finds it; what finds that place taken by another URL stands apart, at a path that is a hash of its URL.
//
// The variants of a URL stand apart too, each at a hash of what the request has said in the fields that Vary
// names. They are found by the base alone: by its Vary, and by a name that it gives to all of them. A base that is
// forgotten takes that name with it, and its variants are not found any more: so an unsafe request forgets them all
// without knowing them (RFC 9111 §4.4), and the URLCache clears them away in its time.
//
// A URLCache of a class of the program's own may tell more apart: then no place is ever taken by another.
extension ForeignStore {
    /// A response and where it stands.
    struct Found {
        let record: Record
        let cached: CachedURLResponse
    }

    /// Places are looked for and filled by one thread at a time.
    static let places = Mutex(())

    /// Where the URLCache itself would put it.
    static func own(_ url: URL) -> URLRequest { URLRequest(url: url) }

    /// A place apart for a URL, or for one of its variants.
    func apart(_ url: URL, variants: String = "", _ variant: String = "") -> URLRequest? {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return nil }
        parts.percentEncodedPath = "/" + Self.hash(of: "\(WebAddress.name(of: url))\n\(variants)\n\(variant)")
        (parts.query, parts.fragment, parts.user, parts.password) = (nil, nil, nil, nil)
        return parts.url.map { URLRequest(url: $0) }
    }

    /// FNV-1a of 128 bits, in hexadecimal digits.
    ///
    /// No hash of cryptography, and none is needed: what stands at a place is compared with what was looked
    /// for before it is taken for that. A server whose URLs meet loses
    /// responses of its own. SHA-256 would set up libcrypto, 2 MB of memory, where nothing else needs it.
    static func hash(of text: String) -> String {
        var hash: UInt128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d
        for byte in text.utf8 {
            hash ^= UInt128(byte)
            hash &*= 0x0000_0000_0100_0000_0000_0000_0000_013b
        }
        return String(hash, radix: 16)
    }

    /// What stands at `place`, if it is for `url`.
    func found(at place: URLRequest, _ url: URL) -> Found? {
        look(at: place, url).found
    }

    private func look(at place: URLRequest, _ url: URL) -> (found: Found?, isTaken: Bool) {
        guard let cached = cached(at: place) else { return (nil, false) }
        guard cached.response.url.map(WebAddress.name(of:)) == WebAddress.name(of: url),
            let placeURL = place.url,
            let record = Self.record(of: cached, key(placeURL))
        else { return (nil, true) }
        return (Found(record: record, cached: cached), true)
    }

    /// The base of `url`.
    func base(for url: URL) -> Found? {
        let (found, isTaken) = look(at: Self.own(url), url)
        // Where its own place is free, it would stand there.
        guard found == nil, isTaken, let apart = apart(url) else { return found }
        return self.found(at: apart, url)
    }

    /// The variant for a request with `fields`; nil if there is none but perhaps the base itself.
    func variant(of base: Found, _ url: URL, _ fields: HeaderFields) -> Found? {
        guard !base.record.entry.matches(fields), let variants = base.record.variants,
            let selecting = base.record.entry.selection(for: fields),
            let place = apart(url, variants: variants, Self.variantName(selecting)),
            let found = found(at: place, url), found.record.entry.matches(fields)
        else { return nil }
        return found
    }

    /// What tells a variant from others, in one text.
    static func variantName(_ selecting: [String: String?]) -> String {
        selecting.sorted { $0.key < $1.key }.map { name, value in "\(name)=\(value ?? "\0")" }
            .joined(separator: "\n")
    }

    /// Where `entry` is to stand, and the name of its variants; nil: nowhere.
    ///
    /// With `places` locked.
    func place(for entry: CacheEntry, _ url: URL) -> (URLRequest, variants: String?)? {
        let (own, isTaken) = look(at: Self.own(url), url)
        let apart = apart(url)
        let base: (Found, URLRequest)?
        if let own {
            base = (own, Self.own(url))
        } else if isTaken, let apart {
            base = found(at: apart, url).map { ($0, apart) }
        } else {
            // What may stand apart is of a time when the place was taken.
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

    // MARK: - Of protocols of the program

    /// The response kept for a request that a protocol of the program loads, whatever its age.
    func find(ofProtocol request: LoadRequest) -> CachedURLResponse? {
        guard let url = request.url else { return nil }
        for place in [Self.own(url), apart(url)].compactMap({ $0 }) {
            guard let cached = cached(at: place) else { return nil }
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
        Self.places.withLock { _ in
            let own = cache.cachedResponse(for: Self.own(url))
            let isTaken =
                own.map { $0.response.url.map(WebAddress.name(of:)) != WebAddress.name(of: url) } ?? false
            if let place = isTaken ? apart(url) : Self.own(url) { put(cached, at: place) }
        }
    }

    // MARK: - Putting

    /// Puts a response at a place, in place of what stands there.
    ///
    /// The response that stands there goes first: a URLCache of Linux that was given two responses for one place ends the
    /// process when it makes room. With `places` locked.
    func put(_ cached: CachedURLResponse, at place: URLRequest) {
        Self.puts.withLock { $0.begin(Underway(cache: cache, place: place, cached: cached)) }
        cache.removeCachedResponse(for: place)
        cache.storeCachedResponse(cached, for: place)
        Self.puts.withLock { $0.end() }
    }

    /// What stands at a place, or is just being put there: for a moment the URLCache has neither that nor what it
    /// replaces.
    private func cached(at place: URLRequest) -> CachedURLResponse? {
        let before = Self.puts.withLock { $0.changes }
        if let cached = cache.cachedResponse(for: place) { return cached }
        let (underway, after) = Self.puts.withLock { ($0.underway, $0.changes) }
        if let underway, underway.cache === cache, underway.place.url == place.url { return underway.cached }
        // It may have been put meanwhile.
        return before == after ? nil : cache.cachedResponse(for: place)
    }

    private struct Puts: ~Copyable {
        private(set) var underway: Underway?
        /// Of `underway`.
        private(set) var changes = 0

        mutating func begin(_ underway: Underway) {
            self.underway = underway
            changes += 1
        }

        mutating func end() {
            underway = nil
            changes += 1
        }
    }

    /// `@unchecked Sendable`: a URLCache has a lock of its own, and a cached response does not change.
    private struct Underway: @unchecked Sendable {
        let cache: URLCache
        let place: URLRequest
        let cached: CachedURLResponse
    }

    private static let puts = Mutex(Puts())
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex

/// A response in the store. It never changes.
///
/// Its entry, by which the rules judge it, is made when a load first finds the response: most pages that a
/// crawl stores are never found.
final class StoredResponse: Sendable {
    /// The URL of the response without its fragment, by which the response is found.
    let name: String
    /// A number that stands for the URL in tables.
    let key: Int64
    let content: Data
    /// The bytes that the response counts as, including its head and the objects that hold it.
    let cost: Int
    /// The request's values of the fields that Vary names; empty if the response does not vary.
    let selecting: [String: String?]
    let storedAt: LoopInstant
    /// The calendar date, for `removeCachedResponses(since:)`.
    let date: Date
    let form: Form

    /// The response that programs see.
    enum Form: Sendable {
        /// The response is made from the entry.
        case ofEntry(bodyLength: Int64?)
        /// The delegate, the program or a protocol of the program has made the response.
        case given(CachedURLResponse)
    }

    private enum Source {
        case received(ResponseHead, requestedAt: Date, receivedAt: Date)
        /// Nil for a response that is not HTTP.
        case entry(CacheEntry?)
    }

    private let source: Source
    private let made = Mutex<CacheEntry?>(nil)

    /// The bytes of heap that the objects take beside their contents, as measured.
    private static let overhead = 600

    init(_ name: String, _ received: ReceivedResponse) {
        (self.name, key) = (name, Self.key(name))
        let head = received.head
        source = .received(head, requestedAt: received.requestedAt, receivedAt: received.receivedAt)
        selecting =
            head.fields.has("Vary") ? CacheEntry.selecting(head.fields, received.requestFields) : [:]
        if received.isChanged, let approved = received.approved {
            form = .given(approved)
            content = approved.data
        } else {
            form = .ofEntry(bodyLength: received.bodyLength)
            content = received.content
        }
        storedAt = LoopClock.systemNow
        date = received.receivedAt
        cost = content.count + head.fields.size + name.utf8.count + Self.overhead
    }

    /// - Parameter entry: Nil for a response that is not HTTP.
    init(_ name: String, _ entry: CacheEntry?, _ cached: CachedURLResponse) {
        (self.name, key) = (name, Self.key(name))
        source = .entry(entry)
        selecting = entry?.selecting ?? [:]
        form = .given(cached)
        content = cached.data
        storedAt = LoopClock.systemNow
        date = Date()
        cost = content.count + (entry?.fields.size ?? 0) + name.utf8.count + Self.overhead
    }

    /// Makes a response that was read from the disk.
    init(_ name: String, _ entry: CacheEntry, content: Data, bodyLength: Int64?, date: Date) {
        (self.name, key) = (name, Self.key(name))
        source = .entry(entry)
        selecting = entry.selecting
        form = .ofEntry(bodyLength: bodyLength)
        self.content = content
        storedAt = LoopClock.systemNow
        self.date = date
        cost = content.count + entry.fields.size + name.utf8.count + Self.overhead
    }

    /// The variants of a URL have consecutive numbers in the database, so that one range finds them all.
    static let variantsPerURL: Int64 = 8

    /// The key is the same in every process, and leaves room for the number of a variant. Names are compared
    /// too: URLs with the same key only replace each other.
    static func key(_ name: String) -> Int64 { Checksum.of(name) & ~(variantsPerURL - 1) }

    /// The entry by which the rules judge the response; nil for a response that is not HTTP.
    var entry: CacheEntry? {
        switch source {
        case .entry(let entry): return entry
        case .received(let head, let requestedAt, let receivedAt):
            return made.withLock { made in
                if let made { return made }
                let entry = CacheEntry(
                    status: head.status, fields: CacheEntry.storedFields(of: head), requestedAt: requestedAt,
                    receivedAt: receivedAt, selecting: selecting)
                made = entry
                return entry
            }
        }
    }

    /// The entry in the form in which it is written, for which `entry` need not be made.
    enum WrittenEntry {
        /// The response is not HTTP.
        case none
        case made(CacheEntry)
        case received(ResponseHead, requestedAt: Date, receivedAt: Date)
    }

    var writtenEntry: WrittenEntry {
        switch source {
        case .entry(let entry): entry.map(WrittenEntry.made) ?? .none
        case .received(let head, let requestedAt, let receivedAt):
            .received(head, requestedAt: requestedAt, receivedAt: receivedAt)
        }
    }

    /// Whether the response was made of this very head object.
    func isOf(_ head: ResponseHead) -> Bool {
        if case .received(let own, _, _) = source { own === head } else { false }
    }

    /// Whether the response answers a request with these fields, as far as Vary is concerned.
    func matches(_ fields: () -> HeaderFields) -> Bool {
        selecting.isEmpty || entry?.matches(fields()) ?? true
    }

    /// The response for a load of `url`; nil if it is not HTTP.
    func found(_ url: URL) -> FoundResponse? {
        guard let entry else { return nil }
        switch form {
        case .given(let cached): return FoundResponse(entry, cached)
        case .ofEntry(let bodyLength): return FoundResponse(entry, url, bodyLength: bodyLength, content)
        }
    }

    /// The response as a program sees it; nil if Foundation cannot represent it.
    func cached(_ url: URL) -> CachedURLResponse? {
        switch form {
        case .given(let cached): return cached
        case .ofEntry(let bodyLength):
            guard let entry,
                let response = LoadedResponse(
                    url: url, head: ResponseHead(status: entry.status, fields: entry.fields),
                    bodyLength: bodyLength)
            else { return nil }
            return CachedURLResponse(response: response, data: content)
        }
    }

    /// Whether the response may be written to the disk.
    var mayGoToDisk: Bool {
        if case .given(let cached) = form { cached.storagePolicy == .allowed } else { true }
    }

    /// Whether `other`, with the same key, replaces this response: `other` is the same variant, or a response
    /// that varies by other fields or by none, so that requests no longer select this one.
    func isReplaced(by other: StoredResponse) -> Bool {
        name != other.name || selecting.keys != other.selecting.keys || selecting == other.selecting
    }

    /// Whether the response may be stored.
    var mayBeStored: Bool {
        if case .given(let cached) = form { cached.storagePolicy != .notAllowed } else { true }
    }
}

extension StoredResponse.WrittenEntry {
    var status: Int? {
        switch self {
        case .none: nil
        case .made(let entry): entry.status
        case .received(let head, _, _): head.status
        }
    }

    var requestedAt: Date? {
        switch self {
        case .none: nil
        case .made(let entry): entry.requestedAt
        case .received(_, let requestedAt, _): requestedAt
        }
    }

    var receivedAt: Date? {
        switch self {
        case .none: nil
        case .made(let entry): entry.receivedAt
        case .received(_, _, let receivedAt): receivedAt
        }
    }
}

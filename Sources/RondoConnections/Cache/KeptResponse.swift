internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex

/// A response in the store. It never changes.
///
/// What the rules look at is made when a load first finds it: of most pages that a crawl stores none is ever found.
final class KeptResponse: Sendable {
    /// Its URL without the fragment, by which it is found.
    let name: String
    /// Stands for the URL in tables.
    let key: Int64
    let content: Data
    /// Bytes that it counts as, with its head and the objects that hold it.
    let cost: Int
    /// What Vary names, and what the request said there; empty where the response does not vary.
    let selecting: [String: String?]
    let storedAt: LoopInstant
    /// Of the calendar, for `removeCachedResponses(since:)`.
    let date: Date
    let shown: Shown

    /// The response that programs see.
    enum Shown: Sendable {
        /// It is made of the entry.
        case ofEntry(bodyLength: Int64?)
        /// The delegate, the program or a protocol of the program has made it.
        case given(CachedURLResponse)
    }

    private enum Source {
        case received(ResponseHead, requestedAt: Date, receivedAt: Date)
        /// Nil for a response that is not HTTP.
        case entry(CacheEntry?)
    }

    private let source: Source
    private let made = Mutex<CacheEntry?>(nil)

    /// What objects take beside bytes, by a look at the heap.
    private static let overhead = 600

    init(_ name: String, _ received: ReceivedResponse) {
        (self.name, key) = (name, Self.key(name))
        let head = received.head
        source = .received(head, requestedAt: received.requestedAt, receivedAt: received.receivedAt)
        selecting =
            head.fields.has("Vary") ? CacheEntry.selecting(head.fields, received.requestFields) : [:]
        if received.isChanged, let approved = received.approved {
            shown = .given(approved)
            content = approved.data
        } else {
            shown = .ofEntry(bodyLength: received.bodyLength)
            content = received.content
        }
        storedAt = LoopClock.machineNow
        date = received.receivedAt
        cost = content.count + head.fields.size + name.utf8.count + Self.overhead
    }

    /// - Parameter entry: Nil for a response that is not HTTP.
    init(_ name: String, _ entry: CacheEntry?, _ cached: CachedURLResponse) {
        (self.name, key) = (name, Self.key(name))
        source = .entry(entry)
        selecting = entry?.selecting ?? [:]
        shown = .given(cached)
        content = cached.data
        storedAt = LoopClock.machineNow
        date = Date()
        cost = content.count + (entry?.fields.size ?? 0) + name.utf8.count + Self.overhead
    }

    /// As it was read from the disk.
    init(_ name: String, _ entry: CacheEntry, content: Data, bodyLength: Int64?, date: Date) {
        (self.name, key) = (name, Self.key(name))
        source = .entry(entry)
        selecting = entry.selecting
        shown = .ofEntry(bodyLength: bodyLength)
        self.content = content
        storedAt = LoopClock.machineNow
        self.date = date
        cost = content.count + entry.fields.size + name.utf8.count + Self.overhead
    }

    /// The variants of a URL have numbers in a row in the database, so that one range finds all.
    static let variantsPerURL: Int64 = 8

    /// The same in every process, and with room for the number of a variant. The names are compared too, so that URLs whose
    /// keys meet only take each other's place.
    static func key(_ name: String) -> Int64 { Checksum.of(name) & ~(variantsPerURL - 1) }

    /// What the rules look at; nil for a response that is not HTTP.
    var entry: CacheEntry? {
        switch source {
        case .entry(let entry): return entry
        case .received(let head, let requestedAt, let receivedAt):
            return made.withLock { made in
                if let made { return made }
                let entry = CacheEntry(
                    status: head.status, fields: CacheEntry.keptFields(of: head), requestedAt: requestedAt,
                    receivedAt: receivedAt, selecting: selecting)
                made = entry
                return entry
            }
        }
    }

    /// The entry as it is written: `entry` need not be made for that.
    enum WrittenEntry {
        /// It is not HTTP.
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

    /// Whether it was made of this very head.
    func isOf(_ head: ResponseHead) -> Bool {
        if case .received(let own, _, _) = source { own === head } else { false }
    }

    /// Whether it answers a request with these fields, as far as Vary is concerned.
    func matches(_ fields: () -> HeaderFields) -> Bool {
        selecting.isEmpty || entry?.matches(fields()) ?? true
    }

    /// For a load of `url`.
    func found(_ url: URL) -> FoundResponse? {
        guard let entry else { return nil }
        switch shown {
        case .given(let cached): return FoundResponse(entry, cached)
        case .ofEntry(let bodyLength): return FoundResponse(entry, url, bodyLength: bodyLength, content)
        }
    }

    /// As a program sees it; nil where Foundation makes no response of it.
    func cached(_ url: URL) -> CachedURLResponse? {
        switch shown {
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

    /// Whether it may be written to the disk.
    var mayGoToDisk: Bool {
        if case .given(let cached) = shown { cached.storagePolicy == .allowed } else { true }
    }

    /// Whether `other`, with the same key, takes its place: it is the same variant, or one of a response that varies by other
    /// fields, or by none, so that what was chosen by these is of no use any more.
    func isReplaced(by other: KeptResponse) -> Bool {
        name != other.name || selecting.keys != other.selecting.keys || selecting == other.selecting
    }

    /// Whether it may be kept at all.
    var mayBeKept: Bool {
        if case .given(let cached) = shown { cached.storagePolicy != .notAllowed } else { true }
    }
}

extension KeptResponse.WrittenEntry {
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

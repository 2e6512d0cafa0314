internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// Where loads keep responses and look for them: a `ResponseCache`, or a `URLCache` of the program's.
protocol ResponseStore: AnyObject, Sendable {
    /// The response kept for `request`; where there are variants, the one for `fields`. It may not match the request: the
    /// rules look at that.
    ///
    /// - Parameters:
    ///   - mayOverlook: A store whose look-ups take long need not look again for what it missed less than a second ago.
    ///   - fields: Those that the request would be sent with; called only where a response varies.
    func find(_ request: LoadRequest, mayOverlook: Bool, fields: () -> HeaderFields) -> FoundResponse?

    /// The response kept for a request that a protocol of the program loads, whatever its age.
    func find(ofProtocol request: LoadRequest) -> CachedURLResponse?

    /// The largest content that loads may store, in bytes: a twentieth of the store (rule UC-53).
    var maximumSize: Int { get }

    /// Whether a response with this head, and content of `size` bytes, was stored less than a second ago: then it is not stored
    /// again, and its content need not be collected.
    func hasJustStored(_ head: ResponseHead, size: Int64, for request: LoadRequest) -> Bool

    /// What to do about a response from a server, or what the delegate has made of it (rule UC-54).
    func store(_ response: ReceivedResponse, for request: LoadRequest) -> CacheDecision

    /// What to do about a response that a server has just confirmed.
    ///
    /// - Parameter cached: What `found` is now.
    func store(
        _ found: FoundResponse, confirmed: CacheEntry, _ cached: CachedURLResponse, for request: LoadRequest
    ) -> CacheDecision

    /// What to do about the response of a protocol of the program.
    func store(ofProtocol cached: CachedURLResponse, for request: LoadRequest) -> CacheDecision

    /// Forgets the response kept for `url`, with its variants.
    func remove(_ url: URL)
}

/// A response that was found: what the rules look at, and what the delegate gets.
struct FoundResponse {
    let entry: CacheEntry
    let content: Data
    let userInfo: [AnyHashable: Any]?
    let storagePolicy: URLCache.StoragePolicy
    private let source: Source

    private enum Source {
        case made(URLResponse)
        /// It is made of the entry when it is wanted, with its announced length.
        case ofEntry(URL, bodyLength: Int64?)
    }

    init(_ entry: CacheEntry, _ cached: CachedURLResponse) {
        self.entry = entry
        content = cached.data
        userInfo = cached.userInfo
        storagePolicy = cached.storagePolicy
        source = .made(cached.response)
    }

    /// - Parameter url: That of the request, with its own fragment.
    init(_ entry: CacheEntry, _ url: URL, bodyLength: Int64?, _ content: Data) {
        self.entry = entry
        self.content = content
        userInfo = nil
        storagePolicy = .allowed
        source = .ofEntry(url, bodyLength: bodyLength)
    }

    /// The program has had no hand in it.
    var isOfEntry: Bool {
        if case .ofEntry = source { true } else { false }
    }

    /// The response that the delegate gets where the server was not asked: it says how old it is (RFC 9111 §4).
    func response(at now: Date) -> URLResponse? {
        let age = entry.age(at: now)
        switch source {
        case .made(let response): return LoadedResponse(response, age: age) ?? response
        case .ofEntry(let url, let bodyLength):
            var fields = entry.fields
            fields.set(name: "Age", value: LoadedResponse.age(age))
            return LoadedResponse(
                url: url, head: ResponseHead(status: entry.status, fields: fields), bodyLength: bodyLength)
        }
    }

    /// As the server has just confirmed it, with what its 304 says.
    func confirmed(by head: ResponseHead, _ renewed: CacheEntry) -> CachedURLResponse? {
        let confirmed: URLResponse? =
            switch source {
            case .made(let response):
                LoadedResponse(response, confirmedBy: head, length: content.count) ?? response
            case .ofEntry(let url, _):
                LoadedResponse(
                    url: url, head: ResponseHead(status: renewed.status, fields: renewed.fields),
                    bodyLength: Int64(content.count))
            }
        return confirmed.map {
            CachedURLResponse(response: $0, data: content, userInfo: userInfo, storagePolicy: storagePolicy)
        }
    }
}

/// A response that is all here and may be stored.
struct ReceivedResponse {
    let head: ResponseHead
    /// The fields of the request as they were sent.
    let requestFields: HeaderFields
    let requestedAt: Date
    let receivedAt: Date
    let content: Data
    /// The response that the load's delegate has got.
    let response: URLResponse
    let bodyLength: Int64?
    /// The delegate's version of it, which is stored; nil where the delegate was not asked.
    var approved: CachedURLResponse?
    /// The delegate has made something else of what it was asked about.
    var isChanged = false

    var cached: CachedURLResponse { approved ?? CachedURLResponse(response: response, data: content) }

    var entry: CacheEntry {
        CacheEntry(head, to: requestFields, requestedAt: requestedAt, receivedAt: receivedAt)
    }
}

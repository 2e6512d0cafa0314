internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// A store in which loads keep responses and look for them: a `ResponseCache`, or a `URLCache` of the
/// program.
protocol ResponseStore: AnyObject, Sendable {
    /// The response kept for `request`; among variants, the one for `fields`. It may not match the request:
    /// the rules check that.
    ///
    /// - Parameters:
    ///   - mayOverlook: Whether a store with slow look-ups may report a miss of less than a second ago
    ///     without looking again.
    ///   - fields: The fields with which the request would be sent; called only if a response varies.
    func find(_ request: LoadRequest, mayOverlook: Bool, fields: () -> HeaderFields) -> FoundResponse?

    /// The entry of the response that `find` returns; nil also if Rondo's store would have to read its
    /// content from the disk.
    func findEntry(_ request: LoadRequest, fields: () -> HeaderFields) -> CacheEntry?

    /// The response kept for a request that a protocol of the program loads, whatever its age.
    func find(ofProtocol request: LoadRequest) -> CachedURLResponse?

    /// Whether a change may take so long that run loops leave it to `CacheWriter`. If not, all changes are
    /// made at once.
    var mayBlock: Bool { get }

    /// The largest content that loads may store, in bytes: a twentieth of the store (rule UC-53).
    var maximumSize: Int { get }

    /// Whether a response with this head, whose ETag identifies the content, and content of `size` bytes was
    /// stored less than a second ago. Then it is not stored again, and its content need not be collected.
    func hasJustStored(_ head: ResponseHead, size: Int64, for request: LoadRequest) -> Bool

    /// The decision for a response from a server, or for the delegate's version of it (rule UC-54).
    func store(_ response: ReceivedResponse, for request: LoadRequest) -> CacheDecision

    /// The decision for a response that a server has just confirmed.
    ///
    /// - Parameter cached: The confirmed response, with the fields of the confirmation.
    func store(
        _ found: FoundResponse, confirmed: CacheEntry, _ cached: CachedURLResponse, for request: LoadRequest
    ) -> CacheDecision

    /// The decision for the response of a protocol of the program.
    func store(ofProtocol cached: CachedURLResponse, for request: LoadRequest) -> CacheDecision

    /// Whether a look-up for `request` may find a response, as far as is known without making one.
    func mayHave(_ request: LoadRequest) -> Bool

    /// Forgets the response kept for `url`, with its variants.
    func remove(_ url: URL)
}

/// A response that was found: the entry for the rules, and the response for the delegate.
struct FoundResponse {
    let entry: CacheEntry
    let content: Data
    let userInfo: [AnyHashable: Any]?
    let storagePolicy: URLCache.StoragePolicy
    private let source: Source

    private enum Source {
        case made(URLResponse)
        /// The response is made from the entry when it is needed, with its announced length.
        case ofEntry(URL, bodyLength: Int64?)
    }

    init(_ entry: CacheEntry, _ cached: CachedURLResponse) {
        self.entry = entry
        content = cached.data
        userInfo = cached.userInfo
        storagePolicy = cached.storagePolicy
        source = .made(cached.response)
    }

    /// - Parameter url: The URL of the request, with its fragment.
    init(_ entry: CacheEntry, _ url: URL, bodyLength: Int64?, _ content: Data) {
        self.entry = entry
        self.content = content
        userInfo = nil
        storagePolicy = .allowed
        source = .ofEntry(url, bodyLength: bodyLength)
    }

    /// Whether neither the program, its delegate nor its protocol has made or changed the response.
    var isOfEntry: Bool {
        if case .ofEntry = source { true } else { false }
    }

    /// The response for the delegate if the server was not asked, with its age (RFC 9111 §4).
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

    /// The response as the server has just confirmed it, with the fields of its 304.
    func confirmed(by head: ResponseHead, _ renewed: CacheEntry) -> CachedURLResponse? {
        let confirmed: URLResponse? =
            switch source {
            case .made(let response):
                LoadedResponse(
                    response, confirmedBy: head, receivedAt: renewed.receivedAt, length: content.count)
                    ?? response
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

/// A response that has been received completely and may be stored.
struct ReceivedResponse {
    let head: ResponseHead
    /// The fields of the request as they were sent.
    let requestFields: HeaderFields
    let requestedAt: Date
    let receivedAt: Date
    let content: Data
    /// The response that the load's delegate was given.
    let response: URLResponse
    let bodyLength: Int64?
    /// The delegate's version of the response, which is stored; nil if the delegate was not asked.
    var approved: CachedURLResponse?
    /// Whether the delegate has changed the response that it was asked about.
    var isChanged = false

    var cached: CachedURLResponse { approved ?? CachedURLResponse(response: response, data: content) }

    var entry: CacheEntry {
        CacheEntry(head, to: requestFields, requestedAt: requestedAt, receivedAt: receivedAt)
    }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The cache's state for the current request of a load.
///
/// A struct that is changed in place: as an optional it would be copied at each access. Used inside the
/// load's gate only.
struct CachedRequestState {
    /// Nil if the cache is not used for the request, or not any more.
    private var store: (any ResponseStore)?
    private(set) var policy = RondoHTTP.CachePolicy.protocolRules
    /// The canonical request, whose URL is the key (rule UC-73).
    private var request: LoadRequest?
    /// Whether a protocol of the program loads the request, and decides which responses are stored.
    private(set) var isOfProtocol = false
    /// The stored response that the server is asked to confirm, or that may be used although it is stale if the server
    /// fails.
    @Boxed var candidate: FoundResponse?
    /// The stored response that a protocol of the program may use.
    var stored: CachedURLResponse?
    var isRevalidating = false
    /// The fields as they were sent; nil before.
    var fields: HeaderFields?
    var sentAt = Date.distantPast
    /// Whether the response could be used for other requests.
    private(set) var isOfUse = true
    /// Whether the store may have an older response that answers the request.
    var mayHaveOlder = false
    /// Whether the response that comes outdates that one, so that it is removed if this one is not stored.
    var outdatesOlder = false
    /// The response to be stored, as far as it has come; nil if there is none.
    private(set) var incoming: CollectedResponse?

    /// Whether the cache is used for the current request.
    var isInProgress: Bool { request != nil }

    /// - Parameter additionalFields: Those of the settings, which are sent with the request's own.
    /// - Returns: False if the cache is not used for the request.
    mutating func begin(
        _ request: LoadRequest, _ store: any ResponseStore, _ policy: RondoHTTP.CachePolicy,
        additionalFields: [(name: String, value: String)]
    ) -> Bool {
        var fields: HeaderFields?
        if !request.fields.isEmpty || !additionalFields.isEmpty {
            let own = request.fields.map { ($0.key, $0.value) }
            fields = HeaderFields(own + additionalFields.map { ($0.name, $0.value) })
        }
        guard CacheRules.concerns(method: request.method, fields: fields) else { return false }
        begin(request, store, policy, isOfProtocol: false)
        return true
    }

    /// Begins a request for which a protocol of the program decides which responses are stored and used.
    mutating func begin(
        ofProtocol request: LoadRequest, _ store: any ResponseStore, _ policy: RondoHTTP.CachePolicy
    ) {
        begin(request, store, policy, isOfProtocol: true)
    }

    private mutating func begin(
        _ request: LoadRequest, _ store: any ResponseStore, _ policy: RondoHTTP.CachePolicy,
        isOfProtocol: Bool
    ) {
        end()
        self.store = store
        self.policy = policy
        self.request = request
        self.isOfProtocol = isOfProtocol
    }

    /// Forgets the request: the cache is not used for it any more.
    mutating func end() {
        guard request != nil else { return }
        (store, request, stored, fields, incoming) = (nil, nil, nil, nil, nil)
        candidate = nil
        isOfProtocol = false
        isRevalidating = false
        isOfUse = true
        (mayHaveOlder, outdatesOlder) = (false, false)
    }

    // MARK: Storing

    /// Whether the store has just stored the same response.
    func hasJustStored(_ head: ResponseHead, size: Int64) -> Bool {
        guard let request else { return false }
        return store?.hasJustStored(head, size: size, for: request) ?? false
    }

    /// Finds out, and notes, whether a response with this head could be used for other requests.
    mutating func checkUse(of head: ResponseHead) -> Bool {
        isOfUse = CacheRules.isOfUse(head, policy, now: Date())
        return isOfUse
    }

    /// Call it when the response is not to be stored.
    mutating func refuse() {
        // The older response is removed when this one is complete.
        guard outdatesOlder else { return end() }
        incoming = nil
        candidate = nil
        isRevalidating = false
    }

    /// The removal of the older response that the one that has come outdates; nil if there is nothing to remove.
    var removal: (store: any ResponseStore, request: LoadRequest)? {
        guard outdatesOlder, let store, let request else { return nil }
        return (store, request)
    }

    /// Collects `response` to store it, unless it is known to be too large (rule UC-53).
    ///
    /// - Parameter head: Nil if a protocol of the program loads the request.
    /// - Returns: False if it is too large.
    mutating func begin(
        storing response: URLResponse, _ head: ResponseHead?, bodyLength: Int64?,
        _ storagePolicy: URLCache.StoragePolicy = .allowed
    ) -> Bool {
        guard let maximumSize = store?.maximumSize,
            response.expectedContentLength <= Int64(maximumSize)
        else { return false }
        incoming = CollectedResponse(
            response, head, bodyLength: bodyLength, maximumSize: maximumSize, storagePolicy)
        candidate = nil
        stored = nil
        return true
    }

    /// The decision for a delegate that accepts every proposal unchanged, and therefore need not be asked.
    func storeAsReceived() -> CacheDecision {
        guard let store, let request, let incoming else { return .nothing }
        guard let received = incoming.received(fields, sentAt: sentAt) else {
            return store.store(ofProtocol: incoming.cached(), for: request)
        }
        return store.store(received, for: request)
    }

    /// The decision for the response that the delegate wants stored in place of the proposal (rule UC-54).
    func store(_ approved: CachedURLResponse) -> CacheDecision {
        guard let store, let request else { return .nothing }
        guard let incoming, var received = incoming.received(fields, sentAt: sentAt) else {
            return store.store(ofProtocol: approved, for: request)
        }
        received.approved = approved
        received.isChanged = approved !== incoming.proposal
        return store.store(received, for: request)
    }
}

extension CachedRequestState {
    /// The decision for a stored response that the server has confirmed.
    func store(_ candidate: FoundResponse, confirmed renewed: CacheEntry, _ confirmed: CachedURLResponse)
        -> CacheDecision
    {
        guard let store, let request else { return .nothing }
        return store.store(candidate, confirmed: renewed, confirmed, for: request)
    }
}

/// A response that is to be stored, as far as it has been received.
final class CollectedResponse {
    private let response: URLResponse
    /// Nil if a protocol of the program loads the request.
    private let head: ResponseHead?
    private let bodyLength: Int64?
    private let maximumSize: Int
    /// The storage policy that the protocol of the program allows.
    private let storagePolicy: URLCache.StoragePolicy
    private let receivedAt = Date()
    private var content = Data()
    /// The response that the delegate was asked about.
    private(set) var proposal: CachedURLResponse?

    fileprivate init(
        _ response: URLResponse, _ head: ResponseHead?, bodyLength: Int64?, maximumSize: Int,
        _ storagePolicy: URLCache.StoragePolicy
    ) {
        self.response = response
        self.head = head
        self.bodyLength = bodyLength
        self.maximumSize = maximumSize
        self.storagePolicy = storagePolicy
    }

    /// - Returns: False if the content has become too large.
    func add(_ data: Data) -> Bool {
        guard content.count + data.count <= maximumSize else { return false }
        // Most bodies come in one piece.
        if content.isEmpty { content = data } else { content.append(data) }
        return true
    }

    /// The response about which the delegate is asked, once the whole body is here. Nil from the second call
    /// on.
    func propose() -> CachedURLResponse? {
        guard proposal == nil else { return nil }
        proposal = cached()
        return proposal
    }

    fileprivate func cached() -> CachedURLResponse {
        content = ReceiveBuffer.compact(content)
        return head == nil
            ? CachedURLResponse(response: response, data: content, storagePolicy: storagePolicy)
            : CachedURLResponse(response: response, data: content)
    }

    /// Nil if a protocol of the program has loaded the response.
    fileprivate func received(_ fields: HeaderFields?, sentAt: Date) -> ReceivedResponse? {
        guard let head else { return nil }
        content = ReceiveBuffer.compact(content)
        return ReceivedResponse(
            head: head, requestFields: fields ?? HeaderFields(), requestedAt: sentAt, receivedAt: receivedAt,
            content: content, response: response, bodyLength: bodyLength)
    }
}

extension RondoHTTP.CachePolicy {
    init(_ policy: NSURLRequest.CachePolicy) {
        switch policy {
        case .useProtocolCachePolicy: self = .protocolRules
        case .reloadIgnoringLocalCacheData: self = .reload
        case .returnCacheDataElseLoad: self = .cacheElseLoad
        case .returnCacheDataDontLoad: self = .cacheOnly
        case .reloadIgnoringLocalAndRemoteCacheData: self = .reloadEndToEnd
        case .reloadRevalidatingCacheData: self = .revalidate
        @unknown default: self = .protocolRules
        }
    }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// What a load knows of the cache while one request is under way.
///
/// Used where it stands: an optional of it would be copied at each look. Inside the gate.
struct CacheLoad {
    /// Nil: the cache has nothing to do with the request, or no more.
    private var store: (any ResponseStore)?
    private(set) var policy = RondoHTTP.CachePolicy.protocolRules
    /// The canonical request, whose URL is the key (rule UC-73).
    private var request: LoadRequest?
    /// A protocol of the program loads it, and has said so of what may be kept.
    private(set) var isOfProtocol = false
    /// The server is asked whether this is still right, or it may stand in for a server that fails.
    @Boxed var found: FoundResponse?
    /// The kept response that a protocol of the program may use.
    var kept: CachedURLResponse?
    var isRevalidating = false
    /// As they were sent; nil before.
    var fields: HeaderFields?
    var sentAt = Date.distantPast
    /// The response could be used for other requests.
    private(set) var isOfUse = true
    /// The response to be stored; nil: none so far.
    private(set) var collected: CollectedResponse?

    /// The cache has something to do with the request under way.
    var isUnderWay: Bool { request != nil }

    /// - Returns: False where the cache has nothing to do with the request.
    mutating func begin(
        _ request: LoadRequest, _ store: any ResponseStore, _ policy: RondoHTTP.CachePolicy
    ) -> Bool {
        let concerns =
            request.fields.isEmpty
            ? CacheRules.concerns(method: request.method, fields: nil)
            : CacheRules.concerns(
                method: request.method, fields: HeaderFields(request.fields.map { ($0.key, $0.value) }))
        guard concerns else { return false }
        begin(request, store, policy, isOfProtocol: false)
        return true
    }

    /// The protocol decides which responses are kept and used.
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

    /// There is nothing more to do.
    mutating func end() {
        guard request != nil else { return }
        (store, request, kept, fields, collected) = (nil, nil, nil, nil, nil)
        found = nil
        isOfProtocol = false
        isRevalidating = false
        isOfUse = true
    }

    // MARK: Storing

    /// Whether the store has just stored the same response.
    func hasJustStored(_ head: ResponseHead, size: Int64) -> Bool {
        guard let request else { return false }
        return store?.hasJustStored(head, size: size, for: request) ?? false
    }

    /// Notes whether a response with this head could.
    mutating func isOfUse(_ head: ResponseHead) -> Bool {
        isOfUse = CacheRules.isOfUse(head, policy, now: Date())
        return isOfUse
    }

    /// Stores `response` from here on, unless it is known to be too large (rule UC-53).
    ///
    /// - Parameter head: Nil where a protocol of the program loads it.
    /// - Returns: False if it is too large.
    mutating func begin(
        storing response: URLResponse, _ head: ResponseHead?, bodyLength: Int64?,
        _ storagePolicy: URLCache.StoragePolicy = .allowed
    ) -> Bool {
        guard let maximumSize = store?.maximumSize,
            response.expectedContentLength <= Int64(maximumSize)
        else { return false }
        collected = CollectedResponse(
            response, head, bodyLength: bodyLength, maximumSize: maximumSize, storagePolicy)
        found = nil
        kept = nil
        return true
    }

    /// What to do where the delegate takes whatever it would be asked about.
    func storeAsReceived() -> CacheDecision {
        guard let store, let request, let collected else { return .nothing }
        guard let received = collected.received(fields, sentAt: sentAt) else {
            return store.store(ofProtocol: collected.cached(), for: request)
        }
        return store.store(received, for: request)
    }

    /// What to do with the response that the delegate wants stored in place of the proposal (rule UC-54).
    func store(_ approved: CachedURLResponse) -> CacheDecision {
        guard let store, let request else { return .nothing }
        guard let collected, var received = collected.received(fields, sentAt: sentAt) else {
            return store.store(ofProtocol: approved, for: request)
        }
        if approved.storagePolicy == .notAllowed { return .nothing }
        received.approved = approved
        received.isChanged = approved !== collected.proposal
        return store.store(received, for: request)
    }
}

extension CacheLoad {
    /// What to do with what the server has confirmed.
    func store(_ found: FoundResponse, confirmed renewed: CacheEntry, _ confirmed: CachedURLResponse)
        -> CacheDecision
    {
        guard let store, let request else { return .nothing }
        return store.store(found, confirmed: renewed, confirmed, for: request)
    }
}

/// A response that is to be stored, as far as it has come.
final class CollectedResponse {
    private let response: URLResponse
    /// Nil where a protocol of the program loads it.
    private let head: ResponseHead?
    private let bodyLength: Int64?
    private let maximumSize: Int
    /// What the protocol allows.
    private let storagePolicy: URLCache.StoragePolicy
    private let receivedAt = Date()
    private var content = Data()
    /// What the delegate was asked about.
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
        // Most contents come in one piece.
        if content.isEmpty { content = data } else { content.append(data) }
        return true
    }

    /// All is here: what the delegate is asked about; once.
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

    /// Nil where a protocol of the program has loaded it.
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

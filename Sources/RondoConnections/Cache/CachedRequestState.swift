internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The cache's state for the current request of a load.
///
/// A struct that is changed in place: as an optional it would be copied at each access. Used inside the
/// load's gate only.
struct CachedRequestState {
    /// The use of the cache for a request: the store, the key and the policy.
    private struct Use {
        let store: any ResponseStore
        /// The canonical request, whose URL is the key (rule UC-73).
        let request: LoadRequest
        let policy: RondoHTTP.CachePolicy
        /// Whether a protocol of the program loads the request, and decides which responses are stored.
        let isOfProtocol: Bool
    }

    /// A stored response that is held while the server is asked.
    struct Candidate {
        let found: FoundResponse
        /// Whether the server is asked to confirm it. If not, it may be used although it is stale, if the
        /// server fails.
        let isToBeConfirmed: Bool
    }

    /// The response that is held.
    private enum Phase {
        case nothing
        // Behind one word, so that the state stays small.
        indirect case candidate(Candidate)
        /// The stored response that a protocol of the program may use.
        case offered(CachedURLResponse)
        /// The response to be stored, as far as it has come.
        case storing(CollectedResponse)
    }

    /// The response of an earlier load that the store may have.
    enum Older {
        case none
        /// A response that answers the request.
        case possible
        /// A response that the server's new one outdates: it is removed unless the new one is stored.
        case outdated
    }

    /// Nil if the cache is not used for the request, or not any more. Then no response is held.
    private var use: Use?
    private var phase = Phase.nothing
    /// Set by `LoadCache`, which compares the store's response with the server's.
    var older = Older.none
    /// The fields as they were sent; nil before.
    private(set) var fields: HeaderFields?
    private(set) var sentAt = Date.distantPast

    /// Whether the cache is used for the current request.
    var isInProgress: Bool { use != nil }
    /// Whether it is used, and a protocol of the program loads the request.
    var isOfProtocol: Bool { use?.isOfProtocol ?? false }
    /// Nil if the cache is not used for the request.
    var policy: RondoHTTP.CachePolicy? { use?.policy }
    var candidate: Candidate? { if case .candidate(let candidate) = phase { candidate } else { nil } }
    /// The response to be stored, as far as it has come; nil if there is none.
    var incoming: CollectedResponse? { if case .storing(let incoming) = phase { incoming } else { nil } }

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
        end()
        use = Use(store: store, request: request, policy: policy, isOfProtocol: false)
        return true
    }

    /// Begins a request for which a protocol of the program decides which responses are stored and used.
    mutating func begin(
        ofProtocol request: LoadRequest, _ store: any ResponseStore, _ policy: RondoHTTP.CachePolicy
    ) {
        end()
        use = Use(store: store, request: request, policy: policy, isOfProtocol: true)
    }

    /// Forgets the request: the cache is not used for it any more.
    mutating func end() {
        guard use != nil else { return }
        (use, fields) = (nil, nil)
        phase = .nothing
        older = .none
    }

    /// Notes that the request has been sent with these fields.
    mutating func noteSent(_ fields: HeaderFields) {
        guard use != nil else { return }
        self.fields = fields
        sentAt = Date()
    }

    // MARK: Using

    /// Holds a stored response while the server is asked.
    mutating func hold(_ found: FoundResponse?, isToBeConfirmed: Bool) {
        if let found { phase = .candidate(Candidate(found: found, isToBeConfirmed: isToBeConfirmed)) }
    }

    mutating func dropCandidate() { phase = .nothing }

    /// Holds a stored response for a protocol of the program.
    mutating func offer(_ stored: CachedURLResponse?) {
        if let stored { phase = .offered(stored) }
    }

    /// The response that was offered. Nil from the second call on.
    mutating func takeOffered() -> CachedURLResponse? {
        guard case .offered(let stored) = phase else { return nil }
        phase = .nothing
        return stored
    }

    // MARK: Storing

    /// Whether the store has just stored the same response.
    func hasJustStored(_ head: ResponseHead, size: Int64) -> Bool {
        use.map { $0.store.hasJustStored(head, size: size, for: $0.request) } ?? false
    }

    /// Whether a response with this head could be used for other requests.
    func isOfUse(_ head: ResponseHead) -> Bool {
        policy.map { CacheRules.isOfUse(head, $0, now: Date()) } ?? false
    }

    /// Call it when the response is not to be stored.
    mutating func refuse() {
        // The older response is removed when this one is complete.
        guard older == .outdated else { return end() }
        phase = .nothing
    }

    /// The removal of the older response that the received one outdates; nil if there is nothing to remove.
    var removal: (store: any ResponseStore, request: LoadRequest)? {
        guard older == .outdated, let use else { return nil }
        return (use.store, use.request)
    }

    /// Collects `response` to store it, unless it is known to be too large (rule UC-53).
    ///
    /// - Parameters:
    ///   - head: Nil if a protocol of the program loads the request.
    ///   - isOfUse: Whether the response could be used for other requests.
    /// - Returns: False if it is too large.
    mutating func begin(
        storing response: URLResponse, _ head: ResponseHead?, bodyLength: Int64?, isOfUse: Bool,
        _ storagePolicy: URLCache.StoragePolicy = .allowed
    ) -> Bool {
        guard let maximumSize = use?.store.maximumSize,
            response.expectedContentLength <= Int64(maximumSize)
        else { return false }
        phase = .storing(
            CollectedResponse(
                response, head, bodyLength: bodyLength, maximumSize: maximumSize, isOfUse: isOfUse,
                storagePolicy))
        return true
    }

    /// The decision for a delegate that accepts every proposal unchanged, and therefore need not be asked.
    func storeAsReceived() -> CacheDecision {
        guard let use, let incoming else { return .nothing }
        guard let received = incoming.received(fields, sentAt: sentAt) else {
            return use.store.store(ofProtocol: incoming.cached(), for: use.request)
        }
        return use.store.store(received, for: use.request)
    }

    /// The decision for the response that the delegate wants stored in place of the proposal (rule UC-54).
    func store(_ approved: CachedURLResponse) -> CacheDecision {
        guard let use else { return .nothing }
        guard let incoming, var received = incoming.received(fields, sentAt: sentAt) else {
            return use.store.store(ofProtocol: approved, for: use.request)
        }
        received.approved = approved
        received.isChanged = approved !== incoming.proposal
        return use.store.store(received, for: use.request)
    }
}

extension CachedRequestState {
    /// The decision for a stored response that the server has confirmed.
    func store(_ candidate: FoundResponse, confirmed renewed: CacheEntry, _ confirmed: CachedURLResponse)
        -> CacheDecision
    {
        guard let use else { return .nothing }
        return use.store.store(candidate, confirmed: renewed, confirmed, for: use.request)
    }
}

/// A response that is to be stored, as far as it has been received.
final class CollectedResponse {
    private let response: URLResponse
    /// Nil if a protocol of the program loads the request.
    private let head: ResponseHead?
    private let bodyLength: Int64?
    private let maximumSize: Int
    /// Whether the response could be used for other requests.
    let isOfUse: Bool
    /// The storage policy that the protocol of the program allows.
    private let storagePolicy: URLCache.StoragePolicy
    private let receivedAt = Date()
    private var content = Data()
    /// The response that the delegate was asked about.
    private(set) var proposal: CachedURLResponse?

    fileprivate init(
        _ response: URLResponse, _ head: ResponseHead?, bodyLength: Int64?, maximumSize: Int, isOfUse: Bool,
        _ storagePolicy: URLCache.StoragePolicy
    ) {
        self.response = response
        self.head = head
        self.bodyLength = bodyLength
        self.maximumSize = maximumSize
        self.isOfUse = isOfUse
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

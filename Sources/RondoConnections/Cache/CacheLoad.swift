internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// What a load knows of the cache while one request is under way.
///
/// A class, so that looking at it copies nothing. Inside the gate.
final class CacheLoad {
    let store: any ResponseStore
    let policy: RondoHTTP.CachePolicy
    /// The canonical request, whose URL is the key (rule UC-73).
    let request: LoadRequest
    /// The server is asked whether this is still right, or it may stand in for a server that fails.
    @Boxed var found: FoundResponse?
    /// What a protocol of the program may take for an answer.
    var kept: CachedURLResponse?
    var isRevalidating = false
    /// As they were sent.
    var fields = HeaderFields()
    var sentAt = Date.distantPast
    /// The response that is being stored, and its content so far.
    var response: URLResponse?
    /// Its head; nil where a protocol of the program loads it.
    private var head: ResponseHead?
    private var receivedAt = Date.distantPast
    private var content = Data()
    private var bodyLength: Int64?
    private var maximumSize = 0
    /// A protocol of the program loads it, and has said so of what may be kept.
    private(set) var isOfProtocol = false
    var storagePolicy = URLCache.StoragePolicy.allowed
    /// What the delegate was asked about.
    var proposal: CachedURLResponse?

    /// Nil where the cache has nothing to do with the request.
    init?(_ request: LoadRequest, _ store: any ResponseStore, _ policy: RondoHTTP.CachePolicy) {
        guard CacheRules.concerns(method: request.method, fields: Self.fields(of: request))
        else {
            return nil
        }
        self.store = store
        self.policy = policy
        self.request = request
    }

    /// What is kept and used is for the protocol to say.
    init(ofProtocol request: LoadRequest, _ store: any ResponseStore, _ policy: RondoHTTP.CachePolicy) {
        self.store = store
        self.policy = policy
        self.request = request
        isOfProtocol = true
    }

    private static func fields(of request: LoadRequest) -> HeaderFields {
        request.fields.isEmpty ? HeaderFields() : HeaderFields(request.fields.map { ($0.key, $0.value) })
    }

    // MARK: Storing

    /// The response could answer other requests.
    private(set) var isOfUse = true

    /// Notes whether a response with this head could.
    func isOfUse(_ head: ResponseHead) -> Bool {
        isOfUse = CacheRules.isOfUse(head, policy, now: Date())
        return isOfUse
    }

    /// The content is being collected.
    var isStoring: Bool { response != nil }

    /// Stores `response` from here on, unless it is known to be too large (rule UC-53).
    ///
    /// - Parameter head: Nil where a protocol of the program loads it.
    /// - Returns: False if it is too large.
    func begin(storing response: URLResponse, _ head: ResponseHead?, bodyLength: Int64?) -> Bool {
        maximumSize = store.maximumSize
        guard response.expectedContentLength <= Int64(maximumSize) else { return false }
        self.response = response
        self.head = head
        self.bodyLength = bodyLength
        receivedAt = Date()
        found = nil
        kept = nil
        return true
    }

    /// - Returns: False if the content has become too large.
    func add(_ data: Data) -> Bool {
        guard content.count + data.count <= maximumSize else { return false }
        // Most contents come in one piece.
        if content.isEmpty { content = data } else { content.append(data) }
        return true
    }

    /// All is here: what the delegate is asked about.
    func propose() -> CachedURLResponse? {
        guard proposal == nil, let response else { return nil }
        proposal = cached(response)
        return proposal
    }

    private func cached(_ response: URLResponse) -> CachedURLResponse {
        content = ReceiveBuffer.compact(content)
        return isOfProtocol
            ? CachedURLResponse(response: response, data: content, storagePolicy: storagePolicy)
            : CachedURLResponse(response: response, data: content)
    }

    /// What to do where the delegate takes whatever it would be asked about.
    func storeAsReceived() -> CacheDecision {
        guard let response else { return .nothing }
        guard let head else { return store.store(ofProtocol: cached(response), for: request) }
        content = ReceiveBuffer.compact(content)
        return store.store(received(response, head), for: request)
    }

    /// What to do with what the delegate has made of the proposal (rule UC-54).
    func store(_ answer: CachedURLResponse) -> CacheDecision {
        guard let head, let response else { return store.store(ofProtocol: answer, for: request) }
        if answer.storagePolicy == .notAllowed { return .nothing }
        var received = received(response, head)
        received.answer = answer
        received.isChanged = answer !== proposal
        return store.store(received, for: request)
    }

    private func received(_ response: URLResponse, _ head: ResponseHead) -> ReceivedResponse {
        ReceivedResponse(
            head: head, requestFields: fields, requestedAt: sentAt, receivedAt: receivedAt, content: content,
            response: response, bodyLength: bodyLength)
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

internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// What a load knows of the cache while one request is under way.
///
/// A class, so that looking at it copies nothing. Inside the gate.
final class CacheLoad {
    let store: CacheStore
    let policy: RondoHTTP.CachePolicy
    /// The canonical request, whose URL is the key (rule UC-73).
    let request: URLRequest
    /// The server is asked whether this is still right, or it may stand in for a server that fails.
    var entry: CacheEntry?
    var kept: CachedURLResponse?
    var isRevalidating = false
    /// As they were sent.
    var fields = HeaderFields()
    var sentAt = Date()
    /// The response that is being stored, and its content so far.
    var response: URLResponse?
    var newEntry: CacheEntry?
    var content = Data()
    /// A protocol of the program loads it, and has said so of what may be kept.
    private(set) var isOfProtocol = false
    var storagePolicy = URLCache.StoragePolicy.allowed
    /// What the delegate was asked about.
    var proposal: CachedURLResponse?

    /// Nil where the cache has nothing to do with the request.
    init?(_ request: URLRequest, _ cache: URLCache, _ policy: RondoHTTP.CachePolicy) {
        guard CacheRules.concerns(method: request.httpMethod ?? "GET", fields: Self.fields(of: request))
        else {
            return nil
        }
        store = CacheStore(cache: cache)
        self.policy = policy
        self.request = request
    }

    /// What is kept and used is for the protocol to say.
    init(ofProtocol request: URLRequest, _ cache: URLCache, _ policy: RondoHTTP.CachePolicy) {
        store = CacheStore(cache: cache)
        self.policy = policy
        self.request = request
        isOfProtocol = true
    }

    /// The content is being collected.
    var isStoring: Bool { newEntry != nil || (isOfProtocol && response != nil) }

    private static func fields(of request: URLRequest) -> HeaderFields {
        HeaderFields((request.allHTTPHeaderFields ?? [:]).map { ($0.key, $0.value) })
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

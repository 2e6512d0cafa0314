internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// What a configuration says.
///
/// `@unchecked Sendable`: a class is the same on every thread; the rest is Sendable.
struct SessionValues: @unchecked Sendable {
    /// Values that are kept and have no effect.
    struct Unused {
        var networkServiceType = NSURLRequest.NetworkServiceType.default
        var allowsCellularAccess = true
        var allowsExpensiveNetworkAccess = true
        var allowsConstrainedNetworkAccess = true
        var isDiscretionary = false
        var sharedContainerIdentifier: String?
        var sessionSendsLaunchEvents = false
        var usesExtendedIdleMode = false
        var usesPipelining = false
        var multipathServiceType = URLSessionConfiguration.MultipathServiceType.none
    }

    /// What `URLRequest` has where nothing was set.
    private static let requestsOwnTimeout: TimeInterval = 60

    var connection = URLConnection.Configuration()
    var cachePolicy = NSURLRequest.CachePolicy.useProtocolCachePolicy
    var requestTimeout: TimeInterval = SessionValues.requestsOwnTimeout
    var resourceTimeout: TimeInterval = 604_800
    var additionalFields: [(name: String, value: String)] = []
    var connectionsPerHost = 6
    var waitsForConnectivity = false
    var protocolClasses: [AnyClass]? = []
    /// Nil: as `connection` says.
    var cookieStorage: HTTPCookieStorage??
    var sendsCookies = true
    var cookiePolicy = HTTPCookie.AcceptPolicy.onlyFromMainDocumentDomain
    var credentialStorage: URLCredentialStorage? = .shared
    /// Nil: as `connection` says.
    var cache: URLCache??
    var unused = Unused()

    /// What loads are given.
    func settings(_ pool: ConnectionPool, countsRegisteredClasses: Bool) -> LoadSettings {
        var settings = SessionSettings()
        settings.connection = connection
        settings.pool = pool
        settings.totalTimeout = resourceTimeout > 0 ? resourceTimeout : nil
        settings.waitsForConnectivity = waitsForConnectivity
        settings.cookieStorage = cookieStorage
        settings.sendsCookies = sendsCookies
        settings.cookiePolicy = cookiePolicy
        settings.credentialStorage = credentialStorage
        settings.cache = cache
        settings.protocolClasses = protocolClasses ?? []
        settings.countsRegisteredClasses = countsRegisteredClasses
        return settings.loadSettings
    }

    /// `request` as it is sent: what it does not say itself the configuration says (rules US-11 and US-12).
    func configured(_ request: URLRequest) -> URLRequest {
        var configured = request
        if request.cachePolicy == .useProtocolCachePolicy, cachePolicy != .useProtocolCachePolicy {
            configured.cachePolicy = cachePolicy
        }
        if request.timeoutInterval == Self.requestsOwnTimeout, requestTimeout != Self.requestsOwnTimeout {
            configured.timeoutInterval = requestTimeout
        }
        for (name, value) in additionalFields where configured.value(forHTTPHeaderField: name) == nil {
            // `setValue` would spell the name in Foundation's way.
            configured.allHTTPHeaderFields = (configured.allHTTPHeaderFields ?? [:]).merging([name: value]) {
                own, _ in own
            }
        }
        return configured
    }
}

internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// The values of a configuration.
///
/// `@unchecked Sendable`: the only member that is not Sendable is `protocolClasses`, and a class is the same
/// on every thread.
struct SessionValues: @unchecked Sendable {
    /// Values that are kept and have no effect (rule US-15).
    struct Unused {
        var networkServiceType = NSURLRequest.NetworkServiceType.default
        var allowsCellularAccess = true
        var allowsExpensiveNetworkAccess = true
        var allowsConstrainedNetworkAccess = true
        var allowsUltraConstrainedNetworkAccess = false
        var usesClassicLoadingMode = true
        var isDiscretionary = false
        var sharedContainerIdentifier: String?
        var sessionSendsLaunchEvents = false
        var usesExtendedIdleMode = false
        var usesPipelining = false
        var multipathServiceType = URLSessionConfiguration.MultipathServiceType.none
    }

    /// The timeout of a `URLRequest` in which none was set, in seconds.
    private static let requestsOwnTimeout: TimeInterval = 60

    var connection = URLConnection.Configuration()
    var cachePolicy = NSURLRequest.CachePolicy.useProtocolCachePolicy
    var requestTimeout: TimeInterval = SessionValues.requestsOwnTimeout
    var resourceTimeout: TimeInterval = 604_800
    var additionalFields: [(name: String, value: String)] = []
    var connectionsPerHost = 6
    var waitsForConnectivity = false
    /// Nil: the process's.
    var hstsHosts: OwnHSTSHosts?
    var protocolClasses: [AnyClass]? = []
    /// The outer nil means the storage of `connection`.
    var cookieStorage: HTTPCookieStorage??
    var sendsCookies = true
    var cookiePolicy = HTTPCookie.AcceptPolicy.onlyFromMainDocumentDomain
    var credentialStorage: URLCredentialStorage? = .shared
    /// The outer nil means the cache of `connection`.
    var cache: URLCache??
    var unused = Unused()

    /// The resource timeout in seconds; nil if it is 0, which sets no limit.
    var totalTimeout: TimeInterval? { resourceTimeout > 0 ? resourceTimeout : nil }

    /// The settings for the session's loads.
    func settings(_ pool: ConnectionPool, countsRegisteredClasses: Bool) -> LoadSettings {
        var settings = SessionSettings()
        settings.connection = connection
        settings.pool = pool
        settings.totalTimeout = totalTimeout
        settings.waitsForConnectivity = waitsForConnectivity
        settings.cookieStorage = cookieStorage
        settings.sendsCookies = sendsCookies
        settings.cookiePolicy = cookiePolicy
        settings.credentialStorage = credentialStorage
        settings.cache = cache
        settings.hstsHosts = hstsHosts
        settings.protocolClasses = protocolClasses ?? []
        settings.countsRegisteredClasses = countsRegisteredClasses
        return settings.loadSettings
    }

    /// `request` with the values of the configuration where it has none of its own (rules US-11 and US-12).
    ///
    /// - Parameter mayAdd: Says whether the field of that name may be added.
    func configured(_ request: URLRequest, where mayAdd: (String) -> Bool = { _ in true }) -> URLRequest {
        // A request without a URL is never sent, and Foundation traps when one is changed.
        guard request.url != nil else { return request }
        var configured = request
        if request.cachePolicy == .useProtocolCachePolicy, cachePolicy != .useProtocolCachePolicy {
            configured.cachePolicy = cachePolicy
        }
        if request.timeoutInterval == Self.requestsOwnTimeout, requestTimeout != Self.requestsOwnTimeout {
            configured.timeoutInterval = requestTimeout
        }
        for (name, value) in additionalFields
        where configured.value(forHTTPHeaderField: name) == nil && mayAdd(name) {
            // `setValue` would change the spelling of the name.
            configured.allHTTPHeaderFields = (configured.allHTTPHeaderFields ?? [:]).merging([name: value]) {
                own, _ in own
            }
        }
        return configured
    }
}

public import FoundationNetworking
public import RondoConnections
public import RondoCore
internal import RondoMutex
internal import RondoStreams

/// The settings of a session. A session copies its configuration: later changes affect only sessions made
/// afterwards (rule US-6).
///
/// Any thread may use it. The counterpart of Apple's class of that name; `connection` is Rondo's addition.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: every property is behind the lock.

    private let state: Mutex<State>

    /// The values of the properties. `@unchecked Sendable`: any thread may use Foundation's storages, which
    /// are among them. The values in the header dictionary are only read.
    private struct State: @unchecked Sendable {
        var values = SessionValues()
        var additionalHeaders: [AnyHashable: Any]?
        var proxyDictionary: [AnyHashable: Any]?
    }

    /// Makes a configuration equal to `.default`.
    @available(*, deprecated, message: "Use .default instead.", renamed: "URLSessionConfiguration.default")
    public override init() {
        state = Mutex(State())
        super.init()
    }

    private init(_ given: State) {
        state = Mutex(given)
        super.init()
    }

    /// A new configuration with the shared storages for cookies, credentials and responses (rule US-7).
    open class var `default`: URLSessionConfiguration { URLSessionConfiguration(State()) }

    /// A new configuration with new storages of its own, in memory only: nothing reaches the disk or another
    /// session (rule US-8).
    open class var ephemeral: URLSessionConfiguration {
        var state = State()
        state.values.hstsHosts = OwnHSTSHosts()
        // Only Foundation can make these two storages.
        let storages = FoundationNetworking.URLSessionConfiguration.ephemeral
        state.values.cookieStorage = .some(storages.httpCookieStorage)
        state.values.credentialStorage = storages.urlCredentialStorage
        state.values.cache = .some(
            URLConnection.Cache(
                memoryCapacity: URLConnection.Cache.defaultMemoryCapacity, diskCapacity: 0, diskPath: nil))
        return URLSessionConfiguration(state)
    }

    /// Not available: no system service carries transfers on Linux (rule US-10).
    @available(
        *, unavailable,
        message:
            "No system service carries transfers on Linux: use download tasks, and go on with their resume data."
    )
    open class func background(withIdentifier identifier: String) -> URLSessionConfiguration { .default }

    /// Empties the cache and the credential storage.
    func emptyStorages() {
        urlCache?.removeAllCachedResponses()
        if let storage = urlCredentialStorage {
            for (space, credentials) in storage.allCredentials {
                for credential in credentials.values { storage.remove(credential, for: space) }
            }
            // Otherwise they would be back with the program's next start.
            if storage === URLCredentialStorage.shared { LoadStorage.forgetPermanentCredentials() }
        }
    }

    /// A new configuration with the same values.
    open override func copy() -> Any { copy(with: nil) }

    /// A new configuration with the same values; `zone` is ignored.
    open func copy(with zone: NSZone? = nil) -> Any { URLSessionConfiguration(state.withLock { $0 }) }

    /// The values that a session uses.
    var values: SessionValues {
        state.withLock { state in
            var values = state.values
            values.additionalFields = (state.additionalHeaders ?? [:]).map { ("\($0.key)", "\($0.value)") }
                .sorted { $0.0 < $1.0 }
            if let dictionary = state.proxyDictionary, let proxy = ProxyDictionary.choice(dictionary) {
                values.connection.proxy = proxy
            }
            return values
        }
    }

    private func get<Value>(_ path: any KeyPath<SessionValues, Value> & Sendable) -> Value {
        state.withLock { $0 }.values[keyPath: path]
    }

    private func set<Value>(_ path: any WritableKeyPath<SessionValues, Value> & Sendable, _ value: Value) {
        replace { $0.values[keyPath: path] = value }
    }

    /// Changes the state. The old values may run a `deinit`, so they are released after the lock.
    private func replace(_ change: (inout State) -> Void) {
        let old = state.withLock { state in
            let old = state
            change(&state)
            return old
        }
        withExtendedLifetime(old) {}
    }

    // MARK: - Rondo's addition

    /// Settings that Apple's configuration lacks: TLS, proxy, limits for content, diagnostics (rule US-16). A
    /// property of this class that was set takes precedence.
    open var connection: URLConnection.Configuration {
        get { get(\.connection) }
        set { set(\.connection, newValue) }
    }

    // MARK: - Requests

    /// Always nil: there are no background sessions (rule US-10).
    open var identifier: String? { nil }

    /// The cache policy of requests that have the default policy (rule US-12).
    open var requestCachePolicy: NSURLRequest.CachePolicy {
        get { get(\.cachePolicy) }
        set { set(\.cachePolicy, newValue) }
    }

    /// Seconds without progress after which a task fails with `URLError.timedOut`; 60 unless set. A request
    /// with a timeout other than 60 s keeps its own (rules US-12 and US-68).
    open var timeoutIntervalForRequest: TimeInterval {
        get { get(\.requestTimeout) }
        set { set(\.requestTimeout, newValue) }
    }

    /// Seconds from the first `resume()` after which a task fails with `URLError.timedOut`, however much has
    /// arrived; seven days unless set, 0 for no limit (rule US-69).
    open var timeoutIntervalForResource: TimeInterval {
        get { get(\.resourceTimeout) }
        set { set(\.resourceTimeout, newValue) }
    }

    /// Header fields, names to values, that are added to requests without a field of that name (rule US-11).
    open var httpAdditionalHeaders: [AnyHashable: Any]? {
        get { state.withLock { $0 }.additionalHeaders }
        set { replace { $0.additionalHeaders = newValue } }
    }

    /// Proxies by CFNetwork's keys (rule US-15): `HTTPEnable`, `HTTPProxy`, `HTTPPort` for http, the same
    /// with `HTTPS` for https, and with `SOCKS` for each of the two that has no proxy of its own. Stream
    /// tasks use the first of HTTPS, HTTP and SOCKS. A port that is not given is 80, or 1080 for SOCKS.
    ///
    /// `ExceptionsList` and `ExcludeSimpleHostnames` name hosts that are reached without a proxy. The list
    /// has names, addresses, networks such as `169.254/16`, and patterns, in which `*` stands for any
    /// characters or none: `a.example` does not stand for `b.a.example`, nor `*.a.example` for `a.example`.
    ///
    /// User and password are read from `kCFProxyUsernameKey` and `kCFProxyPasswordKey`, and for SOCKS also,
    /// with the version, from the keys of streams (`kCFStreamPropertySOCKSUser` and so on). An HTTP proxy
    /// gets them by Basic authentication before it asks (`StreamProxy.userName`). Other keys, such as those
    /// of automatic configuration, have no effect.
    ///
    /// A dictionary that is empty, or whose `Enable` keys are all off, means no proxy. Nil, or a dictionary
    /// without such a key, leaves the proxy of `connection`. A task for which an enabled proxy has no host, a
    /// port that does not exist, or an unknown version fails with `URLError.unsupportedURL`.
    open var connectionProxyDictionary: [AnyHashable: Any]? {
        get { state.withLock { $0 }.proxyDictionary }
        set { replace { $0.proxyDictionary = newValue } }
    }

    /// The connections of the session to one host and port that may be in use at once: at least 1, and 6
    /// unless set (rule US-71).
    open var httpMaximumConnectionsPerHost: Int {
        get { get(\.connectionsPerHost) }
        set { set(\.connectionsPerHost, newValue) }
    }

    /// Whether a task waits for a network if there is none, instead of failing (rule US-70); false unless
    /// set.
    open var waitsForConnectivity: Bool {
        get { get(\.waitsForConnectivity) }
        set { set(\.waitsForConnectivity, newValue) }
    }

    /// The `URLProtocol` classes that are asked, in this order, before Rondo loads a request itself. Classes
    /// registered with `URLProtocol.registerClass` count only for the shared session and for `URLConnection`
    /// (rule US-14).
    open var protocolClasses: [AnyClass]? {
        get { get(\.protocolClasses) }
        set { set(\.protocolClasses, newValue) }
    }

    // MARK: - Storages

    /// The cookie storage; with nil no cookies are sent or kept (rule US-13).
    open var httpCookieStorage: HTTPCookieStorage? {
        get { values.cookieStorage ?? connection.cookieStorage }
        set { set(\.cookieStorage, .some(newValue)) }
    }

    /// Whether cookies of the storage are sent; true unless set.
    open var httpShouldSetCookies: Bool {
        get { get(\.sendsCookies) }
        set { set(\.sendsCookies, newValue) }
    }

    /// Which cookies are kept; takes precedence over the storage's own policy (rule US-13).
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy {
        get { get(\.cookiePolicy) }
        set { set(\.cookiePolicy, newValue) }
    }

    /// The credential storage; with nil it is neither read nor written (rule US-13).
    open var urlCredentialStorage: URLCredentialStorage? {
        get { get(\.credentialStorage) }
        set { set(\.credentialStorage, newValue) }
    }

    /// The cache; with nil no response is stored or used (rule US-13).
    open var urlCache: URLCache? {
        get { values.cache ?? connection.cache }
        set { set(\.cache, .some(newValue)) }
    }

    // MARK: - Without effect here (rule US-15)

    /// Kept, without effect.
    open var networkServiceType: NSURLRequest.NetworkServiceType {
        get { get(\.unused.networkServiceType) }
        set { set(\.unused.networkServiceType, newValue) }
    }
    /// Kept, without effect.
    open var allowsCellularAccess: Bool {
        get { get(\.unused.allowsCellularAccess) }
        set { set(\.unused.allowsCellularAccess, newValue) }
    }
    /// Kept, without effect.
    open var allowsExpensiveNetworkAccess: Bool {
        get { get(\.unused.allowsExpensiveNetworkAccess) }
        set { set(\.unused.allowsExpensiveNetworkAccess, newValue) }
    }
    /// Kept, without effect.
    open var allowsConstrainedNetworkAccess: Bool {
        get { get(\.unused.allowsConstrainedNetworkAccess) }
        set { set(\.unused.allowsConstrainedNetworkAccess, newValue) }
    }
    /// Kept, without effect; false unless set, as Apple's.
    open var allowsUltraConstrainedNetworkAccess: Bool {
        get { get(\.unused.allowsUltraConstrainedNetworkAccess) }
        set { set(\.unused.allowsUltraConstrainedNetworkAccess, newValue) }
    }
    /// Kept, without effect: there is one loader; true unless set, as Apple's.
    open var usesClassicLoadingMode: Bool {
        get { get(\.unused.usesClassicLoadingMode) }
        set { set(\.unused.usesClassicLoadingMode, newValue) }
    }
    /// Kept, without effect.
    open var isDiscretionary: Bool {
        get { get(\.unused.isDiscretionary) }
        set { set(\.unused.isDiscretionary, newValue) }
    }
    /// Kept, without effect.
    open var sharedContainerIdentifier: String? {
        get { get(\.unused.sharedContainerIdentifier) }
        set { set(\.unused.sharedContainerIdentifier, newValue) }
    }
    /// Kept, without effect.
    open var sessionSendsLaunchEvents: Bool {
        get { get(\.unused.sessionSendsLaunchEvents) }
        set { set(\.unused.sessionSendsLaunchEvents, newValue) }
    }
    /// Kept, without effect.
    open var shouldUseExtendedBackgroundIdleMode: Bool {
        get { get(\.unused.usesExtendedIdleMode) }
        set { set(\.unused.usesExtendedIdleMode, newValue) }
    }
    /// Kept, without effect.
    open var httpShouldUsePipelining: Bool {
        get { get(\.unused.usesPipelining) }
        set { set(\.unused.usesPipelining, newValue) }
    }
    /// Kept, without effect.
    open var multipathServiceType: MultipathServiceType {
        get { get(\.unused.multipathServiceType) }
        set { set(\.unused.multipathServiceType, newValue) }
    }

    /// How connections use several networks; without effect. The raw values are Apple's.
    public enum MultipathServiceType: Int, Sendable {
        case none = 0
        case handover = 1
        case interactive = 2
        case aggregate = 3
    }

    /// Not available: a value that had no effect would promise a validation that does not take place (rule
    /// US-15).
    @available(
        *, unavailable,
        message: "The system's resolver looks names up: let that one validate, as systemd-resolved can."
    )
    open var requiresDNSSECValidation: Bool {
        get { false }
        set {}
    }

    // MARK: - TLS

    /// The oldest version of TLS that is accepted; TLS 1.2 unless set. Older versions are not supported and
    /// count as TLS 1.2.
    open var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t {
        get { tls_protocol_version_t(connection.tls.minimumVersion) }
        set { set(\.connection.tls.minimumVersion, newValue.version) }
    }

    /// The newest version of TLS that is offered; TLS 1.3 unless set.
    open var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t {
        get { tls_protocol_version_t(connection.tls.maximumVersion) }
        set { set(\.connection.tls.maximumVersion, newValue.version) }
    }
}

extension tls_protocol_version_t {
    /// Versions older than TLS 1.2 count as TLS 1.2.
    fileprivate init(_ version: TLSSettings.Version) { self = version == .tls13 ? .TLSv13 : .TLSv12 }

    /// Versions older than TLS 1.2 count as TLS 1.2.
    fileprivate var version: TLSSettings.Version { self == .TLSv13 ? .tls13 : .tls12 }
}

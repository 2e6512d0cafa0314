public import FoundationNetworking
public import RondoConnections
public import RondoCore
internal import RondoMutex

/// How a session loads. A session copies it when it is made: what is changed later counts for other sessions.
///
/// Any thread. The counterpart of Apple's class of that name; what Rondo has beside that is `connection`.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: all of it is behind the lock.

    private let state: Mutex<State>

    /// `@unchecked Sendable`: values, and Foundation's storages, which any thread may use; of the headers' values none is
    /// changed here.
    private struct State: @unchecked Sendable {
        var values = SessionValues()
        var additionalHeaders: [AnyHashable: Any]?
        var proxyDictionary: [AnyHashable: Any]?
    }

    /// As `.default`.
    @available(*, deprecated, message: "Use .default instead.", renamed: "URLSessionConfiguration.default")
    public override init() {
        state = Mutex(State())
        super.init()
    }

    private init(_ given: State) {
        state = Mutex(given)
        super.init()
    }

    /// Shared storages for cookies, credentials and responses. A new object each time.
    open class var `default`: URLSessionConfiguration { URLSessionConfiguration(State()) }

    /// Storages of its own, in memory only, a fresh set each time: nothing of it reaches the disk or another session.
    open class var ephemeral: URLSessionConfiguration {
        var state = State()
        // Foundation alone can make these two.
        let storages = FoundationNetworking.URLSessionConfiguration.ephemeral
        state.values.cookieStorage = .some(storages.httpCookieStorage)
        state.values.credentialStorage = storages.urlCredentialStorage
        state.values.cache = .some(
            URLConnection.Cache(
                memoryCapacity: URLConnection.Cache.defaultMemoryCapacity, diskCapacity: 0, diskPath: nil))
        return URLSessionConfiguration(state)
    }

    @available(
        *, unavailable,
        message:
            "No system service carries transfers on Linux: use download tasks, and go on with their resume data."
    )
    open class func background(withIdentifier identifier: String) -> URLSessionConfiguration { .default }

    /// Empties the cookies, cache and credentials that it names.
    func emptyStorages() {
        urlCache?.removeAllCachedResponses()
        if let storage = httpCookieStorage {
            for cookie in storage.cookies ?? [] { storage.deleteCookie(cookie) }
        }
        if let storage = urlCredentialStorage {
            for (space, credentials) in storage.allCredentials {
                for credential in credentials.values { storage.remove(credential, for: space) }
            }
        }
    }

    open override func copy() -> Any { copy(with: nil) }

    open func copy(with zone: NSZone? = nil) -> Any { URLSessionConfiguration(state.withLock { $0 }) }

    /// What a session takes of it.
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
        // What is released must not be released under the lock.
        var changed = state.withLock { $0 }
        let old = changed
        changed.values[keyPath: path] = value
        let new = changed
        state.withLock { $0 = new }
        withExtendedLifetime(old) {}
    }

    // MARK: - What Rondo has besides

    /// All that Apple's configuration has no place for: TLS, proxy, limits for content, diagnostics (rule US-16). A property
    /// of this class that was set wins over it.
    open var connection: URLConnection.Configuration {
        get { get(\.connection) }
        set { set(\.connection, newValue) }
    }

    // MARK: - Requests

    /// Nil: there are no background sessions.
    open var identifier: String? { nil }

    /// The policy of requests that name none, which is to say the default one (rule US-12).
    open var requestCachePolicy: NSURLRequest.CachePolicy {
        get { get(\.cachePolicy) }
        set { set(\.cachePolicy, newValue) }
    }

    /// Seconds without a sign of life after which a task fails; 60 unless set. A request whose timeout is another than 60 s
    /// has its own (rule US-12).
    open var timeoutIntervalForRequest: TimeInterval {
        get { get(\.requestTimeout) }
        set { set(\.requestTimeout, newValue) }
    }

    /// Seconds from the first `resume()` after which a task fails, whatever has come by then; seven days unless set.
    open var timeoutIntervalForResource: TimeInterval {
        get { get(\.resourceTimeout) }
        set { set(\.resourceTimeout, newValue) }
    }

    /// Header fields that are added to requests that lack them (rule US-11).
    open var httpAdditionalHeaders: [AnyHashable: Any]? {
        get { state.withLock { $0 }.additionalHeaders }
        set {
            var changed = state.withLock { $0 }
            changed.additionalHeaders = newValue
            let new = changed
            state.withLock { $0 = new }
        }
    }

    /// A proxy by the keys of CFNetwork: `HTTPEnable`, `HTTPProxy`, `HTTPPort`, and the same of `HTTPS` and `SOCKS`. Where
    /// several are named, HTTPS goes before HTTP and SOCKS. Nil: as `connection` says.
    open var connectionProxyDictionary: [AnyHashable: Any]? {
        get { state.withLock { $0 }.proxyDictionary }
        set {
            var changed = state.withLock { $0 }
            changed.proxyDictionary = newValue
            let new = changed
            state.withLock { $0 = new }
        }
    }

    /// Connections of the session to one host and port that may be in use at once; 6 unless set. At least 1.
    open var httpMaximumConnectionsPerHost: Int {
        get { get(\.connectionsPerHost) }
        set { set(\.connectionsPerHost, newValue) }
    }

    /// Whether a task waits for a network where there is none, instead of failing (rule US-70).
    open var waitsForConnectivity: Bool {
        get { get(\.waitsForConnectivity) }
        set { set(\.waitsForConnectivity, newValue) }
    }

    /// Asked in this order before Rondo loads a request itself. Classes that were registered with `URLProtocol` count for the
    /// shared session and for connections only (rule US-14).
    open var protocolClasses: [AnyClass]? {
        get { get(\.protocolClasses) }
        set { set(\.protocolClasses, newValue) }
    }

    // MARK: - Storages

    /// Nil: no cookies are sent or kept.
    open var httpCookieStorage: HTTPCookieStorage? {
        get { values.cookieStorage ?? connection.cookieStorage }
        set { set(\.cookieStorage, .some(newValue)) }
    }

    /// Whether cookies of the storage are sent.
    open var httpShouldSetCookies: Bool {
        get { get(\.sendsCookies) }
        set { set(\.sendsCookies, newValue) }
    }

    /// Which cookies are kept, whatever the storage says.
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy {
        get { get(\.cookiePolicy) }
        set { set(\.cookiePolicy, newValue) }
    }

    /// Nil: credentials are neither looked for nor kept.
    open var urlCredentialStorage: URLCredentialStorage? {
        get { get(\.credentialStorage) }
        set { set(\.credentialStorage, newValue) }
    }

    /// Nil: no response is stored or used.
    open var urlCache: URLCache? {
        get { values.cache ?? connection.cache }
        set { set(\.cache, .some(newValue)) }
    }

    // MARK: - Without effect here (rule US-15)

    open var networkServiceType: NSURLRequest.NetworkServiceType {
        get { get(\.unused.networkServiceType) }
        set { set(\.unused.networkServiceType, newValue) }
    }
    open var allowsCellularAccess: Bool {
        get { get(\.unused.allowsCellularAccess) }
        set { set(\.unused.allowsCellularAccess, newValue) }
    }
    open var allowsExpensiveNetworkAccess: Bool {
        get { get(\.unused.allowsExpensiveNetworkAccess) }
        set { set(\.unused.allowsExpensiveNetworkAccess, newValue) }
    }
    open var allowsConstrainedNetworkAccess: Bool {
        get { get(\.unused.allowsConstrainedNetworkAccess) }
        set { set(\.unused.allowsConstrainedNetworkAccess, newValue) }
    }
    open var isDiscretionary: Bool {
        get { get(\.unused.isDiscretionary) }
        set { set(\.unused.isDiscretionary, newValue) }
    }
    open var sharedContainerIdentifier: String? {
        get { get(\.unused.sharedContainerIdentifier) }
        set { set(\.unused.sharedContainerIdentifier, newValue) }
    }
    open var sessionSendsLaunchEvents: Bool {
        get { get(\.unused.sessionSendsLaunchEvents) }
        set { set(\.unused.sessionSendsLaunchEvents, newValue) }
    }
    open var shouldUseExtendedBackgroundIdleMode: Bool {
        get { get(\.unused.usesExtendedIdleMode) }
        set { set(\.unused.usesExtendedIdleMode, newValue) }
    }
    open var httpShouldUsePipelining: Bool {
        get { get(\.unused.usesPipelining) }
        set { set(\.unused.usesPipelining, newValue) }
    }
    open var multipathServiceType: MultipathServiceType {
        get { get(\.unused.multipathServiceType) }
        set { set(\.unused.multipathServiceType, newValue) }
    }

    public enum MultipathServiceType: Int, Sendable {
        case none = 0
        case handover = 1
        case interactive = 2
        case aggregate = 3
    }

    // MARK: - TLS

    /// The oldest version of TLS that is spoken; TLS 1.2 unless set. Older ones are not to be had.
    open var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t {
        get { connection.tls.minimumVersion == .tls13 ? .TLSv13 : .TLSv12 }
        set { connection.tls.minimumVersion = newValue == .TLSv13 ? .tls13 : .tls12 }
    }

    /// The newest version of TLS that is spoken; TLS 1.3 unless set.
    open var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t {
        get { connection.tls.maximumVersion == .tls12 ? .TLSv12 : .TLSv13 }
        set { connection.tls.maximumVersion = newValue == .TLSv13 ? .tls13 : .tls12 }
    }
}

public import FoundationNetworking
public import RondoCore
internal import RondoMutex
public import RondoStreams

extension URLConnection {
    /// The settings of a connection that Apple's `URLRequest` has no place for.
    public struct Configuration: Sendable {
        /// How servers are verified, and which TLS versions are allowed.
        ///
        /// The client identity and the server name apply only to the origin of the first request (scheme,
        /// host and port): after a redirect to another origin they are not used, like Authorization (rule
        /// UC-33). All other settings apply wherever redirects lead; pinned keys have to match there, too.
        /// Loads offer only "http/1.1" of `alpn`; stream tasks of a session offer all of it.
        public var tls = TLSSettings()

        /// The proxy that the connection uses.
        public var proxy = ProxyChoice.environment

        /// Where connections lead, from which local address, and how long establishing one may take. Loads
        /// share a connection only if they agree on both ends of it.
        public var connect = ConnectSettings()

        /// The maximum time of the whole load in seconds of the monotonic clock, whether the load's modes run
        /// or not. After it the load fails with `timedOut`, in a pass in one of its modes. Nil for no limit
        /// (rule UC-58 limits idle time). The corresponding property of URLSession is
        /// `timeoutIntervalForResource`.
        public var totalTimeout: TimeInterval?

        /// Which redirects are followed.
        public var redirects = RedirectPolicy()

        /// Fields that are sent with each request to a server, after the request's own, each as often as it
        /// occurs here. Requests to another origin than the first one do not send `Authorization`, `Cookie`
        /// and `Proxy-Authorization` (rule UC-33). `Content-Length`, `Transfer-Encoding` and `Host` are set
        /// by Rondo only. Stored cookies are added behind those of `Cookie`, in one field.
        public var additionalFields: [HeaderField] = []

        /// The fields sent to a proxy that is asked for a tunnel, besides `Host` and `Proxy-Authorization`;
        /// nil: the `User-Agent` of `additionalFields`.
        package var tunnelFields: [HeaderField]?

        /// The request target that is sent in place of the URL's path and query, for example `*`, wherever
        /// redirects lead; nil for the URL's. A proxy gets it behind the server's address, in place of `*`
        /// that address alone, and a whole URL as it is.
        public var requestTarget: String?

        /// Whether content codings are decoded, and the parts of a `multipart/x-mixed-replace` separated. If
        /// false, the delegate gets the body as it was transferred.
        public var decodesContent = true

        /// Whether the parts of a `multipart/x-mixed-replace` are separated, if `decodesContent` is true.
        package var separatesParts = true

        /// The maximum of body bytes read each second, averaged over some seconds; nil for no limit. Further
        /// bytes wait in the kernel, and TCP holds the server back.
        public var maximumBytesPerSecond: Int?

        /// Names of header fields that are not sent unless the request has them: of `Accept`,
        /// `Accept-Encoding` and `User-Agent`, which are added otherwise, and of the `Content-Length` of a
        /// POST, PUT or PATCH without a body.
        public var omittedFields: [String] = []

        /// The storage for cookies (rule UC-57), `HTTPCookieStorage.shared` unless set. If nil, no cookies
        /// are sent or kept, whatever the request says.
        ///
        /// Cookies that the program has set or deleted in the storage take effect with the next request. So
        /// do cookies that a response sets; they are in the storage when the load has finished. A thread puts
        /// them there, because Foundation writes its file for each cookie, and the end of the load waits for
        /// that thread, unless more than 400 cookies wait. If a cookie comes again with nothing new but an
        /// expiry that is less than a minute later, the storage keeps the earlier expiry. A domain keeps 180
        /// cookies, a storage 3,300. Beyond that expired cookies are removed first, then, if a domain has too
        /// many, those that are not `Secure`, and last the others; each time first those that were set
        /// longest ago.
        ///
        /// Cookies that loads receive for the shared storage are also written to `cookies.sqlite`, beside
        /// Foundation's own file, below `$XDG_DATA_HOME` or `~/.local/share` in a folder named after the
        /// program's own folder; files are created with mode 0600, folders with 0700. A cookie that has an
        /// expiry is in that database when the load has finished. Foundation's file is written once a second
        /// at most, and when the program ends in an orderly way. After a process was killed, the next process
        /// adds the cookies that Foundation's file lacks to the storage at its first request. A broken
        /// database is discarded. If it cannot be written, cookies are remembered until the program ends, and
        /// one warning in the log, `rondo.connections`, says so. Other storages are kept by Foundation only.
        public var cookieStorage: HTTPCookieStorage? {
            get { usesCookies ? ownCookieStorage ?? FoundationCookies.sharedStorage : nil }
            set {
                ownCookieStorage = newValue
                usesCookies = newValue != nil
            }
        }
        /// Nil for the shared storage, which is made when a load first needs it.
        fileprivate var ownCookieStorage: HTTPCookieStorage?
        fileprivate var usesCookies = true

        /// The cache for responses (rules UC-53 to UC-56), `URLCache.shared` unless set, which is a `Cache`
        /// from the start. If nil, no responses are kept or used.
        public var cache: URLCache? {
            get { usesCache ? ownCache ?? .shared : nil }
            set {
                ownCache = newValue
                usesCache = newValue != nil
            }
        }
        /// Nil for the shared cache, which is not made before a load needs it.
        fileprivate var ownCache: URLCache?
        fileprivate var usesCache = true

        /// Limits for decoded content.
        public var contentLimits = ContentLimits()

        /// How many seconds a body waits for the server's go-ahead if the request has `Expect: 100-continue`.
        /// After that it is sent without one (rule UC-42). curl waits as long.
        public var goAheadTimeout: TimeInterval = 1

        /// Called for each step of a load that the delegate's methods do not report, as it happens, on the
        /// thread that serves the connection; for logs and for `rondo fetch -v`.
        public var onDiagnostic: (@Sendable (Diagnostic) -> Void)?

        /// Whether the load begins at another origin than the one that the configuration was made for. Set by
        /// a resumed download alone.
        var beginsElsewhere = false

        public init() {}
    }

    /// A configuration behind a reference, and the load settings made from it.
    final class Settings: Sendable {
        static let standard = Settings(Configuration())

        let configuration: Configuration
        let load: LoadSettings

        init(_ configuration: Configuration) {
            self.configuration = configuration
            load = LoadSettings(configuration.loadValues)
        }

        /// - Parameter load: Settings that were not made from a configuration.
        init(_ load: LoadSettings) {
            configuration = Configuration()
            self.load = load
        }
    }
}

extension URLConnection.Configuration {
    var loadValues: LoadSettings.Values {
        var values = LoadSettings.Values(store: store, refresh: { CacheRefresh.begin($0, $1) })
        values.tls = tls
        values.proxy = proxy.selection
        values.omittedFields = omittedFields
        values.cookieStore =
            usesCookies ? ownCookieStorage.map(CookieStores.store) ?? CookieStores.shared : nil
        values.contentLimits = contentLimits.values
        values.goAheadTimeout = goAheadTimeout
        values.connect = connect.sharedPart
        values.connectTimeout = connect.timeout
        values.totalTimeout = totalTimeout
        values.redirects = RedirectSettings(follows: redirects.follows, maximum: redirects.maximum)
        values.additionalFields = additionalFields.map { ($0.name, $0.value) }
        values.tunnelFields = tunnelFields?.map { ($0.name, $0.value) }
        values.beginsElsewhere = beginsElsewhere
        values.requestTarget = requestTarget
        values.decodesContent = decodesContent
        values.separatesParts = separatesParts
        values.maximumRate = maximumBytesPerSecond
        if let tell = onDiagnostic { values.onStep = { tell(URLConnection.Diagnostic($0)) } }
        return values
    }

    private var store: @Sendable () -> (any ResponseStore)? {
        guard usesCache else { return { nil } }
        guard let ownCache else { return { Self.asking.withLock { _ in URLCache.shared }.responseStore } }
        return { ownCache.responseStore }
    }

    /// Held while a load asks for the shared cache, which the program may change at any time.
    ///
    /// `URLCache.shared` has a lock that is handed over to waiting threads: where loops share few cores, they
    /// queue for it. This lock is not handed over, and keeps them from waiting for the other. (W5, 8 loops on
    /// two cores: 11.6 µs of CPU for a request in each of 16 runs; without it 14.4, and 31 in one run of
    /// six.)
    private static let asking = UnfairMutex(())
}

extension URLConnection {
    /// The choice of a connection's proxy.
    public struct ProxyChoice: Sendable, Hashable {
        let selection: ProxySelection

        private init(_ selection: ProxySelection) { self.selection = selection }

        /// The proxy that the environment names: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, by
        /// the rules that curl documents. The environment is read once, at the first load of the process.
        public static let environment = ProxyChoice(.environment)
        /// No proxy.
        public static let direct = ProxyChoice(.direct)
        /// This proxy, for every host. `httpConnect` tunnels https, and forwards http requests; with
        /// `StreamProxy.tls` both go to the proxy over TLS.
        public static func by(_ proxy: StreamProxy) -> ProxyChoice { ProxyChoice(.by(proxy)) }

        /// Proxies that depend on the scheme of a URL, and exceptions.
        package static func bySchemes(_ proxies: SchemeProxies) -> ProxyChoice {
            ProxyChoice(.bySchemes(proxies))
        }
    }
}

public import FoundationNetworking
public import RondoCore
public import RondoStreams

extension URLConnection {
    /// Settings that Apple's `URLRequest` has no place for.
    public struct Configuration: Sendable {
        /// How servers are verified, and which TLS versions are spoken.
        ///
        /// The identity and the server name are for the origin of the first request (scheme, host and port): a
        /// redirect to another one leaves them behind, as it does Authorization (rule UC-33). All else holds
        /// wherever redirects lead; pinned keys, too, have to be found there.
        public var tls = TLSSettings()

        /// The proxy that the connection goes by.
        public var proxy = ProxyChoice.environment

        /// Where connections lead, from where, and how long they may take to come about. A connection is shared with loads
        /// only that have it lead to the same place from the same one.
        public var connect = ConnectSettings()

        /// How long the load may take in all, in seconds of the clock, whether its modes run or not; then it fails with
        /// `timedOut`, in a pass of one of them. Nil: as long as it takes (rule UC-58 limits idle time). The corresponding
        /// property of URLSession is `timeoutIntervalForResource`.
        public var totalTimeout: TimeInterval?

        /// Which redirects are followed.
        public var redirects = RedirectPolicy()

        /// Fields that are sent with each request to a server, behind the request's own, as often as they are here. Away
        /// from the origin that the load began at, `Authorization`, `Cookie` and `Proxy-Authorization` are left out
        /// (rule UC-33). `Content-Length`, `Transfer-Encoding` and `Host` are Rondo's to send.
        public var additionalFields: [HeaderField] = []

        /// What the request line says in place of the URL's path and query, `*` for one, wherever redirects lead; nil: these.
        public var requestTarget: String?

        /// Whether content codings are undone, and the parts of a `multipart/x-mixed-replace` told apart. False: the
        /// delegate gets the body as it was transferred.
        public var decodesContent = true

        /// How many bytes of bodies are taken a second, on the average of some seconds; nil: as many as come. The
        /// others wait in the kernel, and TCP holds the server back.
        public var maximumBytesPerSecond: Int?

        /// Names of header fields that are not sent unless the request has them: of `Accept`,
        /// `Accept-Encoding` and `User-Agent`, which are added otherwise, and of the `Content-Length` of a POST, PUT or
        /// PATCH without a body.
        public var omittedFields: [String] = []

        /// Where cookies are kept (rule UC-57), `HTTPCookieStorage.shared` unless set; nil: none are sent or kept,
        /// whatever the request says.
        ///
        /// What the program has set or deleted in the storage counts for the next request. What a response sets counts
        /// for the next request too, and is in the storage when the load has finished: a thread brings it there, since
        /// Foundation writes its file with each cookie, and the end of the load waits for that, unless more than 400
        /// cookies wait. Of a cookie that comes again only with an expiry that is less than a minute later the storage
        /// shows the one before. A domain keeps 180 cookies, a storage 3,300; beyond, the expired go and then the oldest.
        ///
        /// What loads receive for the shared storage is also kept in `cookies.sqlite`, beside Foundation's own file, below
        /// `$XDG_DATA_HOME` or `~/.local/share` in the folder that is named for the program's; files are made with mode
        /// 0600, folders with 0700. It is there, as far as it has an expiry, when the load has finished; Foundation's file is
        /// written once a second at most, and when the program ends in an orderly way. After a process that was killed the
        /// storage shows what that file lacks from the next process's first request on. A broken
        /// file is forgotten. Where it cannot be written, cookies are remembered until the program ends, and a
        /// warning in the log, `rondo.connections`, says so once. Other storages are Foundation's to keep.
        public var cookieStorage: HTTPCookieStorage? {
            get { usesCookies ? ownCookieStorage ?? FoundationCookies.sharedStorage : nil }
            set {
                ownCookieStorage = newValue
                usesCookies = newValue != nil
            }
        }
        /// Nil for the shared one, which is made when a load first needs it.
        fileprivate var ownCookieStorage: HTTPCookieStorage?
        fileprivate var usesCookies = true

        /// Where responses are kept (rules UC-53 to UC-56), `URLCache.shared` unless set, which is a `Cache` from the
        /// start; nil: none are kept or used.
        public var cache: URLCache? {
            get { usesCache ? ownCache ?? .shared : nil }
            set {
                ownCache = newValue
                usesCache = newValue != nil
            }
        }
        /// Nil for the shared one, which is not made before a load needs it.
        fileprivate var ownCache: URLCache?
        fileprivate var usesCache = true

        /// How much may come out of encoded content.
        public var contentLimits = ContentLimits()

        /// How long a body waits for the server's go-ahead where the request says `Expect: 100-continue`, in
        /// seconds; then it is sent without (rule UC-42). curl waits for as long.
        public var goAheadTimeout: TimeInterval = 1

        /// Told what happens below the delegate's methods, as it happens, on the thread that serves the
        /// connection; for logs and for `rondo fetch -v`.
        public var onDiagnostic: (@Sendable (Diagnostic) -> Void)?

        public init() {}
    }

    /// A configuration behind a reference, with the settings that loads make of it.
    final class Settings: Sendable {
        static let standard = Settings(Configuration())

        let configuration: Configuration
        let load: LoadSettings

        init(_ configuration: Configuration) {
            self.configuration = configuration
            load = LoadSettings(configuration.loadValues)
        }

        /// - Parameter load: Settings that no configuration stands for.
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
        values.redirects = RedirectLimit(follows: redirects.follows, maximum: redirects.maximum)
        values.additionalFields = additionalFields.map { ($0.name, $0.value) }
        values.requestTarget = requestTarget
        values.decodesContent = decodesContent
        values.maximumRate = maximumBytesPerSecond
        if let tell = onDiagnostic { values.onStep = { tell(URLConnection.Diagnostic($0)) } }
        return values
    }

    private var store: @Sendable () -> (any ResponseStore)? {
        guard usesCache else { return { nil } }
        guard let ownCache else { return { URLCache.shared.responseStore } }
        return { ownCache.responseStore }
    }
}

extension URLConnection {
    /// By which proxy a connection goes.
    public struct ProxyChoice: Sendable, Hashable {
        let selection: ProxySelection

        private init(_ selection: ProxySelection) { self.selection = selection }

        /// As the environment says: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, by the rules that
        /// curl documents. It is read once, at the first load of the process.
        public static let environment = ProxyChoice(.environment)
        /// None.
        public static let direct = ProxyChoice(.direct)
        /// This one, whatever the host. `httpConnect` makes a tunnel for https, and is handed http requests
        /// whole; with `StreamProxy.tls` both are said to it by TLS.
        public static func by(_ proxy: StreamProxy) -> ProxyChoice { ProxyChoice(.by(proxy)) }
    }
}

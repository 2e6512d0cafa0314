public import FoundationNetworking
public import RondoCore
public import RondoStreams
internal import Synchronization

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

        /// Names of header fields that are not sent unless the request has them: of `Accept`,
        /// `Accept-Encoding` and `User-Agent`, which are added otherwise.
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
        /// 0600, folders with 0700. It is there, as far as it has an expiry, when the load has finished. What is broken in
        /// the file is forgotten. Where it cannot be written, cookies are remembered until the program ends, and a
        /// warning in the log, `rondo.connections`, says so once. Other storages are Foundation's to keep.
        public var cookieStorage: HTTPCookieStorage? {
            get { usesCookies ? ownCookieStorage ?? CookieStores.sharedStorage : nil }
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
        /// The shared one is not made before somebody wants it.
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

    /// A configuration behind a reference: most connections share one, and to read one value of it copies no other.
    final class Settings: Sendable {
        static let standard = Settings(Configuration())

        let values: Configuration
        /// Stands for the TLS settings of a load's origin, and the number after it for those of other servers.
        private let number = Settings.lastNumber.wrappingAdd(2, ordering: .relaxed).newValue

        private static let lastNumber = Atomic(0)

        /// Without what is meant for the origin that a load begins at; nil: there is nothing of the kind.
        private let tlsElsewhere: TLSSettings?

        // Of `values.proxy`, which takes longer to look at than all else about a direct way.
        private let namesProxy: Bool
        private let asksEnvironment: Bool

        init(_ values: Configuration) {
            self.values = values
            tlsElsewhere = values.tls.elsewhere
            isForOneOrigin = tlsElsewhere != nil
            cookieStore =
                values.usesCookies
                ? values.ownCookieStorage.map(CookieStores.store) ?? CookieStores.shared : nil
            (namesProxy, asksEnvironment) =
                switch values.proxy {
                case .direct: (false, false)
                case .by: (true, false)
                case .environment: (false, true)
                }
        }

        /// Requests go by no proxy, whatever their hosts.
        var isDirect: Bool { !namesProxy && (!asksEnvironment || ProxyEnvironment.process.isEmpty) }

        /// Asked for itself: a value that is computed is computed of a copy of all.
        var cache: URLCache? { values.usesCache ? values.ownCache ?? .shared : nil }

        /// Whether the way depends on the origin that a load began at.
        let isForOneOrigin: Bool

        /// What a secured connection to a server speaks.
        func tls(atOrigin: Bool) -> TLSSettings { atOrigin ? values.tls : tlsElsewhere ?? values.tls }

        /// What the loads' cookies come from.
        let cookieStore: CookieStore?

        /// The direct way to `address`.
        func directRoute(to address: WebAddress, atOrigin: Bool) -> Route {
            let settings = address.isSecure ? number + (atOrigin ? 0 : 1) : 0
            return KnownRoutes.route(
                toHost: address.host, port: address.port, settings: settings,
                tls: address.isSecure ? tls(atOrigin: atOrigin) : nil)
        }
    }

    /// A step of a load that the delegate is not told about.
    public enum Diagnostic: Sendable, Equatable {
        case resolving(host: String)
        case connecting(address: String)
        case connected(address: String)
        case secured(version: String, cipher: String, subject: String)
        /// The request goes over a connection that was kept.
        case reusing(address: String)
        /// Request line and header fields, each line ended by CR LF.
        case requestHead(String)
        /// Status line and header fields, each line ended by CR LF; interim responses too.
        case responseHead(String)
        case closed(reason: String)
        /// A credential that was to answer a challenge cannot be sent; the load goes on without one.
        case unusableCredential(reason: String)
    }
}

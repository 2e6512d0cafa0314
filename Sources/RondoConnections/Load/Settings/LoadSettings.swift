internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

internal import struct Synchronization.Atomic

/// The settings of a load, from a `URLConnection.Configuration` or from a session (`SessionSettings`).
///
/// A reference: most loads share one, and reading one value does not copy the others.
package final class LoadSettings: Sendable {
    /// The values of the settings: variables only until the settings are made, since a configuration sets
    /// some, a session others. Other settings are made of a changed copy.
    struct Values: Sendable {
        var tls = TLSSettings()
        var proxy = ProxySelection.environment
        /// Names of fields that are not added to a request.
        var omittedFields: [String] = []
        /// The pool whose connections are used.
        var pool = ConnectionPool.shared
        /// The classes of the program that may load requests.
        var protocols = ProtocolClasses.registered
        /// The storage for credentials; nil for none.
        var credentials: StoredCredentials? = .shared
        /// The store of the load's cookies; nil if none are sent or kept.
        var cookieStore: CookieStore?
        /// Cookies of the store are sent.
        var sendsCookies = true
        /// Which cookies are kept; nil to use the storage's policy.
        var cookiePolicy: HTTPCookie.AcceptPolicy?
        /// Returns the store for responses; nil for none. The shared cache may be replaced between two
        /// requests.
        var store: @Sendable () -> (any ResponseStore)?
        var contentLimits = RondoHTTP.ContentLimits()
        /// In seconds.
        var goAheadTimeout: TimeInterval = 1
        /// The destinations and local addresses of connections; nil if nothing is set.
        var connect: ConnectSettings?
        /// In seconds.
        var connectTimeout: TimeInterval?
        /// In seconds.
        var totalTimeout: TimeInterval?
        /// Where Strict-Transport-Security of responses is stored (RFC 6797); nil to store it for all loads.
        var hstsHosts: OwnHSTSHosts?
        /// Whether loads wait for a network if there is none (rule US-70).
        var waitsForConnectivity = false
        var redirects = RedirectSettings()
        var additionalFields: [(name: String, value: String)] = []
        /// The fields sent to a proxy that is asked for a tunnel, besides Host and Proxy-Authorization; nil:
        /// the User-Agent of `additionalFields`.
        var tunnelFields: [(name: String, value: String)]?
        /// Whether the load begins at another origin than the one that these settings were made for. Fields,
        /// TLS identity and server name of that origin are not for this one (rule UC-33).
        var beginsElsewhere = false
        /// The request target in place of the URL's path and query.
        var requestTarget: String?
        var decodesContent = true
        /// Whether the parts of a multipart response are separated, where content is decoded.
        var separatesParts = true
        /// The maximum of body bytes for each second.
        var maximumRate: Int?
        /// Called for the steps of exchanges.
        var onStep: (@Sendable (ExchangeStep) -> Void)?
        /// Loads a request separately, with these settings, to renew a cached response (RFC 5861 §3).
        var refresh: @Sendable (URLRequest, Values) -> Void

        /// Whether the content of a load is what other loads of its URL get, so that the cache can be used.
        var sharesContent: Bool { decodesContent && separatesParts && requestTarget == nil }
    }

    let values: Values
    /// The TLS settings for a load's first origin.
    private let tlsAtOrigin: TLSSettings
    /// The TLS settings without the values that are meant only for a load's first origin; nil if there are
    /// none such.
    private let tlsElsewhere: TLSSettings?

    // Derived from `values.proxy`, reading which takes longer than everything else about a direct route.
    private let namesProxy: Bool
    private let asksEnvironment: Bool

    init(_ values: Values) {
        self.values = values
        tlsAtOrigin = Route.tls(of: values.tls)
        tlsElsewhere = tlsAtOrigin.elsewhere
        isForOneOrigin = tlsElsewhere != nil
        sharesPlainRoutes =
            values.pool === ConnectionPool.shared && values.connect == nil && values.connectTimeout == nil
        (namesProxy, asksEnvironment) =
            switch values.proxy {
            case .direct: (false, false)
            case .by, .bySchemes: (true, false)
            case .environment: (false, true)
            }
    }

    /// Requests go by no proxy, whatever their hosts.
    var isDirect: Bool { !namesProxy && (!asksEnvironment || ProxyEnvironment.process.isEmpty) }

    /// Loads a request separately to renew a cached response (RFC 5861 §3).
    func refresh(_ request: URLRequest, atOrigin: Bool) {
        values.refresh(request, atOrigin ? values : elsewhere.values)
    }

    /// The load's access to the cookies; nil if none are sent or kept.
    var jar: CookieJar? {
        values.cookieStore.map {
            CookieJar(store: $0, sends: values.sendsCookies, policy: values.cookiePolicy)
        }
    }

    /// The proxy for `address`; nil if there is none.
    func proxy(for address: WebAddress) throws(LoadFailure) -> StreamProxy? {
        do throws(ProxyEnvironment.Failure) {
            switch values.proxy {
            case .direct: return nil
            case .by(let proxy): return proxy
            case .bySchemes(let proxies):
                return try proxies.proxy(isSecure: address.isSecure, host: address.host, port: address.port)
            case .environment:
                return try ProxyEnvironment.process.proxy(
                    scheme: address.isSecure ? "https" : "http", host: address.host, port: address.port)
            }
        } catch {
            throw LoadFailure(error)
        }
    }

    /// Whether the route depends on the load's first origin.
    let isForOneOrigin: Bool

    /// The TLS settings of a connection to a server.
    func tls(atOrigin: Bool) -> TLSSettings { atOrigin ? tlsAtOrigin : tlsElsewhere ?? tlsAtOrigin }

    /// These settings for a load that begins at another origin.
    package var elsewhere: LoadSettings {
        var values = values
        values.beginsElsewhere = true
        return LoadSettings(values)
    }

    // MARK: Direct routes

    /// The first of three numbers by which `RecentRoutes` tells routes apart: this one is for TLS to a load's
    /// origin, the next one for TLS to other servers, and the third for plain HTTP with settings of its own.
    private let number = LoadSettings.lastNumber.wrappingAdd(3, ordering: .relaxed).newValue

    private static let lastNumber = Atomic(0)

    /// The direct route to `address`.
    func directRoute(to address: WebAddress, atOrigin: Bool) -> Route {
        RecentRoutes.route(
            to: address, of: values.pool,
            settings: routeNumber(isSecure: address.isSecure, atOrigin: atOrigin),
            tls: address.isSecure ? tls(atOrigin: atOrigin) : nil, options: routeOptions)
    }

    /// Whether plain HTTP uses the routes and connections of all loads without settings of their own.
    private let sharesPlainRoutes: Bool

    /// How connections are established.
    var routeOptions: Route.Options {
        let agent = values.additionalFields.first { $0.name.lowercased() == "user-agent" }
        return Route.Options(
            connect: values.connect, timeout: values.connectTimeout,
            tunnelFields: values.tunnelFields ?? agent.map { [$0] } ?? [])
    }

    private func routeNumber(isSecure: Bool, atOrigin: Bool) -> Int {
        if isSecure { return number + (atOrigin ? 0 : 1) }
        return sharesPlainRoutes ? 0 : number + 2
    }
}

extension LoadSettings {
    /// The head of a request with the fields of the settings, before cookies, credentials and the conditions
    /// of the cache are added.
    ///
    /// - Parameters:
    ///   - isForProxy: The request goes to a proxy as it is.
    ///   - isAtOrigin: Whether an address belongs to the origin that the settings were made for.
    func draft(
        of request: LoadRequest, isForProxy: Bool = false, isAtOrigin: (WebAddress) -> Bool
    ) throws(LoadFailure) -> OutgoingRequest.Draft {
        try OutgoingRequest.Draft(
            of: request,
            additionalFields: additionalFields(atOrigin: request.address.map { isAtOrigin($0) } ?? true),
            target: values.requestTarget, isForProxy: isForProxy)
    }

    /// The fields that go with each request to a server.
    private func additionalFields(atOrigin: @autoclosure () -> Bool) -> [(name: String, value: String)] {
        if values.additionalFields.isEmpty || atOrigin() { return values.additionalFields }
        return values.additionalFields.filter { !RedirectedRequest.isForOneOrigin($0.name) }
    }
}

/// Which redirects a load follows; see `URLConnection.RedirectPolicy`.
struct RedirectSettings: Sendable {
    var follows = true
    /// The default is the number in Apple's documentation of `NSURLErrorHTTPTooManyRedirects` (rule UC-32).
    var maximum = 16
}

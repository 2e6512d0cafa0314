internal import RondoCore
internal import RondoHTTP
public import RondoStreams

/// The choice of a connection's proxy.
enum ProxySelection: Sendable, Hashable {
    /// The proxy that the environment names; see `ProxyEnvironment`.
    case environment
    case direct
    /// This proxy, for every host.
    case by(StreamProxy)
    indirect case bySchemes(SchemeProxies)
}

/// The proxy settings in the environment variables of a process.
///
/// `http_proxy` is read in lower case only: `HTTP_PROXY` is set by web servers for a CGI program from a
/// `Proxy:` field, which any client can send. The others are read in either case, lower case first.
struct ProxyEnvironment: Sendable {
    /// The port of a proxy whose URL names none; that of an https proxy is 443.
    static let defaultPort = 1080

    /// The reason why a named proxy cannot be used.
    enum Failure: Error, Equatable {
        case unsupported(String)
    }

    private let variables: [String: String]
    private let exceptions: NoProxyList

    /// The environment of this process at the first load.
    static let process = ProxyEnvironment { name in getenv(name).map { String(cString: $0) } }

    /// Whether no proxy is named.
    var isEmpty: Bool { variables.isEmpty }

    init(_ environment: [String: String]) { self.init { environment[$0] } }

    private init(_ value: (String) -> String?) {
        var variables: [String: String] = [:]
        for name in ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            if let value = value(name), !value.isEmpty { variables[name] = value }
        }
        self.variables = variables
        let lists = ["no_proxy", "NO_PROXY"].lazy.compactMap(value)
        exceptions = NoProxyList(lists.first { !$0.isEmpty } ?? "")
    }

    /// The proxy for a host; nil if there is none.
    func proxy(scheme: String, host: String, port: Int) throws(Failure) -> StreamProxy? {
        if variables.isEmpty || exceptions.contains(host: host, port: port) { return nil }
        let names = scheme == "https" ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]
        guard let value = (names + ["all_proxy", "ALL_PROXY"]).lazy.compactMap({ variables[$0] }).first
        else { return nil }
        guard let proxy = Self.proxy(of: value) else { throw .unsupported(value) }
        return proxy
    }

    /// Parses a proxy's URL: `http://`, `https://`, `socks4://`, `socks4a://`, `socks5://`, `socks5h://`, or
    /// a host with an optional port, which means an HTTP proxy. Nil if the text is none of these, or names
    /// the Unix socket of a SOCKS proxy, as curl's `socks5h://localhost/path` does.
    static func proxy(of text: String) -> StreamProxy? {
        let full = text.contains("://") ? text : "http://" + text
        guard let parts = URLComponents(string: full), let host = parts.host, !host.isEmpty,
            URIPort(authority: URIReference(full).authority ?? "") != .impossible
        else { return nil }
        let kind: StreamProxy.Kind
        var tls: TLSSettings?
        switch parts.scheme?.lowercased() {
        case "http": kind = .httpConnect
        case "https":
            kind = .httpConnect
            tls = TLSSettings()
        case "socks4", "socks4a": kind = .socks4
        case "socks", "socks5", "socks5h": kind = .socks5
        default: return nil
        }
        let isUnixSocket = kind != .httpConnect && host.lowercased() == "localhost" && parts.path.count > 1
        if isUnixSocket { return nil }
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        return StreamProxy(
            kind, host: bare, port: parts.port ?? (tls == nil ? defaultPort : 443), userName: parts.user,
            password: parts.password, tls: tls)
    }
}

extension StreamProxy {
    /// Makes a proxy from its URL: `http://`, `https://`, `socks4://`, `socks4a://`, `socks5://` or
    /// `socks5h://`, with optional user and password, or a host with an optional port, which means an HTTP
    /// proxy. The default port is 1080, or 443 for an https proxy, whose `tls` has the default checks.
    ///
    /// - Returns: Nil if the text is none of these, the port is invalid (above 65,535, for instance), or it
    ///   is curl's notation for a SOCKS proxy at a Unix socket, `socks5h://localhost/path`.
    public init?(url text: String) {
        guard let proxy = ProxyEnvironment.proxy(of: text) else { return nil }
        self = proxy
    }
}

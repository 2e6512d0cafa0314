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
}

/// The proxy settings in the environment: decisions only.
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

    /// Whether no proxy is named at all.
    var isEmpty: Bool { variables.isEmpty }

    init(_ environment: [String: String]) { self.init { environment[$0] } }

    private init(_ value: (String) -> String?) {
        var variables: [String: String] = [:]
        for name in ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            if let value = value(name), !value.isEmpty { variables[name] = value }
        }
        self.variables = variables
        exceptions = NoProxyList(value("no_proxy") ?? value("NO_PROXY") ?? "")
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
    /// a host with an optional port, which means an HTTP proxy. Nil if the text is none of these.
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
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        return StreamProxy(
            kind, host: bare, port: parts.port ?? (tls == nil ? defaultPort : 443), userName: parts.user,
            password: parts.password, tls: tls)
    }
}

/// The hosts of `no_proxy`: separated by commas or spaces, `*` for all.
///
/// A name matches itself and every host below it, with or without a leading dot; if it has a port, only that
/// port. An address matches itself, or with a prefix length (`10.0.0.0/8`) its network.
package struct NoProxyList: Sendable, Equatable {
    private enum Entry: Sendable, Equatable {
        case everything
        case name(String, port: Int?)
        case network([UInt8], prefix: Int, port: Int?)
    }

    private let entries: [Entry]

    package init(_ text: String) {
        entries = text.split(whereSeparator: { $0 == "," || $0.isWhitespace }).compactMap {
            Self.entry(String($0).lowercased())
        }
    }

    package func contains(host: String, port: Int) -> Bool {
        var host = host.lowercased()
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        while host.hasSuffix(".") { host.removeLast() }
        let address = Self.bytes(of: host)
        return entries.contains { entry in
            switch entry {
            case .everything: true
            case .name(let name, let wanted):
                (host == name || host.hasSuffix("." + name)) && (wanted ?? port) == port
            case .network(let bytes, let prefix, let wanted):
                address.map { Self.agree($0, bytes, prefix) } ?? false && (wanted ?? port) == port
            }
        }
    }

    private static func entry(_ text: String) -> Entry? {
        if text == "*" { return .everything }
        if let slash = text.lastIndex(of: "/") {
            guard let bytes = bytes(of: unbracketed(String(text[..<slash]))),
                let prefix = Int(text[text.index(after: slash)...]), (0...bytes.count * 8).contains(prefix)
            else { return nil }
            return .network(bytes, prefix: prefix, port: nil)
        }
        // A plain IPv6 address has colons and no port.
        if let bytes = bytes(of: text) { return .network(bytes, prefix: bytes.count * 8, port: nil) }
        var name = text
        var port: Int?
        if let colon = text.lastIndex(of: ":"),
            text[text.index(after: colon)...].utf8.allSatisfy(Grammar.isDigit)
        {
            // A port that does not exist matches no server; without it the name would stand for every port.
            guard case .number(let number) = URIPort(authority: text) else { return nil }
            name = String(text[..<colon])
            port = Int(number)
        }
        if let bytes = bytes(of: unbracketed(name)) {
            return .network(bytes, prefix: bytes.count * 8, port: port)
        }
        while name.hasPrefix(".") { name.removeFirst() }
        while name.hasSuffix(".") { name.removeLast() }
        return name.isEmpty ? nil : .name(name, port: port)
    }

    private static func unbracketed(_ text: String) -> String {
        text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : text
    }

    /// An address as its bytes, 4 or 16; nil for a name.
    private static func bytes(of text: String) -> [UInt8]? {
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 { return withUnsafeBytes(of: &four) { Array($0) } }
        var six = in6_addr()
        if inet_pton(AF_INET6, text, &six) == 1 { return withUnsafeBytes(of: &six) { Array($0) } }
        return nil
    }

    private static func agree(_ left: [UInt8], _ right: [UInt8], _ prefix: Int) -> Bool {
        guard left.count == right.count else { return false }
        let whole = prefix / 8
        guard left[..<whole] == right[..<whole] else { return false }
        let rest = prefix % 8
        return rest == 0 || (left[whole] ^ right[whole]) >> (8 - rest) == 0
    }
}

extension StreamProxy {
    /// Makes a proxy from its URL: `http://`, `https://`, `socks4://`, `socks4a://`, `socks5://` or
    /// `socks5h://`, with optional user and password, or a host with an optional port, which means an HTTP
    /// proxy. The default port is 1080, or 443 for an https proxy, whose `tls` has the default checks.
    ///
    /// - Returns: Nil if the text is none of these, or the port is invalid (above 65,535, for instance).
    public init?(url text: String) {
        guard let proxy = ProxyEnvironment.proxy(of: text) else { return nil }
        self = proxy
    }
}

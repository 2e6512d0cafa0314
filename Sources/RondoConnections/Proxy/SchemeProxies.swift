internal import RondoCore
package import RondoStreams

/// Proxies by the schemes of URLs, and the hosts that are reached without one, as CFNetwork's dictionaries
/// name them.
package struct SchemeProxies: Sendable, Hashable {
    /// A proxy as it was named.
    package enum Named: Sendable, Hashable {
        case usable(StreamProxy)
        /// It cannot be used, for example because it has no host; the text names it.
        case unusable(String)
    }

    /// For http.
    package var http: Named?
    /// For https.
    package var https: Named?
    /// For each scheme that has no proxy of its own.
    package var socks: Named?
    /// The addresses and networks that are reached without a proxy.
    package var exceptions = NoProxyList("")
    /// Patterns of the hosts that are reached without a proxy, each as `NoProxyList.compared` writes a host.
    /// `*` stands for any characters, or none; a pattern that ends in `*.` stands for no host.
    package var patterns: [String] = []
    /// Whether a host whose name has no dot is reached without a proxy.
    package var excludesSimpleNames = false

    package init() {}

    package var isEmpty: Bool { http == nil && https == nil && socks == nil }

    /// The proxy for a URL; nil if there is none.
    func proxy(isSecure: Bool, host: String, port: Int) throws(ProxyEnvironment.Failure) -> StreamProxy? {
        try usable((isSecure ? https : http) ?? socks, host: host, port: port)
    }

    /// The proxy for a connection that belongs to no URL; nil if there is none. A tunnel takes precedence
    /// over SOCKS.
    func proxy(toHost host: String, port: Int) throws(ProxyEnvironment.Failure) -> StreamProxy? {
        try usable(https ?? http ?? socks, host: host, port: port)
    }

    private func usable(
        _ named: Named?, host: String, port: Int
    ) throws(ProxyEnvironment.Failure) -> StreamProxy? {
        guard let named, !exceptions.contains(host: host, port: port) else { return nil }
        if !patterns.isEmpty {
            let name = NoProxyList.compared(host)
            if patterns.contains(where: { Self.matches(name, $0) }) { return nil }
        }
        if excludesSimpleNames, !host.contains("."), !host.contains(":") { return nil }
        switch named {
        case .usable(let proxy): return proxy
        case .unusable(let text): throw .unsupported(text)
        }
    }

    /// True if `pattern` stands for the whole of `host`.
    private static func matches(_ host: String, _ pattern: String) -> Bool {
        let pieces = pattern.split(separator: "*", omittingEmptySubsequences: false)
        guard let first = pieces.first, let last = pieces.last, pieces.count > 1 else {
            return host == pattern
        }
        guard host.hasPrefix(first), host.hasSuffix(last), host.count >= first.count + last.count else {
            return false
        }
        var rest = host.dropFirst(first.count).dropLast(last.count)
        for piece in pieces.dropFirst().dropLast() where !piece.isEmpty {
            guard let found = rest.firstRange(of: piece) else { return false }
            rest = rest[found.upperBound...]
        }
        return true
    }
}

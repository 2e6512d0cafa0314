internal import RondoCore
package import RondoStreams

/// Proxies by the schemes of URLs, and the hosts that are reached without one, as CFNetwork's dictionaries name them.
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
    package var exceptions = NoProxyList("")
    /// Whether a host whose name has no dot is reached without a proxy.
    package var excludesSimpleNames = false

    package init() {}

    package var isEmpty: Bool { http == nil && https == nil && socks == nil }

    /// The proxy for a URL; nil if there is none.
    func proxy(isSecure: Bool, host: String, port: Int) throws(ProxyEnvironment.Failure) -> StreamProxy? {
        try usable((isSecure ? https : http) ?? socks, host: host, port: port)
    }

    /// The proxy for a connection that belongs to no URL; nil if there is none. A tunnel takes precedence over SOCKS.
    func proxy(toHost host: String, port: Int) throws(ProxyEnvironment.Failure) -> StreamProxy? {
        try usable(https ?? http ?? socks, host: host, port: port)
    }

    private func usable(
        _ named: Named?, host: String, port: Int
    ) throws(ProxyEnvironment.Failure) -> StreamProxy? {
        guard let named, !exceptions.contains(host: host, port: port) else { return nil }
        if excludesSimpleNames, !host.contains("."), !host.contains(":") { return nil }
        switch named {
        case .usable(let proxy): return proxy
        case .unusable(let text): throw .unsupported(text)
        }
    }
}

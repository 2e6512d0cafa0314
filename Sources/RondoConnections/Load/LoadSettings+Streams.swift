internal import RondoCore
package import RondoStreams

extension LoadSettings {
    /// The configuration of a connection that belongs to no load: it uses the proxy that the settings name,
    /// but not the environment's proxies, which are meant for URLs.
    ///
    /// - Parameter limit: The maximum number of seconds until the connection is open; 0 for no limit.
    package func connection(toHost host: String, port: Int, limit: Double) -> ChannelConfiguration {
        var configuration = ChannelConfiguration(host: host, port: port)
        if case .by(let proxy) = values.proxy { configuration.route = proxy.route(toHost: host, port: port) }
        configuration.connect = values.connect
        let limits = [values.connectTimeout, limit].compactMap { $0 }.filter { $0 > 0 && $0.isFinite }
        configuration.openingLimit = limits.min()
        return configuration
    }

    /// The TLS settings of such a connection. Their handlers take precedence over the delegate's methods.
    package var tlsOfConnections: TLSSettings { values.tls }
}

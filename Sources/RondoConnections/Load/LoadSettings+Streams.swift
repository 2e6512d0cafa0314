internal import RondoCore
package import RondoStreams

extension LoadSettings {
    /// The way to a host of a connection that belongs to no load: by the proxy that the settings name. What the environment
    /// says of proxies is about URLs.
    ///
    /// - Parameter limit: How long it may take until the connection is open, in seconds; 0: as long as it takes.
    package func connection(toHost host: String, port: Int, limit: Double) -> ChannelConfiguration {
        var configuration = ChannelConfiguration(host: host, port: port)
        if case .by(let proxy) = values.proxy { configuration.route = proxy.route(toHost: host, port: port) }
        configuration.connect = values.connect
        let limits = [values.connectTimeout, limit].compactMap { $0 }.filter { $0 > 0 && $0.isFinite }
        configuration.openingLimit = limits.min()
        return configuration
    }

    /// How such a connection is secured. Its own handlers come before the delegate's methods.
    package var tlsOfConnections: TLSSettings { values.tls }
}

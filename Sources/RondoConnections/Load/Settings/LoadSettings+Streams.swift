internal import RondoCore
package import RondoStreams

extension LoadSettings {
    /// The configuration of a connection that belongs to no load: it uses the proxy that the settings name,
    /// but not the environment's proxies, which are meant for URLs.
    ///
    /// - Parameter limit: The maximum number of seconds until the connection is open; 0 for no limit.
    package func connection(
        toHost host: String, port: Int, limit: Double
    ) throws(LoadFailure) -> ChannelConfiguration {
        var configuration = ChannelConfiguration(host: host, port: port)
        configuration.route = try proxy(toHost: host, port: port)?.route(toHost: host, port: port)
        configuration.connect = values.connect
        let limits = [values.connectTimeout, limit].compactMap { $0 }.filter { $0 > 0 && $0.isFinite }
        configuration.openingLimit = limits.min()
        return configuration
    }

    private func proxy(toHost host: String, port: Int) throws(LoadFailure) -> StreamProxy? {
        switch values.proxy {
        case .direct, .environment: return nil
        case .by(let proxy): return proxy
        case .bySchemes(let proxies):
            do throws(ProxyEnvironment.Failure) {
                return try proxies.proxy(toHost: host, port: port)
            } catch {
                throw LoadFailure(error)
            }
        }
    }

    /// The TLS settings of such a connection. Their handlers take precedence over the delegate's methods.
    package var tlsOfConnections: TLSSettings { values.tls }
}

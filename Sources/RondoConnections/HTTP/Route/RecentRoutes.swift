internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// The direct routes that a loop's requests used last. Used on the loop's thread only.
///
/// A request whose route is known here does not search the table of all origins, which has a lock, and does
/// not compare settings. Without this bench-guard's http.request takes some 40 % more instructions.
final class RecentRoutes {
    /// The maximum of routes; the one that was added first is forgotten.
    static let maximum = 16

    private struct Known {
        /// The number of the pool's and TLS settings; 0 for plain HTTP by the shared pool.
        let settings: Int
        let address: WebAddress
        let route: Route
    }

    private var recent = RecentValues<Known>(maximum: maximum)

    /// The direct route to a server.
    ///
    /// - Parameters:
    ///   - settings: A number that stands for the same `pool`, `tls` and `options` each time; 0 for plain
    ///     HTTP by the shared pool, without options.
    static func route(
        to address: WebAddress, of pool: ConnectionPool, settings: Int, tls: @autoclosure () -> TLSSettings?,
        options: @autoclosure () -> Route.Options = Route.Options()
    ) -> Route {
        guard let routes = RunLoop.stored(RecentRoutes.self, orMake: RecentRoutes.init) else {
            return Route(to: address, of: pool, tls: tls(), options())
        }
        if let route = routes.find(address, settings) { return route }
        let route = Route(to: address, of: pool, tls: tls(), options())
        routes.recent.add(Known(settings: settings, address: address, route: route))
        return route
    }

    private func find(_ address: WebAddress, _ settings: Int) -> Route? {
        Self.find(address, settings, in: &recent)
    }

    /// One access to the property, in place of one for each use.
    private static func find(
        _ address: WebAddress, _ settings: Int, in recent: inout RecentValues<Known>
    ) -> Route? {
        for index in recent.newestFirst
        where recent[index].settings == settings && recent[index].address.hasAuthority(of: address) {
            return recent[index].route
        }
        return nil
    }
}

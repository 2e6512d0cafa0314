package import RondoCore

/// An obstacle that keeps a load from continuing and is due to neither its server nor its client.
/// `DeliveryObstacle` reports it to programs, among other reasons why no callback comes, such as a mode that
/// does not run.
package enum LoadObstacle: UInt8, Sendable {
    /// The maximum of connections is in use: of those to its server, or of all of the process.
    case connectionLimit = 1
    /// There is no network; see `ConnectivityWait`.
    case noNetwork
}

extension DeliveryObstacle {
    package init(_ obstacle: LoadObstacle) {
        let description =
            switch obstacle {
            case .connectionLimit:
                "it waits for a connection: as many as are allowed are in use"
            case .noNetwork: "it waits for a network"
            }
        self.init(reason: .waits, description: description)
    }
}

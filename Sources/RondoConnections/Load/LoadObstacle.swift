/// An obstacle that keeps a load from continuing and is due to neither its server nor its client.
/// `DeliveryObstacle` reports it to programs, among other reasons why no callback comes, such as a mode that does not run.
package enum LoadObstacle: UInt8, Sendable {
    /// The maximum of connections to its server is in use.
    case connectionLimit = 1
    /// There is no network; see `ConnectivityWait`.
    case noNetwork
}

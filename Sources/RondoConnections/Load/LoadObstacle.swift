/// What keeps a load from going on that is neither its server's doing nor its client's. `DeliveryObstacle` tells programs of it,
/// among other reasons why no callback comes.
package enum LoadObstacle: UInt8, Sendable {
    /// As many connections to its server as the limits allow are in use.
    case connectionLimit = 1
    /// There is no network; see `ConnectivityWait`.
    case noNetwork
}

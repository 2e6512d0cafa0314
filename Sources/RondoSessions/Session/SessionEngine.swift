internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// What a session loads with, the same for each of its tasks.
///
/// `Sendable`: nothing in it changes; the pool has locks of its own.
final class SessionEngine: Sendable {
    let values: SessionValues
    let settings: LoadSettings
    let pool: ConnectionPool
    let driver: SessionDriver
    /// The session of the process: its pool is the one that `URLConnection` has.
    let isShared: Bool

    init(_ values: SessionValues, _ driver: SessionDriver, isShared: Bool) {
        self.values = values
        self.driver = driver
        self.isShared = isShared
        pool = isShared ? .shared : ConnectionPool(connectionsPerServer: values.connectionsPerHost)
        settings = values.settings(pool, countsRegisteredClasses: isShared)
    }
}

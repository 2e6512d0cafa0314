internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// The settings, connection pool, driver and handlers that all tasks of a session share.
///
/// `Sendable`: its properties never change; the pool has its own locks.
final class SessionEngine: Sendable {
    let values: SessionValues
    let settings: LoadSettings
    let pool: ConnectionPool
    let driver: SessionDriver
    let handlers: OrderedHandlers
    /// True for `URLSession.shared`, which shares the pool of `URLConnection`.
    let isShared: Bool

    init(_ values: SessionValues, _ driver: SessionDriver, isShared: Bool) {
        self.values = values
        self.driver = driver
        handlers = OrderedHandlers(driver)
        self.isShared = isShared
        pool = isShared ? .shared : ConnectionPool(connectionsPerServer: values.connectionsPerHost)
        settings = values.settings(pool, countsRegisteredClasses: isShared)
    }
}

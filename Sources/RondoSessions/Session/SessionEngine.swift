internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// The settings, connection pool, schedule and handlers that all tasks of a session share.
///
/// `Sendable`: its properties never change; the pool has its own locks.
final class SessionEngine: Sendable {
    let values: SessionValues
    let settings: LoadSettings
    let pool: ConnectionPool
    let schedule: SessionSchedule
    let handlers: OrderedHandlers
    /// True for `URLSession.shared`, which shares the pool of `URLConnection`.
    let isShared: Bool

    init(_ values: SessionValues, _ schedule: SessionSchedule, isShared: Bool) {
        self.values = values
        self.schedule = schedule
        handlers = OrderedHandlers(schedule)
        self.isShared = isShared
        pool = isShared ? .shared : ConnectionPool(connectionsPerServer: values.connectionsPerHost)
        settings = values.settings(pool, countsRegisteredClasses: isShared)
    }
}

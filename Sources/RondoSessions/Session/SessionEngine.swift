internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

internal import struct Synchronization.Atomic

/// The settings, connection pool, schedule and handlers that all tasks of a session share.
final class SessionEngine: Sendable {
    let values: SessionValues
    let settings: LoadSettings
    let pool: ConnectionPool
    let schedule: SessionSchedule
    let handlers: OrderedHandlers
    /// True for `URLSession.shared`, which shares the pool of `URLConnection`.
    let isShared: Bool
    /// The completion handlers that wait for the delegate queue; their tasks have ended.
    private let waitingHandlers = Atomic(0)

    init(_ values: SessionValues, _ schedule: SessionSchedule, isShared: Bool) {
        self.values = values
        self.schedule = schedule
        handlers = OrderedHandlers(schedule)
        self.isShared = isShared
        pool = isShared ? .shared : ConnectionPool(connectionsPerServer: values.connectionsPerHost)
        settings = values.settings(pool, countsRegisteredClasses: isShared)
    }

    func noteHandler(waits: Bool) { waitingHandlers.add(waits ? 1 : -1, ordering: .relaxed) }

    var hasWaitingHandler: Bool { waitingHandlers.load(ordering: .relaxed) > 0 }
}

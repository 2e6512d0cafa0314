internal import RondoMutex

/// The limits of a socket port for its peers. Any thread.
final class PortLimits: Sendable {
    static let defaultMessageSize = 16 << 20
    static let defaultConnections = 256
    /// The most bytes of unfinished messages of all connections; and the most bytes of messages that wait in
    /// the queue.
    static let unfinishedBytes = 64 << 20

    private struct Values {
        var messageSize = PortLimits.defaultMessageSize
        var connections = PortLimits.defaultConnections
    }

    private let values = Mutex(Values())

    var maximumMessageSize: Int {
        get { values.withLock { $0.messageSize } }
        set { values.withLock { $0.messageSize = max(WireMessage.leastSize, newValue) } }
    }

    var maximumConnections: Int {
        get { values.withLock { $0.connections } }
        set { values.withLock { $0.connections = max(1, newValue) } }
    }
}

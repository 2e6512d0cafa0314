internal import RondoCore
internal import RondoStreams

/// When the steps of an exchange were taken, and how much was received; for the metrics. An exchange whose metrics are not
/// wanted has none of it, and reads no clock for it.
///
/// Used inside the gate of the exchange's load.
final class ExchangeTimes {
    var lookUpStart: LoopInstant?
    private(set) var lookUpEnd: LoopInstant?
    private(set) var connectStart: LoopInstant?
    var connectEnd: LoopInstant?
    var secureEnd: LoopInstant?
    var requestStart: LoopInstant?
    var requestEnd: LoopInstant?
    private(set) var responseStart: LoopInstant?
    var responseEnd: LoopInstant?
    /// This machine's end of the connection, if times are wanted.
    var localAddress: SocketAddress?
    var tls: (version: String, cipher: String)?
    var isTLSResumed = false
    private(set) var bytesReceived: Int64 = 0

    /// A connection is attempted, perhaps after others.
    func beginConnecting() {
        guard connectStart == nil else { return }
        connectStart = LoopClock.now
        if lookUpStart != nil { lookUpEnd = connectStart }
    }

    func received(_ count: Int) {
        bytesReceived += Int64(count)
        if responseStart == nil { responseStart = LoopClock.now }
    }
}

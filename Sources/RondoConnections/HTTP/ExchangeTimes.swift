internal import RondoCore
internal import RondoStreams

/// When the steps of an exchange were taken, and how much was received; for the metrics.
struct ExchangeTimes {
    var lookUpStart: LoopInstant?
    var lookUpEnd: LoopInstant?
    var connectStart: LoopInstant?
    var connectEnd: LoopInstant?
    var secureEnd: LoopInstant?
    var requestStart: LoopInstant?
    var requestEnd: LoopInstant?
    var responseStart: LoopInstant?
    var responseEnd: LoopInstant?
    /// This machine's end of the connection, if times are wanted.
    var localAddress: SocketAddress?
    var tls: (version: String, cipher: String)?
    var isTLSResumed = false
    var bytesReceived: Int64 = 0
}

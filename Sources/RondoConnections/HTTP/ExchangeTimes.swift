internal import RondoCore

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
    var tls: (version: String, cipher: String)?
    var isTLSResumed = false
    var bytesReceived: Int64 = 0
}

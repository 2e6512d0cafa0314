internal import FoundationNetworking
internal import RondoCore
internal import RondoStreams

/// Where the time of a load went; the values behind `URLConnection.Metrics`.
struct LoadMetrics: Sendable {
    let startDate: Date
    /// Seconds from there to the last call.
    let duration: TimeInterval
    /// Redirects that were followed.
    let redirectCount: Int
    let transfers: [TransferMetrics]

    /// Of a load that has begun at `start` and ends now.
    init(since start: LoopInstant, redirectCount: Int, transfers: [TransferMetrics]) {
        startDate = LoopClock.date(of: start)
        duration = LoopClock.now.seconds(since: start)
        self.redirectCount = redirectCount
        self.transfers = transfers
    }
}

/// One request and its response; the values behind `URLConnection.Transfer`, whose members say what they mean.
struct TransferMetrics: Sendable {
    let url: URL
    let method: String
    let status: Int?
    let address: SocketAddress?
    let isReusedConnection: Bool
    let proxy: String?
    let tlsVersion: String?
    let tlsCipher: String?
    var isTLSResumed = false
    var localAddress: SocketAddress?

    // In seconds since the start of the load.
    var lookUpStart: TimeInterval?
    var lookUpEnd: TimeInterval?
    var connectStart: TimeInterval?
    var connectEnd: TimeInterval?
    var secureEnd: TimeInterval?
    var requestStart: TimeInterval?
    var requestEnd: TimeInterval?
    var responseStart: TimeInterval?
    var responseEnd: TimeInterval?

    var headBytesSent = 0
    var bodyBytesSent = 0
    var bytesReceived: Int64 = 0
    var bodyBytesReceived: Int64 = 0
}

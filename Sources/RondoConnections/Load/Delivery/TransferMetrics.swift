package import FoundationNetworking
package import RondoCore
internal import RondoHTTP
package import RondoStreams

/// One request and its response; the values behind `URLConnection.Transfer`, whose members say what they
/// mean.
///
/// Variables only until the metrics are made: the load sets some, the exchange others. Nothing changes them
/// afterwards.
package struct TransferMetrics: Sendable {
    package let url: URL
    package let method: String
    package let status: Int?
    package let address: SocketAddress?
    package let isReusedConnection: Bool
    package let proxy: String?
    package let tlsVersion: String?
    package let tlsCipher: String?
    /// The request as the load had it, without the fields that are added when it is sent: cookies,
    /// credentials and cache conditions.
    package var request: URLRequest?
    /// Whether the cache has answered and no server was asked.
    package var isFromCache = false
    /// The head of the response, if a server has made it.
    var head: ResponseHead?
    var bodyLength: Int64?
    /// The protocol of the connection, if there was an exchange; see `protocolName`.
    var connectionProtocolName: String?
    /// The cache's response.
    var cachedResponse: URLResponse?
    package var isTLSResumed = false
    package var localAddress: SocketAddress?

    /// The metrics of no request.
    package static let empty = TransferMetrics(
        url: URL(fileURLWithPath: "/"), method: "GET", status: nil, address: nil, isReusedConnection: false,
        proxy: nil, tlsVersion: nil, tlsCipher: nil)

    /// Made again at each access.
    package var response: URLResponse? {
        cachedResponse ?? head.flatMap { LoadedResponse(url: url, head: $0, bodyLength: bodyLength) }
    }

    /// The protocol that the server's response names, such as "http/1.1", or that of the connection if no
    /// response came; nil if no server was asked.
    package var protocolName: String? {
        if isFromCache { return nil }
        if let head { return head.version.description.lowercased() }
        return connectEnd == nil ? nil : connectionProtocolName
    }

    // Times in seconds since the start of the load.
    /// The load began to work on the request.
    package var fetchStart: TimeInterval?
    package var lookUpStart: TimeInterval?
    package var lookUpEnd: TimeInterval?
    package var connectStart: TimeInterval?
    package var connectEnd: TimeInterval?
    package var secureStart: TimeInterval?
    package var secureEnd: TimeInterval?
    /// A new connection was ready for the request.
    package var opened: TimeInterval?
    package var requestStart: TimeInterval?
    package var requestEnd: TimeInterval?
    package var responseStart: TimeInterval?
    package var responseEnd: TimeInterval?

    package var headBytesSent = 0
    package var bodyBytesSent = 0
    package var bytesReceived: Int64 = 0
    package var bodyBytesReceived: Int64 = 0
}

/// The times of a load: the values behind `URLConnection.Metrics`.
package struct LoadMetrics: Sendable {
    package let startDate: Date
    /// Seconds from the start to the last call.
    package let duration: TimeInterval
    /// Redirects that were followed.
    package let redirectCount: Int
    package let transfers: [TransferMetrics]

    /// The metrics of a load that began at `start` and ends now.
    package init(since start: LoopInstant, redirectCount: Int, transfers: [TransferMetrics]) {
        startDate = LoopClock.date(of: start)
        duration = LoopClock.now.seconds(since: start)
        self.redirectCount = redirectCount
        self.transfers = transfers
    }
}

internal import FoundationNetworking
public import RondoCore
internal import RondoStreams

extension URLConnection {
    /// Where the time of a load went; given to the delegate once, right before the last call.
    ///
    /// Moments are seconds since the start of the load, on the monotonic clock; nil: there was none, as of a
    /// look-up on a connection that was kept.
    public struct Metrics: Sendable {
        /// When the load began its first step.
        public let startDate: Date
        /// Seconds from there to the last call.
        public let duration: TimeInterval
        /// Redirects that were followed.
        public let redirectCount: Int
        /// Each request that was sent, or begun: redirects, challenges and repetitions among them.
        public let transfers: [Transfer]
    }

    /// One request and its response.
    public struct Transfer: Sendable {
        public let url: URL
        public let method: String
        /// The status of its response; nil: none came.
        public internal(set) var status: Int?
        /// The server's address and port, or the proxy's; nil before there was a connection.
        public var remoteAddress: String? { address?.description }
        let address: SocketAddress?
        /// The connection had served a request before.
        public let isReusedConnection: Bool
        /// The proxy that it went by, as host and port.
        public internal(set) var proxy: String?
        /// "TLSv1.3", and the name of its cipher; nil without TLS, and on a connection that was kept.
        public internal(set) var tlsVersion: String?
        public internal(set) var tlsCipher: String?
        /// An earlier session of TLS was taken up again on the new connection (`TLSSettings.resumesSessions`); false
        /// without TLS, and on a connection that was kept.
        public internal(set) var isTLSResumed = false

        public internal(set) var lookUpStart: TimeInterval?
        public internal(set) var lookUpEnd: TimeInterval?
        public internal(set) var connectStart: TimeInterval?
        /// TCP stands; TLS, where it is spoken, begins.
        public internal(set) var connectEnd: TimeInterval?
        public internal(set) var secureEnd: TimeInterval?
        public internal(set) var requestStart: TimeInterval?
        /// The last byte of the request was taken by the kernel.
        public internal(set) var requestEnd: TimeInterval?
        /// The first byte of the response, interim ones too.
        public internal(set) var responseStart: TimeInterval?
        /// The last byte of the response, or the moment when nobody wanted more.
        public internal(set) var responseEnd: TimeInterval?

        /// Bytes of the request's head, and of its body without the framing of chunks.
        public internal(set) var headBytesSent: Int = 0
        public internal(set) var bodyBytesSent: Int = 0
        /// Bytes of the response as they were received, heads and framing among them.
        public internal(set) var bytesReceived: Int64 = 0
        /// Bytes of its body, as they were transferred: before a content coding is undone.
        public internal(set) var bodyBytesReceived: Int64 = 0
    }
}

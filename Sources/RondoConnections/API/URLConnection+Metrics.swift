internal import FoundationNetworking
public import RondoCore

extension URLConnection {
    /// Where the time of a load went; given to the delegate once, right before the last call.
    ///
    /// Times are seconds since the start of the load, on the monotonic clock; nil: there was none, as of a
    /// look-up on a connection that was kept.
    public struct Metrics: Sendable {
        private let values: LoadMetrics

        init(_ values: LoadMetrics) { self.values = values }

        /// When the load began its first step.
        public var startDate: Date { values.startDate }
        /// Seconds from there to the last call.
        public var duration: TimeInterval { values.duration }
        /// Redirects that were followed.
        public var redirectCount: Int { values.redirectCount }
        /// Each request that was sent, or begun: redirects, challenges and repetitions among them.
        public var transfers: [Transfer] {
            values.transfers.filter { !$0.isFromCache }.map(Transfer.init)
        }
    }

    /// One request and its response.
    public struct Transfer: Sendable {
        private let values: TransferMetrics

        init(_ values: TransferMetrics) { self.values = values }

        public var url: URL { values.url }
        public var method: String { values.method }
        /// The status of its response; nil: none came.
        public var status: Int? { values.status }
        /// The server's address and port, or the proxy's; nil before there was a connection.
        public var remoteAddress: String? { values.address?.description }
        /// This machine's end of that connection, address and port.
        public var localAddress: String? { values.localAddress?.description }
        /// The connection had served a request before.
        public var isReusedConnection: Bool { values.isReusedConnection }
        /// The proxy that it went by, as host and port.
        public var proxy: String? { values.proxy }
        /// "TLSv1.3", and the name of its cipher; nil without TLS.
        public var tlsVersion: String? { values.tlsVersion }
        public var tlsCipher: String? { values.tlsCipher }
        /// An earlier session of TLS was taken up again on the new connection (`TLSSettings.resumesSessions`); false
        /// without TLS, and on a connection that was kept.
        public var isTLSResumed: Bool { values.isTLSResumed }

        public var lookUpStart: TimeInterval? { values.lookUpStart }
        public var lookUpEnd: TimeInterval? { values.lookUpEnd }
        public var connectStart: TimeInterval? { values.connectStart }
        /// TCP stands; TLS, where it is spoken, begins.
        public var connectEnd: TimeInterval? { values.connectEnd }
        public var secureEnd: TimeInterval? { values.secureEnd }
        public var requestStart: TimeInterval? { values.requestStart }
        /// The last byte of the request was taken by the kernel.
        public var requestEnd: TimeInterval? { values.requestEnd }
        /// The first byte of the response, interim ones too.
        public var responseStart: TimeInterval? { values.responseStart }
        /// The last byte of the response, or when the load wanted no more.
        public var responseEnd: TimeInterval? { values.responseEnd }

        /// Bytes of the request's head, and of its body without the framing of chunks.
        public var headBytesSent: Int { values.headBytesSent }
        public var bodyBytesSent: Int { values.bodyBytesSent }
        /// Bytes of the response as they were received, heads and framing among them.
        public var bytesReceived: Int64 { values.bytesReceived }
        /// Bytes of its body, as they were transferred: before a content coding is undone.
        public var bodyBytesReceived: Int64 { values.bodyBytesReceived }
    }
}

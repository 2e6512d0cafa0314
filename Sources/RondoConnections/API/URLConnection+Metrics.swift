internal import FoundationNetworking
public import RondoCore

extension URLConnection {
    /// The times of a load; the delegate gets them once, immediately before the last call.
    ///
    /// Times are seconds since the start of the load, on the monotonic clock; nil if the step did not take
    /// place, such as the look-up of a name for a connection that was kept open.
    public struct Metrics: Sendable {
        private let values: LoadMetrics

        init(_ values: LoadMetrics) { self.values = values }

        /// The time when the load began its first step.
        public var startDate: Date { values.startDate }
        /// The seconds from `startDate` to the last call.
        public var duration: TimeInterval { values.duration }
        /// The number of redirects that were followed.
        public var redirectCount: Int { values.redirectCount }
        /// Each request that was sent, or begun, including those after redirects and challenges, and
        /// repetitions.
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
        /// The status of the response; nil if none came.
        public var status: Int? { values.status }
        /// The server's address and port, or the proxy's; nil before there was a connection.
        public var remoteAddress: String? { values.address?.description }
        /// The local address and port of that connection.
        public var localAddress: String? { values.localAddress?.description }
        /// Whether the connection had served a request before.
        public var isReusedConnection: Bool { values.isReusedConnection }
        /// The proxy that was used, as host and port.
        public var proxy: String? { values.proxy }
        /// The TLS version, for instance "TLSv1.3", and the name of the cipher; nil without TLS.
        public var tlsVersion: String? { values.tlsVersion }
        public var tlsCipher: String? { values.tlsCipher }
        /// Whether the new connection resumed an earlier TLS session (`TLSSettings.resumesSessions`); false
        /// without TLS, and on a connection that was kept open.
        public var isTLSResumed: Bool { values.isTLSResumed }

        public var lookUpStart: TimeInterval? { values.lookUpStart }
        public var lookUpEnd: TimeInterval? { values.lookUpEnd }
        public var connectStart: TimeInterval? { values.connectStart }
        /// The TCP connection is established, with the proxy if there is one.
        public var connectEnd: TimeInterval? { values.connectEnd }
        /// The connection's last TLS handshake begins: the server's, or the proxy's where there is no other;
        /// nil without any.
        public var secureStart: TimeInterval? { values.secureStart }
        /// That handshake is done; nil if it has failed.
        public var secureEnd: TimeInterval? { values.secureEnd }
        public var requestStart: TimeInterval? { values.requestStart }
        /// The kernel has accepted the last byte of the request.
        public var requestEnd: TimeInterval? { values.requestEnd }
        /// The first byte of the response, or of an interim response, has come.
        public var responseStart: TimeInterval? { values.responseStart }
        /// The last byte of the response has come, or the load needed no more of it.
        public var responseEnd: TimeInterval? { values.responseEnd }

        /// The size of the request's head in bytes, and of its body without chunk framing.
        public var headBytesSent: Int { values.headBytesSent }
        public var bodyBytesSent: Int { values.bodyBytesSent }
        /// The bytes of the response as they were received, including heads and framing.
        public var bytesReceived: Int64 { values.bytesReceived }
        /// The bytes of the response's body as they were transferred, before content codings are decoded.
        public var bodyBytesReceived: Int64 { values.bodyBytesReceived }
    }
}

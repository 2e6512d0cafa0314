public import FoundationNetworking
internal import RondoConnections
public import RondoCore

/// The times, sizes and addresses of one request of a task and its response (rule US-67).
///
/// A date is nil if the step did not take place: on a kept connection there is no look-up, connecting or TLS
/// handshake; an answer of the cache has none of the dates of the network.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: its properties never change.

    private let values: TransferMetrics
    private let startDate: Date
    private let loadedRequest: URLRequest
    private let loadedResponse: URLResponse?

    init(_ values: TransferMetrics, since startDate: Date) {
        self.values = values
        self.startDate = startDate
        loadedRequest = values.request ?? URLRequest(url: values.url)
        loadedResponse = values.response
        super.init()
    }

    /// Makes metrics of no request: `request` has no URL. For classes that replace metrics in tests.
    @available(*, deprecated, message: "A task's delegate gets its metrics.")
    public override init() {
        values = .empty
        startDate = Date()
        loadedRequest = TaskContent.noRequest
        loadedResponse = nil
        super.init()
    }

    private func date(_ seconds: TimeInterval?) -> Date? { seconds.map(startDate.addingTimeInterval) }

    /// The request without the fields that are added before sending: cookies, credentials, the conditions of
    /// the cache.
    open var request: URLRequest { loadedRequest }
    /// The response; nil if none arrived.
    open var response: URLResponse? { loadedResponse }

    // MARK: - Dates

    /// When the task began to work on the request.
    open var fetchStartDate: Date? { date(values.fetchStart) }
    /// When the look-up of the host's name began.
    open var domainLookupStartDate: Date? { date(values.lookUpStart) }
    /// When the look-up of the host's name ended.
    open var domainLookupEndDate: Date? { date(values.lookUpEnd) }
    /// When the TCP connection was begun.
    open var connectStartDate: Date? { date(values.connectStart) }
    /// When the connection's last TLS handshake began: the server's, or the proxy's where there is no other;
    /// also if it failed.
    open var secureConnectionStartDate: Date? { date(values.secureStart) }
    /// When that handshake ended; nil if it failed.
    open var secureConnectionEndDate: Date? { date(values.secureEnd) }
    /// When the connection was ready for use: TCP was connected, a proxy had made its tunnel, and the TLS
    /// handshake was done, where these are needed. Nil if one of them failed.
    open var connectEndDate: Date? { date(values.opened) }
    /// When the first byte of the request was written.
    open var requestStartDate: Date? { date(values.requestStart) }
    /// When the kernel had taken the last byte of the request.
    open var requestEndDate: Date? { date(values.requestEnd) }
    /// When the first byte of the response arrived.
    open var responseStartDate: Date? { date(values.responseStart) }
    /// When the last byte of the response arrived, or when the task stopped reading it; nil if no byte
    /// arrived.
    open var responseEndDate: Date? {
        // The transfer's own value is when the exchange ended, with or without a response.
        values.responseStart == nil ? nil : date(values.responseEnd)
    }

    // MARK: - Connection

    /// "http/1.1"; nil if no server was asked. In a tunnel, the protocol inside it.
    open var networkProtocolName: String? { values.protocolName }
    /// Whether the request went through a proxy.
    open var isProxyConnection: Bool { values.proxy != nil }
    /// Whether a kept connection was used.
    open var isReusedConnection: Bool { values.isReusedConnection }
    /// Whether the cache or the network gave the response.
    open var resourceFetchType: URLSessionTaskMetrics.ResourceFetchType {
        values.isFromCache ? .localCache : .networkLoad
    }

    /// The address of the server or proxy, without its port; nil without a connection.
    open var remoteAddress: String? { values.address?.host }
    /// The port of the server or proxy; nil without a connection.
    open var remotePort: Int? { values.address?.port.map(Int.init) }
    /// The address of this machine's end of the connection, without its port; nil without a connection.
    open var localAddress: String? { values.localAddress?.host }
    /// The port of this machine's end of the connection; nil without a connection.
    open var localPort: Int? { values.localAddress?.port.map(Int.init) }

    /// The negotiated version of TLS; nil without TLS. A kept connection shows the version of its first
    /// handshake.
    open var negotiatedTLSProtocolVersion: tls_protocol_version_t? {
        switch values.tlsVersion {
        case "TLSv1.2": .TLSv12
        case "TLSv1.3": .TLSv13
        default: nil
        }
    }
    /// The negotiated cipher suite; nil without TLS, and for a suite that Foundation has no name for.
    open var negotiatedTLSCipherSuite: tls_ciphersuite_t? {
        values.tlsCipher.flatMap { CipherSuites.numbers[$0] }.flatMap { tls_ciphersuite_t(rawValue: $0) }
    }

    /// Always false: Linux does not tell kinds of network apart.
    open var isCellular: Bool { false }
    /// Always false.
    open var isExpensive: Bool { false }
    /// Always false.
    open var isConstrained: Bool { false }
    /// Always false.
    open var isMultipath: Bool { false }
    /// Always unknown: the system's resolver does not say which protocol it uses.
    open var domainResolutionProtocol: URLSessionTaskMetrics.DomainResolutionProtocol { .unknown }

    // MARK: - Bytes

    /// Bytes of the request's head.
    open var countOfRequestHeaderBytesSent: Int64 { Int64(values.headBytesSent) }
    /// Bytes of the request's body, without chunk framing.
    open var countOfRequestBodyBytesSent: Int64 { Int64(values.bodyBytesSent) }
    /// The same as `countOfRequestBodyBytesSent`: bodies are not encoded.
    open var countOfRequestBodyBytesBeforeEncoding: Int64 { Int64(values.bodyBytesSent) }
    /// Bytes of the response's heads and of the framing of its body.
    open var countOfResponseHeaderBytesReceived: Int64 { values.bytesReceived - values.bodyBytesReceived }
    /// Bytes of the response's body as transferred, before content codings are decoded.
    open var countOfResponseBodyBytesReceived: Int64 { values.bodyBytesReceived }
}

/// The IANA numbers of TLS cipher suites, by OpenSSL's names.
private enum CipherSuites {
    static let numbers: [String: UInt16] = [
        "TLS_AES_128_GCM_SHA256": 0x1301, "TLS_AES_256_GCM_SHA384": 0x1302,
        "TLS_CHACHA20_POLY1305_SHA256": 0x1303,
        "ECDHE-ECDSA-AES128-GCM-SHA256": 0xC02B, "ECDHE-ECDSA-AES256-GCM-SHA384": 0xC02C,
        "ECDHE-RSA-AES128-GCM-SHA256": 0xC02F, "ECDHE-RSA-AES256-GCM-SHA384": 0xC030,
        "ECDHE-RSA-CHACHA20-POLY1305": 0xCCA8, "ECDHE-ECDSA-CHACHA20-POLY1305": 0xCCA9,
    ]
}

public import FoundationNetworking
internal import RondoConnections
public import RondoCore

/// One request of a task, and its response: where the time went (rule US-67).
///
/// Dates are nil for what did not take place: of look-up, connection and TLS on a connection that was kept, of all of them
/// where the cache has answered.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: nothing in it changes.

    private let values: TransferMetrics
    private let startDate: Date

    init(_ values: TransferMetrics, since startDate: Date) {
        self.values = values
        self.startDate = startDate
        request = values.request ?? URLRequest(url: values.url)
        response = values.response
        super.init()
    }

    private func date(_ seconds: TimeInterval?) -> Date? { seconds.map(startDate.addingTimeInterval) }

    /// Without what is added on the way: cookies, credentials, what the cache asks.
    public let request: URLRequest
    /// Nil: none came.
    public let response: URLResponse?

    // MARK: - Dates

    /// The task began with the request.
    open var fetchStartDate: Date? { date(values.fetchStart) }
    open var domainLookupStartDate: Date? { date(values.lookUpStart) }
    open var domainLookupEndDate: Date? { date(values.lookUpEnd) }
    open var connectStartDate: Date? { date(values.connectStart) }
    open var secureConnectionStartDate: Date? { values.secureEnd == nil ? nil : date(values.connectEnd) }
    open var secureConnectionEndDate: Date? { date(values.secureEnd) }
    /// The connection can be used: TCP stands, and TLS, where it is spoken.
    open var connectEndDate: Date? { date(values.secureEnd ?? values.connectEnd) }
    open var requestStartDate: Date? { date(values.requestStart) }
    /// The last byte of the request was taken by the kernel.
    open var requestEndDate: Date? { date(values.requestEnd) }
    /// The first byte of the response.
    open var responseStartDate: Date? { date(values.responseStart) }
    /// The last byte of the response, or when the task wanted no more.
    open var responseEndDate: Date? { date(values.responseEnd) }

    // MARK: - The way

    /// "http/1.1"; nil where no server was asked. Within a tunnel the inner protocol.
    open var networkProtocolName: String? { values.protocolName }
    open var isProxyConnection: Bool { values.proxy != nil }
    open var isReusedConnection: Bool { values.isReusedConnection }
    open var resourceFetchType: URLSessionTaskMetrics.ResourceFetchType {
        values.isFromCache ? .localCache : .networkLoad
    }

    /// The server's address, or the proxy's, without its port; nil before there was a connection.
    open var remoteAddress: String? { values.address?.host }
    open var remotePort: Int? { values.address?.port.map(Int.init) }
    /// This machine's end.
    open var localAddress: String? { values.localAddress?.host }
    open var localPort: Int? { values.localAddress?.port.map(Int.init) }

    /// Nil without TLS. Of a connection that was kept, what it agreed upon at first.
    open var negotiatedTLSProtocolVersion: tls_protocol_version_t? {
        switch values.tlsVersion {
        case "TLSv1.2": .TLSv12
        case "TLSv1.3": .TLSv13
        default: nil
        }
    }
    /// The same; nil, too, for one that Foundation has no name for.
    open var negotiatedTLSCipherSuite: tls_ciphersuite_t? {
        values.tlsCipher.flatMap { CipherSuites.numbers[$0] }.flatMap { tls_ciphersuite_t(rawValue: $0) }
    }

    /// There is no such network here.
    open var isCellular: Bool { false }
    open var isExpensive: Bool { false }
    open var isConstrained: Bool { false }
    open var isMultipath: Bool { false }
    /// It is not known how the system's resolver asks.
    open var domainResolutionProtocol: URLSessionTaskMetrics.DomainResolutionProtocol { .unknown }

    // MARK: - Bytes

    open var countOfRequestHeaderBytesSent: Int64 { Int64(values.headBytesSent) }
    /// Without the framing of chunks.
    open var countOfRequestBodyBytesSent: Int64 { Int64(values.bodyBytesSent) }
    open var countOfRequestBodyBytesBeforeEncoding: Int64 { Int64(values.bodyBytesSent) }
    /// Heads and the framing of bodies.
    open var countOfResponseHeaderBytesReceived: Int64 { values.bytesReceived - values.bodyBytesReceived }
    /// Of the body, as they were transferred: before a content coding is undone.
    open var countOfResponseBodyBytesReceived: Int64 { values.bodyBytesReceived }
}

/// The numbers of TLS's cipher suites (IANA's registry) by OpenSSL's names.
private enum CipherSuites {
    static let numbers: [String: UInt16] = [
        "TLS_AES_128_GCM_SHA256": 0x1301, "TLS_AES_256_GCM_SHA384": 0x1302,
        "TLS_CHACHA20_POLY1305_SHA256": 0x1303,
        "ECDHE-ECDSA-AES128-GCM-SHA256": 0xC02B, "ECDHE-ECDSA-AES256-GCM-SHA384": 0xC02C,
        "ECDHE-RSA-AES128-GCM-SHA256": 0xC02F, "ECDHE-RSA-AES256-GCM-SHA384": 0xC030,
        "ECDHE-RSA-CHACHA20-POLY1305": 0xCCA8, "ECDHE-ECDSA-CHACHA20-POLY1305": 0xCCA9,
    ]
}

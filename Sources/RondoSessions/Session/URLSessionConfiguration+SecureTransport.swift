internal import FoundationNetworking

/// A version of TLS by the names of Secure Transport, as programs for systems before macOS 10.15 write it.
public struct SSLProtocol: RawRepresentable, Hashable, Sendable {
    public let rawValue: Int32

    public init(rawValue: Int32) { self.rawValue = rawValue }

    public static let tlsProtocol1 = SSLProtocol(rawValue: 4)
    public static let tlsProtocol11 = SSLProtocol(rawValue: 7)
    public static let tlsProtocol12 = SSLProtocol(rawValue: 8)
    public static let tlsProtocol13 = SSLProtocol(rawValue: 10)

    init(_ version: tls_protocol_version_t) { self = version == .TLSv13 ? .tlsProtocol13 : .tlsProtocol12 }

    var version: tls_protocol_version_t { self == .tlsProtocol13 ? .TLSv13 : .TLSv12 }
}

extension URLSessionConfiguration {
    /// `tlsMinimumSupportedProtocolVersion` by its older name.
    @available(*, deprecated, renamed: "tlsMinimumSupportedProtocolVersion")
    public var tlsMinimumSupportedProtocol: SSLProtocol {
        get { SSLProtocol(tlsMinimumSupportedProtocolVersion) }
        set { tlsMinimumSupportedProtocolVersion = newValue.version }
    }

    /// `tlsMaximumSupportedProtocolVersion` by its older name.
    @available(*, deprecated, renamed: "tlsMaximumSupportedProtocolVersion")
    public var tlsMaximumSupportedProtocol: SSLProtocol {
        get { SSLProtocol(tlsMaximumSupportedProtocolVersion) }
        set { tlsMaximumSupportedProtocolVersion = newValue.version }
    }
}

internal import FoundationNetworking

/// A version of TLS by Secure Transport's names, which programs for systems before macOS 10.15 use.
public struct SSLProtocol: RawRepresentable, Hashable, Sendable {
    /// The number of Secure Transport's constant.
    public let rawValue: Int32

    /// Makes the version of this number. A number without a name here counts as TLS 1.2.
    public init(rawValue: Int32) { self.rawValue = rawValue }

    /// TLS 1.0, which counts as TLS 1.2 here.
    public static let tlsProtocol1 = SSLProtocol(rawValue: 4)
    /// TLS 1.1, which counts as TLS 1.2 here.
    public static let tlsProtocol11 = SSLProtocol(rawValue: 7)
    /// TLS 1.2.
    public static let tlsProtocol12 = SSLProtocol(rawValue: 8)
    /// TLS 1.3.
    public static let tlsProtocol13 = SSLProtocol(rawValue: 10)

    init(_ version: tls_protocol_version_t) { self = version == .TLSv13 ? .tlsProtocol13 : .tlsProtocol12 }

    var version: tls_protocol_version_t { self == .tlsProtocol13 ? .TLSv13 : .TLSv12 }
}

extension URLSessionConfiguration {
    /// The older name of `tlsMinimumSupportedProtocolVersion`.
    @available(*, deprecated, renamed: "tlsMinimumSupportedProtocolVersion")
    public var tlsMinimumSupportedProtocol: SSLProtocol {
        get { SSLProtocol(tlsMinimumSupportedProtocolVersion) }
        set { tlsMinimumSupportedProtocolVersion = newValue.version }
    }

    /// The older name of `tlsMaximumSupportedProtocolVersion`.
    @available(*, deprecated, renamed: "tlsMaximumSupportedProtocolVersion")
    public var tlsMaximumSupportedProtocol: SSLProtocol {
        get { SSLProtocol(tlsMaximumSupportedProtocolVersion) }
        set { tlsMaximumSupportedProtocolVersion = newValue.version }
    }
}

internal import RondoCore

/// A proxy that makes connections to other hosts; a stream's property `.proxyKey`.
///
/// The proxy looks the host's name up, not this machine. TLS, if it is set for a stream, leads through the
/// proxy to the host, so the proxy sees encrypted bytes only. The dialogue with the proxy itself, a password
/// included, is in plain text unless the proxy has `tls` of its own.
public struct StreamProxy: Sendable, Hashable {
    /// The protocol of a proxy.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        enum Dialect: Hashable {
            case socks4, socks5, httpConnect
        }

        let dialect: Dialect
        public var description: String { "\(dialect)" }

        /// SOCKS 4; 4a if the host is given by name. It uses a user name but no password.
        public static let socks4 = Kind(dialect: .socks4)
        /// SOCKS 5 (RFC 1928), with user name and password if they are given (RFC 1929).
        public static let socks5 = Kind(dialect: .socks5)
        /// HTTP's CONNECT (RFC 9110, section 9.3.6), with Basic authentication if a user name is given.
        public static let httpConnect = Kind(dialect: .httpConnect)
    }

    public var kind: Kind
    /// A name, or an address without brackets.
    public var host: String
    public var port: Int
    /// The user for the proxy; at most 255 bytes for SOCKS.
    ///
    /// An HTTP proxy gets name and password by Basic authentication with the first request of each stream or
    /// load, before it has asked for them: in clear text, unless `tls` is set. Its challenge to a load for
    /// Digest is answered by them too. A password that is to be sent only where the proxy has asked for it is
    /// none of these: leave both nil, and let the delegate or the credential storage of the load answer.
    public var userName: String?
    /// The password of `userName`, which is sent as said there; at most 255 bytes for SOCKS 5.
    public var password: String?
    /// The TLS settings for the connection to the proxy itself (usually called an https proxy); nil: plain
    /// text. TLS with the host runs inside this one. To decide about the proxy's certificate, or to show one
    /// to it, set the handlers of these settings.
    public var tls: TLSSettings?

    public init(
        _ kind: Kind, host: String, port: Int, userName: String? = nil, password: String? = nil,
        tls: TLSSettings? = nil
    ) {
        self.kind = kind
        self.host = host
        self.port = port
        self.userName = userName
        self.password = password
        self.tls = tls
    }
}

// MARK: - Apple's dictionary

extension StreamProxy {
    /// Reads Apple's dictionary (rule ST-45). Host and port are required; the version is 5 unless the
    /// dictionary says 4. The keys are those of `StreamSOCKSProxyConfiguration`, or Core Foundation's
    /// `kCFStreamPropertySOCKSProxyHost` and `kCFStreamPropertySOCKSProxyPort`. Nil for anything else.
    package init?(socksDictionary: AnyObject) {
        guard let dictionary = socksDictionary as? NSDictionary else { return nil }
        func value(_ key: StreamSOCKSProxyConfiguration, _ other: String? = nil) -> Any? {
            dictionary[key.rawValue] ?? other.flatMap { dictionary[$0] }
        }
        guard let host = value(.hostKey, Self.appleHostKey) as? String, !host.isEmpty,
            let port = (value(.portKey, Self.applePortKey) as? NSNumber)?.intValue,
            UInt16(exactly: port) != nil
        else { return nil }
        let kind: Kind
        switch value(.versionKey) {
        case nil: kind = .socks5
        case let version as String where version == StreamSOCKSProxyVersion.version5.rawValue: kind = .socks5
        case let version as String where version == StreamSOCKSProxyVersion.version4.rawValue: kind = .socks4
        default: return nil
        }
        self.init(
            kind, host: host, port: port, userName: value(.userKey) as? String,
            password: value(.passwordKey) as? String)
    }

    /// The values of Apple's constants, where they differ from those of Foundation's names.
    private static let appleHostKey = "SOCKSProxy", applePortKey = "SOCKSPort"

    /// The dictionary for a SOCKS proxy; nil for other kinds.
    var socksDictionary: NSDictionary? {
        guard kind != .httpConnect else { return nil }
        let version: StreamSOCKSProxyVersion = kind == .socks4 ? .version4 : .version5
        let dictionary = NSMutableDictionary()
        for (key, value) in [
            (StreamSOCKSProxyConfiguration.hostKey, host as NSString), (.portKey, port as NSNumber),
            (.versionKey, version.rawValue as NSString), (.userKey, userName as NSString?),
            (.passwordKey, password as NSString?),
        ] as [(StreamSOCKSProxyConfiguration, NSObject?)] {
            if let value { dictionary[key.rawValue as NSString] = value }
        }
        return dictionary
    }
}

internal import RondoCore

/// A proxy that lets connections through to other hosts; a stream's property `.proxyKey`.
///
/// The proxy looks the host's name up, not this machine. TLS, where it is set for a stream, is with the host and
/// through the proxy, which sees encrypted bytes only; the dialogue with the proxy itself, a password included,
/// is in plain text unless the proxy has `tls` of its own.
public struct StreamProxy: Sendable, Hashable {
    /// The protocol in which a proxy is asked for a connection.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        enum Dialect: Hashable {
            case socks4, socks5, httpConnect
        }

        let dialect: Dialect
        public var description: String { "\(dialect)" }

        /// SOCKS 4; 4a where the host is given by name. It takes a user name and no password.
        public static let socks4 = Kind(dialect: .socks4)
        /// SOCKS 5 (RFC 1928), with user name and password where they are given (RFC 1929).
        public static let socks5 = Kind(dialect: .socks5)
        /// HTTP's CONNECT (RFC 9110, section 9.3.6), with Basic authentication where a user name is given.
        public static let httpConnect = Kind(dialect: .httpConnect)
    }

    public var kind: Kind
    /// A name or an address, the latter without brackets.
    public var host: String
    public var port: Int
    /// At most 255 bytes for SOCKS 5.
    public var userName: String?
    /// At most 255 bytes for SOCKS 5.
    public var password: String?
    /// How the connection to the proxy itself is secured, which is usually called an https proxy; nil: it is
    /// not. TLS with the host is inside of this one. A program that wants to be asked about the proxy's certificate,
    /// or for one to show it, sets the handlers of these settings.
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
    /// What Apple's dictionary says (rule ST-45): host and port at least; version 5 unless it says 4. The
    /// keys are those of `StreamSOCKSProxyConfiguration` and of `kCFStreamPropertySOCKSProxyHost` and its
    /// kin. Nil for anything else.
    init?(socksDictionary: AnyObject) {
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

    /// The values of Apple's constants, where they are others than those of Foundation's names.
    private static let appleHostKey = "SOCKSProxy", applePortKey = "SOCKSPort"

    /// The dictionary, of a SOCKS proxy.
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

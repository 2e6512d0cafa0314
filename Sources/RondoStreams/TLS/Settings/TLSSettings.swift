public import RondoCore

/// The settings for securing a connection: the side of this end, its identity, the versions of TLS, the
/// trusted authorities, and the checks.
///
/// The default is that of a careful client: TLS 1.2 or 1.3, the certificate authorities of this machine, and
/// a certificate that is valid now and names the host that was asked for. A server sets `role` and an
/// `identity`.
///
/// Settings are values; connections with equal settings share what OpenSSL prepares for them, including the
/// certificate authorities and revocation lists read from files. When a file, or a folder of authorities, is
/// replaced or written to, the next connection reads it again, within a second; if it is missing or
/// unreadable, that connection fails. Existing connections are not affected.
public struct TLSSettings: Sendable, Hashable {
    /// The side of a handshake.
    ///
    /// A `switch` needs no `default`: a handshake of TLS has these two sides (RFC 8446), so no case will be
    /// added.
    public enum Role: Sendable, Hashable {
        /// Speaks first and checks the server's certificate.
        case client
        /// Answers, and needs an identity.
        case server
    }

    /// A version of TLS. Versions 1.0 and 1.1 exist for old devices on a trusted network only: they are
    /// broken (RFC 8996), and allowing them also allows the weak ciphers and signatures that they need.
    public struct Version: Sendable, Hashable, Comparable, CustomStringConvertible {
        /// TLS's own number, which OpenSSL uses too (RFC 8446, section 4.2.1).
        let number: Int32
        public var description: String { "TLS 1.\(number - Self.tls10.number)" }

        public static let tls10 = Version(number: 0x0301)
        public static let tls11 = Version(number: 0x0302)
        public static let tls12 = Version(number: 0x0303)
        public static let tls13 = Version(number: 0x0304)

        public static func < (a: Version, b: Version) -> Bool { a.number < b.number }
    }

    /// A source of trusted certificate authorities.
    public struct CertificateAuthorities: Sendable, Hashable {
        enum Origin: Hashable {
            case system
            case file(String)
            case directory(String)
            case pem(String)
            case certificates([TLSCertificate])
        }

        let origin: Origin

        /// The authorities of this machine: OpenSSL's default file and directory, or those that the
        /// environment variables `SSL_CERT_FILE` and `SSL_CERT_DIR` name instead.
        public static let system = Self(origin: .system)
        /// All certificates of a file in PEM form.
        public static func file(_ path: String) -> Self { Self(origin: .file(path)) }
        /// A directory in the layout of `openssl rehash`: one certificate per file, found by its hash.
        public static func directory(_ path: String) -> Self { Self(origin: .directory(path)) }
        /// All certificates of a text in PEM form.
        public static func pem(_ text: String) -> Self { Self(origin: .pem(text)) }
        /// These certificates.
        public static func certificates(_ certificates: [TLSCertificate]) -> Self {
            Self(origin: .certificates(certificates))
        }
    }

    /// The checks that the peer must pass before the first byte is sent.
    public struct Verification: Sendable, Hashable, CustomStringConvertible {
        private enum Extent: Hashable {
            case full, withoutHostName, none
        }

        private let extent: Extent
        public var description: String { "\(extent)" }

        /// The certificate is valid now, was issued by a trusted authority, and names the host. (A server
        /// checks no name of a client.)
        public static let full = Verification(extent: .full)
        /// As `full`, but any host name is accepted: an attacker with a certificate of a trusted authority
        /// for any name can intercept the connection. For private authorities that issue for one purpose
        /// only.
        public static let withoutHostName = Verification(extent: .withoutHostName)
        /// **Dangerous.** Checks nothing but `pinnedKeys`. Without pinned keys the connection is encrypted,
        /// but perhaps with an attacker, who can read and change everything sent on it, passwords included.
        /// For experiments on loopback only.
        public static let none = Verification(extent: .none)
    }

    /// Certificate problems that are ignored, for `kCFStreamPropertySSLSettings`. Each one weakens TLS; a
    /// pinned key or a private authority is nearly always the better solution.
    public struct Tolerance: OptionSet, Sendable, Hashable {
        public let rawValue: Int

        public init(rawValue: Int) { self.rawValue = rawValue }

        /// Expired certificates, except the authority's own.
        public static let expiredCertificates = Tolerance(rawValue: 1)
        /// An expired certificate of an authority.
        public static let expiredRoots = Tolerance(rawValue: 2)
        /// Authorities that are not trusted, and self-signed certificates.
        public static let anyRoot = Tolerance(rawValue: 4)
    }

    /// A list of revoked certificates (CRL), in PEM or DER form. Lists are never downloaded. Later versions
    /// may accept other sources.
    public struct RevocationList: Sendable, Hashable {
        enum Place: Sendable, Hashable {
            case file(String)
            case data(Data)
        }

        let place: Place

        /// - Parameter path: A file, which is read when a context is made for the settings.
        public static func file(_ path: String) -> RevocationList { RevocationList(place: .file(path)) }
        public static func data(_ data: Data) -> RevocationList { RevocationList(place: .data(data)) }
    }

    /// Whether a server asks clients for a certificate (RFC 8446, section 4.3.2). A client's certificate is
    /// checked like a server's, against `certificateAuthorities`, but without a host name. Later versions may
    /// have more cases.
    public struct ClientCertificates: Sendable, Hashable {
        enum Kind: Sendable, Hashable {
            case notRequested
            case requested
            case required
        }

        let kind: Kind

        public static let notRequested = ClientCertificates(kind: .notRequested)
        /// The server asks, but accepts a client without a certificate.
        public static let requested = ClientCertificates(kind: .requested)
        /// The server refuses a client without a certificate.
        public static let required = ClientCertificates(kind: .required)
    }

    /// The side of this end of the connection.
    public var role = Role.client
    /// The identity of this side. A server needs one; a client shows it to servers that ask.
    public var identity: TLSIdentity?
    /// Identities that a server shows, instead of `identity`, to clients that ask for a name (SNI, RFC 6066,
    /// section 3). The keys are DNS names in any case; "*.example.com" covers every name with one label in
    /// place of the star, unless the name has an entry of its own. A client that asks for another name, or
    /// for none, gets `identity`. Servers only.
    public var identities: [String: TLSIdentity] = [:]
    /// The oldest version that is accepted.
    public var minimumVersion = Version.tls12
    /// The newest version that is offered.
    public var maximumVersion = Version.tls13
    /// The ciphers of TLS 1.2 and earlier, in the syntax of OpenSSL's `ciphers(1)`; nil: OpenSSL's default.
    public var ciphers: String?
    /// The cipher suites of TLS 1.3 by name, separated by colons; nil: OpenSSL's default.
    public var cipherSuites: String?
    /// The trusted authorities; several sources add up. Empty: none is trusted.
    public var certificateAuthorities: [CertificateAuthorities] = [.system]
    /// The checks of the peer's certificate; leave it at `.full`.
    public var verification = Verification.full
    /// Certificate problems that are ignored; leave it empty.
    public var tolerance: Tolerance = []
    /// Keys of which at least one must be in the peer's chain, in addition to all other checks: each a
    /// `TLSCertificate.publicKeyHash`, 32 bytes (RFC 7469 calls it a pin). Any certificate from the peer's
    /// own to the authority's may have the key; with `Verification.none`, where no chain is checked, only the
    /// peer's own. Empty: any key. Pin two, or you cannot change yours.
    public var pinnedKeys: Set<Data> = []
    /// Lists of revoked certificates. A certificate on one of them is refused, and so is a certificate whose
    /// issuer's list is too old. Lists are never downloaded.
    public var revocationLists: [RevocationList] = []
    /// Whether a certificate is refused if the list of its issuer is missing. Applies to every certificate of
    /// a chain.
    public var requiresRevocationLists = false
    /// The handler that decides about every peer, in place of the other settings; nil: the settings decide.
    public var trustHandler: TLSTrustHandler?
    /// The handler that chooses the identity when a server asks for one; nil: `identity` is shown, if there
    /// is one.
    public var identityHandler: TLSIdentityHandler?
    /// Whether clients are asked for a certificate; servers only.
    public var clientCertificates = ClientCertificates.notRequested
    /// Whether a client takes up sessions of earlier connections to the same host and port under equal
    /// settings, and a server lets it (tickets, RFC 8446, section 2.2). A peer is not verified again then,
    /// for at most as long as the server says, two hours as a rule, and no longer than the certificates and
    /// lists are valid that were looked at then. With a trust handler neither side takes up sessions, and
    /// with an identity handler a client does not. A load does not if its delegate has a method that is asked
    /// about the server; nor does the first load of each of the program's classes of delegates, since only a
    /// call tells whether it has one. A server that asks for certificates of its clients lets none of them
    /// take up a session, since it would not verify them again.
    public var resumesSessions = true
    /// The protocols spoken inside TLS (ALPN), the preferred one first, by their registered names: `["h2",
    /// "http/1.1"]`. A client offers them; a server picks its first that the client offers, and refuses a
    /// client that offers only others (RFC 7301, section 3.2). Empty: no ALPN.
    public var alpn: [String] = []
    /// The name for SNI and for the certificate check, if it differs from the host connected to; nil: that
    /// host.
    public var serverName: String?

    /// Makes the default settings, those of a careful client.
    public init() {}

    /// The settings without the identity and the server's name, which are meant for one server alone; nil if
    /// neither is set. Used for connections to another host that a server's answer leads to, such as a
    /// redirection.
    package var elsewhere: TLSSettings? {
        guard identity != nil || serverName != nil else { return nil }
        var settings = self
        settings.identity = nil
        settings.serverName = nil
        return settings
    }

    /// Makes a server's settings.
    public static func server(_ identity: TLSIdentity) -> TLSSettings {
        var settings = TLSSettings()
        settings.role = .server
        settings.identity = identity
        return settings
    }
}

extension TLSSettings {
    /// These settings for a peer to which HTTP/1.1 is spoken: a server might choose any other protocol that
    /// is offered.
    package var forHTTP1: TLSSettings {
        guard alpn.contains(where: { $0 != "http/1.1" }) else { return self }
        var settings = self
        settings.alpn.removeAll { $0 != "http/1.1" }
        return settings
    }
}

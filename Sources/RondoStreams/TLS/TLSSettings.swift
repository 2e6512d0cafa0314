public import RondoCore

/// How a connection is secured: which side this is, by which identity, which versions of TLS it speaks, which authorities
/// it trusts, and what is checked.
///
/// The default is what a careful client does: TLS 1.2 or 1.3, the certificate authorities of this machine,
/// and a certificate that is valid now and names the host that was asked for. A server says so by `role` and
/// has an `identity`.
///
/// Settings are values; connections with equal settings share what OpenSSL prepares for them, the certificate
/// authorities and revocation lists read from files among it. A file, or a folder of authorities, that was replaced
/// or written to is read again for the next connection, within a second; one that is gone, or cannot be read any
/// more, fails that. Connections that stand are left as they are.
public struct TLSSettings: Sendable, Hashable {
    /// The side of a handshake. TLS has these two, so the enum is complete and may be switched over.
    public enum Role: Sendable, Hashable {
        /// Speaks first, and checks the server's certificate.
        case client
        /// Answers, and needs an identity.
        case server
    }

    /// A version of TLS. 1.0 and 1.1 are here for old devices on a trusted network only: they are broken
    /// (RFC 8996), and allowing them allows the weak ciphers and signatures that they need as well.
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

    /// Where certificate authorities to be trusted come from.
    public struct CertificateAuthorities: Sendable, Hashable {
        enum Origin: Hashable {
            case system
            case file(String)
            case directory(String)
            case pem(String)
            case certificates([TLSCertificate])
        }

        let origin: Origin

        /// Those of this machine: OpenSSL's default file and directory, or what the environment variables
        /// `SSL_CERT_FILE` and `SSL_CERT_DIR` name instead.
        public static let system = Self(origin: .system)
        /// All certificates of a file in PEM form.
        public static func file(_ path: String) -> Self { Self(origin: .file(path)) }
        /// A directory as `openssl rehash` prepares it: one certificate a file, found by its hash.
        public static func directory(_ path: String) -> Self { Self(origin: .directory(path)) }
        /// All certificates of a text in PEM form.
        public static func pem(_ text: String) -> Self { Self(origin: .pem(text)) }
        /// These certificates.
        public static func certificates(_ certificates: [TLSCertificate]) -> Self {
            Self(origin: .certificates(certificates))
        }
    }

    /// The checks before the first byte is sent.
    public struct Verification: Sendable, Hashable, CustomStringConvertible {
        private enum Extent: Hashable {
            case full, withoutHostName, none
        }

        private let extent: Extent
        public var description: String { "\(extent)" }

        /// The certificate is valid now, was issued by a trusted authority, and names the host. (A server
        /// checks no name of a client.)
        public static let full = Verification(extent: .full)
        /// As `full`, but whatever host the certificate names: an attacker with a certificate of any name from a
        /// trusted authority can stand between. For private authorities that issue for one purpose only.
        public static let withoutHostName = Verification(extent: .withoutHostName)
        /// **Dangerous.** Nothing is checked but `pinnedKeys`: without those the connection is encrypted, but
        /// perhaps with an attacker, and everything sent on it, passwords included, can be read and changed on the
        /// way. For experiments on loopback only.
        public static let none = Verification(extent: .none)
    }

    /// Problems of a certificate that are overlooked, for `kCFStreamPropertySSLSettings`. Each weakens what
    /// TLS is for; a pinned key or an own authority is nearly always the better way.
    public struct Tolerance: OptionSet, Sendable, Hashable {
        public let rawValue: Int

        public init(rawValue: Int) { self.rawValue = rawValue }

        /// Certificates that have expired, other than that of the authority.
        public static let expiredCertificates = Tolerance(rawValue: 1)
        /// An authority's certificate that has expired.
        public static let expiredRoots = Tolerance(rawValue: 2)
        /// Authorities that are not trusted, and certificates that were issued by themselves.
        public static let anyRoot = Tolerance(rawValue: 4)
    }

    /// A list of certificates that their issuer has taken back (CRL), in PEM or DER form. No list is fetched. Later
    /// versions may know more places.
    public struct RevocationList: Sendable, Hashable {
        enum Place: Sendable, Hashable {
            case file(String)
            case data(Data)
        }

        let place: Place

        /// - Parameter path: Of a file that is read when a context is made of the settings.
        public static func file(_ path: String) -> RevocationList { RevocationList(place: .file(path)) }
        public static func data(_ data: Data) -> RevocationList { RevocationList(place: .data(data)) }
    }

    /// Whether a server asks clients for a certificate (RFC 8446, section 4.3.2). What comes is checked like a server's,
    /// against `certificateAuthorities`, its host name aside. Later versions may know more answers.
    public struct ClientCertificates: Sendable, Hashable {
        enum Kind: Sendable, Hashable {
            case notRequested
            case requested
            case required
        }

        let kind: Kind

        public static let notRequested = ClientCertificates(kind: .notRequested)
        /// A client may have none.
        public static let requested = ClientCertificates(kind: .requested)
        /// A client without one is refused.
        public static let required = ClientCertificates(kind: .required)
    }

    /// Which side this is.
    public var role = Role.client
    /// The identity of this side. A server needs one; a client shows it to servers that ask.
    public var identity: TLSIdentity?
    /// A server's identities for clients that ask for a name (SNI, RFC 6066, section 3), where that is not
    /// `identity`. By DNS names, in capitals or not; "*.example.com" stands for every name with one label in
    /// place of the star, where the name itself is not there. A client that asks for another name, or for
    /// none, meets `identity`. Of servers only.
    public var identities: [String: TLSIdentity] = [:]
    /// The oldest version that is accepted.
    public var minimumVersion = Version.tls12
    /// The newest version that is offered.
    public var maximumVersion = Version.tls13
    /// The ciphers of TLS 1.2 and before, in the words of OpenSSL's `ciphers(1)`; nil: OpenSSL's choice.
    public var ciphers: String?
    /// The cipher suites of TLS 1.3 by their names, with colons between them; nil: all.
    public var cipherSuites: String?
    /// The authorities whose certificates are accepted; several sources add up. Empty: none is accepted.
    public var certificateAuthorities: [CertificateAuthorities] = [.system]
    /// The checks; leave it at `.full`.
    public var verification = Verification.full
    /// Problems that are overlooked; leave it empty.
    public var tolerance: Tolerance = []
    /// Keys of which one has to be in the peer's chain, whatever else it shows: each a
    /// `TLSCertificate.publicKeyHash`, 32 bytes (RFC 7469 calls it a pin). Any certificate from the peer's own
    /// to the authority's may have it; with `Verification.none`, where no chain is checked, only the peer's
    /// own. Empty: any key. Pin two, or you cannot change yours.
    public var pinnedKeys: Set<Data> = []
    /// Lists of certificates that were taken back. A certificate that one of them names is refused, and so is
    /// one whose issuer's list is too old. A list is not fetched from anywhere.
    public var revocationLists: [RevocationList] = []
    /// Whether there has to be a list of every issuer of a chain; without it a certificate is refused whose
    /// issuer's list is missing.
    public var requiresRevocationLists = false
    /// Asked about every peer, in place of deciding by the other settings alone; nil: the settings decide.
    public var trustHandler: TLSTrustHandler?
    /// Asked for an identity when a server wants one; nil: `identity` is shown, if there is one.
    public var identityHandler: TLSIdentityHandler?
    /// Whether clients are asked for a certificate; of servers only.
    public var clientCertificates = ClientCertificates.notRequested
    /// Whether a client takes up sessions of earlier connections to the same host and port under equal
    /// settings, and a server lets it (tickets, RFC 8446, section 2.2). A peer is not verified again then, for
    /// at most as long as the server says, two hours as a rule, and no longer than the certificates and lists
    /// are valid that were looked at then. Where a trust handler is asked neither side does, and where an identity
    /// handler is, a client does not. No more does a load whose delegate has a method that is asked about the server, nor
    /// the first load of each of the program's classes of delegates: only a call tells whether it has one.
    public var resumesSessions = true
    /// The protocols that are spoken inside TLS, the preferred one first, by their registered names: `["h2",
    /// "http/1.1"]`. A client offers them; a server picks its first that the client offers, and refuses a
    /// client that offers others only (RFC 7301, section 3.2). Empty: none.
    public var alpn: [String] = []
    /// The name to ask for and to look for in the certificate, where it is not the host connected to; nil:
    /// that host.
    public var serverName: String?

    /// The default settings: a careful client's.
    public init() {}

    /// The settings without the identity and the server's name, which are meant for one server alone; nil if neither
    /// is set. For connections that a server leads to elsewhere.
    package var elsewhere: TLSSettings? {
        guard identity != nil || serverName != nil else { return nil }
        var settings = self
        settings.identity = nil
        settings.serverName = nil
        return settings
    }

    /// A server's settings.
    public static func server(_ identity: TLSIdentity) -> TLSSettings {
        var settings = TLSSettings()
        settings.role = .server
        settings.identity = identity
        return settings
    }
}

/// How a connection is secured: which versions of TLS, whom to trust, and what is checked.
///
/// The default is what a careful client does: TLS 1.2 or 1.3, the certificate authorities of this machine,
/// and a certificate that is valid now and names the host that was asked for.
///
/// Settings are values; connections with equal settings share what OpenSSL prepares for them, the certificate
/// authorities read from files among it: a file that changes later is not read again by this process.
public struct TLSSettings: Sendable, Hashable {
    /// A version of TLS. 1.0 and 1.1 are here for old devices on a trusted network only: they are broken
    /// (RFC 8996), and allowing them allows the weak ciphers and signatures that they need as well.
    public enum Version: Int, Sendable, Hashable, Comparable, CaseIterable {
        case tls10, tls11, tls12, tls13

        public static func < (a: Version, b: Version) -> Bool { a.rawValue < b.rawValue }
    }

    /// Where certificate authorities to be trusted come from.
    public enum CertificateAuthorities: Sendable, Hashable {
        /// Those of this machine: OpenSSL's default file and directory, or what the environment variables
        /// `SSL_CERT_FILE` and `SSL_CERT_DIR` name instead.
        case system
        /// All certificates of a file in PEM form.
        case file(String)
        /// A directory as `openssl rehash` prepares it: one certificate a file, found by its hash.
        case directory(String)
        /// All certificates of a text in PEM form.
        case pem(String)
    }

    /// What is checked before the first byte is sent.
    public enum Verification: Sendable, Hashable {
        /// The certificate is valid now, was issued by a trusted authority, and names the host.
        case full
        /// As `full`, but whatever host the certificate names: anybody with a certificate of any name from a
        /// trusted authority can stand between. For private authorities that issue for one purpose only.
        case withoutHostName
        /// **Dangerous.** Nothing is checked: the connection is encrypted, but to whoever answers, and
        /// everything sent on it, passwords included, can be read and changed on the way. For experiments on
        /// loopback only.
        case none
    }

    /// The oldest version that is accepted.
    public var minimumVersion = Version.tls12
    /// The newest version that is offered.
    public var maximumVersion = Version.tls13
    /// Whose certificates are accepted; several sources add up. Empty: nobody's.
    public var certificateAuthorities: [CertificateAuthorities] = [.system]
    /// What is checked; leave it at `.full`.
    public var verification = Verification.full
    /// The protocols offered for what is spoken inside TLS, the preferred one first, by their registered
    /// names: `["h2", "http/1.1"]`. Empty: none are offered.
    public var alpn: [String] = []
    /// The name to ask for and to look for in the certificate, where it is not the host connected to; nil:
    /// that host.
    public var serverName: String?

    /// The default settings.
    public init() {}
}

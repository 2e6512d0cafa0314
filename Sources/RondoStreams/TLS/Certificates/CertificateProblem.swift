// The problems of a peer's certificate, as OpenSSL's numbers and as sentences.

internal import CRondoOpenSSL
internal import RondoCore

/// A check that one certificate of a peer's chain has failed.
public struct CertificateProblem: Hashable, Sendable {
    /// Which check failed.
    public struct Kind: Hashable, Sendable {
        private let number: Int

        /// The certificate's validity period has ended.
        public static let expired = Kind(number: 1)
        /// The certificate's validity period has not begun.
        public static let notYetValid = Kind(number: 2)
        /// The certificate was issued by itself and is not among the trusted ones.
        public static let selfSigned = Kind(number: 3)
        /// The issuer is not a trusted authority, or is reached only through a certificate that the peer did
        /// not send.
        public static let unknownIssuer = Kind(number: 4)
        /// The certificate does not name the host that was asked for.
        public static let hostNameMismatch = Kind(number: 5)
        /// The issuer has revoked the certificate, according to one of `TLSSettings.revocationLists`.
        public static let revoked = Kind(number: 6)
        /// The revocation status cannot be determined: the issuer's list is missing, too old or broken.
        public static let revocationUnknown = Kind(number: 7)
        /// The key or the signature is too weak: it can be broken nowadays.
        public static let weak = Kind(number: 8)
        /// The certificate was issued for another purpose: a server shows a client's certificate, for
        /// example, or a certificate that is not an authority's has issued another one.
        public static let wrongUsage = Kind(number: 9)
        /// The issuer's signature does not match the certificate.
        public static let badSignature = Kind(number: 10)
        /// No certificate of the chain has one of `TLSSettings.pinnedKeys`.
        public static let keyNotPinned = Kind(number: 11)
        /// `TLSTrust.reject()` was called.
        public static let rejected = Kind(number: 12)
        /// The chain has more problems than are listed.
        public static let tooMany = Kind(number: 13)
        /// Another problem; `code` says which.
        public static let other = Kind(number: 0)
    }

    public let kind: Kind
    /// OpenSSL's number, one of `X509_V_ERR_…`.
    public let code: Int32
    /// The position of the certificate at fault in the chain; 0 is the peer's own.
    public let depth: Int
    /// The certificate at fault, where it could be read.
    public let certificate: TLSCertificate?
    /// True if the certificate at fault is an authority's own, issued by itself.
    let isOfRoot: Bool

    init(code: Int32, depth: Int = 0, isOfRoot: Bool = false, certificate: TLSCertificate?) {
        self.init(
            Self.kind(of: code), code: code, depth: depth, isOfRoot: isOfRoot, certificate: certificate)
    }

    /// Makes a problem that Rondo has found, not OpenSSL.
    init(_ kind: Kind, depth: Int = 0, certificate: TLSCertificate?) {
        self.init(
            kind, code: X509_V_ERR_APPLICATION_VERIFICATION, depth: depth, isOfRoot: false,
            certificate: certificate)
    }

    private init(_ kind: Kind, code: Int32, depth: Int, isOfRoot: Bool, certificate: TLSCertificate?) {
        self.kind = kind
        self.code = code
        self.depth = depth
        self.isOfRoot = isOfRoot
        self.certificate = certificate
    }

    /// OpenSSL's sentence for the code: "certificate has expired".
    public var words: String { String(cString: X509_verify_cert_error_string(Int(code))) }

    private static func kind(of code: Int32) -> Kind {
        switch code {
        case X509_V_ERR_CERT_HAS_EXPIRED: .expired
        case X509_V_ERR_CERT_NOT_YET_VALID: .notYetValid
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: .selfSigned
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
            X509_V_ERR_CERT_UNTRUSTED:
            .unknownIssuer
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: .hostNameMismatch
        case X509_V_ERR_CERT_REVOKED: .revoked
        case X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE,
            X509_V_ERR_CRL_SIGNATURE_FAILURE, X509_V_ERR_CRL_NOT_YET_VALID, X509_V_ERR_CRL_HAS_EXPIRED,
            X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD, X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD,
            X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER, X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION,
            X509_V_ERR_DIFFERENT_CRL_SCOPE, X509_V_ERR_KEYUSAGE_NO_CRL_SIGN:
            .revocationUnknown
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL, X509_V_ERR_CA_MD_TOO_WEAK: .weak
        case X509_V_ERR_INVALID_PURPOSE, X509_V_ERR_INVALID_CA, X509_V_ERR_INVALID_NON_CA,
            X509_V_ERR_KEYUSAGE_NO_CERTSIGN, X509_V_ERR_CERT_REJECTED, X509_V_ERR_PATH_LENGTH_EXCEEDED:
            .wrongUsage
        case X509_V_ERR_CERT_SIGNATURE_FAILURE, X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE: .badSignature
        default: .other
        }
    }
}

// MARK: - Sentences

extension CertificateProblem: CustomStringConvertible {
    /// A sentence for a person, with "the peer" where the host's name would stand.
    public var description: String { description(host: "the peer") }

    func description(host: String) -> String {
        switch kind {
        case .expired:
            let date = certificate.map { " on \(Self.day($0.notAfter))" } ?? ""
            return "\(named(host)) expired\(date). "
                + "Its owner has to renew it, unless this machine's clock is wrong"
        case .notYetValid:
            let date = certificate.map { " before \(Self.day($0.notBefore))" } ?? ""
            return "\(named(host)) is not valid\(date). Check this machine's clock"
        case .selfSigned:
            return "\(named(host)) was issued by itself. "
                + "If you trust it, name it in TLSSettings.certificateAuthorities"
        case .unknownIssuer:
            return unknownIssuer(host)
        case .hostNameMismatch:
            return "the certificate is not for \(host), but for \(listedNames). "
                + "Check the address; another server may be answering"
        case .revoked:
            return "\(named(host)) was revoked by its issuer\(issuer). Do not trust it"
        case .revocationUnknown:
            return "whether \(named(host)) was revoked by its issuer\(issuer) cannot be told: \(words). "
                + "Renew TLSSettings.revocationLists"
        case .weak:
            return "\(named(host)) was refused because it can be forged: \(words)"
        case .wrongUsage:
            return "\(named(host)) was issued for another purpose: \(words)"
        case .badSignature:
            return "\(named(host)) was not signed by its issuer\(issuer): \(words). Do not trust it"
        case .keyNotPinned:
            return "\(named(host)) and those of its issuers have none of the keys in TLSSettings.pinnedKeys. "
                + "Its owner has another key now, or another server is answering"
        case .rejected:
            return "\(named(host)) was rejected by this program"
        case .tooMany:
            return "the certificates of \(host) have more problems than the \(TLSVerifier.problemLimit) that "
                + "are listed. Its owner has to replace them"
        default:
            return "\(named(host)) was refused: \(words)"
        }
    }

    /// "the certificate of example.com (CN=example.com)", or of an authority above it.
    private func named(_ host: String) -> String {
        let subject = certificate.map { $0.subject.isEmpty ? "without a subject" : $0.subject }
        guard depth > 0 else {
            return "the certificate of \(host)\(subject.map { " (\($0))" } ?? "")"
        }
        return "the authority's certificate \(subject.map { "“\($0)” " } ?? "")"
            + "through which that of \(host) was issued"
    }

    private var issuer: String { certificate.map { " “\($0.issuer)”" } ?? "" }

    private func unknownIssuer(_ host: String) -> String {
        let advice = "If you trust it, name it in TLSSettings.certificateAuthorities"
        // The chain is complete, but its root is not trusted.
        if let certificate, depth > 0, certificate.subject == certificate.issuer {
            return
                "the certificate of \(host) was issued under “\(certificate.subject)”, which this side does "
                + "not know as a certificate authority: \(words). \(advice)"
        }
        return "\(named(host)) was issued by\(issuer), which this side does not know "
            + "as a certificate authority: \(words). \(advice); if it is a known one, the server leaves out "
            + "certificates between"
    }

    private var listedNames: String {
        guard let names = certificate?.names, !names.isEmpty else { return "no host at all" }
        let shown = names.prefix(8).joined(separator: ", ")
        return names.count > 8 ? "\(shown) and \(names.count - 8) more" : shown
    }

    /// "2020-01-31", in UTC.
    private static func day(_ date: Date) -> String {
        date.formatted(.iso8601.year().month().day())
    }
}

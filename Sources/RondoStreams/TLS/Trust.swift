// What the peer's certificates say, and why they were refused. Everything here was written by a stranger:
// names are shortened and freed of control characters before a person sees them.

internal import COpenSSL
package import RondoCore

/// A certificate as the peer has shown it; nothing in it is true unless it was verified.
package struct PeerCertificate: Hashable, Sendable {
    /// Whom it was issued to and by whom, as RFC 2253 writes it: "CN=example.com,O=Example".
    package let subject: String
    package let issuer: String
    /// The hosts that it is valid for: DNS names and IP addresses, in the order of the certificate.
    package let names: [String]
    package let notBefore: Date
    package let notAfter: Date
    /// The certificate itself, in DER form.
    package let encoded: Data

    /// Names beyond this many are left out, and what is longer than this many bytes is cut off.
    static let nameLimit = 100, textLimit = 1_000
}

/// Why a certificate was refused.
package struct CertificateProblem: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case expired
        case notYetValid
        /// Issued by itself, and not among the trusted ones.
        case selfSigned
        /// Issued by an authority that is not trusted, or through one that the server did not show.
        case unknownIssuer
        case hostNameMismatch
        case revoked
        case other
    }

    package let kind: Kind
    /// OpenSSL's number, one of `X509_V_ERR_…`.
    package let code: Int32
    /// The certificate at fault, where it could be read: the host's own, or an authority's that has expired.
    package let certificate: PeerCertificate?

    init(code: Int32, certificate: PeerCertificate?) {
        self.code = code
        self.certificate = certificate
        kind = Self.kind(of: code)
    }

    /// OpenSSL's sentence for the code: "certificate has expired".
    package var sentence: String { String(cString: X509_verify_cert_error_string(Int(code))) }

    static func kind(of code: Int32) -> Kind {
        switch code {
        case X509_V_ERR_CERT_HAS_EXPIRED: .expired
        case X509_V_ERR_CERT_NOT_YET_VALID: .notYetValid
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: .selfSigned
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            .unknownIssuer
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: .hostNameMismatch
        case X509_V_ERR_CERT_REVOKED: .revoked
        default: .other
        }
    }

    func description(host: String) -> String {
        let subject = certificate.map { " (\($0.subject.isEmpty ? "without a subject" : $0.subject))" } ?? ""
        let issuer = certificate.map { " “\($0.issuer)”" } ?? ""
        switch kind {
        case .expired:
            let date = certificate.map { " on \(Self.day($0.notAfter))" } ?? ""
            return "the certificate of \(host)\(subject) expired\(date). "
                + "Its owner has to renew it, unless this machine's clock is wrong"
        case .notYetValid:
            let date = certificate.map { " before \(Self.day($0.notBefore))" } ?? ""
            return "the certificate of \(host)\(subject) is not valid\(date). Check this machine's clock"
        case .selfSigned:
            return "the certificate of \(host)\(subject) was issued by itself. "
                + "If you trust it, name it in TLSSettings.certificateAuthorities"
        case .unknownIssuer:
            return
                "the certificate of \(host)\(subject) was issued by\(issuer), which this side does not know "
                + "as a certificate authority: \(sentence). If you trust it, name it in "
                + "TLSSettings.certificateAuthorities; if it is a known one, the server leaves out "
                + "certificates between"
        case .hostNameMismatch:
            return "the certificate is not for \(host), but for \(listedNames). "
                + "Check the address; somebody else may be answering"
        case .revoked:
            return "the certificate of \(host)\(subject) was revoked by its issuer\(issuer). Do not trust it"
        case .other:
            return "the certificate of \(host)\(subject) was refused: \(sentence)"
        }
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

// MARK: - Reading X509

extension PeerCertificate {
    /// Reads what `certificate`, an `X509 *`, says. The pointer is used during the call only.
    init(_ certificate: OpaquePointer) {
        subject = Self.text(of: X509_get_subject_name(certificate))
        issuer = Self.text(of: X509_get_issuer_name(certificate))
        names = Self.names(of: certificate)
        notBefore = Self.date(of: X509_get0_notBefore(certificate)) ?? .distantPast
        notAfter = Self.date(of: X509_get0_notAfter(certificate)) ?? .distantFuture
        encoded = Self.encoded(certificate)
    }

    /// The chain in `stack`, a `STACK_OF(X509) *`, the host's own certificate first.
    static func chain(_ stack: OpaquePointer?) -> [PeerCertificate] {
        guard let stack else { return [] }
        return (0..<OPENSSL_sk_num(stack)).compactMap { index in
            OPENSSL_sk_value(stack, index).map { PeerCertificate(OpaquePointer($0)) }
        }
    }

    private static func encoded(_ certificate: OpaquePointer) -> Data {
        let count = i2d_X509(certificate, nil)
        guard count > 0 else { return Data() }
        var data = Data(count: Int(count))
        data.withUnsafeMutableBytes { bytes in
            var next = bytes.bindMemory(to: UInt8.self).baseAddress
            _ = i2d_X509(certificate, &next)
        }
        return data
    }

    private static func text(of name: OpaquePointer?) -> String {
        guard let name, let output = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(output) }
        guard X509_NAME_print_ex(output, name, 0, rondo_XN_FLAG_RFC2253) >= 0 else { return "" }
        var bytes = [UInt8](repeating: 0, count: textLimit)
        let count = BIO_read(output, &bytes, Int32(bytes.count))
        return printable(bytes.prefix(max(0, Int(count))))
    }

    private static func date(of time: UnsafePointer<ASN1_TIME>?) -> Date? {
        var parts = tm()
        guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
        return Date(timeIntervalSince1970: TimeInterval(timegm(&parts)))
    }

    private static func names(of certificate: OpaquePointer) -> [String] {
        guard let extensions = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else {
            return []
        }
        let stack = OpaquePointer(extensions)
        // Ours: OpenSSL has made it for this call.
        defer { GENERAL_NAMES_free(stack) }
        return (0..<OPENSSL_sk_num(stack)).prefix(nameLimit).compactMap { index in
            OPENSSL_sk_value(stack, index).flatMap { name(in: $0.assumingMemoryBound(to: GENERAL_NAME.self)) }
        }
    }

    private static func name(in general: UnsafePointer<GENERAL_NAME>) -> String? {
        switch general.pointee.type {
        case GEN_DNS:
            return printable(bytes(of: general.pointee.d.dNSName).prefix(textLimit))
        case GEN_IPADD:
            return address(bytes(of: general.pointee.d.iPAddress))
        default:
            return nil
        }
    }

    private static func bytes(of string: UnsafePointer<ASN1_STRING>?) -> UnsafeBufferPointer<UInt8> {
        guard let string else { return UnsafeBufferPointer(start: nil, count: 0) }
        return UnsafeBufferPointer(
            start: ASN1_STRING_get0_data(string), count: Int(ASN1_STRING_length(string)))
    }

    private static func address(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
        func number<T: FixedWidthInteger & UnsignedInteger>(_ range: Range<Int>, as: T.Type) -> T {
            bytes[range].reduce(0) { $0 << 8 | T($1) }
        }
        switch bytes.count {
        case 4: return SocketAddress.ipv4(number(0..<4, as: UInt32.self), port: 0).host
        case 16:
            let high = number(0..<8, as: UInt64.self), low = number(8..<16, as: UInt64.self)
            return SocketAddress.ipv6(high: high, low: low, port: 0, scope: 0).host
        default: return nil
        }
    }

    /// Text for a person: what is no UTF-8 is replaced, what would move a terminal's cursor as well.
    private static func printable(_ bytes: some Sequence<UInt8>) -> String {
        let text = String(decoding: Array(bytes), as: UTF8.self)
        return String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    switch scalar.properties.generalCategory {
                    case .control, .format, .lineSeparator, .paragraphSeparator: "\u{fffd}"
                    default: scalar
                    }
                }))
    }
}

// A certificate in a form that a program can read. All its content comes from a stranger: names are shortened
// and control characters replaced before a person sees them.

internal import CRondoOpenSSL
public import RondoCore

/// A certificate (X.509) that a peer has sent or a file holds.
///
/// Its content is to be trusted only after verification. Two certificates are equal if their bytes are.
public struct TLSCertificate: Sendable {
    /// The name of the owner, as RFC 2253 writes it: "CN=example.com,O=Example". At most 1,000 bytes; control
    /// characters are replaced.
    public let subject: String
    /// The name of its issuer, in the same form.
    public let issuer: String
    /// The hosts that the certificate is valid for: DNS names and IP addresses in the certificate's order, at
    /// most 100. Names in the subject do not count (RFC 9525).
    public let names: [String]
    /// The beginning of the validity period.
    public let notBefore: Date
    /// The end of the validity period.
    public let notAfter: Date
    /// The serial number that the issuer has given, in upper-case hexadecimal digits without separators:
    /// "0A1B".
    public let serialNumber: String
    /// The certificate itself, in DER form.
    public let derRepresentation: Data

    static let nameLimit = 100, textLimit = 1_000
    /// The most certificates that are read from one text or file.
    static let countLimit = 10_000

    /// Reads a certificate in DER form.
    ///
    /// - Returns: Nil if the bytes are not exactly one certificate.
    public init?(derRepresentation: Data) {
        guard let pointer = Self.decode(derRepresentation) else { return nil }
        defer { X509_free(pointer) }
        self.init(pointer)
    }

    /// Reads all certificates of a text in PEM form, in the text's order; other text around them is ignored.
    /// Nil if one of them is broken.
    public static func certificates(inPEM text: String) -> [TLSCertificate]? {
        var certificates: [TLSCertificate] = []
        let isWhole = PEM.forEachCertificate(in: Array(text.utf8)) { pointer in
            certificates.append(TLSCertificate(pointer))
            return certificates.count < countLimit
        }
        return isWhole ? certificates : nil
    }

    /// The certificate in PEM form, from "-----BEGIN CERTIFICATE-----" to the end of the last line.
    public var pemRepresentation: String {
        let text = derRepresentation.base64EncodedString(options: [
            .lineLength64Characters, .endLineWithLineFeed,
        ])
        return "-----BEGIN CERTIFICATE-----\n\(text)\n-----END CERTIFICATE-----\n"
    }

    /// The SHA-256 of the certificate, 32 bytes, which browsers show as its fingerprint.
    public var sha256Fingerprint: Data { Digest.sha256(derRepresentation) }

    /// The SHA-256 of the public key with its algorithm (SubjectPublicKeyInfo), 32 bytes, in the form that
    /// `TLSSettings.pinnedKeys` takes. It stays the same when a certificate is renewed with the same key.
    public var publicKeyHash: Data {
        guard let pointer = Self.decode(derRepresentation) else { return Data() }
        defer { X509_free(pointer) }
        return Self.publicKeyHash(of: pointer)
    }
}

extension TLSCertificate: Hashable {
    public static func == (a: TLSCertificate, b: TLSCertificate) -> Bool {
        a.derRepresentation == b.derRepresentation
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(derRepresentation) }
}

extension TLSCertificate: CustomStringConvertible {
    /// The subject; without one, the first name.
    public var description: String {
        subject.isEmpty ? names.first ?? "a certificate without a subject" : subject
    }
}

// MARK: - Reading X509

extension TLSCertificate {
    /// Copies the fields of `certificate`, an `X509 *`. The pointer is used during the call only.
    init(_ certificate: OpaquePointer) {
        subject = Self.text(of: X509_get_subject_name(certificate))
        issuer = Self.text(of: X509_get_issuer_name(certificate))
        names = Self.names(of: certificate)
        notBefore = Self.date(of: X509_get0_notBefore(certificate)) ?? .distantPast
        notAfter = Self.date(of: X509_get0_notAfter(certificate)) ?? .distantFuture
        serialNumber = Self.serialNumber(of: certificate)
        derRepresentation = Self.encoded(certificate)
    }

    /// The certificates in `stack`, a `STACK_OF(X509) *`, in its order.
    static func chain(_ stack: OpaquePointer?) -> [TLSCertificate] {
        pointers(in: stack).map { TLSCertificate($0) }
    }

    /// The members of a `STACK_OF(X509) *`, which still owns them.
    static func pointers(in stack: OpaquePointer?) -> [OpaquePointer] {
        guard let stack else { return [] }
        return (0..<max(0, OPENSSL_sk_num(stack))).compactMap { index in
            OPENSSL_sk_value(stack, index).map { OpaquePointer($0) }
        }
    }

    /// Makes an `X509 *` from these bytes, which the caller must free; nil if they are no certificate.
    static func decode(_ data: Data) -> OpaquePointer? {
        data.withUnsafeBytes { bytes in
            var next = bytes.bindMemory(to: UInt8.self).baseAddress
            defer { OpenSSLErrors.clear() }
            guard let pointer = d2i_X509(nil, &next, bytes.count) else { return nil }
            guard next == bytes.bindMemory(to: UInt8.self).baseAddress.map({ $0 + bytes.count }) else {
                X509_free(pointer)
                return nil
            }
            return pointer
        }
    }

    static func publicKeyHash(of certificate: OpaquePointer) -> Data {
        let key = X509_get_X509_PUBKEY(certificate)
        let encoded = encoded { i2d_X509_PUBKEY(key, $0) }
        return encoded.isEmpty ? encoded : Digest.sha256(encoded)
    }

    private static func encoded(_ certificate: OpaquePointer) -> Data {
        encoded { i2d_X509(certificate, $0) }
    }

    /// Returns the bytes that an OpenSSL function `i2d_…` writes; the first call of it only asks for the
    /// length. Empty if memory is short.
    static func encoded(_ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32) -> Data {
        let count = write(nil)
        guard count > 0 else { return Data() }
        var data = Data(count: Int(count))
        let written = data.withUnsafeMutableBytes { bytes in
            var next = bytes.bindMemory(to: UInt8.self).baseAddress
            return write(&next)
        }
        return written == count ? data : Data()
    }

    private static func serialNumber(of certificate: OpaquePointer) -> String {
        guard let number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nil) else { return "" }
        defer { BN_free(number) }
        guard let text = BN_bn2hex(number) else { return "" }
        defer { CRYPTO_free(text, nil, 0) }
        return String(String(cString: text).prefix(textLimit))
    }

    /// A distinguished name, an `X509_NAME *`, as text for a person.
    static func text(of name: OpaquePointer?) -> String {
        guard let name, let output = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(output) }
        guard X509_NAME_print_ex(output, name, 0, rondo_XN_FLAG_RFC2253) >= 0 else { return "" }
        var bytes = [UInt8](repeating: 0, count: textLimit)
        let count = BIO_read(output, &bytes, Int32(bytes.count))
        return printable(bytes.prefix(max(0, Int(count))))
    }

    private static func date(of time: UnsafePointer<ASN1_TIME>?) -> Date? {
        seconds(of: time).map { Date(timeIntervalSince1970: TimeInterval($0)) }
    }

    /// Seconds since 1970; nil if `time` is not a valid time.
    static func seconds(of time: UnsafePointer<ASN1_TIME>?) -> Int? {
        var parts = tm()
        guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
        return timegm(&parts)
    }

    private static func names(of certificate: OpaquePointer) -> [String] {
        guard let extensions = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else {
            return []
        }
        let stack = OpaquePointer(extensions)
        // This function owns the stack, which OpenSSL has made for it.
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

    /// Text for a person: invalid UTF-8 and characters that would move a terminal's cursor are replaced.
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

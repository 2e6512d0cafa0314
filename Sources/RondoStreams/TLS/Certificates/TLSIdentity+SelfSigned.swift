// Self-signed identities: for tests, and for servers of one machine.

internal import CRondoOpenSSL
internal import Glibc
public import RondoCore

extension TLSIdentity {
    /// Makes a new key (P-256) and a self-signed certificate for it: for tests, and for servers that no
    /// stranger has to trust.
    ///
    /// A client accepts the certificate if its settings name it, by `TLSSettings.certificateAuthorities` or
    /// `pinnedKeys`, or as the file of `curl --cacert`, written from `certificates[0].pemRepresentation`.
    /// Browsers warn, and let the user continue.
    ///
    /// - Parameters:
    ///   - names: Host names and numeric addresses, at least one. The first is the subject's name too.
    ///   - duration: The validity in seconds from now, 30 days by default. It begins an hour ago, for clients
    ///     whose clock is slow.
    /// - Throws: `notMade` where a name is invalid, or OpenSSL refuses.
    public init(selfSignedFor names: [String], validFor duration: TimeInterval = 30 * 86_400)
        throws(TLSIdentityError)
    {
        OpenSSLErrors.clear()
        defer { OpenSSLErrors.clear() }
        guard let first = names.first else {
            throw TLSIdentityError(.notMade, "a certificate needs a name")
        }
        let alternatives = try names.map { name throws(TLSIdentityError) in try SelfSigned.alternative(name) }
        guard let key = SelfSigned.makeKey() else { throw SelfSigned.failure() }
        guard let certificate = X509_new() else {
            EVP_PKEY_free(key)
            throw SelfSigned.failure()
        }
        defer { X509_free(certificate) }
        let isMade = SelfSigned.fill(
            certificate, key, subject: first, alternatives: alternatives.joined(separator: ","),
            seconds: Int(min(max(duration, 1), 100 * 365 * 86_400)))
        guard isMade else {
            EVP_PKEY_free(key)
            throw SelfSigned.failure()
        }
        try self.init(certificate: TLSCertificate(certificate), key: key)
    }

    /// The private key in PEM form (PKCS #8, not encrypted), to be kept in a file that its owner alone may
    /// read.
    public var privateKeyPEM: String {
        guard let output = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(output) }
        guard PEM_write_bio_PKCS8PrivateKey(output, keyPointer, nil, nil, 0, nil, nil) == 1 else {
            OpenSSLErrors.clear()
            return ""
        }
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = BIO_read(output, &piece, Int32(piece.count))
            guard count > 0 else { break }
            text += piece.prefix(Int(count))
        }
        OpenSSLErrors.clear()
        return String(decoding: text, as: UTF8.self)
    }
}

/// The steps that make a self-signed certificate.
private enum SelfSigned {
    static func failure() -> TLSIdentityError {
        let words = OpenSSLErrors.drain().first?.words ?? "there is no memory"
        return TLSIdentityError(.notMade, "the certificate cannot be made: \(words)")
    }

    /// Formats a name for OpenSSL's extension syntax. Characters that could end the name there are refused.
    static func alternative(_ name: String) throws(TLSIdentityError) -> String {
        var address = in6_addr()
        if inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1 {
            return "IP:\(name)"
        }
        let isName =
            !name.isEmpty && name.utf8.count < 254
            && name.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                    UInt8(ascii: "_"), UInt8(ascii: "*"):
                    true
                default: false
                }
            }
        guard isName else {
            throw TLSIdentityError(.notMade, "“\(name)” is neither a host name nor an address in numbers")
        }
        return "DNS:\(name)"
    }

    /// Makes an `EVP_PKEY *`, which the caller must free.
    static func makeKey() -> OpaquePointer? {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
            EVP_PKEY_generate(context, &key) == 1
        else { return nil }
        return key
    }

    static func fill(
        _ certificate: OpaquePointer, _ key: OpaquePointer, subject: String, alternatives: String,
        seconds: Int
    ) -> Bool {
        let version = 2  // Counted from 0: X.509 version 3.
        let serial = UInt64.random(in: 1...UInt64(Int64.max))
        let name = X509_get_subject_name(certificate)
        let commonName = Array(subject.utf8.prefix(64))  // The most that X.520 allows.
        let isNamed =
            X509_NAME_add_entry_by_txt(name, "CN", 0x1000, commonName, Int32(commonName.count), -1, 0) == 1
        return isNamed && X509_set_version(certificate, version) == 1
            && ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial) == 1
            && X509_gmtime_adj(X509_getm_notBefore(certificate), -3_600) != nil
            && X509_gmtime_adj(X509_getm_notAfter(certificate), seconds) != nil
            && X509_set_issuer_name(certificate, name) == 1
            && X509_set_pubkey(certificate, key) == 1
            && extend(certificate, NID_subject_alt_name, alternatives)
            && extend(certificate, NID_basic_constraints, "critical,CA:FALSE")
            && extend(certificate, NID_key_usage, "critical,digitalSignature")
            && extend(certificate, NID_ext_key_usage, "serverAuth")
            && extend(certificate, NID_subject_key_identifier, "hash")
            && X509_sign(certificate, key, EVP_sha256()) > 0
    }

    private static func extend(_ certificate: OpaquePointer, _ kind: Int32, _ value: String) -> Bool {
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, certificate, certificate, nil, nil, 0)
        guard let made = X509V3_EXT_conf_nid(nil, &context, kind, value) else { return false }
        defer { X509_EXTENSION_free(made) }
        return X509_add_ext(certificate, made, -1) == 1
    }
}

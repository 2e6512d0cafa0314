// The identity of this side: a certificate with its private key.

internal import CRondoOpenSSL
public import RondoCore

/// The identity of one side of a connection: a chain of certificates and the private key of the first one.
///
/// A server needs one; a client needs one for servers that ask for it. Two identities are equal if their
/// certificates are.
public struct TLSIdentity: Sendable {
    /// The side's own certificate first, then the issuer of each one before.
    public let certificates: [TLSCertificate]
    private let key: Key

    /// Reads a chain and its key from files in PEM form. A file may be a pipe: then the call waits for its
    /// writer, 10 seconds at most.
    ///
    /// - Parameters:
    ///   - chainFile: The path of the own certificate, followed by those between it and the authority.
    ///   - privateKeyFile: The path of the key; nil: the key is in `chainFile` as well.
    ///   - password: The password of an encrypted key.
    /// - Throws: What could not be read, and why. A missing password is an error; it is never asked for at
    ///   the terminal.
    public init(
        chainFile: String, privateKeyFile: String? = nil, password: String? = nil
    ) throws(TLSIdentityError) {
        let chain = try Self.contents(of: chainFile)
        let key = try privateKeyFile.map { path throws(TLSIdentityError) in try Self.contents(of: path) }
        try self.init(chain: chain, chainName: "“\(chainFile)”", key: key, password: password)
    }

    /// Reads a chain and its key from texts in PEM form.
    public init(
        chain: String, privateKey: String? = nil, password: String? = nil
    ) throws(TLSIdentityError) {
        try self.init(
            chain: Array(chain.utf8), chainName: "the text", key: privateKey.map { Array($0.utf8) },
            password: password)
    }

    /// Reads a file in PKCS #12 form (.p12, .pfx). It may be a pipe, as with
    /// `init(chainFile:privateKeyFile:password:)`.
    public init(pkcs12File: String, password: String) throws(TLSIdentityError) {
        try self.init(pkcs12: Data(Self.contents(of: pkcs12File)), password: password)
    }

    /// Reads an identity in PKCS #12 form.
    public init(pkcs12: Data, password: String) throws(TLSIdentityError) {
        OpenSSLErrors.clear()
        let decoded = PEM.withBIO(Array(pkcs12)) { d2i_PKCS12_bio($0, nil) } ?? nil
        guard let decoded else {
            throw TLSIdentityError(.unreadable, "the data are not in PKCS #12 form")
        }
        defer { PKCS12_free(decoded) }
        var key: OpaquePointer?
        var own: OpaquePointer?
        var others: OpaquePointer?
        let isRead = PKCS12_parse(decoded, password, &key, &own, &others) == 1
        let pointers = TLSCertificate.pointers(in: others)
        defer {
            X509_free(own)
            for pointer in pointers { X509_free(pointer) }
            OPENSSL_sk_free(others)
        }
        guard isRead else {
            EVP_PKEY_free(key)
            throw Self.pkcs12Failure()
        }
        guard let key else { throw TLSIdentityError(.noPrivateKey, "the PKCS #12 data hold no private key") }
        let holder = Key(key)
        guard let own else { throw TLSIdentityError(.noCertificate, "the PKCS #12 data hold no certificate") }
        let chain = Self.ordered(TLSCertificate(own), pointers.map { TLSCertificate($0) })
        try self.init(chain, holder)
    }

    private init(
        chain: [UInt8], chainName: String, key: [UInt8]?, password: String?
    ) throws(TLSIdentityError) {
        var certificates: [TLSCertificate] = []
        let isWhole = PEM.forEachCertificate(in: chain) { pointer in
            certificates.append(TLSCertificate(pointer))
            return certificates.count < TLSCertificate.countLimit
        }
        guard isWhole, !certificates.isEmpty else {
            throw TLSIdentityError(.noCertificate, "no certificate could be read from \(chainName)")
        }
        guard let pointer = PEM.privateKey(in: key ?? chain, password: password) else {
            throw Self.keyFailure(hasPassword: password != nil)
        }
        try self.init(certificates, Key(pointer))
    }

    private init(_ certificates: [TLSCertificate], _ key: Key) throws(TLSIdentityError) {
        self.certificates = certificates
        self.key = key
        guard let own = TLSCertificate.decode(certificates[0].derRepresentation) else {
            throw TLSIdentityError(.noCertificate, "the certificate cannot be read")
        }
        defer { X509_free(own) }
        defer { OpenSSLErrors.clear() }
        guard X509_check_private_key(own, key.pointer) == 1 else {
            throw TLSIdentityError(
                .keyDoesNotFit, "the private key is not that of the certificate \(certificates[0])")
        }
    }

    /// Makes an identity of a certificate and an `EVP_PKEY *`, whose ownership it takes.
    init(certificate: TLSCertificate, key: OpaquePointer) throws(TLSIdentityError) {
        try self.init([certificate], Key(key))
    }

    /// The `EVP_PKEY *`, valid as long as this identity.
    var keyPointer: OpaquePointer { key.pointer }

    /// Owns an `EVP_PKEY *`.
    private final class Key: Sendable {
        /// `nonisolated(unsafe)` is safe: the key is never changed after it was read, and OpenSSL counts
        /// references to it under a lock of its own.
        nonisolated(unsafe) let pointer: OpaquePointer

        init(_ pointer: OpaquePointer) { self.pointer = pointer }

        deinit { EVP_PKEY_free(pointer) }
    }

    // MARK: - Reading

    /// The seconds for which the writer of a file that is a pipe is waited for.
    private static let pipePatience: Double = 10

    private static func contents(of path: String) throws(TLSIdentityError) -> [UInt8] {
        switch PEM.contents(of: path, patience: pipePatience) {
        case .success(let bytes): return bytes
        case .failure(let failure):
            throw TLSIdentityError(.unreadable, "“\(path)” cannot be read: \(failure.words)")
        }
    }

    private static func keyFailure(hasPassword: Bool) -> TLSIdentityError {
        let entries = OpenSSLErrors.drain()
        if entries.contains(where: { $0.library == ERR_LIB_PEM && $0.reason == PEM_R_NO_START_LINE }) {
            return TLSIdentityError(.noPrivateKey, "no private key could be read from the text")
        }
        let isDecryption = entries.contains {
            $0.library == ERR_LIB_EVP || $0.library == ERR_LIB_PROV || $0.reason == PEM_R_BAD_PASSWORD_READ
                || $0.reason == PEM_R_BAD_DECRYPT || $0.library == ERR_LIB_PKCS12
        }
        guard isDecryption else {
            let words = entries.first?.words ?? "unknown error"
            return TLSIdentityError(.noPrivateKey, "the private key cannot be read: \(words)")
        }
        return TLSIdentityError(
            .wrongPassword,
            hasPassword
                ? "the private key cannot be decrypted: the password is wrong, or the key is broken"
                : "the private key is encrypted: a password is needed")
    }

    private static func pkcs12Failure() -> TLSIdentityError {
        let entries = OpenSSLErrors.drain()
        if entries.contains(where: {
            $0.library == ERR_LIB_PKCS12 && $0.reason == PKCS12_R_MAC_VERIFY_FAILURE
        }) {
            return TLSIdentityError(.wrongPassword, "the password of the PKCS #12 data is wrong")
        }
        let words = entries.last?.words ?? "unknown error"
        return TLSIdentityError(
            .unreadable,
            "the PKCS #12 data cannot be read: \(words). If they were made long ago, make them anew by "
                + "“openssl pkcs12 -legacy -in old.p12 -nodes | openssl pkcs12 -export -out new.p12”")
    }

    /// The own certificate, followed by its issuer, that one's issuer and so on, as far as `others` holds
    /// them.
    private static func ordered(_ own: TLSCertificate, _ others: [TLSCertificate]) -> [TLSCertificate] {
        var chain = [own]
        var rest = others
        while let index = rest.firstIndex(where: { $0.subject == chain[chain.count - 1].issuer }) {
            chain.append(rest.remove(at: index))
        }
        return chain
    }

    // MARK: - Use

    /// Passes the identity to `SSL_CTX_use_cert_and_key` or `SSL_use_cert_and_key`, which take their own
    /// references.
    func use(_ body: (_ own: OpaquePointer, _ key: OpaquePointer, _ chain: OpaquePointer?) -> Int32) -> Bool {
        let pointers = certificates.compactMap { TLSCertificate.decode($0.derRepresentation) }
        defer { for pointer in pointers { X509_free(pointer) } }
        // Fails unless all are decoded: the peer would need the missing one.
        guard pointers.count == certificates.count, let own = pointers.first,
            let chain = OPENSSL_sk_new_null()
        else { return false }
        defer { OPENSSL_sk_free(chain) }
        for pointer in pointers.dropFirst() {
            guard OPENSSL_sk_push(chain, UnsafeRawPointer(pointer)) > 0 else { return false }
        }
        return body(own, key.pointer, chain) == 1
    }
}

extension TLSIdentity: Hashable {
    public static func == (a: TLSIdentity, b: TLSIdentity) -> Bool { a.certificates == b.certificates }

    public func hash(into hasher: inout Hasher) { hasher.combine(certificates.first) }
}

/// The error of reading or making an identity.
public struct TLSIdentityError: Error, Hashable, Sendable, LocalizedError, CustomStringConvertible {
    /// The kind of failure.
    public struct Code: Hashable, Sendable {
        private let number: Int

        /// The file or the data cannot be read at all.
        public static let unreadable = Code(number: 0)
        /// There is no certificate, or a broken one.
        public static let noCertificate = Code(number: 1)
        /// There is no private key, or a broken one.
        public static let noPrivateKey = Code(number: 2)
        /// A password is missing or wrong.
        public static let wrongPassword = Code(number: 3)
        /// Certificate and key belong to different pairs.
        public static let keyDoesNotFit = Code(number: 4)
        /// A new identity could not be made.
        public static let notMade = Code(number: 5)
    }

    public let code: Code
    /// A sentence for a person.
    public let description: String

    public var errorDescription: String? { description }

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}

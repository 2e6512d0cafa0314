internal import RondoCore
internal import RondoMutex

/// Certificates for tests, made once a process by the `openssl` command in a directory that is removed at
/// exit.
///
/// Nearly all of them share one key, `keyPath`, because making keys takes longest.
package struct TestCertificates: Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        /// For localhost and 127.0.0.1, valid today, issued by the authority at `authorityPath`.
        case good
        /// As `good`, but valid in 2020 only.
        case expired
        /// As `good`, but valid from 2090.
        case notYetValid
        /// For localhost, issued by itself.
        case selfSigned
        /// Issued by the authority, for elsewhere.invalid, *.elsewhere.invalid and 192.0.2.1.
        case wrongHost
        /// As `good`, but issued by the authority at `strangerPath`.
        case untrusted
        /// Issued by the authority, with "localhost" in its subject only, where it does not count.
        case subjectOnly
        /// As `good`, but issued by the authority between, at `betweenPath`, which the file does not hold.
        case withoutBetween
        /// The same with the certificate of the authority between.
        case withBetween
        /// As `good`, but issued by `good`, which is no authority and is in the file as well.
        case byNobody
        /// As `good`, but issued by an authority that has expired, at `expiredAuthorityPath`.
        case byExpired
        /// As `good`, but revoked by the list at `revocationListPath`.
        case revoked
        /// As `good`, with an RSA key of 1,024 bits.
        case weakKey
        /// As `good`, but for clients only.
        case clientOnly
        /// As `good`, but for servers only.
        case serverOnly
        /// Of "a client", for clients.
        case client
        /// As `good`, with a key of its own.
        case otherKey
    }

    package static let shared = TestCertificates()

    package let directory: String
    package var keyPath: String { directory + "/key.pem" }
    /// The certificate authority that tests trust.
    package var authorityPath: String { directory + "/authority.pem" }
    /// The one that they do not.
    package var strangerPath: String { directory + "/stranger.pem" }

    /// An authority that was issued by the trusted one.
    package var betweenPath: String { directory + "/between.pem" }
    package var expiredAuthorityPath: String { directory + "/expired-authority.pem" }
    /// The trusted authority's list of revoked certificates; the other is one of the past.
    package var revocationListPath: String { directory + "/revoked-list.pem" }
    package var oldRevocationListPath: String { directory + "/old-revoked-list.pem" }

    package func path(_ kind: Kind) -> String { "\(directory)/\(kind.rawValue).pem" }

    /// The key of a certificate.
    package func keyPath(_ kind: Kind) -> String {
        switch kind {
        case .weakKey, .otherKey: "\(directory)/\(kind.rawValue).key"
        default: keyPath
        }
    }

    private init() {
        var template = Array("\(NSTemporaryDirectory())/rondo-certificates-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { fatalError("no temporary directory: errno \(errno)") }
        directory = String(cString: made)
        Self.removeAtExit(directory)
        do {
            try make()
        } catch {
            fatalError("test certificates could not be made: \(error)")
        }
    }

    private static func removeAtExit(_ directory: String) {
        path.withLock { $0 = directory }
        atexit { try? FileManager.default.removeItem(atPath: TestCertificates.path.withLock { $0 }) }
    }

    /// The path for the function that runs at exit, which cannot capture it.
    private static let path = Mutex("")

    private func make() throws {
        try openssl("ecparam -name prime256v1 -genkey -noout -out \(keyPath)")
        try makeAuthority(authorityPath, name: "Rondo Test Authority")
        try makeAuthority(strangerPath, name: "Stranger Authority")
        try write(configuration, to: "openssl.cnf")
        try write("", to: "index.txt")
        try openssl(
            "req -x509 -new -key \(keyPath) -subj /CN=localhost -days 3650 "
                + "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -out \(path(.selfSigned))")
        try issue(.good)
        try issue(.expired, from: "20200101000000Z", to: "20210101000000Z")
        try issue(.notYetValid, from: "20900101000000Z", to: "20910101000000Z")
        let elsewhere = "DNS:elsewhere.invalid,DNS:*.elsewhere.invalid,IP:192.0.2.1"
        try issue(.wrongHost, subject: "elsewhere.invalid", names: elsewhere)
        try issue(.untrusted, by: strangerPath)
        try issue(.subjectOnly, names: nil)
        try makeChains()
        try issue(.clientOnly, usage: "clientAuth")
        try issue(.serverOnly, usage: "serverAuth")
        try issue(.client, subject: "a client", names: "DNS:client.invalid", usage: "clientAuth")
        try openssl("ecparam -name prime256v1 -genkey -noout -out \(keyPath(.otherKey))")
        try issue(.otherKey)
        try openssl("genrsa -out \(keyPath(.weakKey)) 1024")
        try issue(.weakKey)
        try revoke()
    }

    private func makeChains() throws {
        let authority = "basicConstraints=critical,CA:TRUE"
        try sign("between", subject: "Rondo Test Between", extensions: authority, by: authorityPath)
        try issue(.withoutBetween, by: betweenPath)
        try join([path(.withoutBetween), betweenPath], to: path(.withBetween))
        try issue(.byNobody, subject: "leaf", by: path(.good))
        try join([path(.byNobody), path(.good)], to: path(.byNobody))
        try sign(
            "expired-authority", subject: "Expired Authority", extensions: authority, by: nil,
            from: "20200101000000Z", to: "20210101000000Z")
        try issue(.byExpired, by: expiredAuthorityPath)
    }

    private func revoke() throws {
        try issue(.revoked)
        let authority = "ca -config \(directory)/openssl.cnf -cert \(authorityPath) -keyfile \(keyPath)"
        try openssl("\(authority) -revoke \(path(.revoked))")
        try openssl("\(authority) -gencrl -crldays 3650 -out \(revocationListPath)")
        try openssl(
            "\(authority) -gencrl -crl_lastupdate 20200101000000Z -crl_nextupdate 20210101000000Z "
                + "-out \(oldRevocationListPath)")
    }

    private func join(_ paths: [String], to path: String) throws {
        let text = try paths.map { try String(contentsOfFile: $0, encoding: .utf8) }.joined()
        try text.write(toFile: path, atomically: false, encoding: .utf8)
    }

    private func makeAuthority(_ path: String, name: String) throws {
        try TestServerProcess.run([
            "openssl", "req", "-x509", "-new", "-key", keyPath, "-subj", "/CN=\(name)", "-days", "3650",
            "-addext", "basicConstraints=critical,CA:TRUE", "-out", path,
        ])
    }

    private func issue(
        _ kind: Kind, subject: String = "localhost", names: String? = "DNS:localhost,IP:127.0.0.1",
        by authority: String? = nil, usage: String? = nil, from: String = "20240101000000Z",
        to: String = "20991231000000Z"
    ) throws {
        var extensions = names.map { "subjectAltName=\($0)" } ?? "basicConstraints=CA:FALSE"
        if let usage { extensions += "\nextendedKeyUsage=\(usage)" }
        try sign(
            kind.rawValue, subject: subject, key: keyPath(kind), extensions: extensions,
            by: authority ?? authorityPath, from: from, to: to)
    }

    /// `openssl ca`, because in OpenSSL 3.0 it alone can set both dates freely.
    ///
    /// - Parameter authority: Nil: it is issued by itself.
    private func sign(
        _ name: String, subject: String, key: String? = nil, extensions: String, by authority: String?,
        from: String = "20240101000000Z", to: String = "20991231000000Z"
    ) throws {
        let request = "\(directory)/\(name).csr"
        try TestServerProcess.run([
            "openssl", "req", "-new", "-key", key ?? keyPath, "-subj", "/CN=\(subject)", "-out", request,
        ])
        try write(extensions, to: "\(name).ext")
        let issuer = authority.map { "-cert \($0)" } ?? "-selfsign"
        try openssl(
            "ca -config \(directory)/openssl.cnf -batch -notext \(issuer) -keyfile \(keyPath) "
                + "-in \(request) -out \(directory)/\(name).pem -startdate \(from) -enddate \(to) "
                + "-extfile \(directory)/\(name).ext")
    }

    private var configuration: String {
        """
        [ca]
        default_ca = test
        [test]
        database = \(directory)/index.txt
        new_certs_dir = \(directory)
        rand_serial = yes
        default_md = sha256
        policy = any
        unique_subject = no
        [any]
        commonName = supplied

        """
    }

    private func write(_ text: String, to name: String) throws {
        try text.write(toFile: "\(directory)/\(name)", atomically: false, encoding: .utf8)
    }

    private func openssl(_ arguments: String) throws {
        try TestServerProcess.run(["openssl"] + arguments.split(separator: " ").map(String.init))
    }
}

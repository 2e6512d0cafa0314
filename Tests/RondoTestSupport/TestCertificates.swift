internal import RondoCore
internal import Synchronization

/// Certificates for tests, made once a process by the `openssl` command in a directory that is removed at
/// exit.
///
/// All of them share one key, `keyPath`, because making keys takes longest.
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
    }

    package static let shared = TestCertificates()

    package let directory: String
    package var keyPath: String { directory + "/key.pem" }
    /// The certificate authority that tests trust.
    package var authorityPath: String { directory + "/authority.pem" }
    /// The one that they do not.
    package var strangerPath: String { directory + "/stranger.pem" }

    package func path(_ kind: Kind) -> String { "\(directory)/\(kind.rawValue).pem" }

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

    /// What the function that runs at exit needs to know; it cannot capture.
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
    }

    private func makeAuthority(_ path: String, name: String) throws {
        try TestServerProcess.run([
            "openssl", "req", "-x509", "-new", "-key", keyPath, "-subj", "/CN=\(name)", "-days", "3650",
            "-addext", "basicConstraints=critical,CA:TRUE", "-out", path,
        ])
    }

    /// `openssl ca`, because in OpenSSL 3.0 it alone can set both dates freely.
    private func issue(
        _ kind: Kind, subject: String = "localhost", names: String? = "DNS:localhost,IP:127.0.0.1",
        by authority: String? = nil, from: String = "20240101000000Z", to: String = "20991231000000Z"
    ) throws {
        let request = "\(directory)/\(kind.rawValue).csr"
        try openssl("req -new -key \(keyPath) -subj /CN=\(subject) -out \(request)")
        let extensions = names.map { "subjectAltName=\($0)" } ?? "basicConstraints=CA:FALSE"
        try write(extensions, to: "\(kind.rawValue).ext")
        try openssl(
            "ca -config \(directory)/openssl.cnf -batch -notext -cert \(authority ?? authorityPath) "
                + "-keyfile \(keyPath) -in \(request) -out \(path(kind)) -startdate \(from) -enddate \(to) "
                + "-extfile \(directory)/\(kind.rawValue).ext")
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

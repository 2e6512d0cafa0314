import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct TLSIdentityTests {
    private let certificates = TestCertificates.shared

    private func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

    private func code(_ body: () throws -> TLSIdentity) throws -> TLSIdentityError.Code {
        let error = try #require(throws: TLSIdentityError.self) { try body() }
        #expect(!error.description.isEmpty)
        #expect(error.localizedDescription == error.description)
        return error.code
    }

    @Test func `an identity is made of a chain and a key from files and texts`() throws {
        let path = certificates.path(.good)
        let identity = try TLSIdentity(chainFile: path, privateKeyFile: certificates.keyPath)
        #expect(identity.certificates.map(\.subject) == ["CN=localhost"])
        let both = try text(certificates.keyPath) + text(path) + text(certificates.authorityPath)
        let chained = try TLSIdentity(chain: both)
        #expect(chained.certificates.map(\.subject) == ["CN=localhost", "CN=Rondo Test Authority"])
        #expect(chained != identity)
        #expect(
            try identity == TLSIdentity(chain: text(path), privateKey: text(certificates.keyPath)))
    }

    @Test func `a chain from a pipe is read to the end, although its writer pauses`() throws {
        let bytes = Array(try text(certificates.path(.good)).utf8)
        let (half, rest) = (Array(bytes.prefix(bytes.count / 2)), Array(bytes.dropFirst(bytes.count / 2)))
        let key = certificates.keyPath
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        let (readEnd, writeEnd) = (ends[0], ends[1])
        defer { close(readEnd) }
        let thread = Mutex<pid_t>(0)
        let reader = LoopThread<[String]> { _ in
            thread.withLock { $0 = threadNumber() }
            do {
                // As a shell's `<(command)`.
                let identity = try TLSIdentity(chainFile: "/dev/fd/\(readEnd)", privateKeyFile: key)
                return identity.certificates.map(\.subject)
            } catch {
                return ["\(error)"]
            }
        }
        do {
            defer { close(writeEnd) }
            #expect(write(writeEnd, half, half.count) == half.count)
            try waitFor("the first half to be read") {
                var unread: Int32 = -1
                return ioctl(writeEnd, UInt(FIONREAD), &unread) == 0 && unread == 0 ? () : nil
            }
            try waitUntilAsleep(thread: thread.withLock { $0 })
            #expect(write(writeEnd, rest, rest.count) == rest.count)
        }
        #expect(try reader.value() == ["CN=localhost"])
    }

    @Test func `ST-43 a chain from a named pipe is read, although its writer comes later`() throws {
        let bytes = Array(try text(certificates.path(.good)).utf8)
        let (path, key) = (temporaryPath(), certificates.keyPath)
        try #require(mkfifo(path, 0o600) == 0)
        defer { unlink(path) }
        let thread = Mutex<pid_t>(0)
        let reader = LoopThread<[String]> { _ in
            thread.withLock { $0 = threadNumber() }
            do {
                return try TLSIdentity(chainFile: path, privateKeyFile: key).certificates.map(\.subject)
            } catch {
                return ["\(error)"]
            }
        }
        let number = try waitFor("the reader") { () -> pid_t? in
            thread.withLock { $0 == 0 ? nil : $0 }
        }
        try waitUntilAsleep(thread: number)
        // Without waiting for a reader, which may have failed.
        let writeEnd = try waitFor("the pipe's reader") {
            let descriptor = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            return descriptor < 0 ? nil : descriptor
        }
        #expect(write(writeEnd, bytes, bytes.count) == bytes.count)
        close(writeEnd)
        #expect(try reader.value() == ["CN=localhost"])
    }

    @Test func `an encrypted key needs its password, and the terminal is not asked`() throws {
        let path = temporaryPath()
        defer { unlink(path) }
        try TestServerProcess.run([
            "openssl", "pkcs8", "-topk8", "-in", certificates.keyPath, "-out", path, "-passout",
            "pass:secret",
        ])
        let chain = certificates.path(.good)
        _ = try TLSIdentity(chainFile: chain, privateKeyFile: path, password: "secret")
        #expect(
            try code { try TLSIdentity(chainFile: chain, privateKeyFile: path, password: "x") }
                == .wrongPassword)
        // The terminal is not asked.
        #expect(try code { try TLSIdentity(chainFile: chain, privateKeyFile: path) } == .wrongPassword)
    }

    @Test func `PKCS 12 gives a chain, and a wrong password is told from unreadable data`() throws {
        let path = temporaryPath()
        defer { unlink(path) }
        try TestServerProcess.run([
            "openssl", "pkcs12", "-export", "-in", certificates.path(.good), "-inkey", certificates.keyPath,
            "-certfile", certificates.authorityPath, "-out", path, "-passout", "pass:secret",
        ])
        let identity = try TLSIdentity(pkcs12File: path, password: "secret")
        #expect(identity.certificates.map(\.subject) == ["CN=localhost", "CN=Rondo Test Authority"])
        #expect(try code { try TLSIdentity(pkcs12File: path, password: "x") } == .wrongPassword)
        #expect(try code { try TLSIdentity(pkcs12: Data([1, 2, 3]), password: "") } == .unreadable)
        #expect(try code { try TLSIdentity(pkcs12: Data(), password: "") } == .unreadable)
    }

    @Test func `an unreadable identity reports the reason`() throws {
        let (chain, key) = (certificates.path(.good), certificates.keyPath)
        #expect(try code { try TLSIdentity(chainFile: "/nonexistent") } == .unreadable)
        #expect(try code { try TLSIdentity(chainFile: chain, privateKeyFile: "/") } == .unreadable)
        #expect(try code { try TLSIdentity(chainFile: "/dev/zero", privateKeyFile: key) } == .unreadable)
        #expect(try code { try TLSIdentity(chainFile: chain) } == .noPrivateKey)
        #expect(try code { try TLSIdentity(chainFile: key) } == .noCertificate)
        #expect(try code { try TLSIdentity(chain: "", privateKey: "") } == .noCertificate)
        #expect(try code { try TLSIdentity(chain: text(chain), privateKey: "x") } == .noPrivateKey)
        #expect(
            try code { try TLSIdentity(chainFile: certificates.path(.otherKey), privateKeyFile: key) }
                == .keyDoesNotFit)
    }

    @Test func `a certificate has the properties that OpenSSL prints`() throws {
        let pem = try text(certificates.path(.good))
        let certificate = try #require(TLSCertificate.certificates(inPEM: pem)?.first)
        let openssl = { (option: String) in
            try TestServerProcess.run([
                "openssl", "x509", "-in", certificates.path(.good), "-noout", option,
            ])
        }
        #expect(try openssl("-serial") == "serial=\(certificate.serialNumber)")
        let fingerprint = certificate.sha256Fingerprint.map { String(format: "%02X", $0) }
        #expect(
            try openssl("-fingerprint").isEmpty == false && fingerprint.count == 32)
        let shown = try TestServerProcess.run([
            "openssl", "x509", "-in", certificates.path(.good), "-noout", "-fingerprint", "-sha256",
        ])
        #expect(shown.hasSuffix(fingerprint.joined(separator: ":")))
        let hash = try TestServerProcess.run([
            "sh", "-c",
            "openssl x509 -in \(certificates.path(.good)) -noout -pubkey | openssl pkey -pubin -outform DER "
                + "| openssl dgst -sha256 -r",
        ])
        #expect(hash.hasPrefix(certificate.publicKeyHash.map { String(format: "%02x", $0) }.joined()))
        #expect(pem.contains(certificate.pemRepresentation))
        #expect(TLSCertificate(derRepresentation: certificate.derRepresentation) == certificate)
        #expect(TLSCertificate(derRepresentation: certificate.derRepresentation + [0]) == nil)
        #expect(TLSCertificate(derRepresentation: Data()) == nil)
        #expect(TLSCertificate.certificates(inPEM: "nothing") == [])
        #expect(
            TLSCertificate.certificates(
                inPEM: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n") == nil)
    }
}

import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Chains with more problems than are listed.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct TLSManyProblemsTests {
    /// Makes a certificate for localhost below as many expired authorities as `$1` says, the first of which may be above
    /// the names `$2` alone.
    private static let script = """
        openssl req -x509 -new -key key.pem -subj /CN=Root -days 3650 -out root.pem
        sign() {
            openssl ca -config cnf -batch -notext -cert "$1" -keyfile key.pem -in any.csr -subj "$2" \\
                -out "$3" -startdate 20200101000000Z -enddate "$4" -extfile ext
        }
        issuer=root.pem
        for number in $(seq "$1"); do
            echo basicConstraints=critical,CA:TRUE > ext
            if [ "$number" = 1 ]; then echo "nameConstraints=critical,permitted;DNS:$2" >> ext; fi
            sign $issuer "/CN=Between $number" $number.pem 20210101000000Z
            issuer=$number.pem
            cat $number.pem chain.pem > new.pem 2> /dev/null || true
            mv new.pem chain.pem
        done
        echo subjectAltName=DNS:localhost > ext
        sign $issuer /CN=localhost leaf.pem 20991231000000Z
        """

    private func problem(length: Int, constraint: String) throws -> CertificateProblem.Kind? {
        let chain = try MadeCertificates(Self.script, "\(length)", constraint)
        let server = try TestServerProcess([
            "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", chain.path("leaf.pem"), "-key",
            chain.path("key.pem"), "-cert_chain", chain.path("chain.pem"), "-rev",
        ])
        defer { server.terminate() }
        let port = try server.port(after: "ACCEPT ")
        let settings = TLSSettings.test {
            $0.certificateAuthorities = [.file(chain.path("root.pem"))]
            $0.tolerance = .expiredCertificates
        }
        do {
            let client = try BlockingTLSClient(port: port, settings: settings)
            try client.handshake()
            #expect(client.engine.certificateProblem?.kind == .expired)
            return nil
        } catch let error as TLSError {
            guard case .certificate(let problem) = error.reason else { throw error }
            return problem.kind
        }
    }

    @Test func `ST-43 a fatal problem is found behind any number of tolerated ones`() throws {
        // A name constraint that the last certificate breaks; OpenSSL looks at it after all dates.
        #expect(try problem(length: 40, constraint: "elsewhere.invalid") == .other)
        #expect(try problem(length: 3, constraint: "elsewhere.invalid") == .other)
    }

    @Test func `ST-43 more problems than are listed are not tolerated themselves`() throws {
        #expect(try problem(length: 3, constraint: "localhost") == nil)
        #expect(try problem(length: 40, constraint: "localhost") == .tooMany)
    }
}

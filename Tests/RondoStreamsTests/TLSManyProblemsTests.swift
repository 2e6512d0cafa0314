import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Chains with more problems than are listed.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct TLSManyProblemsTests {
    /// A certificate for localhost below expired authorities, made by the `openssl` command in a folder that is
    /// removed with it.
    private final class Chain {
        let folder: String
        var authority: String { folder + "/root.pem" }

        /// - Parameters:
        ///   - length: How many expired authorities stand between.
        ///   - constraint: What names the first of them may be above.
        init(length: Int, constraint: String) throws {
            folder = temporaryPath()
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try TestServerProcess.run(["sh", "-ec", Self.script, folder, "\(length)", constraint])
        }

        deinit { try? FileManager.default.removeItem(atPath: folder) }

        private static let script = """
            cd "$0"
            touch index.txt
            printf '[ca]\\ndefault_ca=t\\n[t]\\ndatabase=index.txt\\nnew_certs_dir=.\\nrand_serial=yes\\n' > cnf
            printf 'default_md=sha256\\npolicy=p\\nunique_subject=no\\n[p]\\ncommonName=supplied\\n' >> cnf
            openssl ecparam -name prime256v1 -genkey -noout -out key.pem
            openssl req -x509 -new -key key.pem -subj /CN=Root -days 3650 -out root.pem
            openssl req -new -key key.pem -subj /CN=any -out any.csr
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
    }

    private func problem(length: Int, constraint: String) throws -> CertificateProblem.Kind? {
        let chain = try Chain(length: length, constraint: constraint)
        let server = try TestServerProcess([
            "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", chain.folder + "/leaf.pem", "-key",
            chain.folder + "/key.pem", "-cert_chain", chain.folder + "/chain.pem", "-rev",
        ])
        defer { server.terminate() }
        let port = try server.port(after: "ACCEPT ")
        let settings = TLSSettings.test {
            $0.certificateAuthorities = [.file(chain.authority)]
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

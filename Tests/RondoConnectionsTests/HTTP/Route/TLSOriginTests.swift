import Rondo
import RondoTestSupport
import Testing

/// Tests settings of TLS that are meant for one server, and redirects to another.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct TLSOriginTests {
    /// Two servers in one process that ask for a certificate without requiring one. The first sends `/away` to the
    /// second, `/there-and-back` there and back, `/here` to itself; both answer everything else with whether they
    /// were shown a certificate.
    private static func servers() throws -> (process: TestServerProcess, first: UInt16, second: UInt16) {
        let script = """
            import socket, ssl, sys, threading
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1], sys.argv[2])
            context.load_verify_locations(sys.argv[3])
            context.verify_mode = ssl.CERT_OPTIONAL
            listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
            ports = [listener.getsockname()[1] for listener in listeners]
            places = {"/away": (1, "/"), "/there-and-back": (1, "/back"), "/back": (0, "/"), "/here": (0, "/")}
            def serve(conn):
                try:
                    tls = context.wrap_socket(conn, server_side=True)
                    path = tls.recv(65536).split()[1].decode()
                    shown = "shown" if tls.getpeercert() else "none"
                    head = "HTTP/1.1 200 OK"
                    if path in places:
                        number, target = places[path]
                        head = f"HTTP/1.1 302 Found\\r\\nLocation: https://localhost:{ports[number]}{target}"
                    tls.sendall(f"{head}\\r\\nConnection: close\\r\\nContent-Length: {len(shown)}\\r\\n\\r\\n{shown}"
                        .encode())
                    tls.close()
                except OSError: pass
            def run(listener):
                while True:
                    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
            threading.Thread(target=run, args=(listeners[1],), daemon=True).start()
            print("PORTS", *ports, flush=True)
            run(listeners[0])
            """
        let certificates = TestCertificates.shared
        let process = try TestServerProcess([
            "python3", "-c", script, certificates.path(.good), certificates.keyPath,
            certificates.authorityPath,
        ])
        let ports = try process.line(after: "PORTS ").split(separator: " ").compactMap { UInt16($0) }
        return (process, try #require(ports.first), try #require(ports.last))
    }

    @Test(arguments: [
        ("/", "shown"), ("/here", "shown"), ("/away", "none"), ("/there-and-back", "shown"),
    ])
    func `UC-33 an identity stays at the origin that it was given for`(path: String, expected: String) throws
    {
        let (process, first, _) = try Self.servers()
        defer { process.terminate() }
        let certificates = TestCertificates.shared
        let identity = try TLSIdentity(
            chainFile: certificates.path(.client), privateKeyFile: certificates.keyPath)
        let target = url("https://localhost:\(first)\(path)")
        // Again, by the way that is remembered.
        for _ in 0..<2 {
            let recorder = try load(target) { connection in
                connection.trustTestAuthority()
                connection.configuration.tls.identity = identity
            }
            #expect(recorder.text == expected, "\(recorder.calls)")
        }
    }

    @Test func `UC-33 the name of a server stays at the origin that it was given for`() throws {
        let (process, first, _) = try Self.servers()
        defer { process.terminate() }
        for (host, path, isRight) in [
            ("127.0.0.1", "/", true), ("127.0.0.1", "/away", true), ("localhost", "/", false),
        ] {
            let recorder = try load(url("https://\(host):\(first)\(path)")) { connection in
                connection.trustTestAuthority()
                // The certificate names both; what it does not name is refused at the first server only.
                connection.configuration.tls.serverName = isRight ? "localhost" : "elsewhere.invalid"
            }
            #expect(recorder.calls.last == (isRight ? "finish" : "fail -1202"), "\(recorder.calls)")
        }
    }

    @Test func `UC-33 pinned keys have to be found wherever a redirect leads`() throws {
        let certificates = TestCertificates.shared
        let (other, port) = try Stranger.pythonTLS(
            .otherKey,
            """
            tls.sendall(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            """)
        defer { other.terminate() }
        let (server, first) = try Stranger.pythonTLS(
            .good,
            """
            tls.sendall(b"HTTP/1.1 302 Found\\r\\nLocation: https://localhost:\(port)/\\r\\nConnection: close\\r\\n"
                b"Content-Length: 0\\r\\n\\r\\n")
            """)
        defer { server.terminate() }
        let text = try String(contentsOfFile: certificates.path(.good), encoding: .utf8)
        let pin = try #require(TLSCertificate.certificates(inPEM: text)?.first?.publicKeyHash)
        let recorder = try load(url("https://localhost:\(first)/")) { connection in
            // The authorities have the same key as the certificate.
            connection.configuration.tls.verification = .none
            connection.configuration.tls.pinnedKeys = [pin]
        }
        #expect(recorder.calls.first?.hasPrefix("willSend 302") == true)
        #expect(recorder.calls.last?.hasPrefix("fail -120") == true, "\(recorder.calls)")
    }

    @Test(arguments: [[], ["http/1.1"], ["h2", "http/1.1"], ["h2"]])
    func `a load offers no protocol that it does not speak`(_ protocols: [String]) throws {
        let (server, port) = try Stranger.pythonTLS(
            .good,
            """
            chosen = str(tls.selected_alpn_protocol()).encode()
            tls.sendall(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(chosen), chosen))
            """)
        defer { server.terminate() }
        let recorder = try load(url("https://localhost:\(port)/")) { connection in
            connection.trustTestAuthority()
            connection.configuration.tls.alpn = protocols
        }
        #expect(recorder.text == (protocols.contains("http/1.1") ? "http/1.1" : "None"), "\(recorder.calls)")
    }
}

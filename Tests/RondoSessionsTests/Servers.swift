import Rondo
import RondoTestSupport

/// Python's HTTP server behind TLS, which keeps connections and answers each request with the number of its connection.
///
/// - Parameter maximumAge: The seconds for which it wants to be asked over TLS alone (RFC 6797).
func pythonTLSServer(maximumAge: Int = 0) throws -> (TestServerProcess, UInt16) {
    let certificates = TestCertificates.shared
    let script = """
        import http.server, itertools, ssl, sys
        numbers = itertools.count()
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def setup(self):
                super().setup()
                self.number = next(numbers)
            def log_message(self, *arguments): pass
            def do_GET(self):
                body = str(self.number).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Strict-Transport-Security", "max-age=" + sys.argv[3])
                self.end_headers()
                self.wfile.write(body)
        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *arguments): pass
        server = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        server.socket = context.wrap_socket(server.socket, server_side=True)
        print("PORT", server.server_address[1], flush=True)
        server.serve_forever()
        """
    let server = try TestServerProcess([
        "python3", "-c", script, certificates.path(.good), certificates.keyPath(.good), "\(maximumAge)",
    ])
    return (server, try server.port(after: "PORT "))
}

/// A SOCKS 5 server of microsocks, which has no port of its own choice: a free one is tried, and another if it was taken
/// meanwhile.
func socksServer() throws -> (TestServerProcess, UInt16) {
    for _ in 0..<20 {
        let port = try RefusedPort().port
        let server = try TestServerProcess(["microsocks", "-i", "127.0.0.1", "-p", "\(port)"])
        let listens: Bool? = try waitFor("the proxy to listen") {
            if server.hasEnded { return false }
            return isListening(port) ? true : nil
        }
        if listens == true { return (server, port) }
    }
    throw NeverCame(description: "no port for microsocks")
}

extension URLSessionConfiguration {
    /// Trusts the authority that has issued the tests' certificates.
    func trustTestAuthority() {
        connection.tls.certificateAuthorities = [.file(TestCertificates.shared.authorityPath)]
    }

    /// Goes by a proxy on this machine.
    ///
    /// - Parameter kind: As the dictionary has it: "HTTP", "SOCKS".
    func goBy(_ kind: String, _ port: UInt16) {
        connectionProxyDictionary = [
            "\(kind)Enable": 1, "\(kind)Proxy": "127.0.0.1", "\(kind)Port": Int(port),
        ]
    }
}

/// A server of TLS that wants a certificate of its client, and sends its first line back reversed.
func demandingServer(_ version: String = "TLSv1_3") throws -> (TestServerProcess, UInt16) {
    let certificates = TestCertificates.shared
    let script = """
        import socket, ssl, sys
        listener = socket.create_server(("127.0.0.1", 0))
        print("PORT", listener.getsockname()[1], flush=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        context.load_verify_locations(sys.argv[3])
        context.verify_mode = ssl.CERT_REQUIRED
        context.maximum_version = ssl.TLSVersion[sys.argv[4]]
        while True:
            peer = listener.accept()[0]
            try:
                peer = context.wrap_socket(peer, server_side=True)
                peer.sendall(peer.recv(100)[::-1])
                peer.recv(1)
            except (ssl.SSLError, OSError): pass
            peer.close()
        """
    let server = try TestServerProcess([
        "python3", "-c", script, certificates.path(.good), certificates.keyPath(.good),
        certificates.authorityPath, version,
    ])
    return (server, try server.port(after: "PORT "))
}

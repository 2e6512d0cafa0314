import Rondo
import RondoTestSupport

/// Strangers to load from, each a process of its own.
enum Stranger {
    /// Python's http.server over the files of a directory.
    static func python(directory: String) throws -> (TestServerProcess, UInt16) {
        let script = """
            import functools, http.server, sys
            class Handler(http.server.SimpleHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                def log_message(self, *arguments): pass
            handler = functools.partial(Handler, directory=sys.argv[1])
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
            print("PORT", server.server_address[1], flush=True)
            server.serve_forever()
            """
        let server = try TestServerProcess(["python3", "-c", script, directory])
        return (server, try server.port(after: "PORT "))
    }

    static var hasNginx: Bool {
        ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"]
            .contains { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// nginx over the files of a directory, by HTTP and HTTPS.
    ///
    /// nginx cannot choose ports: it gets sockets that listen already, as it hands them to itself in an
    /// upgrade.
    static func nginx(directory: String, http extra: String = "") throws -> (
        server: TestServerProcess, http: UInt16, https: UInt16
    ) {
        let certificates = TestCertificates.shared
        let script = """
            import getpass, os, socket, sys
            directory, certificate, key, extra = sys.argv[1:]
            sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
            http, https = [s.getsockname()[1] for s in sockets]
            with open(directory + "/nginx.conf", "w") as file: file.write(f'''
            daemon off; user {getpass.getuser()}; worker_processes 1;
            pid {directory}/nginx.pid; error_log stderr crit;
            events {{ worker_connections 64; }}
            http {{
              access_log off; keepalive_requests 1000000; {extra}
              client_body_temp_path {directory}/t1; proxy_temp_path {directory}/t2;
              fastcgi_temp_path {directory}/t3; uwsgi_temp_path {directory}/t4; scgi_temp_path {directory}/t5;
              server {{
                listen 127.0.0.1:{http}; listen 127.0.0.1:{https} ssl;
                ssl_certificate {certificate}; ssl_certificate_key {key};
                root {directory};
              }}
            }}''')
            for s in sockets: os.set_inheritable(s.fileno(), True)
            os.environ["NGINX"] = "".join(f"{s.fileno()};" for s in sockets)
            print("PORTS", http, https, flush=True)
            os.environ["PATH"] += ":/usr/sbin:/usr/local/sbin"
            os.execvp("nginx", ["nginx", "-p", directory, "-c", directory + "/nginx.conf"])
            """
        let server = try TestServerProcess([
            "python3", "-c", script, directory, certificates.path(.good), certificates.keyPath, extra,
        ])
        let ports = try server.line(after: "PORTS ").split(separator: " ").compactMap { UInt16($0) }
        return (server, ports[0], ports[1])
    }

    /// Python's TLS with a script for each connection: `tls` is the secured socket, `conn` the one below, and
    /// the request has been read.
    static func pythonTLS(_ kind: TestCertificates.Kind = .good, _ body: String) throws -> (
        TestServerProcess, UInt16
    ) {
        let certificates = TestCertificates.shared
        let script = """
            import os, socket, ssl, sys
            listener = socket.create_server(("127.0.0.1", 0))
            print("PORT", listener.getsockname()[1], flush=True)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1], sys.argv[2])
            context.set_alpn_protocols(["h2", "http/1.1"])
            while True:
                conn, _ = listener.accept()
                try:
                    tls = context.wrap_socket(conn, server_side=True)
                    request = tls.recv(65536)
                    exec(sys.argv[3])
                except OSError: pass
            """
        let server = try TestServerProcess([
            "python3", "-c", script, certificates.path(kind), certificates.keyPath(kind), body,
        ])
        return (server, try server.port(after: "PORT "))
    }

    /// squid, which takes HTTP and CONNECT, spoken to in plain text or by TLS.
    ///
    /// It cannot choose its port; a free one is looked for.
    static func squid(secured: Bool) throws -> (
        server: TestServerProcess, port: UInt16, terminate: () -> Void
    ) {
        let certificates = TestCertificates.shared
        let script = """
            import os, socket, sys, tempfile, threading, time
            certificate, key = sys.argv[1:]
            with socket.create_server(("127.0.0.1", 0)) as s: port = s.getsockname()[1]
            file = tempfile.NamedTemporaryFile("w", delete=False)
            kind = f"https_port 127.0.0.1:{port} tls-cert={certificate} tls-key={key}" \\
                if key else f"http_port 127.0.0.1:{port}"
            file.write(f"{kind}\\n" + f"pid_filename {file.name}.pid\\n" + '''
            http_access allow all
            \(TestServerProcess.quietSquid)
            ''')
            file.close()
            print("PORT", port, flush=True)
            print("FILE", file.name, flush=True)
            os.environ["PATH"] += ":/usr/sbin"
            os.execvp("squid", ["squid", "-N", "-f", file.name])
            """
        let process = try TestServerProcess([
            "python3", "-c", script, secured ? certificates.path(.good) : "",
            secured ? certificates.keyPath : "",
        ])
        let port = try process.port(after: "PORT ")
        let file = try process.line(after: "FILE ")
        try waitFor("squid") { isListening(port) ? () : nil }
        return (
            process, port,
            {
                process.terminate()
                for name in [file, file + ".pid"] { unlink(name) }
            }
        )
    }

    /// A directory that is removed when the object goes.
    final class Directory: Sendable {
        let path: String

        init() throws {
            path = NSTemporaryDirectory() + "/rondo-files-\(UUID().uuidString)"
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func write(_ data: Data, to name: String) throws {
            try data.write(to: URL(fileURLWithPath: path + "/" + name))
        }
    }
}

extension URLConnection {
    /// Trusts the authority of the test certificates.
    func trustTestAuthority() {
        configuration.tls.certificateAuthorities = [.file(TestCertificates.shared.authorityPath)]
    }
}

/// A URL that is known to be one.
func url(_ text: String) -> URL {
    guard let url = URL(string: text) else { fatalError("no URL: \(text)") }
    return url
}

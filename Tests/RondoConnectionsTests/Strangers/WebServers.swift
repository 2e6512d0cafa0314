import Rondo
import RondoTestSupport

/// Web servers and proxies as Debian has them, each with a folder and ports of its own.
final class WebServer {
    let http: UInt16
    /// 0 where it speaks no TLS.
    let https: UInt16
    private let process: TestServerProcess
    /// Removed with it.
    private let folder: Stranger.Directory

    private init(_ process: TestServerProcess, http: UInt16, https: UInt16, _ folder: Stranger.Directory) {
        self.process = process
        self.http = http
        self.https = https
        self.folder = folder
    }

    deinit { process.terminate() }

    func url(_ path: String, secure: Bool = false) -> URL {
        RondoConnectionsTests.url(
            secure ? "https://localhost:\(https)\(path)" : "http://127.0.0.1:\(http)\(path)")
    }

    /// The page that each of them has: `/page.txt`.
    static let page = longText(100_000)

    // MARK: - Starting

    /// None of them takes port 0: free ones are looked for, and others if another program was quicker.
    private static func started(
        secure: Bool = false, _ command: (Stranger.Directory, UInt16, UInt16) throws -> [String]
    ) throws -> WebServer {
        for _ in 0..<20 {
            let folder = try Stranger.Directory()
            try FileManager.default.createDirectory(
                atPath: folder.path + "/www", withIntermediateDirectories: true)
            try folder.write(Data(page.utf8), to: "www/page.txt")
            let (http, https) = (try freePort(), secure ? try freePort() : 0)
            let words = try command(folder, http, https)
            let process = try TestServerProcess(
                ["env", "PATH=/usr/sbin:/usr/local/sbin:/usr/bin:/bin"] + words)
            if answers(http, process), !secure || answers(https, process) {
                return WebServer(process, http: http, https: https, folder)
            }
            process.terminate()
        }
        throw NeverCame(description: "no server has started")
    }

    private static func freePort() throws -> UInt16 {
        let server = try TestServer { _ in }
        server.stop()
        return server.port
    }

    /// Whether it listens before it ends.
    private static func answers(_ port: UInt16, _ process: TestServerProcess) -> Bool {
        let limit = Date(timeIntervalSinceNow: 30)
        while limit.timeIntervalSinceNow > 0 {
            if isListening(port) { return true }
            if process.hasEnded { return false }
            sched_yield()
        }
        return false
    }

    // MARK: - Web servers

    /// Apache, over HTTP and HTTPS: `/basic/` and `/digest/` want `user` and `pass`, `/gzip/` and `/br/` are
    /// encoded, `/echo` and `/cgi/echo` send back what they get, `/slow/` has a limit of speed, `/old` is a
    /// redirect.
    static func apache() throws -> WebServer {
        try started(secure: true) { folder, http, https in
            let path = folder.path
            for name in ["basic", "digest", "gzip", "br", "slow"] {
                try FileManager.default.createDirectory(
                    atPath: "\(path)/www/\(name)", withIntermediateDirectories: true)
                try folder.write(Data(page.utf8), to: "www/\(name)/page.txt")
            }
            try FileManager.default.createDirectory(atPath: path + "/cgi", withIntermediateDirectories: true)
            try folder.write(
                Data("#!/bin/sh\necho Content-Type: text/plain\necho\nexec cat\n".utf8), to: "cgi/echo")
            _ = chmod(path + "/cgi/echo", 0o755)
            // SHA-1 of "pass", and MD5 of "user:digest:pass".
            try folder.write(Data("user:{SHA}nU4eI71bcnBGqeO0t9tXvY1u5oQ=\n".utf8), to: "users")
            try folder.write(Data("user:digest:10d7f0095f53f3d5b33285107b56919b\n".utf8), to: "digests")
            try folder.write(Data(apacheConfiguration(path, http, https).utf8), to: "apache.conf")
            return ["apache2", "-D", "FOREGROUND", "-f", path + "/apache.conf"]
        }
    }

    private static func apacheConfiguration(_ path: String, _ http: UInt16, _ https: UInt16) -> String {
        let modules = [
            "mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_basic", "auth_digest",
            "alias", "dir", "mime", "filter", "deflate", "brotli", "env", "headers", "ratelimit", "cgid",
            "ssl",
            "reflector",
        ].map { "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so" }.joined(separator: "\n")
        let certificates = TestCertificates.shared
        return """
            ServerName localhost
            ServerRoot \(path)
            PidFile \(path)/pid
            DefaultRuntimeDir \(path)
            \(modules)
            Listen 127.0.0.1:\(http)
            Listen 127.0.0.1:\(https)
            \(getuid() == 0 ? "User www-data\nGroup www-data" : "")
            TypesConfig /dev/null
            AddType text/plain .txt
            ErrorLog /dev/stderr
            LogLevel crit
            ScriptSock \(path)/cgid.sock
            DocumentRoot \(path)/www
            <Location />
            Require all granted
            </Location>
            <VirtualHost 127.0.0.1:\(https)>
            SSLEngine on
            SSLCertificateFile \(certificates.path(.good))
            SSLCertificateKeyFile \(certificates.keyPath)
            </VirtualHost>
            ScriptAlias /cgi/ \(path)/cgi/
            Redirect permanent /old /page.txt
            <Location /basic>
            AuthType Basic
            AuthName "basic"
            AuthUserFile \(path)/users
            Require valid-user
            </Location>
            <Location /digest>
            AuthType Digest
            AuthName "digest"
            AuthUserFile \(path)/digests
            Require valid-user
            </Location>
            <Location /gzip>
            SetOutputFilter DEFLATE
            </Location>
            <Location /br>
            SetOutputFilter BROTLI_COMPRESS
            </Location>
            <Location /slow>
            SetOutputFilter RATE_LIMIT
            SetEnv rate-limit 200
            </Location>
            <Location /echo>
            SetHandler reflector
            </Location>

            """
    }

    /// Caddy, over HTTP and HTTPS, which encodes by zstd where it may; `/old` is a redirect, `/basic/` wants
    /// `user` and `pass`.
    static func caddy() throws -> WebServer {
        try started(secure: true) { folder, http, https in
            let (path, certificates) = (folder.path, TestCertificates.shared)
            let hash = try TestServerProcess.run(["caddy", "hash-password", "--plaintext", "pass"])
            let site = """
                root * \(path)/www
                encode zstd gzip
                redir /old /page.txt 308
                basicauth /basic/* {
                user \(hash)
                }
                respond /basic/* "known"
                respond /status/* "{path}" 404
                file_server

                """
            let text = """
                {
                admin off
                auto_https off
                default_bind 127.0.0.1
                servers {
                protocols h1
                }
                }
                http://:\(http) {
                \(site)
                }
                https://:\(https) {
                tls \(certificates.path(.good)) \(certificates.keyPath)
                \(site)
                }

                """
            try folder.write(Data(text.utf8), to: "Caddyfile")
            return [
                "env", "XDG_DATA_HOME=" + path, "XDG_CONFIG_HOME=" + path, "HOME=" + path, "caddy", "run",
                "--adapter", "caddyfile", "--config", path + "/Caddyfile",
            ]
        }
    }

    /// httpbin, by gunicorn.
    static func httpbin() throws -> WebServer {
        let folder = try Stranger.Directory()
        let hook = """
            def when_ready(server): print("PORT", server.LISTENERS[0].sock.getsockname()[1], flush=True)
            """
        try folder.write(Data(hook.utf8), to: "gunicorn.py")
        // Debian's own, whatever else is in the PATH.
        let process = try TestServerProcess([
            "/usr/bin/python3", "/usr/bin/gunicorn", "-c", folder.path + "/gunicorn.py", "-b", "127.0.0.1:0",
            "-w", "1", "--threads", "8", "--keep-alive", "60", "--log-level", "error", "httpbin:app",
        ])
        return WebServer(process, http: try process.port(after: "PORT "), https: 0, folder)
    }

    /// Python's http.server over the page.
    static func python() throws -> WebServer {
        let folder = try Stranger.Directory()
        try folder.write(Data(page.utf8), to: "page.txt")
        let (process, port) = try Stranger.python(directory: folder.path)
        return WebServer(process, http: port, https: 0, folder)
    }

    static func nginx() throws -> WebServer {
        let folder = try Stranger.Directory()
        try folder.write(Data(page.utf8), to: "page.txt")
        let (process, http, https) = try Stranger.nginx(
            directory: folder.path, http: "gzip on; gzip_types text/plain; default_type text/plain;")
        return WebServer(process, http: http, https: https, folder)
    }

    // MARK: - Proxies

    /// squid, which wants `user` and `pass`.
    static func squid() throws -> WebServer {
        try started { folder, http, _ in
            try folder.write(
                Data(
                    "#!/bin/sh\nwhile read -r user pass; do\n"
                        .appending(
                            "if [ \"$user:$pass\" = user:pass ]; then echo OK; else echo ERR; fi\ndone\n"
                        ).utf8),
                to: "helper")
            _ = chmod(folder.path + "/helper", 0o755)
            let text = """
                http_port 127.0.0.1:\(http)
                auth_param basic program \(folder.path)/helper
                auth_param basic realm squid
                acl known proxy_auth REQUIRED
                http_access allow known
                http_access deny all
                pid_filename \(folder.path)/pid
                \(TestServerProcess.quietSquid)

                """
            try folder.write(Data(text.utf8), to: "squid.conf")
            return ["squid", "-N", "-f", folder.path + "/squid.conf"]
        }
    }

    /// tinyproxy, which wants `user` and `pass`.
    static func tinyproxy() throws -> WebServer {
        try started { folder, http, _ in
            let text = """
                Port \(http)
                Listen 127.0.0.1
                Timeout 60
                MaxClients 20
                LogLevel Critical
                BasicAuth user pass

                """
            try folder.write(Data(text.utf8), to: "tinyproxy.conf")
            return ["tinyproxy", "-d", "-c", folder.path + "/tinyproxy.conf"]
        }
    }
}

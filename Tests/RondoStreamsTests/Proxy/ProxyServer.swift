import RondoCore
import RondoTestSupport

/// Real proxies, as Debian has them.
enum ProxyServer {
    static func microsocks(_ user: String? = nil, _ password: String? = nil) throws -> Running {
        try started { port in
            ["microsocks", "-i", "127.0.0.1", "-p", "\(port)"]
                + (user.map { ["-u", $0, "-P", password ?? ""] } ?? [])
        }
    }

    static func dante() throws -> Running {
        let path = temporaryPath()
        return try started(removing: [path]) { port in
            // Without privileges to drop to, it stays what the tests are.
            try """
            logoutput: stderr
            internal: 127.0.0.1 port = \(port)
            external: lo
            clientmethod: none
            socksmethod: none
            user.privileged: \(NSUserName())
            user.unprivileged: \(NSUserName())
            client pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }
            socks pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }

            """.write(toFile: path, atomically: false, encoding: .utf8)
            return ["danted", "-f", path, "-p", path + ".pid"]
        }
    }

    static func tinyproxy(_ options: String = "") throws -> Running {
        let path = temporaryPath()
        return try started(removing: [path]) { port in
            try "Port \(port)\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\n\(options)\n"
                .write(toFile: path, atomically: false, encoding: .utf8)
            return ["tinyproxy", "-d", "-c", path]
        }
    }

    /// - Parameter isSecured: It is spoken to by TLS.
    static func squid(isSecured: Bool = false) throws -> Running {
        let path = temporaryPath()
        let certificates = TestCertificates.shared
        let tls = " tls-cert=\(certificates.path(.good)) tls-key=\(certificates.keyPath)"
        return try started(removing: [path, path + ".pid"]) { port in
            try """
            \(isSecured ? "https" : "http")_port 127.0.0.1:\(port)\(isSecured ? tls : "")
            http_access allow all
            pid_filename \(path).pid
            \(TestServerProcess.quietSquid)

            """.write(toFile: path, atomically: false, encoding: .utf8)
            return ["squid", "-N", "-f", path]
        }
    }

    /// A SOCKS server of versions 4, 4a and 5: OpenSSH's client, which hands connections on through a server
    /// that it starts itself, for this user and without privileges.
    static func openSSH() throws -> Running {
        let path = temporaryPath()
        try TestServerProcess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path])
        try """
        HostKey \(path)
        AuthorizedKeysFile \(path).pub
        StrictModes no
        UsePAM no
        PermitRootLogin yes
        PidFile none
        LogLevel ERROR

        """.write(toFile: path + ".config", atomically: false, encoding: .utf8)
        // Only for root does the server want a directory to lock itself in.
        let server = "sh -c 'mkdir -p /run/sshd; exec /usr/sbin/sshd -i -f \(path).config' 2> /dev/null"
        let options = [
            "BatchMode=yes", "IdentitiesOnly=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR", "ExitOnForwardFailure=yes", "ProxyCommand=\(server)",
        ]
        return try started(removing: [path, path + ".pub", path + ".config"]) { port in
            ["ssh", "-F", "none", "-N", "-D", "127.0.0.1:\(port)", "-i", path]
                + options.flatMap { ["-o", $0] } + ["\(NSUserName())@tests"]
        }
    }

    final class Running {
        let port: UInt16
        private let process: TestServerProcess
        private let files: [String]

        fileprivate init(_ process: TestServerProcess, _ port: UInt16, _ files: [String]) {
            self.process = process
            self.port = port
            self.files = files
        }

        func terminate() {
            process.terminate()
            for file in files { unlink(file) }
        }
    }

    /// None of them takes port 0: a free one is looked for, and another if it was taken meanwhile.
    private static func started(
        removing files: [String] = [], _ command: (UInt16) throws -> [String]
    ) throws -> Running {
        for _ in 0..<20 {
            let port = try TestListener().port
            let process = try TestServerProcess(
                ["env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"] + command(port))
            if try answers(port, process) { return Running(process, port, files) }
            process.terminate()
        }
        throw PeerIsSilent()
    }

    /// Whether it listens before it ends.
    private static func answers(_ port: UInt16, _ process: TestServerProcess) throws -> Bool {
        let limit = LoopClock.now.advanced(bySeconds: 30)
        while LoopClock.now < limit {
            if let descriptor = try? PlainSocket.connected(to: Int(port)) {
                close(descriptor)
                return true
            }
            if process.hasEnded { return false }
            sched_yield()
        }
        return false
    }
}

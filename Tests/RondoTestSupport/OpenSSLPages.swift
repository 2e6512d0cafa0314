/// `openssl s_server`, which answers a GET with a page about itself.
package enum OpenSSLPages {
    /// Starts the server, which says on which port it listens.
    package static func start(
        _ kind: TestCertificates.Kind = .good, _ options: [String] = []
    ) throws -> (TestServerProcess, UInt16) {
        let certificates = TestCertificates.shared
        let server = try TestServerProcess(
            [
                "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", certificates.path(kind), "-key",
                certificates.keyPath(kind), "-www",
            ] + options)
        return (server, try server.port(after: "ACCEPT "))
    }
}

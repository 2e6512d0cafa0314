import Rondo
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Hosts that ask to be spoken to by TLS only. (What is remembered is the process's, and of one host: so one test
/// after the other.)
@Suite(.timeLimit(.minutes(5)), .serialized) struct TransportSecurityTests {
    /// Lets every server through.
    private final class LettingThrough: NSObject, Recording, Sendable {
        let recorder = Recorder()
        let wasTrusted = Box<[Bool]>([])

        func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)
        {
            guard let trust = challenge.protectionSpace.serverTrust else { return }
            wasTrusted.mutate { $0.append(trust.isTrusted) }
            challenge.sender?.use(URLCredential(trust: trust), for: challenge)
        }
    }

    private static func server() throws -> (TestServerProcess, UInt16) {
        try Stranger.pythonTLS(
            .good,
            """
            tls.sendall(b"HTTP/1.1 200 OK\\r\\nStrict-Transport-Security: max-age=100\\r\\n"
                b"Connection: close\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            """)
    }

    @Test func `RFC 6797 a host that asked for TLS is spoken to by TLS, and the delegate sees it`() throws {
        let (server, port) = try Self.server()
        defer {
            URLConnection.TransportSecurity.forgetAll()
            server.terminate()
        }
        let file = URL(fileURLWithPath: NSTemporaryDirectory() + "/rondo-hsts-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try URLConnection.TransportSecurity.keep(in: file)
        #expect(!URLConnection.TransportSecurity.covers("localhost"))
        let first = try load(url("https://localhost:\(port)/")) { $0.trustTestAuthority() }
        #expect(first.calls == ["response 200", "data", "finish"])
        #expect(URLConnection.TransportSecurity.covers("localhost"))
        let second = try load(url("http://localhost:\(port)/")) { $0.trustTestAuthority() }
        #expect(
            second.calls == [
                "willSend canonical https://localhost:\(port)/", "response 200", "data", "finish",
            ])
        // It is remembered in the file.
        try URLConnection.TransportSecurity.keep(in: nil)
        URLConnection.TransportSecurity.forgetAll()
        #expect(!URLConnection.TransportSecurity.covers("localhost"))
        try URLConnection.TransportSecurity.keep(in: file)
        #expect(URLConnection.TransportSecurity.covers("localhost"))
        URLConnection.TransportSecurity.forgetAll()
        try URLConnection.TransportSecurity.keep(in: nil)
    }

    @Test func `a file of hosts that cannot be written is told of, and they are remembered all the same`()
        throws
    {
        let (server, port) = try Self.server()
        let directory = try Stranger.Directory()
        defer {
            try? URLConnection.TransportSecurity.keep(in: nil)
            URLConnection.TransportSecurity.forgetAll()
            server.terminate()
        }
        let told = Box<[CocoaError]>([])
        try Data().write(to: URL(fileURLWithPath: directory.path + "/folder"))
        try URLConnection.TransportSecurity.keep(in: URL(fileURLWithPath: directory.path + "/folder/hosts")) {
            error in
            if let error = error as? CocoaError { told.mutate { $0.append(error) } }
        }
        for _ in 0..<2 {
            let loaded = try load(url("https://localhost:\(port)/")) { $0.trustTestAuthority() }
            KnownHSTSHosts.flush()
            #expect(loaded.response?.statusCode == 200)
            #expect(URLConnection.TransportSecurity.covers("localhost"))
        }
        #expect(told.value.map(\.filePath) == [directory.path + "/folder/hosts"])
    }

    @Test func `RFC 6797 8_1 a server that was let through has nothing remembered of it`() throws {
        let (server, port) = try Self.server()
        defer {
            URLConnection.TransportSecurity.forgetAll()
            server.terminate()
        }
        for isKnown in [false, true] {
            let delegate = LettingThrough()
            try onLoopThread { loop in
                let connection = URLConnection(
                    request: URLRequest(url: url("https://localhost:\(port)/")), delegate: delegate,
                    startImmediately: false)
                if isKnown { connection?.trustTestAuthority() }
                connection?.start()
                loop.runOut()
            }
            #expect(delegate.wasTrusted.value == [isKnown])
            #expect(delegate.recorder.response?.statusCode == 200)
            #expect(URLConnection.TransportSecurity.covers("localhost") == isKnown)
        }
    }

    @Test func `RFC 6797 8_1 settings that let every server through have nothing remembered`() throws {
        let (server, port) = try Self.server()
        defer {
            URLConnection.TransportSecurity.forgetAll()
            server.terminate()
        }
        for letsThrough in [true, false] {
            let loaded = try load(url("https://localhost:\(port)/")) { connection in
                if letsThrough {
                    connection.configuration.tls.trustHandler = TLSTrustHandler { $0.accept() }
                } else {
                    connection.trustTestAuthority()
                }
            }
            #expect(loaded.response?.statusCode == 200)
            #expect(URLConnection.TransportSecurity.covers("localhost") == !letsThrough)
        }
    }
}

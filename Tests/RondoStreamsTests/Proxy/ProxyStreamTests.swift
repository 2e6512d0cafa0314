import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

/// Streams through real proxies, to real servers.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct ProxyStreamTests {
    enum Kind: String, CaseIterable, Sendable {
        case microsocks, microsocksWithPassword, dante, dante4, openSSH, openSSH4a
        case tinyproxy, tinyproxyWithPassword, squid, squidByTLS

        /// Those that answer when they know: OpenSSH says yes before it has connected.
        static let truthful = allCases.filter { $0 != .openSSH && $0 != .openSSH4a }

        func start() throws -> (ProxyServer.Running, StreamProxy) {
            let server: ProxyServer.Running =
                switch self {
                case .microsocks: try ProxyServer.microsocks()
                case .microsocksWithPassword: try ProxyServer.microsocks("me", "secret")
                case .dante, .dante4: try ProxyServer.dante()
                case .openSSH, .openSSH4a: try ProxyServer.openSSH()
                case .tinyproxy: try ProxyServer.tinyproxy()
                case .tinyproxyWithPassword: try ProxyServer.tinyproxy("BasicAuth me secret")
                case .squid: try ProxyServer.squid()
                case .squidByTLS: try ProxyServer.squid(isSecured: true)
                }
            var proxy = StreamProxy(kind, host: "127.0.0.1", port: Int(server.port))
            if self == .microsocksWithPassword || self == .tinyproxyWithPassword {
                proxy.userName = "me"
                proxy.password = "secret"
            }
            if self == .squidByTLS { proxy.tls = .test }
            return (server, proxy)
        }

        private var kind: StreamProxy.Kind {
            switch self {
            case .microsocks, .microsocksWithPassword, .dante, .openSSH: .socks5
            case .dante4, .openSSH4a: .socks4
            case .tinyproxy, .tinyproxyWithPassword, .squid, .squidByTLS: .httpConnect
            }
        }
    }

    @Test(arguments: Kind.allCases, [false, true])
    func `ST-45 bytes go there and back through real proxies`(kind: Kind, isSecured: Bool) throws {
        let (server, proxy) = try kind.start()
        defer { server.terminate() }
        let content = pattern(300_000)
        // Dante's version 4 is without the names of 4a.
        for host in kind == .dante4 ? ["127.0.0.1"] : ["localhost", "127.0.0.1"] {
            let (echo, port) = try PythonServer.start(isSecured ? .echo : .plainEcho)
            defer { echo.terminate() }
            let findings = try onStreamThread { loop in
                let (input, output) = streamsToHost(port, host: host)
                #expect(input.setProperty(proxy as AnyObject, forKey: .proxyKey))
                if isSecured {
                    #expect(input.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey))
                }
                var received: [UInt8] = []
                var rest = content[...]
                let notes = StreamNotes { _, event in
                    switch event {
                    case .hasBytesAvailable: received += input.bytes().1
                    case .hasSpaceAvailable where !rest.isEmpty:
                        output.writePart(of: &rest)
                    default: break
                    }
                }
                for stream in [input, output] as [Foundation.Stream] {
                    stream.delegate = notes
                    stream.scheduleInRondo(loop, forMode: .default)
                    stream.open()
                }
                try loop.run { received.count >= content.count || notes.events.contains("error") }
                return [
                    "\(received == content)", input.streamError.map { "\($0.localizedDescription)" } ?? "",
                ]
            }
            #expect(findings == ["true", ""])
        }
    }

    @Test func `ST-42 TLS begins when TLS with the proxy has sent what was written before`() throws {
        let (running, proxy) = try Kind.squidByTLS.start()
        defer { running.terminate() }
        let findings = try onStreamThread { loop in
            let certificates = TestCertificates.shared
            let server = try TestServerProcess([
                "python3", "-c", Self.startsTLSLater, certificates.path(.good), certificates.keyPath,
            ])
            defer { server.terminate() }
            let (input, output) = streamsToHost(try server.port(after: "PORT "), host: "localhost")
            #expect(input.setProperty(proxy as AnyObject, forKey: .proxyKey))
            let notes = StreamNotes()
            scheduleAndOpen(input, output, in: loop, telling: notes)
            try loop.run { notes.events.contains("space") }
            let plain = [UInt8](repeating: 7, count: 1 << 26)
            let count = output.write(plain, maxLength: plain.count)
            #expect(input.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey))
            server.tell("\(count)")
            #expect(output.writeAll(Array("in confidence".utf8)))
            return ["\(count < plain.count)", String(decoding: input.bytes(13).1, as: UTF8.self)]
        }
        #expect(findings == ["true", "in confidence"])
    }

    /// A server that reads nothing until it is told how many bytes come in plain text. TLS follows; what comes by
    /// it is sent back.
    private static let startsTLSLater = """
        import socket, ssl, sys
        listener = socket.create_server(("127.0.0.1", 0))
        print("PORT", listener.getsockname()[1], flush=True)
        peer = listener.accept()[0]
        count = int(sys.stdin.readline())
        while count > 0:
            data = peer.recv(min(count, 65536))
            if not data: sys.exit()
            count -= len(data)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        peer = context.wrap_socket(peer, server_side=True)
        while data := peer.recv(65536): peer.sendall(data)
        """

    /// Opens streams that fail, and returns their error and the proxy's response.
    private func failure(_ proxy: StreamProxy, host: String = "127.0.0.1", port: Int) throws -> (
        NSError?, Data?
    ) {
        nonisolated(unsafe) var found: (NSError?, Data?)
        _ = try onStreamThread { loop in
            let (input, output) = streamsToHost(UInt16(port), host: host)
            #expect(output.setProperty(proxy as AnyObject, forKey: .proxyKey))
            input.open()
            output.open()
            #expect(input.bytes().0 == -1)
            #expect(output.streamStatus == .error)
            found = (input.streamError as NSError?, output.property(forKey: .proxyResponseKey) as? Data)
            return []
        }
        return found
    }

    @Test(arguments: Kind.truthful)
    func `ST-45 ST-38 the error for a host that refuses behind a proxy names both`(kind: Kind) throws {
        let (server, proxy) = try kind.start()
        defer { server.terminate() }
        let refused = try RefusedPort()
        let (error, _) = try failure(proxy, port: Int(refused.port))
        #expect(error?.localizedDescription.contains("\(refused.port)") == true)
        #expect(error?.localizedDescription.contains("\(server.port)") == true)
    }

    @Test(arguments: [Kind.microsocksWithPassword, .tinyproxyWithPassword])
    func `ST-45 a wrong or missing password for a proxy fails the streams`(kind: Kind) throws {
        let (server, proxy) = try kind.start()
        defer { server.terminate() }
        let listener = try TestListener()
        for password in ["wrong", nil] {
            var proxy = proxy
            proxy.password = password
            if password == nil { proxy.userName = nil }
            let (error, response) = try failure(proxy, port: Int(listener.port))
            #expect(error?.localizedDescription.contains("user name and password") == true)
            guard proxy.kind == .httpConnect else { continue }
            let text = String(decoding: response ?? Data(), as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1."))
            if password == nil { #expect(text.contains("Proxy-Authenticate: Basic")) }
        }
        #expect(!listener.hasConnection)
    }

    @Test func `ST-45 SOCKS 4a has the proxy look the name up`() throws {
        let (echo, port) = try PythonServer.start(.plainEcho)
        defer { echo.terminate() }
        let asked = Mutex<[UInt8]>([])
        let server = try TestServer { peer in
            let request = try peer.read(count: 9 + 14)
            asked.withLock { $0 = request }
            try peer.send([0, 90, 0, 0, 0, 0, 0, 0])
            try peer.relay(to: port)
        }
        defer { server.stop() }
        let proxy = StreamProxy(.socks4, host: "127.0.0.1", port: Int(server.port))
        let findings = try onStreamThread { _ in
            let (input, output) = streamsToHost(port, host: "wherever.test")
            _ = input.setProperty(proxy as AnyObject, forKey: .proxyKey)
            input.open()
            output.open()
            #expect(output.writeAll([1, 2, 3]))
            return ["\(input.bytes().1)"]
        }
        #expect(findings == ["[1, 2, 3]"])
        let name = Array("wherever.test".utf8) + [0]
        #expect(asked.withLock { $0 } == [4, 1, UInt8(port >> 8), UInt8(port & 255), 0, 0, 0, 1, 0] + name)
    }

    @Test func `a proxy that refuses the connection fails the streams`() throws {
        let refused = try RefusedPort()
        let proxy = StreamProxy(.socks5, host: "127.0.0.1", port: Int(refused.port))
        let (error, _) = try failure(proxy, host: "example.com", port: 80)
        #expect(error?.domain == NSPOSIXErrorDomain && error?.code == Int(ECONNREFUSED))
    }

    @Test func `a proxy is only for hosts, and chosen before the opening`() throws {
        let proxy = StreamProxy(.socks5, host: "127.0.0.1", port: 1) as AnyObject
        let (unix, _) = streamsToUnixSocket("/nonexistent")
        #expect(!unix.setProperty(proxy, forKey: .proxyKey))
        let listener = try TestListener()
        let (input, output) = streamsToHost(listener.port)
        input.open()
        #expect(!output.setProperty(proxy, forKey: .proxyKey))
    }
}

import Rondo
import RondoStreams
import RondoTestSupport
import Testing

/// Loads by proxies, of our own script and of strangers.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct ProxyTests {
    private static func server() throws -> TestServer {
        try TestServer.answering { request in "\(request.method) \(request.target)" }
    }

    /// A proxy that wants `user:pass`, answers plain requests itself, and relays tunnels.
    private static func proxy(wants credential: Bool = false) throws -> TestServer {
        let good = "Basic " + Data("user:pass".utf8).base64EncodedString()
        return try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if credential, request.value("Proxy-Authorization") != good {
                    try peer.respond(
                        "407 Proxy Authentication Required", ["Proxy-Authenticate: Basic realm=\"proxy\""],
                        body: "who?")
                    continue
                }
                if request.method == "CONNECT" {
                    try peer.send("HTTP/1.1 200 Connected\r\n\r\n")
                    return try peer.relay(to: UInt16(request.target.split(separator: ":").last ?? "") ?? 0)
                }
                try peer.respond(body: "\(request.method) \(request.target)")
            }
        }
    }

    private static func by(
        _ port: UInt16, _ kind: StreamProxy.Kind = .httpConnect, user: String? = nil
    ) -> URLConnection.ProxyChoice {
        .by(
            StreamProxy(
                kind, host: "127.0.0.1", port: Int(port), userName: user,
                password: user.map { _ in "pass" }))
    }

    @Test func `RFC 9112 3.2.2 an http request goes to the proxy whole`() throws {
        let proxy = try Self.proxy()
        let recorder = try load(url("http://host.example:81/a?b=c#d")) {
            $0.configuration.proxy = Self.by(proxy.port)
        }
        #expect(recorder.text == "GET http://host.example:81/a?b=c")
        #expect(proxy.requests.first?.value("Host") == "host.example:81")
        // The connection is kept for other hosts too.
        let other = try load(url("http://other.example/")) { $0.configuration.proxy = Self.by(proxy.port) }
        #expect(other.text == "GET http://other.example/")
        #expect(proxy.accepted == 1)
    }

    @Test func `RFC 9110 9.3.6 an https request goes through a tunnel`() throws {
        let (server, port) = try OpenSSLPages.start()
        let proxy = try Self.proxy()
        let recorder = try load(url("https://localhost:\(port)/")) {
            $0.trustTestAuthority()
            $0.configuration.proxy = Self.by(proxy.port)
        }
        #expect(recorder.response?.statusCode == 200)
        #expect(proxy.requests.map(\.method) == ["CONNECT"])
        server.terminate()
    }

    @Test func `RFC 1928 an http request goes through SOCKS, which looks the name up`() throws {
        let server = try Self.server()
        let names = Box<[String]>([])
        let socks = try TestServer { peer in
            #expect(try peer.readBytes(3) == Data([5, 1, 0]))
            try peer.send([5, 0])
            let head = try peer.readBytes(5)
            let name = try peer.readBytes(Int(head[4]))
            names.mutate { $0.append(String(decoding: name, as: UTF8.self)) }
            let port = try peer.readBytes(2)
            try peer.send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
            try peer.relay(to: UInt16(port[0]) << 8 | UInt16(port[1]))
        }
        let recorder = try load(url("http://name.invalid:\(server.port)/x")) {
            $0.configuration.proxy = Self.by(socks.port, .socks5)
        }
        #expect(recorder.text == "GET /x")
        #expect(names.value == ["name.invalid"])
    }

    @Test func `name and password of a proxy's URL go to that proxy alone`() throws {
        let proxy = try Self.proxy(wants: true)
        let recorder = try load(url("http://host.example/")) {
            $0.configuration.proxy = Self.by(proxy.port, user: "user")
        }
        #expect(recorder.text == "GET http://host.example/")
        #expect(proxy.requests.allSatisfy { $0.value("Authorization") == nil })
    }

    /// Answers challenges of proxies.
    private final class Knowing: NSObject, Recording, Sendable {
        let spaces = Box<[String]>([])
        let recorder = Recorder()
        let user: String
        let persistence: URLCredential.Persistence

        init(user: String = "user", persistence: URLCredential.Persistence = .none) {
            self.user = user
            self.persistence = persistence
        }

        func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)
        {
            let space = challenge.protectionSpace
            if space.serverTrust != nil {
                challenge.sender?.performDefaultHandling(for: challenge)
                return
            }
            spaces.mutate {
                $0.append("\(space.isProxy()) \(space.realm ?? "") \(challenge.previousFailureCount)")
            }
            if challenge.previousFailureCount > 1 {
                challenge.sender?.continueWithoutCredential(for: challenge)
            } else {
                challenge.sender?.use(
                    URLCredential(user: user, password: "pass", persistence: persistence), for: challenge)
            }
        }
    }

    private static func run(_ url: URL, _ delegate: Knowing, by proxy: TestServer) throws {
        let ended = try onLoopThread { loop -> RunLoop.RunResult in
            let connection = URLConnection(
                request: URLRequest(url: url), delegate: delegate, startImmediately: false)
            connection?.trustTestAuthority()
            connection?.configuration.proxy = Self.by(proxy.port)
            connection?.start()
            return loop.runOut()
        }
        #expect(ended == .finished)
    }

    @Test func `UC-44 a proxy's challenge is for a proxy's space, with and without a tunnel`() throws {
        let proxy = try Self.proxy(wants: true)
        let plain = Knowing()
        try Self.run(url("http://host.example/"), plain, by: proxy)
        #expect(plain.spaces.value == ["true proxy 0"])
        #expect(plain.recorder.text == "GET http://host.example/")
        let (server, port) = try OpenSSLPages.start()
        let tunnelled = Knowing()
        try Self.run(url("https://localhost:\(port)/"), tunnelled, by: proxy)
        #expect(tunnelled.spaces.value == ["true proxy 0"])
        #expect(tunnelled.recorder.response?.statusCode == 200)
        server.terminate()
    }

    @Test func `UC-48 without a credential the proxy's 407 is the result`() throws {
        let proxy = try Self.proxy(wants: true)
        for text in ["http://host.example/", "https://host.example/"] {
            let delegate = Knowing(user: "nobody")
            try Self.run(url(text), delegate, by: proxy)
            #expect(delegate.spaces.value == ["true proxy 0", "true proxy 1", "true proxy 2"])
            #expect(delegate.recorder.response?.statusCode == 407)
            #expect(delegate.recorder.calls.last == "finish")
        }
    }

    @Test func `UC-51 a password that the proxy refuses by a 401 is not stored`() throws {
        let realm = "refused by 401"
        let proxy = try TestServer { peer in
            while true {
                if try peer.readRequest().value("Proxy-Authorization") == nil {
                    try peer.respond(
                        "407 Proxy Authentication Required", ["Proxy-Authenticate: Basic realm=\"\(realm)\""])
                } else {
                    try peer.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"\(realm)\""])
                }
            }
        }
        let delegate = Knowing(user: "nobody", persistence: .forSession)
        try Self.run(url("http://host.example/"), delegate, by: proxy)
        #expect(delegate.spaces.value.prefix(2) == ["true \(realm) 0", "false \(realm) 0"])
        #expect(delegate.recorder.response?.statusCode == 401)
        #expect(!URLCredentialStorage.shared.allCredentials.keys.contains { $0.realm == realm })
    }

    @Test func `UC-57 a proxy that makes no tunnel sets no cookies of the server`() throws {
        let proxy = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("407 Who", ["Set-Cookie: who=proxy; Max-Age=1000"])
            peer.waitForEnd()
        }
        let storage = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: UUID().uuidString)
        storage.cookieAcceptPolicy = .always
        // Where the proxy passes the request on, the response may be the server's.
        let targets: [(String, [String])] = [
            ("https://host.example/", []), ("http://host.example/", ["who"]),
        ]
        for (text, names) in targets {
            let recorder = try load(url(text)) {
                $0.configuration.proxy = Self.by(proxy.port)
                $0.configuration.cookieStorage = storage
            }
            #expect(recorder.calls == ["response 407", "finish"])
            #expect(storage.cookies?.map(\.name) == names)
        }
    }

    @Test func `a proxy that refuses fails the load with the reason`() throws {
        let proxy = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("403 Forbidden", body: "no")
            peer.waitForEnd()
        }
        let recorder = try load(url("https://host.example/")) { $0.configuration.proxy = Self.by(proxy.port) }
        #expect(recorder.calls == ["fail -1004"])
        #expect(recorder.error?.localizedDescription.contains("403") == true)
    }

    @Test(arguments: ["", "HTTP/1.1 200 Conn"])
    func `a proxy that closes before its answer is complete is said to have done so`(answer: String) throws {
        let proxy = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send(answer)
        }
        let recorder = try load(url("https://host.example/")) { $0.configuration.proxy = Self.by(proxy.port) }
        #expect(recorder.calls == ["fail -1004"])
        let words = try #require(recorder.error?.localizedDescription)
        #expect(words.contains("it closed the connection before its answer was complete. Check"), "\(words)")
    }

    @Test(arguments: [
        ("SSH-2.0-A", "its answer begins with “SSH-2.0-A”, which is not HTTP. Check the proxy's kind"),
        ("HTTP/1.1 405 No\r\n", "it answered “405 No”, as servers that are no proxies do"),
    ])
    func `a server that is no proxy is told from a proxy that refuses`(answer: String, cause: String) throws {
        let proxy = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send(answer + "\r\n")
            peer.waitForEnd()
        }
        let recorder = try load(url("https://host.example/")) { $0.configuration.proxy = Self.by(proxy.port) }
        let words = try #require(recorder.error?.localizedDescription)
        #expect(words.contains("makes no tunnel to host.example:443: " + cause), "\(words)")
    }

    @Test(arguments: ["http", "https"])
    func `a proxy that cannot be reached is named as the proxy`(scheme: String) throws {
        let refused = try RefusedPort()
        let recorder = try load(url("\(scheme)://host.example/")) {
            $0.configuration.proxy = Self.by(refused.port)
        }
        #expect(recorder.calls == ["fail -1004"])
        let words = try #require(recorder.error?.localizedDescription)
        #expect(
            words.hasPrefix(
                "the proxy on the way to host.example cannot be used: could not connect to 127.0.0.1"))
    }

    // MARK: - Strangers

    /// tinyproxy, which takes HTTP and CONNECT.
    private static func tinyproxy() throws -> (TestServerProcess, UInt16) {
        let script = """
            import getpass, os, socket, sys, tempfile
            with socket.create_server(("127.0.0.1", 0)) as s: port = s.getsockname()[1]
            file = tempfile.NamedTemporaryFile("w", delete=False)
            file.write(f"Port {port}\\nListen 127.0.0.1\\nTimeout 60\\nMaxClients 10\\nAllow 127.0.0.1\\nLogLevel Critical\\n")
            file.close()
            print("PORT", port, flush=True)
            os.execvp("tinyproxy", ["tinyproxy", "-d", "-c", file.name])
            """
        let process = try TestServerProcess(["python3", "-c", script])
        let port = try process.port(after: "PORT ")
        try waitFor("tinyproxy") { isListening(port) ? () : nil }
        return (process, port)
    }

    @Test func `tinyproxy hands requests on, and makes tunnels`() throws {
        let (process, proxy) = try Self.tinyproxy()
        let server = try Self.server()
        let plain = try load(server.url("/x")) { $0.configuration.proxy = Self.by(proxy) }
        #expect(plain.text == "GET /x")
        let (secure, port) = try OpenSSLPages.start()
        let tunnelled = try load(url("https://localhost:\(port)/")) {
            $0.trustTestAuthority()
            $0.configuration.proxy = Self.by(proxy)
        }
        #expect(tunnelled.response?.statusCode == 200)
        secure.terminate()
        process.terminate()
    }
}

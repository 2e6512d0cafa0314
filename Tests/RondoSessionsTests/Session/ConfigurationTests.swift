import Rondo
import RondoMutex
import RondoTestSupport
import Testing

@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct ConfigurationTests {
    /// Answers with the lines of the request's head.
    private static func headServer(_ fields: [String] = []) throws -> TestServer {
        try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                try peer.respond("200 OK", fields, body: request.lines.joined(separator: "\n"))
            }
        }
    }

    private static func load(_ session: URLSession, _ request: URLRequest) throws -> [String] {
        try session.load(request).text.components(separatedBy: "\n")
    }

    /// Deprecated, as what it tests: otherwise the compiler warns of the old names.
    @available(*, deprecated)
    private static func setByOldNames(_ configuration: URLSessionConfiguration) {
        if #available(iOS 13, macOS 10.15, *) {
            configuration.tlsMinimumSupportedProtocolVersion = .TLSv12
        } else {
            configuration.tlsMinimumSupportedProtocol = .tlsProtocol12
        }
        configuration.tlsMinimumSupportedProtocol = .tlsProtocol13
        configuration.tlsMaximumSupportedProtocol = .tlsProtocol13
    }

    @available(*, deprecated)
    @Test func `US-3 the TLS versions of a configuration have Secure Transport's names too`() {
        let configuration = URLSessionConfiguration.default
        Self.setByOldNames(configuration)
        #expect(configuration.tlsMinimumSupportedProtocolVersion == .TLSv13)
        #expect(configuration.tlsMaximumSupportedProtocol == .tlsProtocol13)
        configuration.tlsMinimumSupportedProtocol = .tlsProtocol11
        #expect(configuration.tlsMinimumSupportedProtocol == .tlsProtocol12)
    }

    @Test func `US-6 a session copies its configuration when it is made, and returns copies`() {
        let configuration = URLSessionConfiguration.default
        configuration.timeoutIntervalForRequest = 7
        configuration.httpAdditionalHeaders = ["A": "b"]
        let session = URLSession(configuration: configuration)
        configuration.timeoutIntervalForRequest = 8
        configuration.httpAdditionalHeaders = nil
        #expect(session.configuration.timeoutIntervalForRequest == 7)
        session.configuration.timeoutIntervalForRequest = 9
        #expect(session.configuration.timeoutIntervalForRequest == 7)
        #expect(session.configuration.httpAdditionalHeaders?["A"] as? String == "b")
        let copy = session.configuration.copy() as? URLSessionConfiguration
        #expect(copy?.timeoutIntervalForRequest == 7)
        #expect(copy !== session.configuration)
    }

    @Test func `US-7 the defaults are Apple's, in a new object each time`() {
        let configuration = URLSessionConfiguration.default
        #expect(configuration !== URLSessionConfiguration.default)
        #expect(configuration.requestCachePolicy == .useProtocolCachePolicy)
        #expect(configuration.timeoutIntervalForRequest == 60)
        #expect(configuration.timeoutIntervalForResource == 604_800)
        #expect(configuration.httpShouldSetCookies)
        #expect(configuration.httpCookieAcceptPolicy == .onlyFromMainDocumentDomain)
        #expect(configuration.httpMaximumConnectionsPerHost == 6)
        #expect(!configuration.waitsForConnectivity)
        #expect(configuration.httpCookieStorage === HTTPCookieStorage.shared)
        #expect(configuration.urlCredentialStorage === URLCredentialStorage.shared)
        #expect(configuration.urlCache === URLCache.shared)
        #expect(configuration.identifier == nil)
    }

    @Test func `US-8 ephemeral has storages of its own, a fresh set for each call`() throws {
        let (first, second) = (URLSessionConfiguration.ephemeral, URLSessionConfiguration.ephemeral)
        for configuration in [first, second] {
            #expect(configuration.httpCookieStorage !== HTTPCookieStorage.shared)
            #expect(configuration.urlCredentialStorage !== URLCredentialStorage.shared)
            #expect(configuration.urlCache !== URLCache.shared)
            #expect(configuration.urlCache?.diskCapacity == 0)
        }
        #expect(first.httpCookieStorage !== second.httpCookieStorage)
        #expect(first.urlCredentialStorage !== second.urlCredentialStorage)
        #expect(first.urlCache !== second.urlCache)
        // A name that no other test uses: all servers of the tests have the same address.
        let name = "ephemeral-\(UUID().uuidString)"
        let server = try Self.headServer(["Set-Cookie: \(name)=1", "Cache-Control: no-store"])
        let session = URLSession(configuration: first)
        let request = URLRequest(url: server.url())
        _ = try Self.load(session, request)
        #expect(try Self.load(session, request).contains("Cookie: \(name)=1"))
        let lines = try Self.load(URLSession(configuration: second), request)
        #expect(!lines.contains { $0.hasPrefix("Cookie") })
        #expect(HTTPCookieStorage.shared.cookies?.contains { $0.name == name } != true)
    }

    @Test func `US-8 what a server wants of an ephemeral session is not remembered for others`() async throws
    {
        let (server, port) = try pythonTLSServer(maximumAge: 100)
        defer {
            URLConnection.TransportSecurity.forgetAll()
            server.terminate()
        }
        for (configuration, isRemembered) in [
            (URLSessionConfiguration.ephemeral, false), (.default, true),
        ] {
            configuration.trustTestAuthority()
            let session = URLSession(configuration: configuration)
            _ = try await session.data(from: try #require(URL(string: "https://localhost:\(port)/")))
            #expect(URLConnection.TransportSecurity.covers("localhost") == isRemembered)
            // The session itself keeps to it.
            let (_, response) = try await session.data(
                from: try #require(URL(string: "http://localhost:\(port)/")))
            #expect(response.url?.scheme == "https")
            session.invalidateAndCancel()
        }
    }

    @Test func `US-8 nothing of an ephemeral session reaches the disk`() async throws {
        await #expect(processExitsWith: .success) {
            let home = FileManager.default.temporaryDirectory.appendingPathComponent(
                "rondo-home-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: home) }
            for name in ["HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
                setenv(name, home.path, 1)
            }
            let server = try TestServerOnly.make()
            let session = URLSession(configuration: .ephemeral)
            for _ in 0..<3 { _ = try Self.load(session, URLRequest(url: server.url())) }
            precondition(session.configuration.httpCookieStorage?.cookies?.count == 1)
            let done = Latch()
            session.flush { done.open() }
            try done.wait()
            session.invalidateAndCancel()
            let files = FileManager.default.enumerator(at: home, includingPropertiesForKeys: nil)?.allObjects
            let found = (files as? [URL] ?? []).filter { !$0.hasDirectoryPath }
            for file in found {
                let text = String(decoding: (try? Data(contentsOf: file)) ?? Data(), as: UTF8.self)
                precondition(!text.contains("ephemeral-secret"), "\(file.path)")
            }
        }
    }

    /// A server whose answers can be found again.
    private enum TestServerOnly {
        static func make() throws -> TestServer {
            try TestServer { peer in
                while true {
                    _ = try peer.readRequest()
                    try peer.respond(
                        "200 OK",
                        [
                            "Set-Cookie: ephemeral-secret=1; Max-Age=1000", "Cache-Control: max-age=1000",
                            "ETag: \"ephemeral-secret\"",
                        ], body: "ephemeral-secret")
                }
            }
        }
    }

    @Test func `US-11 additional fields are added where the request has none of that name, in any case`()
        throws
    {
        let server = try Self.headServer()
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["X-One": "configuration", "X-Two": 2, "x-three": "3"]
        let session = URLSession(configuration: configuration)
        var request = URLRequest(url: server.url())
        request.setValue("request", forHTTPHeaderField: "x-one")
        let task = session.dataTask(with: request)
        #expect(task.originalRequest?.value(forHTTPHeaderField: "X-Two") == nil)
        #expect(task.currentRequest?.value(forHTTPHeaderField: "X-Two") == "2")
        let lines = try Self.load(session, request)
        #expect(lines.contains("X-Two: 2"))
        #expect(lines.contains("x-three: 3"), "as the configuration spells it")
        #expect(lines.filter { $0.lowercased().hasPrefix("x-one") }.map { $0.suffix(7) } == ["request"])
        session.invalidateAndCancel()
    }

    @Test func `US-11 a redirect to another origin drops the added Authorization`() throws {
        let target = try Self.headServer()
        let away = target.url("/there").absoluteString
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("302 Found", ["Location: \(away)"])
            }
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["Authorization": "Bearer secret", "X-Kept": "1"]
        let lines = try Self.load(
            URLSession(configuration: configuration), URLRequest(url: server.url()))
        #expect(server.requests.first?.value("Authorization") == "Bearer secret")
        #expect(lines.contains("X-Kept: 1"))
        #expect(!lines.contains { $0.contains("secret") })
    }

    @Test func `US-12 a request's cache policy other than 0 takes precedence over the configuration's`()
        throws
    {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("200 OK", ["Cache-Control: max-age=1000"], body: "\(peer.number)")
            }
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        let session = URLSession(configuration: configuration)
        var request = URLRequest(url: server.url())
        for _ in 0..<2 { _ = try Self.load(session, request) }
        #expect(server.requests.count == 2)
        request.cachePolicy = .returnCacheDataElseLoad
        _ = try Self.load(session, request)
        #expect(server.requests.count == 2)
    }

    @Test
    func `US-12 US-13 cookies are neither sent nor kept if storage, configuration or request forbid it`()
        throws
    {
        let server = try Self.headServer(["Set-Cookie: new=1", "Cache-Control: no-store"])
        let cookie = try #require(
            HTTPCookie(properties: [.name: "old", .value: "1", .domain: "127.0.0.1", .path: "/"]))
        func sent(_ configure: (URLSessionConfiguration, inout URLRequest) -> Void) throws -> (
            sent: [String], kept: [String]
        ) {
            let configuration = URLSessionConfiguration.ephemeral
            let storage = try #require(configuration.httpCookieStorage)
            storage.setCookie(cookie)
            var request = URLRequest(url: server.url())
            configure(configuration, &request)
            let lines = try Self.load(URLSession(configuration: configuration), request)
            return (
                lines.filter { $0.hasPrefix("Cookie") }, (storage.cookies ?? []).map(\.name).sorted()
            )
        }
        var found = try sent { _, _ in }
        #expect(found == (["Cookie: old=1"], ["new", "old"]))
        found = try sent { configuration, _ in configuration.httpCookieStorage = nil }
        #expect(found == ([], ["old"]))
        found = try sent { configuration, _ in configuration.httpShouldSetCookies = false }
        #expect(found == ([], ["new", "old"]))
        found = try sent { configuration, _ in configuration.httpCookieAcceptPolicy = .never }
        #expect(found.kept == ["old"])
        found = try sent { _, request in request.httpShouldHandleCookies = false }
        #expect(found == ([], ["old"]))
    }

    @Test func `US-13 without a cache nothing is stored or used`() throws {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("200 OK", ["Cache-Control: max-age=1000"], body: "x")
            }
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        let session = URLSession(configuration: configuration)
        for _ in 0..<2 { _ = try Self.load(session, URLRequest(url: server.url())) }
        #expect(server.requests.count == 2)
    }

    private class Answering: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { true }
        override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
        override func startLoading() {
            let response = URLResponse(
                url: request.url ?? URL(fileURLWithPath: "/"), mimeType: nil, expectedContentLength: -1,
                textEncodingName: nil)
            client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
            client?.urlProtocol(
                self, didLoad: Data("\(Self.self == Answering.self ? "first" : "second")".utf8))
            client?.urlProtocolDidFinishLoading(self)
        }
        override func stopLoading() {}
    }

    private final class AnsweringToo: Answering {}

    private final class Rewriting: Answering {
        override class func canonicalRequest(for request: URLRequest) -> URLRequest {
            var request = request
            request.url = request.url?.appendingPathComponent("more")
            return request
        }
    }

    @Test func `UC-29 US-14 a protocol is asked once for the canonical form of a request`() throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [Rewriting.self]
        let session = URLSession(configuration: configuration)
        let done = Latch()
        let task = session.dataTask(with: try #require(URL(string: "rewritten://host/a"))) { _, _, error in
            #expect(error == nil)
            done.open()
        }
        task.resume()
        try done.wait()
        #expect(task.currentRequest?.url?.path == "/a/more")
        #expect(task.originalRequest?.url?.path == "/a")
        session.invalidateAndCancel()
    }

    @Test func `US-14 protocol classes are asked in their order, before Rondo's own`() throws {
        let server = try echoServer()
        for (classes, answer) in [
            ([Answering.self, AnsweringToo.self], "first"), ([AnsweringToo.self, Answering.self], "second"),
        ] as [([AnyClass], String)] {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.protocolClasses = classes
            let text = try Self.load(
                URLSession(configuration: configuration), URLRequest(url: server.url()))
            #expect(text == [answer])
        }
        #expect(server.accepted == 0)
    }

    @Test func `US-15 properties without a meaning keep their values, and the proxy dictionary works`() throws
    {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.allowsCellularAccess = false
        configuration.isDiscretionary = true
        configuration.sharedContainerIdentifier = "group"
        configuration.multipathServiceType = .aggregate
        #expect(!configuration.allowsUltraConstrainedNetworkAccess && configuration.usesClassicLoadingMode)
        configuration.allowsUltraConstrainedNetworkAccess = true
        configuration.usesClassicLoadingMode = false
        let copy = URLSession(configuration: configuration).configuration
        #expect(!copy.allowsCellularAccess && copy.isDiscretionary)
        #expect(copy.sharedContainerIdentifier == "group")
        #expect(copy.multipathServiceType == .aggregate)
        #expect(copy.allowsUltraConstrainedNetworkAccess && !copy.usesClassicLoadingMode)
        let proxy = try TestServer.answering { request in request.target }
        configuration.connectionProxyDictionary = [
            "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": Int(proxy.port),
        ]
        let target = try #require(URL(string: "http://somewhere.invalid/x"))
        #expect(
            try Self.load(URLSession(configuration: configuration), URLRequest(url: target))
                == ["http://somewhere.invalid/x"])
        // The same by CFNetwork's keys.
        let other = URLSessionConfiguration.ephemeral
        other.connectionProxyDictionary = [
            kCFNetworkProxiesHTTPEnable: true, kCFNetworkProxiesHTTPProxy: "127.0.0.1",
            kCFNetworkProxiesHTTPPort: Int(proxy.port),
        ]
        #expect(
            try Self.load(URLSession(configuration: other), URLRequest(url: target))
                == ["http://somewhere.invalid/x"])
        // Switched off, it is none, whatever proxy `connection` names.
        configuration.connectionProxyDictionary?["HTTPEnable"] = 0
        configuration.connection.proxy = .by(
            StreamProxy(.httpConnect, host: "127.0.0.1", port: Int(proxy.port)))
        let server = try echoServer()
        #expect(
            try Self.load(URLSession(configuration: configuration), URLRequest(url: server.url()))
                == ["GET / 0"])
        #expect(proxy.accepted == 2)
    }

    @Test func `US-15 the minimum and maximum versions of TLS are respected`() throws {
        let (server, port) = try OpenSSLPages.start(.good, ["-tls1_2"])
        defer { server.terminate() }
        let target = URLRequest(url: try #require(URL(string: "https://localhost:\(port)/")))
        let configuration = URLSessionConfiguration.ephemeral
        configuration.trustTestAuthority()
        configuration.tlsMinimumSupportedProtocolVersion = .TLSv13
        #expect(try Self.load(URLSession(configuration: configuration), target) == [""])
        configuration.tlsMinimumSupportedProtocolVersion = .TLSv12
        #expect(try Self.load(URLSession(configuration: configuration), target).count > 1)
        // Older ones count as TLS 1.2.
        configuration.connection.tls.maximumVersion = .tls11
        #expect(configuration.tlsMaximumSupportedProtocolVersion == .TLSv12)
    }

    @Test func `US-88 versions of TLS that two threads set at the same time are both kept`() throws {
        let configuration = URLSessionConfiguration.default
        let isOver = Box(false)
        let other = LoopThread { _ in
            while !isOver.value {
                configuration.tlsMinimumSupportedProtocolVersion = .TLSv13
                configuration.tlsMinimumSupportedProtocolVersion = .TLSv12
            }
        }
        let lost = (0..<50_000).count { round in
            let version: tls_protocol_version_t = round % 2 == 0 ? .TLSv12 : .TLSv13
            configuration.tlsMaximumSupportedProtocolVersion = version
            return configuration.tlsMaximumSupportedProtocolVersion != version
        }
        isOver.value = true
        try other.value()
        #expect(lost == 0)
    }

    @Test func `US-16 the settings of connection apply, unless a property of Apple's was set`() throws {
        let server = try Self.headServer()
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connection.omittedFields = ["User-Agent"]
        configuration.connection.totalTimeout = 0.000_001
        let lines = try Self.load(
            URLSession(configuration: configuration), URLRequest(url: server.url()))
        #expect(lines.count > 1)
        #expect(!lines.contains { $0.hasPrefix("User-Agent") })
    }

    @Test func `US-6 threads that set different properties of a configuration lose none of them`() throws {
        let configuration = URLSessionConfiguration.default
        let properties: [any WritableKeyPath<URLSessionConfiguration, TimeInterval> & Sendable] = [
            \.timeoutIntervalForRequest, \.timeoutIntervalForResource,
        ]
        let threads = properties.map { property in
            LoopThread { _ -> Int in
                // A copy of the reference, which a key path wants to be a variable.
                var configuration = configuration
                return (1...20_000).count { value in
                    configuration[keyPath: property] = Double(value)
                    return configuration[keyPath: property] != Double(value)
                }
            }
        }
        for thread in threads { #expect(try thread.value() == 0) }
    }
}

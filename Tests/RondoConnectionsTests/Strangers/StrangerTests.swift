import Rondo
import RondoStreams
import RondoTestSupport
import Testing

/// The same loads from servers that others have written.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections, .serialized) struct StrangerTests {
    private static let page = WebServer.page

    /// With `user` and a password in it, the right one unless said otherwise.
    private static func identified(_ url: URL, by password: String = "pass") -> URL {
        RondoConnectionsTests.url(url.absoluteString.replacing("://", with: "://user:\(password)@"))
    }

    /// JSON as it was sent, without its blanks.
    private static func json(_ recorder: Recorder) -> String {
        recorder.text.replacing(" ", with: "")
    }

    private static func request(_ url: URL, _ method: String, _ body: Data? = nil, stream: Data? = nil)
        -> URLRequest
    {
        var request = URLRequest(url: url)
        request.httpMethod = method
        if let body { request.httpBody = body }
        if let stream { request.httpBodyStream = Foundation.InputStream(data: stream) }
        request.setValue("text/plain", forHTTPHeaderField: "Content-Type")
        return request
    }

    /// Checks what every server has to be able to do.
    private static func checkPage(_ server: WebServer, secure: Bool) throws {
        let target = server.url("/page.txt", secure: secure)
        let configure: @Sendable (URLConnection) -> Void = {
            $0.trustTestAuthority()
            $0.configuration.cache = nil
        }
        let whole = try load(target, configure: configure)
        #expect(whole.response?.statusCode == 200 && whole.hasBody(page), "\(whole.calls)")
        #expect(whole.response?.mimeType?.hasPrefix("text/plain") ?? true)

        let head = try load(request(target, "HEAD"), configure: configure)
        #expect(head.calls == ["response 200", "finish"])

        let missing = try load(server.url("/nothing", secure: secure), configure: configure)
        #expect(missing.response?.statusCode == 404 && missing.calls.last == "finish")

        // One connection for all of it.
        let reused = Box(0)
        for _ in 0..<5 {
            try load(target) { connection in
                configure(connection)
                connection.configuration.onDiagnostic = { diagnostic in
                    if diagnostic.kind == .reusing { reused.mutate { $0 += 1 } }
                }
            }
        }
        // Python closes after a 404.
        #expect(reused.value >= 4)
    }

    private static func checkRange(_ server: WebServer) throws {
        var part = URLRequest(url: server.url("/page.txt"))
        part.setValue("bytes=1000-1099", forHTTPHeaderField: "Range")
        let recorder = try load(part)
        #expect(recorder.response?.statusCode == 206)
        #expect(recorder.text == String(page.dropFirst(1_000).prefix(100)))
        part.setValue("bytes=999999999-", forHTTPHeaderField: "Range")
        #expect(try load(part).response?.statusCode == 416)
    }

    /// `@unchecked Sendable`: URLCache has a lock of its own.
    private final class Store: @unchecked Sendable {
        let cache = URLCache(memoryCapacity: 1 << 23, diskCapacity: 0, diskPath: nil)
    }

    /// Asked again, the server says 304, and the delegate gets the page.
    private static func checkRevalidation(_ server: WebServer) throws {
        let store = Store()
        let heads = Box<[String]>([])
        for _ in 0..<2 {
            var request = URLRequest(url: server.url("/page.txt"))
            request.cachePolicy = .reloadRevalidatingCacheData
            let recorder = try load(request) { connection in
                connection.configuration.cache = store.cache
                connection.configuration.onDiagnostic = { diagnostic in
                    guard diagnostic.kind == .responseHead, let text = diagnostic.head else { return }
                    heads.mutate { $0.append(text) }
                }
            }
            #expect(recorder.response?.statusCode == 200 && recorder.hasBody(page), "\(recorder.calls)")
        }
        #expect(heads.value.map { $0.dropFirst(9).prefix(3) } == ["200", "304"])
    }

    @Test(arguments: [false, true])
    func `Apache, nginx and Caddy serve pages over kept connections`(secure: Bool) throws {
        for server in [try WebServer.apache(), try WebServer.nginx(), try WebServer.caddy()] {
            try Self.checkPage(server, secure: secure)
        }
        if !secure { try Self.checkPage(try WebServer.python(), secure: false) }
    }

    @Test func `RFC 9110 14 parts and RFC 9111 4_3 validators of Apache, nginx, Caddy and Python`() throws {
        for server in [try WebServer.apache(), try WebServer.nginx(), try WebServer.caddy()] {
            try Self.checkRange(server)
            try Self.checkRevalidation(server)
        }
        try Self.checkRevalidation(try WebServer.python())
    }

    @Test func `UC-49 Apache's Basic and Digest take what the URL holds`() throws {
        let server = try WebServer.apache()
        for (path, password, status) in [
            ("/basic/page.txt", "pass", 200), ("/digest/page.txt", "pass", 200),
            ("/basic/page.txt", "wrong", 401), ("/digest/page.txt", "wrong", 401),
        ] {
            let recorder = try load(Self.identified(server.url(path), by: password))
            #expect(recorder.response?.statusCode == status, "\(path) \(password)")
            if status == 200 { #expect(recorder.hasBody(Self.page)) }
        }
        // The nonce of the first is used with a count for the next.
        for _ in 0..<3 {
            let recorder = try load(Self.identified(server.url("/digest/page.txt", secure: true))) {
                $0.trustTestAuthority()
            }
            #expect(recorder.response?.statusCode == 200)
        }
    }

    @Test func `UC-35 Apache gets bodies of a length and in chunks, and says when to go ahead`() throws {
        let server = try WebServer.apache()
        let body = Data(Self.page.utf8)
        for path in ["/echo", "/cgi/echo"] {
            #expect(try load(Self.request(server.url(path), "POST", body)).hasBody(body))
            #expect(try load(Self.request(server.url(path), "POST", stream: body)).hasBody(body))
            var careful = Self.request(server.url(path), "POST", body)
            careful.setValue("100-continue", forHTTPHeaderField: "Expect")
            #expect(try load(careful).hasBody(body))
            #expect(try load(Self.request(server.url(path), "POST", Data())).hasBody(Data()))
        }
    }

    @Test func `UC-42 a body that Apache refuses before it was sent is not sent`() throws {
        let server = try WebServer.apache()
        var request = Self.request(server.url("/basic/page.txt"), "POST", Data(Self.page.utf8))
        request.setValue("100-continue", forHTTPHeaderField: "Expect")
        let recorder = try load(request) { $0.configuration.goAheadTimeout = 60 }
        #expect(recorder.response?.statusCode == 401)
        #expect(!recorder.calls.contains("sent"))
    }

    @Test func `UC-33 redirects and encoded content of Apache and Caddy are understood`() throws {
        let (apache, caddy) = (try WebServer.apache(), try WebServer.caddy())
        #expect(try load(apache.url("/old")).hasBody(Self.page))
        #expect(try load(caddy.url("/old")).hasBody(Self.page))
        #expect(try load(Self.identified(caddy.url("/basic/x"))).text == "known")
        for (target, coding) in [
            (apache.url("/gzip/page.txt"), "gzip"),
            (apache.url("/br/page.txt"), "br"),
            (caddy.url("/page.txt"), "zstd"),
        ] {
            let recorder = try load(target)
            #expect(recorder.response?.value(forHTTPHeaderField: "Content-Encoding") == coding)
            #expect(recorder.hasBody(Self.page))
        }
        #expect(try load(apache.url("/slow/page.txt")).hasBody(Self.page))
    }

    // MARK: - httpbin

    @Test func `httpbin's methods, codings, redirects, drips and statuses are understood`() throws {
        let server = try WebServer.httpbin()
        for method in ["PUT", "PATCH", "DELETE", "POST"] {
            let recorder = try load(
                Self.request(server.url("/anything"), method, Data("body of \(method)".utf8)))
            #expect(recorder.text.contains("body of \(method)") && recorder.text.contains("\"\(method)\""))
        }
        // The last one does not ask what is accepted.
        for path in ["/gzip", "/deflate", "/brotli"] {
            let recorder = try load(server.url(path))
            #expect(Self.json(recorder).contains("\"method\":\"GET\""), "\(path) \(recorder.calls)")
        }
        #expect(try load(server.url("/redirect/5")).calls.suffix(3) == ["response 200", "data", "finish"])
        #expect(try load(server.url("/absolute-redirect/3")).response?.statusCode == 200)
        #expect(try load(server.url("/redirect/17")).error?.code == .httpTooManyRedirects)
        #expect(try load(server.url("/bytes/70000")).body.count == 70_000)
        #expect(try load(server.url("/stream-bytes/70000?chunk_size=1000")).body.count == 70_000)
        #expect(
            try load(server.url("/stream/20")).text.split(separator: "\n").count == 20)
        #expect(try load(server.url("/drip?duration=1&numbytes=10&delay=0")).body.count == 10)
        #expect(try load(server.url("/range/2000")).body.count == 2_000)
        for status in [201, 204, 400, 404, 418, 500, 503] {
            #expect(try load(server.url("/status/\(status)")).response?.statusCode == status)
        }
        var etag = URLRequest(url: server.url("/etag/abc"))
        etag.setValue("\"abc\"", forHTTPHeaderField: "If-None-Match")
        #expect(try load(etag).response?.statusCode == 304)
    }

    @Test func `UC-49 httpbin accepts Basic and Digest from the URL, and a Bearer token`() throws {
        let server = try WebServer.httpbin()
        for path in [
            "/basic-auth/user/pass", "/digest-auth/auth/user/pass", "/digest-auth/auth-int/user/pass",
            "/digest-auth/auth/user/pass/SHA-256", "/digest-auth/auth/user/pass/MD5/never",
        ] {
            let good = try load(Self.identified(server.url(path)))
            #expect(
                good.response?.statusCode == 200 && good.text.contains("\"user\""), "\(path) \(good.calls)")
            #expect(
                try load(Self.identified(server.url(path), by: "wrong")).response?.statusCode == 401,
                "\(path)")
        }
        #expect(
            try load(Self.identified(server.url("/hidden-basic-auth/user/pass"))).response?.statusCode
                == 404)
        var bearer = URLRequest(url: server.url("/bearer"))
        #expect(try load(bearer).response?.statusCode == 401)
        bearer.setValue("Bearer token", forHTTPHeaderField: "Authorization")
        #expect(try load(bearer).text.contains("token"))
    }

    @Test func `UC-57 httpbin sets, sends back and deletes cookies`() throws {
        let server = try WebServer.httpbin()
        let jar = Jar()
        func get(_ path: String) throws -> String {
            Self.json(try load(server.url(path)) { $0.configuration.cookieStorage = jar.storage })
        }
        #expect(try get("/cookies/set?a=1&b=2").contains("\"a\":\"1\""))
        #expect(try get("/cookies").contains("\"b\":\"2\""))
        let left = try get("/cookies/delete?a")
        #expect(!left.contains("\"a\"") && left.contains("\"b\""))
    }

    /// `@unchecked Sendable`: the storage has a lock of its own.
    private final class Jar: @unchecked Sendable {
        let storage = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: UUID().uuidString)

        init() { storage.cookieAcceptPolicy = .always }
    }

    // MARK: - Proxies

    @Test func `UC-44 squid and tinyproxy hand on, tunnel, and ask for a password`() throws {
        let apache = try WebServer.apache()
        for proxy in [try WebServer.squid(), try WebServer.tinyproxy()] {
            let port = Int(proxy.http)
            for secure in [false, true] {
                let target = apache.url("/page.txt", secure: secure)
                let known = try load(target) {
                    $0.trustTestAuthority()
                    $0.configuration.cache = nil
                    $0.configuration.proxy = .by(
                        StreamProxy(
                            .httpConnect, host: "127.0.0.1", port: port, userName: "user", password: "pass"))
                }
                #expect(known.response?.statusCode == 200 && known.hasBody(Self.page), "\(known.calls)")
                let unknown = try load(target) {
                    $0.trustTestAuthority()
                    $0.configuration.cache = nil
                    $0.configuration.proxy = .by(StreamProxy(.httpConnect, host: "127.0.0.1", port: port))
                }
                #expect(unknown.response?.statusCode == 407, "\(unknown.calls)")
            }
            // The proxy's credential and the server's, both at once.
            let both = try load(Self.identified(apache.url("/digest/page.txt"))) {
                $0.configuration.proxy = .by(
                    StreamProxy(
                        .httpConnect, host: "127.0.0.1", port: port, userName: "user", password: "pass"))
            }
            #expect(both.response?.statusCode == 200, "\(both.calls)")
        }
    }
}

import Rondo
import RondoHTTP
import Testing

@testable import RondoConnections

/// Requests as values: canonical, redirected, outgoing.
@Suite(.leavesNoConnections) struct RequestTests {
    // MARK: - CanonicalRequest

    @Test(arguments: [
        ("http://host", "http://host/"), ("HTTP://HOST/Path", "http://host/Path"),
        ("https://Host:8443", "https://host:8443/"), ("http://host?a=B", "http://host/?a=B"),
        ("http://host/%7Ea/../b?c#D", "http://host/%7Ea/../b?c#D"), ("http://[::1]", "http://[::1]/"),
        ("http://USER:Pass@Host/", "http://USER:Pass@host/"),
    ])
    func `UC-29 the canonical form has a path, and scheme and host in lower case`(
        text: String, expected: String
    ) {
        let canonical = CanonicalRequest.of(URLRequest(url: url(text)))
        #expect(canonical?.url?.absoluteString == expected)
        // It is its own canonical form.
        #expect(canonical.flatMap { CanonicalRequest.of($0) } == canonical)
    }

    @Test func `UC-29 the canonical form changes the URL alone`() {
        var request = URLRequest(url: url("http://host"))
        request.httpMethod = "PUT"
        request.httpBody = Data("x".utf8)
        request.timeoutInterval = 7
        request.setValue("b", forHTTPHeaderField: "a")
        let canonical = CanonicalRequest.of(request)
        #expect(canonical?.httpMethod == "PUT")
        #expect(canonical?.httpBody == request.httpBody)
        #expect(canonical?.timeoutInterval == 7)
        #expect(canonical?.value(forHTTPHeaderField: "a") == "b")
    }

    @Test(arguments: ["ftp://host/", "http:///x", "x"])
    func `UC-1 a request that cannot be loaded has no canonical form`(text: String) {
        #expect(CanonicalRequest.of(URLRequest(url: url(text))) == nil)
    }

    // MARK: - RedirectedRequest

    private static var upload: URLRequest {
        var request = URLRequest(url: url("http://a.example/"))
        request.httpMethod = "POST"
        request.httpBody = Data("body".utf8)
        for field in [
            "Authorization", "Cookie", "Proxy-Authorization", "Host", "Content-Type", "Content-Length",
            "Content-Encoding", "Expect", "X-Other", "Content-Language", "Content-Location", "CONTENT-MD5",
            "Content-Digest", "Repr-Digest", "Digest", "Last-Modified", "ETag", "Trailer",
            "Transfer-Encoding",
            "Cache-Control", "Want-Content-Digest",
        ] {
            request.setValue("value", forHTTPHeaderField: field)
        }
        return request
    }

    private static func fields(sameOrigin: Bool, keepsBody: Bool) -> Set<String> {
        let next = RedirectedRequest.from(
            upload, to: url("http://b.example/"), method: keepsBody ? "POST" : "GET", keepsBody: keepsBody,
            sameOrigin: sameOrigin)
        #expect((next.httpBody != nil) == keepsBody)
        return Set((next.allHTTPHeaderFields ?? [:]).keys.map { $0.lowercased() })
    }

    @Test func `UC-33 credentials stay within their origin, and Host is never taken along`() {
        // RFC 9110 §15.4, step 5.
        let body: Set = [
            "content-type", "content-length", "content-encoding", "expect", "content-language",
            "content-location", "content-md5", "content-digest", "repr-digest", "digest", "last-modified",
            "etag",
            "trailer", "transfer-encoding",
        ]
        let other: Set = ["x-other", "cache-control", "want-content-digest"]
        let credentials: Set = ["authorization", "cookie", "proxy-authorization"]
        #expect(
            Self.fields(sameOrigin: true, keepsBody: true) == body.union(credentials).union(other))
        #expect(Self.fields(sameOrigin: true, keepsBody: false) == credentials.union(other))
        #expect(Self.fields(sameOrigin: false, keepsBody: true) == body.union(other))
        #expect(Self.fields(sameOrigin: false, keepsBody: false) == other)
    }

    // MARK: - OutgoingRequest

    private static func outgoing(_ text: String, _ change: (inout URLRequest) -> Void = { _ in }) throws
        -> OutgoingRequest
    {
        var request = URLRequest(url: url(text))
        change(&request)
        let load = LoadRequest(request)
        return try OutgoingRequest.request(of: load, from: OutgoingRequest.Draft(of: load))
    }

    @Test(arguments: [
        ("http://host/a/b?c=d#e", "/a/b?c=d", "host"), ("http://host:8080/%20", "/%20", "host:8080"),
        ("http://user:pass@host/", "/", "host"), ("http://[::1]:80/", "/", "[::1]:80"),
        ("http://host/?", "/?", "host"),
    ])
    func `RFC 9112 3.2 the target is path and query, and Host the authority`(
        text: String, target: String, host: String
    ) throws {
        let request = try Self.outgoing(text)
        #expect(request.head.target == target)
        #expect(request.head.fields.values(for: "Host") == [host])
    }

    @Test func `the program's own fields win`() throws {
        let request = try Self.outgoing("http://host/") { request in
            request.setValue("other", forHTTPHeaderField: "host")
            request.setValue("text/plain", forHTTPHeaderField: "accept")
            request.setValue("Mine", forHTTPHeaderField: "user-agent")
        }
        #expect(request.head.fields.values(for: "Host") == ["other"])
        #expect(request.head.fields.values(for: "Accept") == ["text/plain"])
        #expect(request.head.fields.values(for: "User-Agent") == ["Mine"])
    }

    @Test func `UC-35 the framing is that of the body, whatever the fields say`() throws {
        let request = try Self.outgoing("http://host/") { request in
            request.httpMethod = "POST"
            request.httpBody = Data("12345".utf8)
            request.setValue("1", forHTTPHeaderField: "Content-Length")
            request.setValue("chunked", forHTTPHeaderField: "Transfer-Encoding")
        }
        #expect(request.length == .known(5))
        #expect(!request.head.fields.contains("Content-Length"))
        #expect(!request.head.fields.contains("Transfer-Encoding"))
        #expect(try Self.outgoing("http://host/") { $0.httpMethod = "POST" }.length == .known(0))
        #expect(try Self.outgoing("http://host/").length == .noBody)
    }

    @Test(arguments: [
        ("GET", true), ("HEAD", true), ("OPTIONS", true), ("TRACE", true), ("PUT", true), ("DELETE", true),
        ("POST", false), ("PATCH", false), ("CONNECT", false), ("get", false), ("ODD", false),
    ])
    func `RFC 9110 9.2.2 a method is idempotent if it is defined so, in capitals`(
        method: String, expected: Bool
    ) throws {
        // Methods are case-sensitive. URLRequest writes some of them in upper case itself.
        var value = URLRequest(url: try #require(URL(string: "http://host/")))
        value.httpMethod = method
        let request = LoadRequest(value)
        #expect(request.isIdempotent == (expected || request.method == "GET"))
    }

    // MARK: - SuggestedFilename

    @Test(
        arguments: [
            (nil, "http://h/a/b.txt", "b.txt"), (nil, "http://h/a/", "a"), (nil, "http://h/", "h"),
            (nil, "http://h", "h"), (nil, "http://h/..", "h"), (nil, "http://h/a%2Fb", "b"),
            (nil, "http://h/%2E%2E", "h"), (nil, "http://h/a%5C..%5Cb.exe", "b.exe"), (nil, nil, "unknown"),
            ("attachment", "http://h/x", "x"), ("attachment; filename=plain.txt", "http://h/x", "plain.txt"),
            ("attachment; filename=\"two words.txt\"", "http://h/x", "two words.txt"),
            ("attachment; FileName = \"odd\\\"quote.txt\" ; x=y", "http://h/x", "odd\"quote.txt"),
            ("attachment; filename=\"semi;colon.txt\"", "http://h/x", "semi;colon.txt"),
            ("attachment; filename=\"../../etc/passwd\"", "http://h/x", "passwd"),
            ("attachment; filename=\"..\\\\..\\\\evil.bat\"", "http://h/x", "evil.bat"),
            ("attachment; filename=\"..\"", "http://h/x", "x"),
            ("attachment; filename=\"/\"", "http://h/x", "x"),
            ("attachment; filename=\"\"", "http://h/x", "x"),
            ("attachment; filename=\"a\u{0}b\nc\"", "http://h/x", "abc"),
            ("attachment; filename=\"old.txt\"; filename*=UTF-8''n%C3%A4w%20.txt", "http://h/x", "näw .txt"),
            ("attachment; filename*=utf-8'de'%2e%2e%2fx.txt; filename=old.txt", "http://h/y", "x.txt"),
            ("attachment; filename*=ISO-8859-1''n%E4w.txt; filename=old.txt", "http://h/x", "old.txt"),
            ("attachment; filename*=UTF-8''%FF%FE; filename=old.txt", "http://h/x", "old.txt"),
            ("attachment; filename=\"unclosed", "http://h/x", "unclosed"),
            ("attachment; ;filename=foo", "http://h/x", "foo"),
            ("attachment; x;filename=foo", "http://h/x", "foo"),
            ("attachment; filename=.profile", "http://h/x", "profile"),
            ("attachment; filename=\"..hidden.txt\"", "http://h/x", "hidden.txt"),
            ("attachment; filename=\"-rf\"", "http://h/x", "rf"),
            ("attachment; filename=\" - .-.x-y.z\"", "http://h/x", "x-y.z"),
            ("attachment; filename=\"a/.ssh\"", "http://h/x", "ssh"),
            ("attachment; filename=\"-\"", "http://h/x", "x"),
            ("attachment; filename=\"...\"", "http://h/x", "x"),
            ("attachment; filename=\"a\u{202E}gpj.exe\"", "http://h/x", "agpj.exe"),
            ("attachment; filename=\"\u{200F}.x\u{2067}y\u{2069}\u{61C}\"", "http://h/x", "xy"),
            ("attachment; filename=\"a\u{9B}31m\u{2028}b\u{85}\"", "http://h/x", "a31mb"),
            ("attachment; filename=\"\u{200B}.x\"", "http://h/y", "x"),
            ("attachment; filename=\"\u{FEFF}\u{AD}-x\u{200B} \"", "http://h/y", "x"),
            ("attachment; filename=\"\u{2028}\u{200B}\u{2060}\"", "http://h/y", "y"),
            ("attachment; filename=\"a\u{200D}b\u{200B}.c\"", "http://h/y", "a\u{200D}b\u{200B}.c"),
            ("attachment; filename*=UTF-8''%E2%80%AEa.txt", "http://h/x", "a.txt"),
            ("attachment; filename*=UTF-8''%2Eprofile", "http://h/x", "profile"),
            ("attachment; filename*=UTF-8''-%2Fx", "http://h/y", "x"),
            (nil, "http://h/.htaccess", "htaccess"), (nil, "http://h/-x", "x"), (nil, "http://h/a/...", "h"),
            (nil, "http://h/%E2%80%AEx", "x"), (nil, "http://h/a%1B%5B31m", "a[31m"),
            ("; ; =; filename=a", "http://h/x", "a"),
        ] as [(String?, String?, String)])
    func `UC-26 the suggested filename never leads to another folder`(
        disposition: String?, address: String?, expected: String
    ) {
        let name = SuggestedFilename.from(contentDisposition: disposition, url: address.map { url($0) })
        #expect(name == expected)
        #expect(!name.contains("/") && !name.contains("\\") && name != ".." && !name.isEmpty)
    }

    @Test(
        arguments: [
            (nil, "http://h/a", "text/html", "a.html"), (nil, "http://h/a/", "text/html", "a.html"),
            (nil, "http://h/a.php", "text/html", "a.php"), (nil, "http://h/a.b/c", "image/jpeg", "c.jpg"),
            (nil, "http://h/", "text/html", "h.html"),
            (nil, "http://h.example/", "text/html", "h.example.html"),
            (nil, "http://127.0.0.1", "application/json", "127.0.0.1.json"),
            (nil, nil, "text/plain", "unknown.txt"),
            (nil, "http://h/a", "application/octet-stream", "a"), (nil, "http://h/a", "no/such", "a"),
            (nil, "http://h/a", nil, "a"),
            ("attachment; filename=given", "http://h/a.txt", "text/html", "given"),
        ] as [(String?, String?, String?, String)])
    func `UC-26 a file that the server has not named gets the extension of its media type`(
        disposition: String?, address: String?, type: String?, expected: String
    ) {
        let target = address.map { url($0) }
        #expect(
            SuggestedFilename.from(contentDisposition: disposition, url: target, mimeType: type) == expected)
    }

    @Test func `UC-26 a name that no file system would take is cut`() {
        let name = { (given: String) in
            SuggestedFilename.from(contentDisposition: "attachment; filename=\"\(given)\"", url: nil)
        }
        let long = String(repeating: "x", count: 500)
        #expect(name(long) == String(repeating: "x", count: 240))
        #expect(name(long + ".tar") == String(repeating: "x", count: 236) + ".tar")
        #expect(name("a." + long) == "a." + String(repeating: "x", count: 238))
        // In the middle of no character, however many marks it has.
        #expect(name(String(repeating: "ä", count: 300)).utf8.count == 240)
        #expect(!name("e" + String(repeating: "\u{301}", count: 300)).isEmpty)
    }
}

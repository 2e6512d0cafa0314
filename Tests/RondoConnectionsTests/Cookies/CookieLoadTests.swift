import Rondo
import RondoTestSupport
import Testing

/// Cookies over real connections: what is sent, what is kept (rule UC-57).
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct CookieLoadTests {
    /// A storage of its own for each test; Foundation makes them by name only.
    private static func storage() -> HTTPCookieStorage {
        let storage = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: UUID().uuidString)
        storage.cookieAcceptPolicy = .always
        return storage
    }

    /// Answers with the Cookie field that came; `/set?…` sets the query's cookies, separated by `&`, and
    /// `/go` redirects to `/`.
    private static func server() throws -> TestServer {
        try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                let parts = request.target.split(separator: "?", maxSplits: 1)
                let cookies = parts.count > 1 ? parts[1].split(separator: "&") : []
                let fields = cookies.map { "Set-Cookie: " + ($0.removingPercentEncoding ?? "") }
                let cookie = request.value("Cookie") ?? "none"
                if parts.first?.hasPrefix("/go") == true {
                    try peer.respond("302 Found", fields + ["Location: /"], body: "")
                } else {
                    try peer.respond("200 OK", fields, body: cookie)
                }
            }
        }
    }

    private static func get(
        _ url: URL, _ storage: HTTPCookieStorage, _ change: (inout URLRequest) -> Void = { _ in }
    ) throws -> String {
        var request = URLRequest(url: url)
        change(&request)
        let box = SendableStorage(storage)
        return try load(request) { $0.configuration.cookieStorage = box.storage }.text
    }

    /// `@unchecked Sendable`: the storage has a lock of its own.
    private final class SendableStorage: @unchecked Sendable {
        let storage: HTTPCookieStorage
        init(_ storage: HTTPCookieStorage) { self.storage = storage }
    }

    @Test func `UC-57 received cookies are stored and sent, longer paths first`() throws {
        let (server, storage) = (try Self.server(), Self.storage())
        #expect(
            try Self.get(server.url("/set?a=1&b=2;path=/x&c=3;secure&d=4;domain=example.org"), storage)
                == "none")
        #expect(try Self.get(server.url("/"), storage) == "a=1")
        #expect(try Self.get(server.url("/x/y"), storage) == "b=2; a=1")
        #expect(storage.cookies?.count == 2)
        #expect(storage.cookies?.first { $0.name == "a" }?.domain == "127.0.0.1")
    }

    @Test
    func `UC-57 RFC 6265bis 5_6 a cookie with a control character is dropped, and nothing else with it`()
        throws
    {
        let (server, storage) = (try Self.server(), Self.storage())
        #expect(try Self.get(server.url("/set?a=b%01c&d=e%7F&f=g&h=i%09j"), storage) == "none")
        let names = Set((storage.cookies ?? []).map(\.name))
        #expect(names == ["f", "h"])
    }

    @Test func `UC-57 RFC 6265bis 5_6 a cookie that is not UTF-8 is not sent back in other bytes`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            let head = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /x\r\n"
            let cookies = "Set-Cookie: a=b\r\nSet-Cookie: c="
            try peer.send(Array((head + cookies).utf8) + [0xFC] + Array("\r\n\r\n".utf8))
            _ = try peer.readRequest()
            try peer.respond(body: "there")
        }
        #expect(try Self.get(server.url(), Self.storage()) == "there")
        #expect(server.requests.map { $0.value("Cookie") } == [nil, "a=b"])
    }

    @Test func `UC-57 a cookie replaces the one with its name, domain and path, and keeps its place`() throws
    {
        let (server, storage) = (try Self.server(), Self.storage())
        _ = try Self.get(server.url("/set?a=1"), storage)
        _ = try Self.get(server.url("/set?b=1"), storage)
        _ = try Self.get(server.url("/set?a=2"), storage)
        #expect(try Self.get(server.url("/"), storage) == "a=2; b=1")
        _ = try Self.get(server.url("/set?a=;max-age=0"), storage)
        #expect(try Self.get(server.url("/"), storage) == "b=1")
    }

    @Test func `UC-57 RFC 6265 5_4 cookies of one response are sent in its order`() throws {
        let (server, storage) = (try Self.server(), Self.storage())
        let pairs = (0..<20).map { "c\($0 * 7 % 20)=\($0)" }
        _ = try Self.get(server.url("/set?" + pairs.joined(separator: "&")), storage)
        #expect(try Self.get(server.url("/"), storage) == pairs.joined(separator: "; "))
    }

    @Test func `UC-57 cookies of a redirect are stored and sent with the next request`() throws {
        let (server, storage) = (try Self.server(), Self.storage())
        #expect(try Self.get(server.url("/go?a=1"), storage) == "a=1")
    }

    @Test func `UC-57 httpShouldHandleCookies false neither sends nor stores`() throws {
        let (server, storage) = (try Self.server(), Self.storage())
        _ = try Self.get(server.url("/set?a=1"), storage)
        let text = try Self.get(server.url("/set?b=1"), storage) { $0.httpShouldHandleCookies = false }
        #expect(text == "none")
        #expect(storage.cookies?.map(\.name) == ["a"])
    }

    @Test func `UC-57 the program's own cookies stay, and win`() throws {
        let (server, storage) = (try Self.server(), Self.storage())
        _ = try Self.get(server.url("/set?a=1&b=1"), storage)
        let text = try Self.get(server.url("/"), storage) {
            $0.setValue("c=3; a=9", forHTTPHeaderField: "Cookie")
        }
        #expect(text == "c=3; a=9; b=1")
    }

    /// Twice no stored cookie is added: there is none, or the program has one of its name.
    @Test(arguments: [("/set?a=1&b=1", "; b=1"), ("/", ""), ("/set?a=1", "")])
    func
        `UC-57 UC-78 RFC 6265 5_4 cookies of the settings stay and win, too, in one field with the request's`(
            path: String, stored: String
        ) throws
    {
        let (server, storage) = (try Self.server(), Self.storage())
        _ = try Self.get(server.url(path), storage)
        var request = URLRequest(url: server.url("/"))
        request.setValue("c=3", forHTTPHeaderField: "Cookie")
        let box = SendableStorage(storage)
        let recorder = try load(request) {
            $0.configuration.cookieStorage = box.storage
            $0.configuration.additionalFields = [.init(name: "Cookie", value: "a=9")]
        }
        #expect(recorder.text == "c=3; a=9" + stored)
    }

    @Test func `UC-57 the accept policy decides what is stored, and not what is sent`() throws {
        let (server, storage) = (try Self.server(), Self.storage())
        storage.cookieAcceptPolicy = .never
        _ = try Self.get(server.url("/set?a=1"), storage)
        #expect(storage.cookies?.isEmpty == true)
        storage.cookieAcceptPolicy = .onlyFromMainDocumentDomain
        _ = try Self.get(server.url("/set?a=1"), storage) {
            $0.mainDocumentURL = url("http://other.example/")
        }
        #expect(storage.cookies?.isEmpty == true)
        _ = try Self.get(server.url("/set?a=1"), storage) { $0.mainDocumentURL = server.url("/main") }
        _ = try Self.get(server.url("/set?b=1"), storage)
        #expect(storage.cookies?.count == 2)
        // What is stored is sent whatever the policy.
        storage.cookieAcceptPolicy = .never
        #expect(try Self.get(server.url("/"), storage) == "a=1; b=1")
    }

    @Test func `UC-57 a storage that the program has filled is chosen from by our rules`() throws {
        let (server, storage) = (try Self.server(), Self.storage())
        for (name, path, extra) in [("a", "/", ""), ("b", "/x", ""), ("c", "/", "TRUE")] {
            var properties: [HTTPCookiePropertyKey: Any] = [
                .name: name, .value: "1", .path: path, .domain: "127.0.0.1",
            ]
            if !extra.isEmpty { properties[.secure] = extra }
            storage.setCookie(try #require(HTTPCookie(properties: properties)))
        }
        #expect(try Self.get(server.url("/"), storage) == "a=1")
    }
}

import Rondo
import RondoTestSupport
import Testing

/// Content that is not what it says, challenges that have no answer, and the notes of an absurd server.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct HostileContentTests {
    @Test(arguments: codings)
    func `RFC 9110 8_4 content that cannot be decoded fails the load`(_ behaviour: Behaviour) throws {
        try behaviour.check()
    }

    @Test(arguments: parts)
    func `UC-22 parts without order fail the load, or end it`(_ behaviour: Behaviour) throws {
        try behaviour.check()
    }

    @Test(arguments: challenges)
    func `UC-52 a challenge of an unknown scheme is a response`(_ behaviour: Behaviour) throws {
        try behaviour.check()
    }

    @Test(arguments: caching)
    func `RFC 9111 a cache survives absurd fields`(fields: String) throws {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("200 OK", fields.components(separatedBy: "\n"), body: "ok")
            }
        }
        let cache = Store()
        for _ in 0..<2 {
            #expect(try load(server.url()) { $0.configuration.cache = cache.cache }.text == "ok")
        }
    }

    /// `@unchecked Sendable`: URLCache has a lock of its own.
    private final class Store: @unchecked Sendable {
        let cache = URLCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
    }

    @Test(arguments: cookies)
    func `RFC 6265 5 absurd cookies are refused, or cut down`(field: String, expected: String) throws {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                try peer.respond("200 OK", ["Set-Cookie: \(field)"], body: request.value("Cookie") ?? "-")
            }
        }
        let jar = Jar()
        _ = try load(server.url()) { $0.configuration.cookieStorage = jar.storage }
        #expect(try load(server.url()) { $0.configuration.cookieStorage = jar.storage }.text == expected)
    }

    /// `@unchecked Sendable`: the storage has a lock of its own.
    private final class Jar: @unchecked Sendable {
        let storage = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: UUID().uuidString)

        init() { storage.cookieAcceptPolicy = .always }
    }

    @Test func `RFC 6265 6_1 a flood of cookies stays within the limits`() throws {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                let number = Int(request.target.dropFirst()) ?? 0
                let fields = (0..<500).map {
                    "Set-Cookie: c\(number)-\($0)=\(String(repeating: "v", count: 50))"
                }
                try peer.respond("200 OK", fields, body: "\(request.value("Cookie")?.utf8.count ?? 0)")
            }
        }
        let jar = Jar()
        for number in 0..<3 {
            _ = try load(server.url("/\(number)")) { $0.configuration.cookieStorage = jar.storage }
        }
        #expect((jar.storage.cookies?.count ?? 0) <= 180)
    }

    @Test func `RFC 7616 3_3 a server that calls every nonce stale is given up`() throws {
        let server = try TestServer { peer in
            for number in 0... {
                _ = try peer.readRequest()
                try peer.respond(
                    "401 Who",
                    ["WWW-Authenticate: Digest realm=\"a\", nonce=\"\(number)\", stale=true, qop=\"auth\""],
                    body: "ok")
            }
        }
        let target = url("http://user:pass@127.0.0.1:\(server.port)/")
        let recorder = try load(target)
        #expect(recorder.calls.suffix(3) == ["response 401", "data", "finish"])
        #expect(server.requests.count < 10)
    }

    /// Always the same name and password.
    private final class Stubborn: NSObject, Recording, Sendable {
        let recorder = Recorder()
        let asked = Box(0)

        func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)
        {
            asked.mutate { $0 += 1 }
            if challenge.previousFailureCount == 3 {
                challenge.sender?.cancel(challenge)
            } else {
                let credential = URLCredential(user: "user", password: "pass", persistence: .none)
                challenge.sender?.use(credential, for: challenge)
            }
        }
    }

    @Test(arguments: ["Basic realm=\"a\"", "Digest realm=\"a\", nonce=\"b\", qop=\"auth\""])
    func `UC-50 a server that refuses everything is asked as long as the delegate likes`(challenge: String)
        throws
    {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("401 Who", ["WWW-Authenticate: \(challenge)"], body: "ok")
            }
        }
        let delegate = Stubborn()
        let request = URLRequest(url: server.url())
        try onLoopThread { loop in
            _ = URLConnection(request: request, delegate: delegate)
            loop.runOut()
        }
        #expect(delegate.asked.value == 4)
        #expect(delegate.recorder.error?.code == .userCancelledAuthentication)
        #expect(server.requests.count == 4)
    }
}

private let fine = Behaviour.Outcome.gets(200, "ok")
private let raw = Behaviour.Outcome.fails(.cannotDecodeRawData)
private let gzip: [UInt8] = [
    31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 203, 207, 6, 0, 71, 221, 220, 121, 2, 0, 0, 0,
]

private func encoded(_ name: String, _ coding: String, _ bytes: [UInt8], _ outcome: Behaviour.Outcome)
    -> Behaviour
{
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\nContent-Length: \(bytes.count)\r\n\r\n"
    return Behaviour(name, outcome, says: Array(head.utf8) + bytes)
}

private let garbage = [UInt8](repeating: 0xFF, count: 50)
/// A frame of Zstandard that wants a window of 2 GiB.
private let greedy: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0xA8, 0x11, 0, 0, 0, 0]

private let codings: [Behaviour] = [
    encoded("gzip", "gzip", gzip, fine), encoded("GZIP", "GZIP", gzip, fine),
    encoded("garbage behind gzip", "gzip", gzip + [1, 2, 3], fine),
    encoded("nothing as gzip", "gzip", [], .gets(200, "")),
    encoded("identity", "identity", Array("ok".utf8), fine), encoded("no coding", "", Array("ok".utf8), fine),
    encoded("unknown", "rot13", Array("ok".utf8), fine),
    encoded("text as gzip", "gzip", Array("this is no gzip at all".utf8), raw),
    encoded("half of gzip", "gzip", Array(gzip.prefix(12)), raw),
    // All content is there.
    encoded("gzip without its sum", "gzip", Array(gzip.dropLast(8)), fine),
    encoded("a wrong sum", "gzip", gzip.dropLast(8) + [1, 2, 3, 4, 2, 0, 0, 0], raw),
    encoded("a wrong length", "gzip", gzip.dropLast(4) + [3, 0, 0, 0], raw),
    encoded("garbage as br", "br", garbage, raw),
    encoded("garbage as zstd", "zstd", garbage, raw),
    encoded("garbage as deflate", "deflate", garbage, raw),
    encoded("a zstd that wants all memory", "zstd", greedy, raw),
    encoded("gzip that is not twice", "gzip, gzip", gzip, raw),
    encoded(
        "gzip a hundred times", Array(repeating: "gzip", count: 100).joined(separator: ", "), gzip,
        .fails(.cannotDecodeContentData)),
    Behaviour(
        "gzip of HEAD", .gets(200, ""), method: "HEAD",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 22\r\n\r\n"),
    Behaviour("gzip of 204", .gets(204, ""), "HTTP/1.1 204 No\r\nContent-Encoding: gzip\r\n\r\n"),
]

private func mixed(
    _ name: String, _ outcome: Behaviour.Outcome, boundary: String = "b",
    _ ending: Behaviour.Ending = .closes,
    body: String
) -> Behaviour {
    Behaviour.ok(
        name, outcome, ending, fields: "Content-Type: multipart/x-mixed-replace; boundary=\(boundary)\r\n",
        body: body)
}

private let parts: [Behaviour] = [
    mixed("a part", fine, body: "--b\r\n\r\nok\r\n--b--"), mixed("no end", fine, body: "--b\r\n\r\nok"),
    mixed("only a preamble", .gets(200, ""), body: "ok"), mixed("nothing", .gets(200, ""), body: ""),
    mixed("parts without content", .gets(200, ""), body: "--b\r\n\r\n--b\r\n\r\n--b--"),
    mixed("LF alone", fine, body: "--b\n\nok\n--b--\n"),
    mixed("a head that has no end", .fails(.cannotParseResponse), .repeats("A: b\r\n"), body: "--b\r\n"),
    mixed("a field that has no end", .fails(.cannotParseResponse), .repeats("aaaaaaaa"), body: "--b\r\nA: "),
    mixed("a field that is none", .fails(.cannotParseResponse), body: "--b\r\nA : b\r\n\r\nok"),
    mixed("NUL in a head", .fails(.cannotParseResponse), body: "--b\r\nA: \0\r\n\r\nok"),
    mixed(
        "a delimiter with much behind it", .gets(200, ""),
        body: "--b\(String(repeating: " ", count: 9_000))x\r\n\r\nok"),
    mixed("a boundary of 300 characters", fine, boundary: String(repeating: "b", count: 300), body: "ok"),
    mixed("a boundary of none", fine, boundary: "\"\"", body: "ok"),
]

private func challenge(_ fields: String..., status: String = "401 Who") -> Behaviour {
    Behaviour(
        "“\(fields.joined(separator: " / ").prefix(60))”", .gets(Int(status.prefix(3)) ?? 0, "ok"),
        "HTTP/1.1 \(status)\r\n"
            + fields.map { "WWW-Authenticate: \($0)\r\n" }.joined() + "Content-Length: 2\r\n\r\nok")
}

private let challenges: [Behaviour] = [
    challenge(), challenge(""), challenge(","), challenge("="), challenge("Basic"), challenge("Basic realm"),
    challenge("Basic realm="), challenge("Basic realm=\""), challenge("Basic realm=\"a\\"),
    challenge("Digest"),
    challenge("Digest realm=\"a\""), challenge("Digest realm=\"a\", nonce=\"b\", algorithm=ROT13"),
    challenge("Digest realm=\"a\", nonce=\"b\", qop=\"odd\""), challenge("Digest nonce=\"\""),
    challenge("Bearer"), challenge("Negotiate YWJj=="), challenge("Négotiate"), challenge("\"Basic\""),
    challenge("Basic realm=\"a\", Basic realm=\"b\", Digest realm=\"c\", nonce=\"d\"", "Basic realm=\"e\""),
    challenge(String(repeating: "Basic realm=\"a\", ", count: 5_000)),
    challenge("Basic realm=\"\(String(repeating: "a", count: 100_000))\""),
    challenge("Digest realm=\"a\", nonce=\"b\"", status: "403 No"),
    challenge("Basic realm=\"a\"", status: "200 OK"),
]

private let caching: [String] = [
    "Cache-Control: max-age=99999999999999999999999999", "Cache-Control: max-age=-1",
    "Cache-Control: max-age",
    "Cache-Control: max-age=\"", "Cache-Control: max-age=1e9", "Cache-Control: =", "Cache-Control: ,,,,",
    "Cache-Control: no-cache=\"\\", "Cache-Control: max-age=1\nAge: 99999999999999999999999",
    "Cache-Control: max-age=9\nAge: -9", "Cache-Control: max-age=9\nAge: a",
    "Cache-Control: max-age=9\nDate: Thu, 01 Jan 9999 00:00:00 GMT",
    "Cache-Control: max-age=9\nDate: Thu, 01 Jan 0001 00:00:00 GMT", "Expires: 0", "Expires: -1",
    "Expires: Fri, 31 Dec 9999 23:59:59 GMT", "Expires: Fri, 31 Dec 99999 23:59:59 GMT",
    "Expires: Fri, 99 Dec 2099 99:99:99 GMT", "Expires: \u{662}",
    "Last-Modified: Fri, 31 Dec 9999 23:59:59 GMT",
    "Last-Modified: Mon, 01 Jan 1601 00:00:00 GMT\nDate: Fri, 31 Dec 9999 23:59:59 GMT",
    "Vary: *\nCache-Control: max-age=9",
    "Vary: \(String(repeating: "a,", count: 10_000))\nCache-Control: max-age=9",
    "Vary: ,\nCache-Control: max-age=9", "ETag: \nCache-Control: max-age=0",
    "ETag: no quotes\nCache-Control: max-age=0",
    "ETag: \"\(String(repeating: "a", count: 60_000))\"\nCache-Control: max-age=0",
    "Cache-Control: stale-while-revalidate=99999999999999999999, max-age=0",
    "Cache-Control: \(String(repeating: "max-age=1, ", count: 5_000))",
]

private let cookies: [(field: String, expected: String)] = [
    ("a=b", "a=b"), ("", "-"), ("=", "-"), ("=b", "-"), (";", "-"), ("a", "-"), ("a=", "a="),
    ("a=\(String(repeating: "b", count: 5_000))", "-"), ("\(String(repeating: "a", count: 5_000))=b", "-"),
    ("a=b; \(String(repeating: "c;", count: 20_000))", "a=b"),
    ("a=b; path=/\(String(repeating: "c", count: 5_000))", "a=b"),
    ("a=b; domain=example.org", "-"), ("a=b; domain=.0.0.1", "-"), ("a=b; domain=com", "-"),
    ("a=b; domain=127.0.0.1", "a=b"), ("a=b; domain=", "a=b"), ("a=b; domain=.", "a=b"), ("a=b; secure", "-"),
    ("__Host-a=b; path=/", "-"), ("__Secure-a=b", "-"), ("a=b; path=x", "a=b"), ("a=b; path=/x", "-"),
    ("a=b; max-age=0", "-"), ("a=b; max-age=-99999999999999999999999", "-"),
    ("a=b; max-age=99999999999999999999999", "a=b"), ("a=b; max-age=x", "a=b"), ("a=b; max-age=", "a=b"),
    ("a=b; expires=Thu, 01 Jan 1970 00:00:00 GMT", "-"),
    ("a=b; expires=Fri, 31 Dec 99999 23:59:59 GMT", "a=b"),
    ("a=b; expires=Fri, 31 Dec 9999 23:59:59 GMT", "a=b"), ("a=b; expires=never", "a=b"),
    ("a=b; expires=Thu, 01 Jan 1970 00:00:00 GMT; max-age=9", "a=b"), ("a=\"b;c\"", "a=\"b"),
    ("a=b, c=d", "a=b, c=d"), ("a=b=c", "a=b=c"), ("\u{E9}=\u{FC}", "\u{E9}=\u{FC}"),
]

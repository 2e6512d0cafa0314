import Rondo
import RondoStreams
import RondoTestSupport
import Testing

/// Servers that lie about parts, about proxies, and to a TLS client.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct HostileDownloadTests {
    // MARK: - Parts

    /// Answers to a download that broke off after 5 of 10 bytes.
    private static let lies: [(answer: String, isTaken: Bool)] = [
        ("206 Part\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\nfghij", true),
        ("206 Part\r\nContent-Range: bytes 5-9/*\r\nContent-Length: 5\r\n\r\nfghij", true),
        ("206 Part\r\nContent-Range: BYTES 5-9/10\r\nETag: \"e\"\r\nContent-Length: 5\r\n\r\nfghij", true),
        ("206 Part\r\nContent-Length: 5\r\n\r\nfghij", false),
        ("206 Part\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\nefghij", false),
        ("206 Part\r\nContent-Range: bytes 6-9/10\r\nContent-Length: 4\r\n\r\nghij", false),
        ("206 Part\r\nContent-Range: bytes 5-8/10\r\nContent-Length: 4\r\n\r\nfghi", false),
        ("206 Part\r\nContent-Range: bytes 5-8/9\r\nContent-Length: 4\r\n\r\nfghi", false),
        ("206 Part\r\nContent-Range: bytes 5-10/11\r\nContent-Length: 6\r\n\r\nfghijk", false),
        ("206 Part\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 9\r\n\r\nfghijklmn", false),
        ("206 Part\r\nContent-Range: bytes 5-9/9\r\nContent-Length: 5\r\n\r\nfghij", false),
        ("206 Part\r\nContent-Range: bytes 5-4/10\r\nContent-Length: 0\r\n\r\n", false),
        ("206 Part\r\nContent-Range: bytes 5-9/10, 5-9/10\r\nContent-Length: 5\r\n\r\nfghij", false),
        ("206 Part\r\nContent-Range: items 5-9/10\r\nContent-Length: 5\r\n\r\nfghij", false),
        ("206 Part\r\nContent-Range: bytes */10\r\nContent-Length: 5\r\n\r\nfghij", false),
        ("206 Part\r\nContent-Range: bytes -5-9/10\r\nContent-Length: 5\r\n\r\nfghij", false),
        (
            "206 Part\r\nContent-Range: bytes 5-99999999999999999999/10\r\nContent-Length: 5\r\n\r\nfghij",
            false
        ),
        ("206 Part\r\nContent-Range: bytes 5-9/10\r\nETag: \"f\"\r\nContent-Length: 5\r\n\r\nFGHIJ", false),
        (
            "206 Part\r\nContent-Type: multipart/byteranges; boundary=b\r\nContent-Length: 5\r\n\r\n--b--",
            false
        ),
        (
            "206 Part\r\nContent-Range: bytes 5-9/10\r\nContent-Encoding: gzip\r\n"
                + "Content-Length: 5\r\n\r\nfghij",
            false
        ),
        ("206 Part\r\nContent-Range: bytes 5-9/10\r\n\r\nfghi", false),
        ("206 Part\r\nContent-Range: bytes 5-9/10\r\n\r\nfghijk", false),
        ("200 OK\r\nContent-Length: 10\r\n\r\nABCDEFGHIJ", false),
        ("416 No\r\nContent-Range: bytes */10\r\nContent-Length: 0\r\n\r\n", false),
        ("404 No\r\nContent-Length: 5\r\n\r\nfghij", false),
        ("302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", false),
    ]

    private final class Downloader: NSObject, URLConnectionDownloadDelegate, Sendable {
        let result = Box("nothing")

        func connectionDidFinishDownloading(_ connection: URLConnection, destinationURL: URL) {
            result.value = (try? String(contentsOf: destinationURL, encoding: .utf8)) ?? "no file"
        }

        func connection(_ connection: URLConnection, didFailWithError error: any Error) {
            result.value = "fail \((error as? URLError)?.errorCode ?? 0)"
        }
    }

    @Test(arguments: lies)
    func `RFC 9110 15_3_7 a part is taken for the rest of a file only if it is that`(
        answer: String, isTaken: Bool
    ) throws {
        let server = try TestServer { peer in
            let request = try peer.readRequest()
            if request.value("Range") == nil {
                try peer.send("HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 10\r\n\r\nabcde")
            } else {
                try peer.send("HTTP/1.1 " + answer)
                peer.finish()
                peer.waitForEnd()
            }
        }
        let (request, delegate) = (URLRequest(url: server.url()), Downloader())
        try onLoopThread { loop in
            _ = URLConnection(request: request, delegate: delegate)
            loop.runOut()
        }
        #expect(delegate.result.value == (isTaken ? "abcdefghij" : "fail -1005"))
        #expect(server.requests.count == 2 && server.requests[1].value("If-Range") == "\"e\"")
    }

    // MARK: - Proxies

    @Test func `UC-52 a server behind a tunnel that asks in the proxy's name gets nothing`() throws {
        let (server, port) = try Stranger.pythonTLS(
            .good,
            """
            tls.sendall(b"HTTP/1.1 407 Who\\r\\nProxy-Authenticate: Basic realm=\\"proxy\\"\\r\\n"
                b"Connection: close\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            """)
        defer { server.terminate() }
        let proxy = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 Connected\r\n\r\n")
            try peer.relay(to: port)
        }
        let recorder = try load(url("https://localhost:\(port)/")) {
            $0.trustTestAuthority()
            $0.configuration.proxy = .by(
                StreamProxy(
                    .httpConnect, host: "127.0.0.1", port: Int(proxy.port), userName: "user",
                    password: "pass"))
        }
        #expect(recorder.calls == ["response 407", "data", "finish"])
        #expect(proxy.accepted == 1)
    }

    private static let tunnels: [(answer: String, code: URLError.Code)] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", .secureConnectionFailed),
        ("HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1/\r\n\r\n", .cannotConnectToHost),
        ("HTTP/1.1 502 Bad\r\n\r\n", .cannotConnectToHost), ("garbage\r\n\r\n", .cannotConnectToHost),
        ("HTTP/1.1 101 Switching\r\n\r\n", .cannotConnectToHost), ("", .cannotConnectToHost),
        ("HTTP/1.1 100 Continue\r\n\r\n", .cannotConnectToHost),
        ("HTTP/1.1 200 OK\r\nA: \(String(repeating: "a", count: 300_000))\r\n\r\n", .cannotConnectToHost),
    ]

    @Test(arguments: tunnels)
    func `RFC 9110 9_3_6 a proxy that makes no tunnel fails the load`(answer: String, code: URLError.Code)
        throws
    {
        let proxy = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send(answer)
            peer.finish()
            peer.waitForEnd()
        }
        let recorder = try load(url("https://host.invalid/")) {
            $0.configuration.proxy = .by(
                StreamProxy(.httpConnect, host: "127.0.0.1", port: Int(proxy.port)))
        }
        #expect(recorder.error?.code == code, "\(recorder.calls) \(String(describing: recorder.error))")
    }

    @Test func `UC-52 a proxy's 407 to CONNECT that does not say how to answer is the result`() throws {
        let proxy = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("407 Who", body: "who?")
            peer.waitForEnd()
        }
        let recorder = try load(url("https://host.invalid/")) {
            $0.configuration.proxy = .by(
                StreamProxy(.httpConnect, host: "127.0.0.1", port: Int(proxy.port)))
        }
        #expect(recorder.calls == ["response 407", "finish"])
    }

    // MARK: - TLS

    private static let ends: [(head: String, body: String, end: String, expected: String)] = [
        ("Content-Length: 2", "ok", "tls.unwrap()", "finish"),
        // Framing has said where the end is: a missing close_notify takes nothing away.
        ("Content-Length: 2", "ok", "os.close(tls.detach())", "finish"),
        ("Transfer-Encoding: chunked", "2\\r\\nok\\r\\n0\\r\\n\\r\\n", "os.close(tls.detach())", "finish"),
        ("Connection: close", "ok", "tls.unwrap()", "finish"),
        ("Connection: close", "ok", "os.close(tls.detach())", "fail -1005"),
        ("Content-Length: 3", "ok", "tls.unwrap()", "fail -1005"),
        ("Content-Length: 3", "ok", "os.close(tls.detach())", "fail -1005"),
        ("Transfer-Encoding: chunked", "2\\r\\nok\\r\\n", "tls.unwrap()", "fail -1005"),
        // Bytes that are no records, and an alert, in the middle.
        ("Content-Length: 3", "ok", "os.write(tls.fileno(), b'plain text')", "fail -1200"),
        ("Content-Length: 3", "ok", "os.write(tls.fileno(), bytes([21, 3, 3, 0, 2, 2, 80]))", "fail -1200"),
    ]

    @Test(arguments: ends)
    func `RFC 9112 9_8 the end of a body by TLS is proved, or lost`(
        head: String, body: String, end: String, expected: String
    ) throws {
        let (server, port) = try Stranger.pythonTLS(
            .good,
            """
            tls.sendall(b"HTTP/1.1 200 OK\\r\\n\(head)\\r\\n\\r\\n\(body)")
            \(end)
            """)
        defer { server.terminate() }
        let recorder = try load(url("https://localhost:\(port)/")) {
            $0.trustTestAuthority()
            $0.configuration.cache = nil
        }
        #expect(recorder.calls == ["response 200", "data", expected])
    }
}

import Rondo
import RondoTestSupport
import Testing

/// Tests what servers of others say when they are told to be careless.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections, .serialized) struct CarelessServerTests {
    private static let script = """
        import http.server, sys
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def log_message(self, *arguments): pass
            def answer(self, status, *fields):
                self.send_response(status)
                for name, value in fields: self.send_header(name, value)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")
            served = 0
            def do_GET(self):
                self.served += 1
                if self.path == "/late" and self.served > 1: return self.send_error(408)
                if self.path == "/types":
                    return self.answer(200, ("Content-Type", "text/plain"), ("Content-Type", "text/html;; charset=x"))
                if self.path == "/odd":
                    return self.answer(200, ("X-Odd", "a\\x01b"), ("Set-Cookie", "a=b\\x01"), ("X-Fold", "a\\r\\n\\tb"))
                if self.path == "/name":
                    return self.answer(200, ("Content-Disposition", "attachment; ; filename=\\"-.profile\\""))
                if self.path == "/away":
                    return self.answer(302, ("Location", "/types"), ("Location", "/odd"))
                if self.path == "/port":
                    return self.answer(302, ("Location", "http://127.0.0.1:99999999999999999999/"))
                self.answer(200)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print("PORT", server.server_address[1], flush=True)
        server.serve_forever()
        """

    private static func python() throws -> (TestServerProcess, UInt16) {
        let server = try TestServerProcess(["python3", "-c", script])
        return (server, try server.port(after: "PORT "))
    }

    @Test func `RFC 9110 5 what Python's http.server writes carelessly loses no page`() throws {
        let (server, port) = try Self.python()
        defer { server.terminate() }
        let base = "http://127.0.0.1:\(port)"
        let types = try load(url(base + "/types"))
        #expect(types.text == "ok")
        #expect(types.response?.mimeType == "text/html")
        #expect(types.response?.textEncodingName == "x")
        #expect(try load(url(base + "/name")).response?.suggestedFilename == "profile")
        #expect(try load(url(base + "/port")).calls == ["fail -1010"])
        let odd = try load(url(base + "/odd"))
        #expect(odd.calls == ["response 200", "data", "finish"])
        #expect(odd.response?.value(forHTTPHeaderField: "X-Odd") == "a\u{1}b")
        #expect(odd.response?.value(forHTTPHeaderField: "X-Fold") == "a b")
        #expect(try load(url(base + "/away")).calls == ["fail -1010"])
    }

    @Test func `RFC 9110 15.5.9 a 408 of Python's http.server on a kept connection loses nothing`() throws {
        let (server, port) = try Self.python()
        defer { server.terminate() }
        for _ in 0..<3 { #expect(try load(url("http://127.0.0.1:\(port)/late")).text == "ok") }
    }

    /// nginx adds the fields that its configuration names to those that it has made itself.
    @Test(.enabled(if: Stranger.hasNginx))
    func `RFC 9110 5 malformed fields that nginx adds do not fail a load`() throws {
        let directory = try Stranger.Directory()
        try directory.write(Data("ok".utf8), to: "file")
        let (server, http, _) = try Stranger.nginx(
            directory: directory.path,
            http: """
                default_type text/plain; add_header Content-Type "text/html;; charset=x";
                add_header Content-Disposition 'attachment; ; filename="-.profile"';
                """)
        defer { server.terminate() }
        let recorder = try load(url("http://127.0.0.1:\(http)/file"))
        #expect(recorder.text == "ok")
        #expect(recorder.response?.mimeType == "text/html")
        #expect(recorder.response?.textEncodingName == "x")
        #expect(recorder.response?.suggestedFilename == "profile")
    }
}

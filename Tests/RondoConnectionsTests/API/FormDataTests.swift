import Rondo
import RondoTestSupport
import Testing

/// Forms, as a server reads them.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct FormDataTests {
    /// Python takes the form apart by its own parser and answers with what it found.
    private static func server() throws -> (TestServerProcess, UInt16) {
        let script = """
            import email, http.server, zlib, urllib.parse
            class Handler(http.server.BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                def log_message(self, *arguments): pass
                def do_POST(self):
                    body = self.rfile.read(int(self.headers["Content-Length"]))
                    kind = self.headers["Content-Type"]
                    if kind.startswith("multipart/"):
                        whole = email.message_from_bytes(b"Content-Type: " + kind.encode() + b"\\r\\n\\r\\n" + body)
                        lines = []
                        for part in whole.get_payload():
                            content = part.get_payload(decode=True)
                            name = part.get_param("name", header="content-disposition")
                            lines.append(f"{name} {part.get_filename()} {part.get_content_type()} "
                                f"{len(content)} {zlib.crc32(content)}")
                        text = "\\n".join(lines)
                    else: text = repr(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(text.encode())))
                    self.end_headers()
                    self.wfile.write(text.encode())
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            print("PORT", server.server_address[1], flush=True)
            server.serve_forever()
            """
        let server = try TestServerProcess(["python3", "-c", script])
        return (server, try server.port(after: "PORT "))
    }

    @Test func `UC-36 a form with files is streamed, with its length`() throws {
        let (server, port) = try Self.server()
        defer { server.terminate() }
        let directory = try Stranger.Directory()
        try directory.write(Data(longText(3_000_000).utf8), to: "large.txt")
        try directory.write(Data(), to: "empty.bin")
        var form = URLConnection.FormData()
        form.append("Rondo", name: "title")
        for (name, type) in [("large.txt", "text/plain"), ("empty.bin", nil)] {
            let file = URL(fileURLWithPath: directory.path + "/" + name)
            try form.append(file: file, name: "file", contentType: type)
        }
        form.append(Data([1, 2]), name: "bytes", fileName: "b", contentType: "a/b")
        var request = URLRequest(url: url("http://127.0.0.1:\(port)/"))
        request.setForm(form)
        #expect(request.httpBodyStream != nil)
        let recorder = try load(request)
        let lines = recorder.text.split(separator: "\n")
        #expect(lines.count == 4)
        #expect(lines.first?.hasPrefix("title None text/plain 5 ") == true)
        #expect(lines.dropFirst().first?.hasPrefix("file large.txt text/plain 3000000 ") == true)
        #expect(lines.dropFirst(2).first?.hasPrefix("file empty.bin application/octet-stream 0 ") == true)
        #expect(lines.last?.hasPrefix("bytes b a/b 2 ") == true)
        #expect(recorder.sent.last?[1] == Int(form.length))
    }

    @Test func `UC-36 a form without files is data, and a url-encoded one too`() throws {
        let (server, port) = try Self.server()
        defer { server.terminate() }
        var form = URLConnection.FormData()
        form.append("v", name: "n")
        var request = URLRequest(url: url("http://127.0.0.1:\(port)/"))
        request.setForm(form)
        #expect(request.httpBody?.count == Int(form.length))
        #expect(try load(request).text.hasPrefix("n None text/plain 1 "))
        request.setForm(["a b": "1&2", "c": ""])
        #expect(try load(request).text == "[('a b', '1&2'), ('c', '')]")
    }

    @Test func `UC-40 the files of a form are read again, and no stream is asked for`() throws {
        let server = try TestServer.redirecting("/307", to: "/target", "307 Temporary Redirect") { _ in "" }
        let directory = try Stranger.Directory()
        try directory.write(Data(longText(600_000).utf8), to: "file")
        var form = URLConnection.FormData()
        try form.append(file: URL(fileURLWithPath: directory.path + "/file"), name: "file")
        var request = URLRequest(url: server.url("/307"))
        request.setForm(form)
        let delegate = StreamRefuser<FormDataTests>()
        // The second load has the same request, whose stream was read by the first.
        for _ in 0..<2 {
            let ended = try onLoopThread { [request] loop -> RunLoop.RunResult in
                _ = URLConnection(request: request, delegate: delegate)
                return loop.runOut()
            }
            #expect(ended == .finished)
        }
        #expect(delegate.log.entries == ["finish", "finish"])
        let bodies = server.requests.map(\.body)
        #expect(bodies.map(\.count) == Array(repeating: Int(form.length), count: 4))
        #expect(Set(bodies).count == 1)
    }

    @Test func `a form refuses a missing file or a folder, and a file that shrinks fails the load`() throws {
        var form = URLConnection.FormData()
        let missing = URL(fileURLWithPath: "/nonexistent/file")
        #expect(throws: (any Error).self) { try form.append(file: missing, name: "x") }
        #expect(throws: CocoaError.self) {
            try form.append(file: URL(fileURLWithPath: "/dev"), name: "x")
        }
        let directory = try Stranger.Directory()
        try directory.write(Data(longText(1000).utf8), to: "file")
        try form.append(file: URL(fileURLWithPath: directory.path + "/file"), name: "x")
        try directory.write(Data(), to: "file")
        let stream = form.makeStream()
        stream.open()
        var buffer = [UInt8](repeating: 0, count: 4096)
        var count = 0
        repeat { count = stream.read(&buffer, maxLength: buffer.count) } while count > 0
        #expect(count == -1 && stream.streamStatus == .error && stream.streamError != nil)
        stream.close()
    }
}

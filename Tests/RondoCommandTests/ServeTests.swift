import Foundation
import RondoTestSupport
import Testing

/// `rondo serve` as a process, against curl and Python.
struct ServeTests {
    /// A server over a folder of its own, until it is gone.
    private final class Server {
        let folder: String
        let address: String
        private let process: TestServerProcess

        init(_ options: [String] = []) throws {
            folder = NSTemporaryDirectory() + "/rondo-serve-test-\(UUID().uuidString)"
            try FileManager.default.createDirectory(
                atPath: folder + "/sub folder", withIntermediateDirectories: true)
            try Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }).write(
                to: URL(fileURLWithPath: folder + "/data.bin"))
            try Data("0123456789".utf8).write(to: URL(fileURLWithPath: folder + "/digits.txt"))
            try Data("<p>index".utf8).write(to: URL(fileURLWithPath: folder + "/sub folder/index.html"))
            // Long ago: a date is then as good a validator as a tag.
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_500_000_000)],
                ofItemAtPath: folder + "/digits.txt")
            process = try TestServerProcess(
                [try BuiltFiles.command, "serve", "--until-stdin-closes", folder] + options)
            address = try process.line(after: "listening on ")
        }

        func line(after prefix: String) throws -> String { try process.line(after: prefix) }

        deinit {
            process.terminate()
            try? FileManager.default.removeItem(atPath: folder)
        }
    }

    private func curl(_ arguments: String...) throws -> String {
        // With an end to its last line, which would not be read without.
        let script = "curl -sS --noproxy '*' \"$@\"; status=$?; echo; exit $status"
        return try TestServerProcess.run(["sh", "-c", script, "curl"] + arguments)
    }

    /// Runs a script with `u`, the address, and what it needs.
    private func python(_ script: String, _ arguments: String...) throws -> String {
        let head = """
            import os, socket, ssl, sys, time, urllib.parse
            u = urllib.parse.urlsplit(sys.argv[1])
            def talk(text, half=False):
                s = socket.create_connection((u.hostname, u.port), 30)
                s.sendall(text.encode('latin-1'))
                if half: s.shutdown(socket.SHUT_WR)
                data = b''
                while True:
                    more = s.recv(65536)
                    if not more: return data.decode('latin-1')
                    data += more

            """
        return try TestServerProcess.run(["python3", "-c", head + script] + arguments)
    }

    @Test func `the address that is printed shows the folder, and a folder shows its index`() throws {
        let server = try Server()
        let page = try curl(server.address)
        #expect(page.contains("href=\"./data.bin\"") && page.contains("href=\"./sub%20folder/\""))
        #expect(try curl(server.address + "sub%20folder/") == "<p>index")
        #expect(try curl("-L", "-w", "%{num_redirects}", server.address + "sub%20folder") == "<p>index1")
        #expect(try curl("-o", "/dev/null", "-w", "%{http_code}", server.address + "nothing") == "404")
        let withoutFolder = try TestServerProcess([
            try BuiltFiles.command, "serve", "--size", "3k", "--until-stdin-closes",
        ])
        let address = try withoutFolder.line(after: "listening on ")
        #expect(try curl(address).contains("href=\"/bytes\""))
        #expect(try curl("-o", "/dev/null", "-w", "%{size_download}", address + "bytes") == "3000")
    }

    @Test func `curl takes ranges, goes on with a part, and asks whether anything is new`() throws {
        let server = try Server()
        let file = server.address + "digits.txt"
        #expect(try curl("-r", "2-4", file) == "234")
        #expect(try curl("-r", "-2", file) == "89")
        let several = try curl("-D", "-", "-r", "0-1,8-", file)
        #expect(
            several.contains("206 Partial Content") && several.contains("multipart/byteranges; boundary="))
        #expect(several.contains("Content-Range: bytes 0-1/10\r\n\r\n01\r\n--rondo"))
        #expect(several.contains("Content-Range: bytes 8-9/10\r\n\r\n89\r\n--rondo"))
        #expect(try curl("-o", "/dev/null", "-w", "%{http_code}", "-r", "10-", file) == "416")

        let copy = server.folder + "/copy"
        try Data(contentsOf: URL(fileURLWithPath: server.folder + "/data.bin")).prefix(70_001).write(
            to: URL(fileURLWithPath: copy))
        let resumed = try curl(
            "-C", "-", "-o", copy, "-w", "%{http_code} %{size_download}", server.address + "data.bin")
        #expect(resumed == "206 129999")
        _ = try TestServerProcess.run(["cmp", copy, server.folder + "/data.bin"])

        for (since, status) in [
            ("Fri, 14 Jul 2017 02:40:00 GMT", "304"), ("Fri, 14 Jul 2017 02:39:59 GMT", "200"),
        ] {
            #expect(try curl("-o", "/dev/null", "-w", "%{http_code}", "-z", since, file) == status)
        }
        let tags = server.folder + "/tags"
        #expect(try curl("--etag-save", tags, file) == "0123456789")
        #expect(try curl("--etag-compare", tags, "-w", "%{http_code}", file) == "304")
        try Data("0123456780".utf8).write(to: URL(fileURLWithPath: server.folder + "/digits.txt"))
        #expect(try curl("--etag-compare", tags, "-w", " %{http_code}", file) == "0123456780 200")
    }

    @Test func `a HEAD has the fields of a GET, and no body`() throws {
        let server = try Server()
        let head = try curl("-I", server.address + "data.bin")
        for part in [
            "200 OK", "Content-Length: 200000", "ETag: \"", "Last-Modified: ", "Accept-Ranges: bytes",
            "Date: ",
        ] {
            #expect(head.contains(part), "\(part)")
        }
        #expect(try curl("-I", "-w", "%{num_connects}", server.address + "nothing").hasSuffix("1"))
    }

    @Test func `a connection is kept, also for requests that come together`() throws {
        let server = try Server()
        let counts = try curl(
            "-o", "/dev/null", "-o", "/dev/null", "-w", "%{num_connects}", server.address + "digits.txt",
            server.address + "data.bin")
        #expect(counts == "10")
        let output = try python(
            """
            one = 'GET /digits.txt HTTP/1.1\\r\\nHost: x\\r\\n'
            print(talk((one + '\\r\\n') * 500 + one + 'Connection: close\\r\\n\\r\\n').count('\\r\\n\\r\\n0123456789'))
            print(talk(one + '\\r\\n', half=True).count('0123456789'))
            print(talk('GET /digits.txt HTTP/1.0\\r\\n\\r\\n').count('0123456789'))
            """, server.address)
        #expect(output == "501\n1\n1")
    }

    @Test func `a client that never stops asking leaves others their turn`() throws {
        let server = try Server()
        let output = try python(
            """
            import threading
            greedy = socket.create_connection((u.hostname, u.port))
            head, end = b'HEAD /digits.txt HTTP/1.1\\r\\nHost: x\\r\\nX: ', b'\\r\\n\\r\\n'
            # Each request fills what the server reads at once.
            requests = (head + b'x' * (8192 - len(head + end)) + end) * 100
            is_busy = threading.Event()
            def ask():
                while True: greedy.sendall(requests)
            def read():
                while greedy.recv(1 << 20): is_busy.set()
            for work in (ask, read): threading.Thread(target=work, daemon=True).start()
            is_busy.wait()
            for _ in range(20): answer = talk('GET /digits.txt HTTP/1.0\\r\\n\\r\\n')
            print(answer[-10:])
            """, server.address)
        #expect(output == "0123456789")
    }

    @Test func `an invalid request is refused, and the response arrives`() throws {
        let server = try Server()
        let output = try python(
            """
            for text in ['nonsense\\r\\n\\r\\n', 'GET / HTTP/1.1\\r\\n\\r\\n', 'GET / HTTP/3\\r\\nHost: x\\r\\n\\r\\n',
                         'POST / HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 500000\\r\\n\\r\\n' + 'b' * 500000,
                         'GET / HTTP/1.1\\r\\nHost: x\\r\\nX: ' + 'y' * 100000]:
                print(talk(text).split('\\r\\n')[0])
            """, server.address)
        #expect(
            output == """
                HTTP/1.1 400 Bad Request
                HTTP/1.1 400 Bad Request
                HTTP/1.1 505 HTTP Version Not Supported
                HTTP/1.1 405 Method Not Allowed
                HTTP/1.1 431 Request Header Fields Too Large
                """)
    }

    @Test func `RFC 9110 9_3_2 the refusal of a HEAD has no body`() throws {
        let server = try Server()
        let output = try python(
            """
            for text in ['HEAD / HTTP/1.1\\r\\n\\r\\n', 'HEAD / HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 1\\r\\n\\r\\nb']:
                head, _, body = talk(text).partition('\\r\\n\\r\\n')
                print(head.split()[1], 'Content-Length: 0' in head, repr(body))
            """, server.address)
        #expect(output == "400 False ''\n413 False ''")
    }

    @Test func `RFC 9110 9_3_2 a refusal before the request is read has no body`() throws {
        let server = try Server(["--rate", "10"])
        let output = try python(
            """
            # As many as there is room for, and none is idle.
            busy = [socket.create_connection((u.hostname, u.port), 30) for _ in range(256)]
            for s in busy: s.sendall(b'GET /bytes/1000 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
            for s in busy: s.recv(1)
            head, _, body = talk('HEAD / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n').partition('\\r\\n\\r\\n')
            print(head.split()[1], repr(body))
            """, server.address)
        #expect(output == "503 ''")
    }

    @Test func `curl and Python trust the certificate that rondo serve makes, by its file alone`() throws {
        let server = try Server(["--tls"])
        #expect(server.address.hasPrefix("https://127.0.0.1:"))
        let certificate = String(try server.line(after: "certificate  ").prefix { $0 != "," })
        #expect(try curl("--cacert", certificate, server.address + "digits.txt") == "0123456789")
        let copy = server.folder + "/copy"
        _ = try curl("--cacert", certificate, "-o", copy, server.address + "data.bin")
        _ = try TestServerProcess.run(["cmp", copy, server.folder + "/data.bin"])
        #expect(throws: (any Error).self) { try curl(server.address) }
        #expect(throws: (any Error).self) { try curl(server.address.replacing("https://", with: "http://")) }
        let output = try python(
            """
            context = ssl.create_default_context(cafile=sys.argv[2])
            with context.wrap_socket(socket.create_connection((u.hostname, u.port)), server_hostname='localhost') as s:
                s.sendall(b'GET /digits.txt HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n')
                data = b''
                while more := s.recv(65536): data += more
                print(data[-10:].decode())
            """, server.address, certificate)
        #expect(output == "0123456789")
    }

    @Test func `a certificate that is kept is the same next time, and is its owner's alone`() throws {
        let path = NSTemporaryDirectory() + "/rondo-serve-\(UUID().uuidString).pem"
        defer { unlink(path) }
        for _ in 0..<2 {
            let server = try Server(["--certificate", path])
            #expect(try curl("--cacert", path, server.address + "digits.txt") == "0123456789")
        }
        let permissions = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(permissions == 0o600)
    }

    @Test func `rondo serve keeps to its --rate`() throws {
        let server = try Server(["--rate", "200k"])
        let seconds = try #require(
            Double(try curl("-o", "/dev/null", "-w", "%{time_total}", server.address + "bytes/100000")))
        // Half a second at 200 kB/s; as much longer as the machine likes.
        #expect(seconds > 0.4)
    }

    /// Clients that break off, say nothing, or read nothing leave no descriptor behind.
    @Test func `no descriptor stays with a client that has gone`() throws {
        let server = try Server()
        let output = try python(
            """
            def count():
                for process in os.listdir('/proc'):
                    try:
                        words = open('/proc/' + process + '/cmdline').read().split('\\0')
                        if sys.argv[2] in words and words[0].split('/')[-1].startswith(('rondo', 'RondoC')):
                            return len(os.listdir('/proc/' + process + '/fd'))
                    except OSError: pass
            talk('GET /data.bin HTTP/1.0\\r\\n\\r\\n')
            before = count()
            for number in range(200):
                s = socket.create_connection((u.hostname, u.port))
                if number % 4 == 1: s.sendall(b'GET /bytes/100000000 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
                if number % 4 == 2: s.sendall(b'GET /data')
                if number % 4 == 3:
                    s.sendall(b'GET /data.bin HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
                    s.recv(10)
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\\1\\0\\0\\0\\0\\0\\0\\0')
                s.close()
            limit = time.monotonic() + 30
            while count() > before and time.monotonic() < limit: time.sleep(0.05)
            print(count() <= before)
            # More than there is room for: the idle ones make way.
            many = [socket.create_connection((u.hostname, u.port)) for _ in range(400)]
            print(talk('GET /digits.txt HTTP/1.0\\r\\n\\r\\n')[-10:])
            """, server.address, server.folder)
        #expect(output == "True\n0123456789")
    }

    /// Descriptor 2 would be that of a connection.
    @Test func `a closed standard error gets no connection the log`() throws {
        let output = try python(
            """
            import subprocess
            server = subprocess.Popen(
                ['sh', '-c', 'exec "$0" serve --size 10 --until-stdin-closes 2>&-', sys.argv[2]],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            u = urllib.parse.urlsplit(server.stdout.readline().split()[-1])
            for number in range(3): print(talk('GET /nothing HTTP/1.0\\r\\n\\r\\n').count(' 404 '))
            server.stdin.close()
            print(server.wait())
            """, "http://unused", try BuiltFiles.command)
        #expect(output == "1\n1\n1\n0")
    }

    /// A thread of the command's own reads from the terminal.
    @Test func `a server in the background that reads from its terminal is stopped`() throws {
        let script = """
            import os, pty, signal, sys
            session, terminal = pty.fork()
            if session == 0:
                # As a shell starts a job.
                job = os.fork()
                if job == 0:
                    os.setpgid(0, 0)
                    os.execv(sys.argv[1], ['rondo', 'serve', '--size', '1', '--until-stdin-closes'])
                _, status = os.waitpid(job, os.WUNTRACED)
                isStopped = os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTTIN
                if isStopped: os.kill(job, signal.SIGKILL)
                os._exit(0 if isStopped else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(session, 0)[1]))
            """
        #expect(try TestServerProcess.run(["python3", "-c", script, try BuiltFiles.command]) == "0")
    }
}

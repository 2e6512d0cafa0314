import Rondo
import RondoHTTP
import RondoTestSupport
import Testing

@testable import RondoCommand

/// Tests the values that decide for the server of `rondo serve`.
struct ServerValuesTests {
    @Test func `the pace of a server is a ceiling and makes up for no lost time`() {
        var pace = Pace(rate: 1000)
        #expect(pace.slice == 20)
        #expect(pace.pause(now: 0) == 0)
        pace.note(20, now: 0)
        #expect(abs(pace.pause(now: 0.005) - 0.015) < 1e-9)
        #expect(pace.pause(now: 10) == 0)
        pace.note(20, now: 10)
        #expect(abs(pace.pause(now: 10) - 0.02) < 1e-9)
    }

    private func request(_ head: String) throws -> ServedRequest {
        try ServedRequest(head: Array(head.utf8)[...])
    }

    @Test func `a request head is read or refused, and says whether the connection is kept`() throws {
        let first = try request("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nRange:\t bytes=1- ")
        #expect(first.method == .get && first.target == "/a" && !first.keepsConnection)
        #expect(first.fields["range"] == "bytes=1-")
        #expect(try !request("HEAD /a HTTP/1.0").keepsConnection)
        #expect(try request("HEAD /a HTTP/1.0\r\nConnection: keep-alive").keepsConnection)
        #expect(try request("HEAD /a HTTP/1.1\nHost: x").keepsConnection)
        for (head, refusal) in [
            ("", ServedRequest.Refusal.badRequest), ("GET /", .badRequest), ("GET  / HTTP/1.1", .badRequest),
            ("GET / HTTP/2", .versionNotSupported), ("GET / FTP/1.1", .badRequest),
            ("PUT / HTTP/1.1\r\nHost: x", .methodNotAllowed), ("GET / HTTP/1.1", .badRequest),
            ("GET / HTTP/1.1\r\nHost: x\r\nHost: y", .badRequest),
            ("GET / HTTP/1.1\r\nHost: x\r\nbad", .badRequest),
            ("GET / HTTP/1.1\r\nHost: x\r\n folded", .badRequest),
            ("GET / HTTP/1.1\r\nHost : x", .badRequest), ("GET / HTTP/1.1\r\nHost: a\u{1}b", .badRequest),
            ("GET /\u{E9} HTTP/1.1\r\nHost: x", .badRequest),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1", .contentTooLarge),
            ("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked", .contentTooLarge),
        ] {
            #expect(throws: refusal, "\(head)") { try request(head) }
        }
    }

    @Test func `requests are taken out of bytes, however those are cut`() throws {
        let text =
            "\r\n\nGET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\nHost: x\n\n\r\nHEAD /3 HTTP/1.0\r\n\r\n"
        let bytes = Array(text.utf8)
        for step in 1...bytes.count {
            var reader = RequestReader()
            var targets: [String] = []
            for start in stride(from: 0, to: bytes.count, by: step) {
                reader.receive(bytes[start..<min(start + step, bytes.count)])
                while let request = try reader.next() { targets.append(request.target) }
            }
            #expect(targets == ["/1", "/2", "/3"])
            #expect(reader.isEmpty)
        }
    }

    @Test func `a head has a limit, whether it ends or not`() throws {
        let long = "GET / HTTP/1.1\r\nHost: x\r\nX: " + String(repeating: "a", count: ServerLimits.headSize)
        for text in [long, long + "\r\n\r\n"] {
            var reader = RequestReader()
            reader.receive(text.utf8)
            #expect(throws: ServedRequest.Refusal.headTooLarge) { try reader.next() }
        }
    }

    @Test(arguments: [
        ("bytes=0-4", [0..<5]), ("bytes=5-", [5..<10]), ("bytes=-3", [7..<10]), ("Bytes=9-99", [9..<10]),
        ("bytes=-99", [0..<10]), ("bytes= 0-0 ,, 2-3", [0..<1, 2..<4]), ("bytes=8-9,0-1", [8..<10, 0..<2]),
        ("bytes=0-1,50-", [0..<2]), ("bytes=0-99999999999999999999", [0..<10]),
    ])
    func `the ranges of a field are found, cut to the size of the file`(field: String, ranges: [Range<Int>]) {
        #expect(RangeChoice(field: field, size: 10) == .parts(ranges))
    }

    @Test func `an invalid range, and too many ranges, get the whole file`() {
        let many = "bytes=" + (0...ServerLimits.ranges).map { "\($0)-\($0)" }.joined(separator: ",")
        for field in [
            nil, "", "bytes=", "bytes=,", "lines=0-1", "bytes=a-b", "bytes=3-2", "bytes=-", "bytes=0-1-2",
            "bytes=0 -1", "bytes=+0-1", "bytes=0-1;", many, "bytes=0-80,10-99",
        ] as [String?] {
            #expect(RangeChoice(field: field, size: 100) == .whole, "\(field ?? "nil")")
        }
        #expect(RangeChoice(field: "bytes=0-1,4611686018427387904-", size: .max) == .whole)
        #expect(RangeChoice(field: "bytes=-5", size: 0) == .whole)
        for field in ["bytes=10-", "bytes=-0", "bytes=99-100,10-10"] {
            #expect(RangeChoice(field: field, size: 10) == .unsatisfiable)
        }
        #expect(RangeChoice(field: "bytes=0-", size: 0) == .unsatisfiable)
    }

    private let now = Date(timeIntervalSince1970: 1_000_000_000)

    private func judge(_ fields: [(String, String)], age: Double = 100.5) -> Validators.Judgement {
        Validators(tag: "v", modified: now - age, now: now).judge(HeaderFields(fields), now: now)
    }

    @Test func `conditions are judged in the order of RFC 9110, section 13`() {
        let (before, at, after) = (
            HTTPDate.format(now - 200), HTTPDate.format(now - 101), HTTPDate.format(now - 50)
        )
        let answer = Validators.Judgement.answer(heedsRange: true)
        #expect(judge([]) == answer)
        for tags in ["\"v\"", "W/\"v\"", "\"a,b\", W/\"v\"", "*"] {
            #expect(judge([("If-None-Match", tags)]) == .notModified, "\(tags)")
        }
        #expect(judge([("If-None-Match", "\"w\"")]) == answer)
        #expect(judge([("If-None-Match", "\"w"), ("If-Modified-Since", after)]) == answer)
        #expect(judge([("If-Modified-Since", at)]) == .notModified)
        #expect(judge([("If-Modified-Since", after)]) == .notModified)
        #expect(judge([("If-Modified-Since", before)]) == answer)
        #expect(judge([("If-Modified-Since", "nonsense")]) == answer)
        #expect(judge([("If-Match", "\"v\"")]) == answer)
        #expect(judge([("If-Match", "W/\"v\"")]) == .preconditionFailed)
        #expect(judge([("If-Match", "*"), ("If-None-Match", "*")]) == .notModified)
        #expect(judge([("If-Unmodified-Since", before)]) == .preconditionFailed)
        #expect(judge([("If-Unmodified-Since", at)]) == answer)
        #expect(judge([("If-Range", "\"v\"")]) == answer)
        #expect(judge([("If-Range", at)]) == answer)
        for other in ["\"w\"", "W/\"v\"", before, after, "nonsense"] {
            #expect(judge([("If-Range", other)]) == .answer(heedsRange: false), "\(other)")
        }
        // Changed within this second: it may be changed once more.
        #expect(judge([("If-Range", HTTPDate.format(now))], age: 0) == .answer(heedsRange: false))
    }

    @Test func `a file's modification time in the future counts as now`() {
        #expect(Validators(tag: "v", modified: now + 1e6, now: now).modified == now)
    }

    @Test func `made-up bytes are the same in whatever pieces they are asked for`() {
        var whole = [UInt8](repeating: 0, count: 100)
        whole.withUnsafeMutableBytes { MadeUpBytes.fill($0, from: 0) }
        for cut in 0...100 {
            var tail = [UInt8](repeating: 0, count: 100 - cut)
            tail.withUnsafeMutableBytes { MadeUpBytes.fill($0, from: cut) }
            #expect(tail == Array(whole[cut...]))
        }
    }

    @Test func `a listing has folders first and counts as people do`() {
        var listing = FolderListing(isRoot: true)
        for name in ["part10", "part9", "B", "a", "part09", "z/"] {
            listing.entries.append(
                FolderListing.Entry(
                    name: Array(name.utf8), isFolder: name.hasSuffix("/"), size: 0, modified: 0))
        }
        listing.sort()
        #expect(
            listing.entries.map { String(decoding: $0.name, as: UTF8.self) }
                == ["z/", "a", "B", "part09", "part9", "part10"])
    }

    @Test(arguments: [
        ("a.html", "text/html; charset=utf-8"), ("A.PNG", "image/png"), ("a.tar.gz", "application/gzip"),
        ("none", MediaTypes.unknown), (".html", MediaTypes.unknown), ("a.", MediaTypes.unknown),
    ])
    func `the media type of a file follows from the end of its name`(name: String, type: String) {
        #expect(MediaTypes.type(ofFile: name) == type)
    }
}

struct ServerCertificateTests {
    @Test func `the server says when a kept certificate has expired`() throws {
        let path = NSTemporaryDirectory() + "/rondo-certificate-\(UUID().uuidString).pem"
        defer { unlink(path) }
        let made = try ServerCertificate.kept(at: path, ["localhost"])
        #expect(made.origin.hasPrefix("made, for localhost"))
        #expect(try ServerCertificate.kept(at: path, ["localhost"]).origin == "as the file has it")
        let later = Date(timeIntervalSinceNow: 366 * 86_400)
        let expired = try ServerCertificate.kept(at: path, ["localhost"], now: later)
        #expect(expired.origin.contains("it expired on"))
    }
}

/// Tests what paths lead to.
struct SiteTests {
    @Test func `a folder for whose listing there is no descriptor is busy, not forbidden`() async {
        await #expect(processExitsWith: .success) {
            let site = Site(folder: ServedFolder("/"), size: 0)
            let spare = open("/dev/null", O_RDONLY)
            let content = withNoDescriptorLeft {
                // One is left, for the folder itself.
                close(spare)
                return site.content(for: "/")
            }
            guard case .busy = content else { fatalError("\(content)") }
        }
    }

    @Test func `a folder is busy if there is no descriptor that follows a link in it`() async {
        await #expect(processExitsWith: .success) {
            let base = NSTemporaryDirectory() + "/rondo-site-\(UUID().uuidString)"
            mkdir(base, 0o700)
            symlink(".", base + "/link")
            let site = Site(folder: ServedFolder(base), size: 0)
            let spare = [open("/dev/null", O_RDONLY), open("/dev/null", O_RDONLY)]
            let content = withNoDescriptorLeft {
                // Two are left, for the folder: one finds it, one reads it.
                for descriptor in spare { close(descriptor) }
                return site.content(for: "/")
            }
            unlink(base + "/link")
            rmdir(base)
            guard case .busy = content else { fatalError("\(content)") }
        }
    }

    @Test func `a site is not left, neither by dots nor by links`() throws {
        let base = NSTemporaryDirectory() + "/rondo-site-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: base + "/in/sub", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: base) }
        try Data("in".utf8).write(to: URL(fileURLWithPath: base + "/in/sub/a b.txt"))
        try Data("out".utf8).write(to: URL(fileURLWithPath: base + "/in.txt"))
        symlink("../in.txt", base + "/in/out.txt")
        symlink("..", base + "/in/up")
        symlink("sub/a b.txt", base + "/in/fine.txt")
        mkfifo(base + "/in/fifo", 0o600)
        let folder = try #require(ServedFolder(base + "/in"))
        let site = Site(folder: folder, size: 5)
        for target in ["/sub/a%20b.txt", "/fine.txt?q", "/sub/../fine.txt", "http://host/fine.txt"] {
            guard case .file(let file) = site.content(for: target) else {
                Issue.record("\(target) was not found")
                continue
            }
            #expect(file.size == 2 && file.type == "text/plain; charset=utf-8")
        }
        for target in [
            "/out.txt", "/../in.txt", "/%2e%2e/in.txt", "/up/", "/up/in.txt", "/fifo", "/fine.txt%00", "*",
            "/..%2fin.txt", "/%", "/%zz", "/fine.txt/", "/bytes/-1", "/bytes/x",
            "/bytes/9223372036854775807",
        ] {
            guard case .missing = site.content(for: target) else {
                Issue.record("\(target) is not missing")
                continue
            }
        }
        guard case .folder(_, let listing) = site.content(for: "/"),
            case .moved("/sub/?q") = site.content(for: "//sub?q")
        else {
            Issue.record("no folder")
            return
        }
        #expect(listing.entries.map { String(decoding: $0.name, as: UTF8.self) } == ["sub", "fine.txt"])
        guard case .bytes(5) = site.content(for: "/bytes"), case .bytes(12) = site.content(for: "/bytes/12?x")
        else {
            Issue.record("no bytes")
            return
        }
        // The folder itself may be moved; what is served is the folder, not its name.
        rename(base + "/in", base + "/moved")
        guard case .file = site.content(for: "/fine.txt") else {
            Issue.record("nothing is found after the folder was moved")
            return
        }
    }
}

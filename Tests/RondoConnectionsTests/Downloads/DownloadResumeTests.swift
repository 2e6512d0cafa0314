import Rondo
import RondoMutex
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Downloads that go on where another one stopped (rule UC-71).
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct DownloadResumeTests {
    private final class Recorder: NSObject, URLDownloadDelegate, Sendable {
        let log = EventLog()
        let cancelsAt: Int
        private let length = Box(0)

        init(cancelsAt: Int = .max) { self.cancelsAt = cancelsAt }

        func download(_ download: URLDownload, didReceive response: URLResponse) { log.note("response") }

        func download(
            _ download: URLDownload, willResumeWith response: URLResponse, fromByte startingByte: Int64
        ) {
            log.note("resume \(startingByte)")
        }

        func download(_ download: URLDownload, didReceiveDataOfLength length: Int) {
            self.length.mutate { $0 += length }
            if self.length.value >= cancelsAt { download.cancel() }
        }

        func downloadDidFinish(_ download: URLDownload) { log.note("finish") }

        func download(_ download: URLDownload, didFailWithError error: any Error) {
            log.note("fail \((error as? URLError)?.errorCode ?? 0)")
        }
    }

    private static let body = longText(400_000)

    /// Breaks off the first time; serves ranges of what has the tag.
    private static func server(
        tag: String, changes: Bool = false, refuses: Bool = false, whole: String = "200 OK"
    ) throws -> TestServer {
        try TestServer { peer in
            let first = try peer.readRequest()
            if peer.number == 0 {
                try peer.send(
                    "HTTP/1.1 200 OK\r\nETag: \(tag)\r\nContent-Length: 400000\r\n\r\n"
                        + body.prefix(150_000))
                return
            }
            var request = first
            while true {
                let wanted = request.value("Range").flatMap { Int($0.dropFirst(6).dropLast()) }
                let isSame = request.value("If-Range") == tag && !changes
                if let wanted, refuses {
                    try peer.respond("416 Range Not Satisfiable", ["Content-Range: bytes */\(wanted)"])
                } else if let wanted, isSame {
                    try peer.respond(
                        "206 Partial Content",
                        ["ETag: \(tag)", "Content-Range: bytes \(wanted)-399999/400000"],
                        body: String(body.dropFirst(wanted)))
                } else {
                    try peer.respond(whole, body: body)
                }
                request = try peer.readRequest()
            }
        }
    }

    private static func folder<Result>(_ body: (String) throws -> Result) throws -> Result {
        let directory = try Stranger.Directory()
        return try body(directory.path + "/file")
    }

    /// The first half: fails, and says how to go on.
    private static func begin(
        _ server: TestServer, _ path: String, keeps: Bool = true, fields: [String: String] = [:]
    ) throws -> Data? {
        let recorder = Recorder()
        var request = URLRequest(url: server.url())
        request.allHTTPHeaderFields = fields
        let data = try onLoopThread { [request] loop -> Data? in
            let download = URLDownload(request: request, delegate: recorder)
            download.setDestination(path, allowOverwrite: true)
            download.deletesFileUponFailure = !keeps
            #expect(download.resumeData == nil)
            loop.runOut()
            return download.resumeData
        }
        #expect(recorder.log.entries == ["response", "fail -1005"])
        return data
    }

    private static func goOn(_ data: Data, _ path: String) throws -> [String] {
        let (log, next) = try attempt(data, path)
        #expect(next == nil)
        return log
    }

    /// - Returns: The calls, and the data to go on with once more.
    private static func attempt(_ data: Data, _ path: String, keeps: Bool = false) throws -> ([String], Data?)
    {
        let recorder = Recorder()
        let next = try onLoopThread { loop -> Data? in
            let download = URLDownload(resumeData: data, delegate: recorder, path: path)
            #expect(download != nil)
            download?.deletesFileUponFailure = !keeps
            loop.runOut()
            // A cancel after the end changes nothing.
            download?.cancel()
            return download?.resumeData
        }
        return (recorder.log.entries, next)
    }

    /// Downloads a file whose first response breaks off, and then the rest.
    ///
    /// - Parameter configure: Called with both downloads before their starts.
    private static func loadInTwo(
        _ request: URLRequest, _ path: String, configure: @escaping @Sendable (URLDownload) -> Void
    ) throws {
        func run(_ make: @escaping @Sendable (Recorder) -> URLDownload?) throws -> Data? {
            try onLoopThread { loop in
                guard let download = make(Recorder()) else { return nil }
                configure(download)
                download.setDestination(path, allowOverwrite: true)
                download.schedule(in: loop, forMode: .default)
                download.deletesFileUponFailure = false
                download.start()
                loop.runOut()
                return download.resumeData
            }
        }
        let begun = try run { URLDownload(request: request, delegate: $0, startImmediately: false) }
        let data = try #require(begun)
        let rest = try run {
            URLDownload(resumeData: data, delegate: $0, path: path, startImmediately: false)
        }
        #expect(rest == nil)
    }

    @Test func `UC-71 a failed download goes on where it stopped`() throws {
        let server = try Self.server(tag: "\"one\"")
        try Self.folder { path in
            let data = try #require(try Self.begin(server, path))
            #expect(try Self.goOn(data, path) == ["resume 150000", "finish"])
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(Self.body.utf8))
            #expect(server.requests.last?.value("Range") == "bytes=150000-")
        }
    }

    @Test func `UC-71 a rest in a content coding is not the rest of the file, which is loaded anew`() throws {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if peer.number == 0 {
                    try peer.send(
                        "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nContent-Length: 400000\r\n\r\n"
                            + Self.body.prefix(150_000))
                    return
                }
                if request.value("Range") != nil {
                    try peer.respond(
                        "206 Partial Content",
                        ["Content-Range: bytes 150000-399999/400000", "Content-Encoding: gzip"],
                        body: String(Self.body.dropFirst(150_000)))
                } else {
                    try peer.respond(body: Self.body)
                }
            }
        }
        try Self.folder { path in
            let data = try #require(try Self.begin(server, path))
            #expect(try Self.goOn(data, path) == ["resume 0", "finish"])
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(Self.body.utf8))
        }
    }

    /// There are the first 100 bytes of a file of 200, whose length the server has not announced.
    @Test(
        arguments: [
            ("bytes 100-199/200", 100), ("bytes 100-199/*", nil), ("bytes 100-149/*", nil),
            ("bytes 100-149/200", nil),
        ] as [(String, Int64?)])
    func `UC-71 a rest without a known length of the whole is not taken`(
        range: String, offset: Int64?
    ) throws {
        func response(_ status: Int, _ fields: [String: String]) throws -> HTTPURLResponse {
            try #require(
                HTTPURLResponse(
                    url: url("http://a.example/x"), statusCode: status, httpVersion: nil, headerFields: fields
                ))
        }
        let resumption = try #require(
            DownloadResumption(try response(200, ["ETag": "\"a\""]), bytes: 100, method: "GET"))
        #expect(resumption.total == nil)
        let rest = try response(206, ["Content-Range": range])
        #expect(resumption.offset(of: rest) == offset)
        #expect(resumption.completed(by: rest).total == (range.hasSuffix("*") ? nil : 200))
        // An announced length says enough.
        let announced = resumption.completed(total: 200)
        #expect(announced.offset(of: rest) == (range.hasPrefix("bytes 100-199") ? 100 : nil))
    }

    /// Sends 100 bytes of 200 at first, without a length; then these parts, and the whole where none is asked for.
    private static func chunked(_ rests: [(head: String, body: String)]) throws -> TestServer {
        try TestServer { peer in
            let isForRest = try peer.readRequest().value("Range") != nil
            let chunk = { (text: Substring) in "\(String(text.utf8.count, radix: 16))\r\n\(text)\r\n" }
            let chunked = "ETag: \"one\"\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            if peer.number == 0 {
                return try peer.send("HTTP/1.1 200 OK\r\n\(chunked)" + chunk(body.prefix(100)))
            }
            if isForRest {
                let (head, part) = rests[peer.number - 1]
                try peer.send("HTTP/1.1 206 Part\r\n\(head)\r\n\(chunked)" + chunk(part[...]) + "0\r\n\r\n")
            } else {
                try peer.respond(body: String(body.prefix(200)))
            }
            peer.waitForEnd()
        }
    }

    private static func part(_ range: Range<Int>) -> String {
        String(body.dropFirst(range.lowerBound).prefix(range.count))
    }

    @Test func `UC-71 a rest that ends before the length that it names is cut off, and goes on once more`()
        throws
    {
        let server = try Self.chunked([
            ("Content-Range: bytes 100-199/200", Self.part(100..<140)),
            ("Content-Range: bytes 140-199/*", Self.part(140..<200)),
        ])
        try Self.folder { path in
            let data = try #require(try Self.begin(server, path))
            let (log, next) = try Self.attempt(data, path, keeps: true)
            #expect(log == ["resume 100", "fail -1005"])
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(Self.part(0..<140).utf8))
            #expect(try Self.goOn(try #require(next), path) == ["resume 140", "finish"])
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(Self.part(0..<200).utf8))
        }
    }

    @Test func `UC-71 after a rest of unknown length the whole is loaded`() throws {
        let server = try Self.chunked([("Content-Range: bytes 100-149/*", Self.part(100..<150))])
        try Self.folder { path in
            let data = try #require(try Self.begin(server, path))
            #expect(try Self.goOn(data, path) == ["resume 0", "finish"])
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(Self.part(0..<200).utf8))
            #expect(server.requests.map { $0.value("Range") } == [nil, "bytes=100-", nil])
        }
    }

    @Test
    func
        `UC-71 UC-33 what the configuration means for the first origin is not sent to the one that redirects lead to`()
        throws
    {
        let server = try Self.server(tag: "\"one\"")
        let target = server.url().absoluteString
        let first = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("302 Found", ["Location: \(target)", "Connection: close"])
        }
        try Self.folder { path in
            try Self.loadInTwo(URLRequest(url: first.url()), path) { download in
                download.configuration.additionalFields = [
                    .init(name: "Authorization", value: "secret"), .init(name: "X-Own", value: "1"),
                ]
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(Self.body.utf8))
        }
        #expect(first.requests.map { $0.value("Authorization") } == ["secret"])
        #expect(server.requests.map { $0.value("Authorization") } == [nil, nil])
        #expect(server.requests.map { $0.value("X-Own") } == ["1", "1"])
        #expect(server.requests.last?.value("Range") == "bytes=150000-")
    }

    /// `@unchecked Sendable`: the storage has a lock of its own.
    private final class Cookies: @unchecked Sendable {
        let storage = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: UUID().uuidString)

        init() throws {
            storage.cookieAcceptPolicy = .always
            let properties: [HTTPCookiePropertyKey: Any] = [
                .name: "a", .value: "1", .path: "/", .domain: "127.0.0.1",
            ]
            storage.setCookie(try #require(HTTPCookie(properties: properties)))
        }
    }

    @Test(arguments: [(true, "a=1"), (false, nil)] as [(Bool, String?)])
    func `UC-71 US-12 the rest is asked for with cookies only if the first request was to have some`(
        handles: Bool, cookie: String?
    ) throws {
        let (server, cookies) = (try Self.server(tag: "\"one\""), try Cookies())
        try Self.folder { path in
            var first = URLRequest(url: server.url())
            first.httpShouldHandleCookies = handles
            try Self.loadInTwo(first, path) { $0.configuration.cookieStorage = cookies.storage }
        }
        #expect(server.requests.last?.value("Range") == "bytes=150000-")
        #expect(server.requests.map { $0.value("Cookie") } == [cookie, cookie])
    }

    /// RFC 9110 §15.3.4: a 203 is the whole, which a proxy has transformed.
    @Test(arguments: [true, false], ["200 OK", "203 Non-Authoritative Information"])
    func `UC-71 a resumed download starts anew if the file has changed or the server refuses`(
        refuses: Bool, whole: String
    )
        throws
    {
        let server = try Self.server(tag: "\"one\"", changes: !refuses, refuses: refuses, whole: whole)
        try Self.folder { path in
            let data = try #require(try Self.begin(server, path))
            #expect(try Self.goOn(data, path) == ["resume 0", "finish"])
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(Self.body.utf8))
            // The whole is the answer to the one request, where it is not refused.
            #expect(server.requests.count == (refuses ? 3 : 2))
        }
    }

    @Test(arguments: [false, true])
    func `UC-71 the fields of the request are sent again, for the rest and for the whole`(refuses: Bool)
        throws
    {
        let server = try Self.server(tag: "\"one\"", refuses: refuses)
        try Self.folder { path in
            let data = try #require(try Self.begin(server, path, fields: ["X-Token": "mine"]))
            #expect(try Self.goOn(data, path) == ["resume \(refuses ? 0 : 150000)", "finish"])
            let tokens = server.requests.map { $0.value("X-Token") ?? "" }
            #expect(tokens == Array(repeating: "mine", count: refuses ? 3 : 2))
        }
    }

    /// The second connection has this answer; without one it is closed.
    @Test(arguments: ["503 Service Unavailable", nil] as [String?], [false, true])
    func `UC-71 without the rest or the whole the partial file stays, with data to go on with`(
        answer: String?, keeps: Bool
    ) throws {
        let server = try TestServer { peer in
            let wanted = try peer.readRequest().value("Range").flatMap { Int($0.dropFirst(6).dropLast()) }
            guard let wanted else {
                return try peer.send(
                    "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nContent-Length: 400000\r\n\r\n"
                        + Self.body.prefix(150_000))
            }
            guard peer.number == 1 else {
                return try peer.respond(
                    "206 Partial Content", ["Content-Range: bytes \(wanted)-399999/400000"],
                    body: String(Self.body.dropFirst(wanted)))
            }
            if let answer { try peer.respond(answer, ["Connection: close"], body: "busy") }
        }
        try Self.folder { path in
            let data = try #require(try Self.begin(server, path))
            let (log, next) = try Self.attempt(data, path, keeps: keeps)
            #expect(log == [answer == nil ? "fail -1005" : "fail -1011"])
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(Self.body.prefix(150_000).utf8))
            #expect(try Self.goOn(try #require(next), path) == ["resume 150000", "finish"])
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(Self.body.utf8))
            #expect(server.requests.count == 3)
        }
    }

    @Test func `UC-71 a resumed download that is cancelled before it starts keeps its resume data`() throws {
        let server = try Self.server(tag: "\"one\"")
        try Self.folder { path in
            let data = try #require(try Self.begin(server, path))
            let next = try #require(
                URLDownload(resumeData: data, delegate: nil, path: path, startImmediately: false))
            #expect(next.resumeData == nil)
            next.cancel()
            #expect(try Self.goOn(try #require(next.resumeData), path) == ["resume 150000", "finish"])
        }
    }

    @Test(arguments: [0, 10])
    func `UC-71 a resumed download starts anew if its partial file was cut or removed`(left: off_t) throws {
        let server = try Self.server(tag: "\"one\"")
        try Self.folder { path in
            let data = try #require(try Self.begin(server, path))
            #expect(truncate(path, left) == 0)
            if left == 0 { #expect(unlink(path) == 0) }
            #expect(try Self.goOn(data, path) == ["resume 0", "finish"])
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(Self.body.utf8))
            #expect(server.requests.last?.value("Range") == nil)
        }
    }

    @Test func `UC-71 without a strong validator, or without the file, there is nothing to go on with`()
        throws
    {
        try Self.folder { path in
            let (weak, strong) = (try Self.server(tag: "W/\"weak\""), try Self.server(tag: "\"one\""))
            #expect(try Self.begin(weak, path) == nil)
            #expect(try Self.begin(strong, path, keeps: false) == nil)
            #expect(!FileManager.default.fileExists(atPath: path))
        }
        #expect(URLDownload(resumeData: Data("nonsense".utf8), delegate: nil, path: "/tmp/x") == nil)
    }

    @Test func `UC-71 there is nothing to go on with where the program itself has asked for a range`() throws
    {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            let range = "Content-Range: bytes 100-399999/400000\r\nContent-Length: 399900"
            try peer.send(
                "HTTP/1.1 206 Partial Content\r\nETag: \"one\"\r\n\(range)\r\n\r\n"
                    + Self.body.dropFirst(100).prefix(1000))
        }
        try Self.folder { path in
            let resumeData = try Self.begin(server, path, fields: ["Range": "bytes=100-"])
            let file = try Data(contentsOf: URL(fileURLWithPath: path))
            #expect(resumeData == nil)
            #expect(file.count == 1000)
        }
    }

    @Test func `UC-71 a cancelled download can be resumed`() throws {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                let fields = ["ETag: \"e\""]
                guard let range = request.value("Range"), let first = Int(range.dropFirst(6).dropLast())
                else {
                    try peer.respond("200 OK", fields, body: Self.body)
                    continue
                }
                try peer.respond(
                    "206 Partial Content", fields + ["Content-Range: bytes \(first)-399999/400000"],
                    body: String(Self.body.dropFirst(first)))
            }
        }
        try Self.folder { path in
            let recorder = Recorder(cancelsAt: 1)
            let data = try onLoopThread { loop -> Data? in
                let download = URLDownload(request: URLRequest(url: server.url()), delegate: recorder)
                download.setDestination(path, allowOverwrite: true)
                download.deletesFileUponFailure = false
                loop.runOut()
                return download.resumeData
            }
            #expect(recorder.log.entries == ["response"])
            let log = try Self.goOn(try #require(data), path)
            #expect(
                log.first?.hasPrefix("resume ") == true && log.first != "resume 0" && log.last == "finish")
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(Self.body.utf8))
        }
    }

    @Test func `a download without a connection names the modes that it is scheduled in`() throws {
        let found = try onLoopThread { loop -> [DeliveryObstacle?] in
            let download = URLDownload(
                request: URLRequest(url: url("http://a.example/")), delegate: nil, startImmediately: false)
            download.schedule(in: loop, forMode: .work)
            // It has made no connection yet.
            let saver = DownloadSaver(delegate: nil, continuing: nil)
            let before = saver.obstacle(of: download)
            saver.cancel()
            return [before, saver.obstacle(of: download)]
        }
        #expect(found.map { $0?.reason } == [DeliveryObstacle.Reason.loopNeverRan, nil])
    }
}

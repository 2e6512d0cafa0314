import Rondo
import RondoHTTP
import RondoProbeSupport
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Rondo's own cache on the disk: what a later process finds, which rights the files have, and what becomes of broken ones.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct CacheDiskTests {
    /// A folder of its own, and caches in it.
    private final class Folder {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("rondo-\(UUID().uuidString)")
        var file: URL { url.appendingPathComponent("responses.sqlite") }

        deinit { try? FileManager.default.removeItem(at: url) }

        func cache(memory: Int = 1 << 20, disk: Int = 1 << 22) -> URLConnection.Cache {
            URLConnection.Cache(memoryCapacity: memory, diskCapacity: disk, diskPath: url.path)
        }

        /// Whether any of the files contains this text.
        func contains(_ text: String) throws -> Bool {
            try FileManager.default.contentsOfDirectory(atPath: url.path).contains {
                try Data(contentsOf: url.appendingPathComponent($0)).range(of: Data(text.utf8)) != nil
            }
        }
    }

    private func request(_ path: String) -> URLRequest { URLRequest(url: url("http://host.example/\(path)")) }

    private func response(_ path: String, _ text: String) throws -> CachedURLResponse {
        let response = try #require(
            HTTPURLResponse(
                url: url("http://host.example/\(path)"), statusCode: 200, httpVersion: "HTTP/1.1",
                headerFields: ["Cache-Control": "max-age=100", "X-Mine": path]))
        return CachedURLResponse(response: response, data: Data(text.utf8))
    }

    private func text(_ cached: CachedURLResponse?) -> String? {
        cached.map { String(decoding: $0.data, as: UTF8.self) }
    }

    @Test func `a written response is visible to other processes, of this user only`() throws {
        let folder = Folder()
        var cache: URLConnection.Cache? = folder.cache()
        cache?.storeCachedResponse(try response("a", "text"), for: request("a"))
        cache?.flush()
        for (path, mode) in [
            (folder.url.path, 0o700), (folder.file.path, 0o600), (folder.file.path + "-wal", 0o600),
        ] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == mode, "\(path)")
        }
        cache = nil
        let found = try #require(folder.cache().cachedResponse(for: request("a")))
        #expect(text(found) == "text")
        let response = try #require(found.response as? HTTPURLResponse)
        #expect(response.value(forHTTPHeaderField: "X-Mine") == "a" && response.statusCode == 200)
        #expect(response.url == url("http://host.example/a"))
    }

    @Test func `a response that is not written yet is found by another cache of the same path`() throws {
        let folder = Folder()
        folder.cache().storeCachedResponse(try response("a", "text"), for: request("a"))
        #expect(text(folder.cache().cachedResponse(for: request("a"))) == "text")
    }

    @Test func `a removed response is not found, written or not`() throws {
        let folder = Folder()
        var cache: URLConnection.Cache? = folder.cache()
        for path in ["a", "b", "c", "d"] {
            cache?.storeCachedResponse(try response(path, path), for: request(path))
        }
        cache?.removeCachedResponse(for: request("a"))
        cache?.flush()
        cache?.removeCachedResponse(for: request("b"))
        #expect(
            cache?.cachedResponse(for: request("a")) == nil && cache?.cachedResponse(for: request("b")) == nil
        )
        cache?.flush()
        cache = nil
        let other = folder.cache()
        #expect(
            ["a", "b", "c", "d"].map { text(other.cachedResponse(for: request($0))) } == [nil, nil, "c", "d"])
        other.removeAllCachedResponses()
        #expect(other.cachedResponse(for: request("c")) == nil && other.currentDiskUsage == 0)
        other.storeCachedResponse(try response("e", "e"), for: request("e"))
        other.flush()
        #expect(text(other.cachedResponse(for: request("e"))) == "e")
        #expect(folder.cache().cachedResponse(for: request("d")) == nil)
    }

    @Test func `responses stored since a date are removed, in memory and on the disk`() throws {
        let folder = Folder()
        let cache = folder.cache()
        cache.storeCachedResponse(try response("a", "a"), for: request("a"))
        cache.flush()
        cache.storeCachedResponse(try response("b", "b"), for: request("b"))
        cache.removeCachedResponses(since: Date(timeIntervalSinceNow: 1000))
        #expect(["a", "b"].map { text(cache.cachedResponse(for: request($0))) } == ["a", "b"])
        cache.removeCachedResponses(since: .distantPast)
        #expect(["a", "b"].map { text(cache.cachedResponse(for: request($0))) } == [nil, nil])
    }

    @Test func `the disk's part stays within its capacity, and the last ones stay`() throws {
        let folder = Folder()
        let cache = folder.cache(memory: 0, disk: 1 << 20)
        let text = longText(10_000)
        for number in 0..<400 {
            cache.storeCachedResponse(try response("\(number)", text), for: request("\(number)"))
            if number % 50 == 49 { cache.flush() }
        }
        #expect(cache.currentDiskUsage <= 1 << 20 && cache.currentDiskUsage > 1 << 19)
        #expect(cache.cachedResponse(for: request("0")) == nil)
        #expect(cache.cachedResponse(for: request("399"))?.data.count == 10_000)
        cache.diskCapacity = 1 << 18
        cache.flush()
        #expect(cache.currentDiskUsage <= 1 << 18)
    }

    /// The number of responses that wait is limited, and one that is dropped leaves no older one behind.
    @Test
    func `responses beyond the limit of writes stay in memory alone, and no old one comes back`() throws {
        let folder = Folder()
        var cache: URLConnection.Cache? = folder.cache(memory: 1 << 24)
        let last = "\(ResponseDisk.maximumWaiting + 50)"
        cache?.storeCachedResponse(try response(last, "old"), for: request(last))
        cache?.flush()
        // Not more than a moment passes on any machine that works; where it does, more is written.
        for number in 0..<ResponseDisk.maximumWaiting + 51 {
            cache?.storeCachedResponse(try response("\(number)", "new"), for: request("\(number)"))
        }
        #expect(text(cache?.cachedResponse(for: request(last))) == "new")
        cache?.flush()
        cache = nil
        #expect(text(folder.cache().cachedResponse(for: request(last))) != "old")
        #expect(text(folder.cache().cachedResponse(for: request("0"))) == "new")
    }

    @Test func `a response that the program stores for memory only is not on the disk`() throws {
        let folder = Folder()
        let cache = folder.cache()
        let made = try response("a", "a")
        cache.storeCachedResponse(made, for: request("a"))
        cache.flush()
        let secret = CachedURLResponse(
            response: made.response, data: Data("secret".utf8), userInfo: ["mine": "yes"],
            storagePolicy: .allowedInMemoryOnly)
        cache.storeCachedResponse(secret, for: request("a"))
        cache.flush()
        #expect(text(cache.cachedResponse(for: request("a"))) == "secret")
        #expect(cache.cachedResponse(for: request("a"))?.userInfo?["mine"] as? String == "yes")
        #expect(folder.cache().cachedResponse(for: request("a")) == nil)
        cache.storeCachedResponse(
            CachedURLResponse(response: made.response, data: made.data, storagePolicy: .notAllowed),
            for: request("b"))
        #expect(cache.cachedResponse(for: request("b")) == nil)
    }

    @Test func `user info and responses that are no HTTP are there again`() throws {
        let folder = Folder()
        let response = URLResponse(
            url: url("mine:a"), mimeType: "text/mine", expectedContentLength: 4, textEncodingName: "utf-8")
        let request = URLRequest(url: url("mine:a"))
        let cached = CachedURLResponse(
            response: response, data: Data("text".utf8), userInfo: ["mine": ["yes": 1]],
            storagePolicy: .allowed)
        var cache: URLConnection.Cache? = folder.cache()
        cache?.storeCachedResponse(cached, for: request)
        cache?.flush()
        cache = nil
        let found = try #require(folder.cache().cachedResponse(for: request))
        #expect(text(found) == "text" && found.response.mimeType == "text/mine")
        #expect((found.userInfo?["mine"] as? [String: Int])?["yes"] == 1)
    }

    /// The cache finds what was stored, or nothing, whichever bytes have changed.
    @Test(arguments: 0..<40) func `a file that is broken gives no wrong byte, and is used again`(seed: Int)
        throws
    {
        let folder = Folder()
        var cache: URLConnection.Cache? = folder.cache()
        for number in 0..<50 {
            cache?.storeCachedResponse(
                try response("\(number)", longText(100 * number)), for: request("\(number)"))
        }
        cache?.flush()
        cache = nil
        var random = Random(seed: UInt64(seed))
        for suffix in ["", "-wal"] {
            let path = folder.file.path + suffix
            guard var bytes = FileManager.default.contents(atPath: path), !bytes.isEmpty else { continue }
            switch seed % 4 {
            case 0: bytes = bytes.prefix(Int.random(in: 0..<bytes.count, using: &random))
            default:
                for _ in 0..<(1 << (seed % 8)) {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= UInt8.random(
                        in: 1...255, using: &random)
                }
            }
            try bytes.write(to: URL(fileURLWithPath: path))
        }
        let other = folder.cache()
        for number in 0..<50 {
            let found = other.cachedResponse(for: request("\(number)"))
            #expect(found == nil || text(found) == longText(100 * number))
        }
        for round in 0..<2 {
            other.storeCachedResponse(try response("new", "new"), for: request("new"))
            other.flush()
            #expect(text(other.cachedResponse(for: request("new"))) == "new", "\(round)")
        }
    }

    /// One bit of a disk is enough for any of them.
    @Test(arguments: [
        "status = 404", "requested = requested + 1", "received = received + 1", "length = length + 1",
        "length = NULL", "date = date + 1", "fields = 'A:c' || char(10)", "selecting = 'x'",
        "content = x'6100'", "given = x''",
    ])
    func `a row of the cache's file that was altered in any column is not read`(change: String) throws {
        try withRow { name, database in
            #expect(try read(name, database) != nil)
            try database.execute("UPDATE response SET \(change)")
            #expect(try read(name, database) == nil)
        }
    }

    @Test(arguments: [Double.infinity, -Double.infinity, 1e300, -1e300, 253_402_300_800])
    func `a row of the cache's file with an impossible date is not read, even with the right sum`(
        seconds: Double
    ) throws {
        for column in ["requested", "received", "date"] {
            try withRow { name, database in
                let change = try database.prepare("UPDATE response SET \(column) = ?1")
                change.bind(seconds, at: 1)
                try change.run()
                try writeSum(name, nil, database)
                #expect(try read(name, database) == nil)
            }
        }
    }

    @Test func `a response that a program has stored comes back from the disk unchanged`() throws {
        let folder = Folder()
        let address = url("http://host.example/a")
        let plain = URLResponse(
            url: address, mimeType: "text/mine", expectedContentLength: 3, textEncodingName: "utf-8")
        let http = try #require(
            HTTPURLResponse(
                url: address, statusCode: 404, httpVersion: "HTTP/1.1",
                headerFields: ["Content-Type": "text/html; charset=utf-8", "X-Mine": "1"]))
        for (path, response) in [("a", plain), ("b", http)] {
            folder.cache().storeCachedResponse(
                CachedURLResponse(
                    response: response, data: Data("abc".utf8), userInfo: ["a": 1], storagePolicy: .allowed),
                for: request(path))
        }
        folder.cache().flush()
        let cache = folder.cache(memory: 0)
        let foundPlain = try #require(cache.cachedResponse(for: request("a")))
        #expect(foundPlain.response.url == address && foundPlain.response.mimeType == "text/mine")
        #expect(foundPlain.response.textEncodingName == "utf-8" && text(foundPlain) == "abc")
        #expect(foundPlain.response.expectedContentLength == 3)
        #expect(foundPlain.userInfo?["a"] as? Int == 1)
        let foundHTTP = try #require(cache.cachedResponse(for: request("b"))?.response as? HTTPURLResponse)
        #expect(foundHTTP.statusCode == 404 && foundHTTP.mimeType == "text/html")
        #expect(foundHTTP.value(forHTTPHeaderField: "X-Mine") == "1" && foundHTTP.textEncodingName == "utf-8")
    }

    /// As a program could have written it, or a disk that has changed the sum with it.
    @Test
    func `a program's stored response that was altered is another one or none, even with the right sum`()
        throws
    {
        let folder = Folder()
        let database = try Database.open(
            folder.file, version: ResponseRow.version, schema: ResponseRow.schema)
        let name = "http://host.example/a"
        let made = CachedURLResponse(
            response: try response("a", "").response, data: Data("a".utf8), userInfo: ["a": ["b": 1]],
            storagePolicy: .allowed)
        let given = try #require(ResponseForm.data(of: made))
        try ResponseRow.Writer(database).write(StoredResponse(name, nil, made))
        #expect(try read(name, database)?.cached(url(name))?.userInfo?.isEmpty == false)
        let change = try database.prepare("UPDATE response SET given = ?1")
        var generator = Random(seed: 7)
        var misses = 0
        for _ in 0..<2_000 {
            var broken = given
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                broken[Int.random(in: 0..<broken.count, using: &generator)] = .random(
                    in: 0...255, using: &generator)
            }
            if Bool.random(using: &generator) {
                broken = broken.prefix(.random(in: 0..<broken.count, using: &generator))
            }
            try change.bind(borrowing: broken, at: 1) { () throws(DatabaseError) in try change.run() }
            try writeSum(name, broken, database)
            if try read(name, database) == nil { misses += 1 }
        }
        #expect(misses > 500)
    }

    private func withRow(_ body: (_ name: String, Database) throws -> Void) throws {
        let folder = Folder()
        let database = try Database.open(
            folder.file, version: ResponseRow.version, schema: ResponseRow.schema)
        let (name, now) = ("http://host.example/a", Date(timeIntervalSince1970: 1_700_000_000))
        let entry = CacheEntry(
            status: 200, fields: HeaderFields([("A", "b")]), requestedAt: now, receivedAt: now)
        let response = StoredResponse(name, entry, content: Data("a".utf8), bodyLength: 1, date: now)
        try ResponseRow.Writer(database).write(response)
        try body(name, database)
    }

    /// Gives the row of a response the sum of what it holds.
    ///
    /// - Parameter given: What it holds of a response that a program has made.
    private func writeSum(_ name: String, _ given: Data?, _ database: Database) throws {
        let query = try database.prepare(ResponseRow.query)
        query.bind(StoredResponse.key(name), at: 1)
        #expect(try query.step())
        let sum = ResponseRow.sum(
            [name, query.text(2), query.text(5)], ResponseRow.Numbers(query), given, query.data(10))
        query.reset()
        try database.execute("UPDATE response SET sum = \(sum)")
    }

    private func read(_ name: String, _ database: Database) throws -> StoredResponse? {
        let query = try database.prepare(ResponseRow.query)
        query.bind(StoredResponse.key(name), at: 1)
        return try query.step() ? ResponseRow.read(name, query) : nil
    }

    @Test(
        arguments: [
            ["a": "1", "b": nil], ["a:b": nil], ["a": "\u{301}x"], ["a": "", "b": ":"],
            ["a": "x\r", "b": "y"], [:],
        ] as [[String: String?]])
    func `the values that Vary selects come back unchanged, with any bytes`(selecting: [String: String?]) {
        #expect(ResponseRow.selecting(ResponseRow.text(selecting)) == selecting)
    }

    /// Gives a password for one load only.
    private final class Answering: NSObject, URLConnectionDataDelegate, Sendable {
        func connection(
            _ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge
        ) {
            let credential = URLCredential(user: "user", password: "secret", persistence: .none)
            challenge.sender?.use(credential, for: challenge)
        }
    }

    @Test func `UC-54 the password and the cookies that Vary names are not on the disk, and still select`()
        throws
    {
        let folder = Folder()
        let password = Data("user:secret".utf8).base64EncodedString()
        let fields = ["Cache-Control: max-age=1000", "ETag: \"1\"", "Vary: Authorization, Cookie, X-Who"]
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.value("Authorization") == "Basic \(password)" {
                    try peer.respond("200 OK", fields, body: "in")
                } else {
                    try peer.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"r\""], body: "out")
                }
            }
        }
        var request = URLRequest(url: server.url("/a"))
        request.httpShouldHandleCookies = false
        request.setValue("session=0123456789", forHTTPHeaderField: "Cookie")
        request.setValue("somebody", forHTTPHeaderField: "X-Who")
        let cache = folder.cache()
        try onLoopThread { [request] loop in
            let connection = URLConnection(request: request, delegate: Answering(), startImmediately: false)
            connection?.configuration.cache = cache
            connection?.start()
            loop.runOut()
        }
        cache.flush()
        #expect(try folder.contains("somebody"))
        #expect(try !folder.contains(password))
        #expect(try !folder.contains("0123456789"))

        // Another cache has nothing of it in memory.
        request.setValue("Basic \(password)", forHTTPHeaderField: "Authorization")
        let other = folder.cache()
        for (cookie, count) in [("0123456789", 2), ("9876543210", 3)] {
            request.setValue("session=\(cookie)", forHTTPHeaderField: "Cookie")
            let recorder = try load(request) { $0.configuration.cache = other }
            #expect(recorder.text == "in")
            #expect(server.requests.count == count)
        }
        withExtendedLifetime(folder) {}
    }

    @Test func `UC-54 a file of before, with secrets in clear text, is gone once it is opened`() throws {
        let folder = Folder()
        try Database.open(folder.file, version: 3, schema: ResponseRow.schema).execute(
            """
            INSERT INTO response (id, date, name, selecting, sum, content)
            VALUES (1, 0, 'http://host.example/a', 'cookie:session=0123456789', 0, x'')
            """)
        #expect(try folder.contains("0123456789"))
        let cache = folder.cache()
        cache.storeCachedResponse(try response("b", "the new one"), for: request("b"))
        cache.flush()
        #expect(try folder.contains("the new one"))
        #expect(try !folder.contains("0123456789"))
    }

    @Test func `a folder that cannot be made is a cache of memory alone`() throws {
        let folder = Folder()
        try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
        try Data().write(to: folder.url.appendingPathComponent("file"))
        let cache = URLConnection.Cache(
            memoryCapacity: 1 << 20, diskCapacity: 1 << 20,
            diskPath: folder.url.appendingPathComponent("file/below").path)
        cache.storeCachedResponse(try response("a", "a"), for: request("a"))
        cache.flush()
        #expect(text(cache.cachedResponse(for: request("a"))) == "a")
    }

    @Test func `two connections of a file at once lose nothing of each other`() throws {
        let folder = Folder()
        let cache = folder.cache()
        cache.storeCachedResponse(try response("a", "a"), for: request("a"))
        cache.flush()
        let stranger = try Database.open(
            folder.file, version: ResponseRow.version, schema: ResponseRow.schema)
        try stranger.execute("UPDATE response SET date = date + 1")
        cache.storeCachedResponse(try response("b", "b"), for: request("b"))
        cache.flush()
        #expect(try stranger.number("SELECT count(*) FROM response") == 2)
    }

    // MARK: The default

    @Test func `the shared cache is Rondo's, with the capacities that are documented`() {
        let shared = URLCache.shared
        #expect(shared is URLConnection.Cache)
        #expect(shared.memoryCapacity == 4 << 20 && shared.diskCapacity == 20 << 20)
    }

    /// Says nothing about what is stored.
    private final class Silent: NSObject, URLConnectionDataDelegate, Sendable {}

    @Test(arguments: [
        ("X-Nothing: 1", false), ("Cache-Control: max-age=0", false), ("Cache-Control: no-cache", false),
        ("ETag: \"1\"", true), ("Last-Modified: Mon, 23 Nov 2026 10:00:00 GMT", true),
        ("Cache-Control: max-age=10", true), ("Expires: Fri, 23 Nov 2096 10:00:00 GMT", true),
        ("Expires: Thu, 01 Jan 1970 00:00:00 GMT", false),
        ("Expires: -1", false),
    ])
    func `a response that could never be used again is not stored`(field: String, isStored: Bool) throws {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("200 OK", [field], body: "text")
            }
        }
        let cache = URLConnection.Cache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        for path in ["/a", "/b"] {
            let request = URLRequest(url: server.url(path))
            try onLoopThread { loop in
                let connection = URLConnection(request: request, delegate: Silent(), startImmediately: false)
                connection?.configuration.cache = cache
                connection?.start()
                loop.runOut()
            }
            #expect((cache.cachedResponse(for: request) != nil) == isStored)
        }
        // A program that takes what is kept, whatever its age, can use it.
        var request = URLRequest(url: server.url("/c"))
        request.cachePolicy = .returnCacheDataElseLoad
        try onLoopThread { [request] loop in
            let connection = URLConnection(request: request, delegate: Silent(), startImmediately: false)
            connection?.configuration.cache = cache
            connection?.start()
            loop.runOut()
        }
        #expect(cache.cachedResponse(for: request) != nil)
    }

    /// A cache of the program's whose stores take their time until they are let go on.
    @Test
    func `UC-54 of many responses that a slow cache is to store most are dropped, and no end waits for them`()
        throws
    {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                try peer.respond("200 OK", ["Cache-Control: max-age=100"], body: request.target)
            }
        }
        let cache = WaitingCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        let count = 3 * CacheWriter.maximumWaiting
        let recorders = (0..<count).map { _ in Recorder() }
        try onLoopThread { loop in
            for (number, recorder) in recorders.enumerated() {
                let connection = URLConnection(
                    request: URLRequest(url: server.url("/\(number)")), delegate: recorder,
                    startImmediately: false)
                connection?.configuration.cache = cache
                connection?.start()
            }
            // The first is being stored, and stays there; the others wait, or have ended without.
            #expect(loop.run { recorders.count(where: \.isDone) >= count - CacheWriter.maximumWaiting - 1 })
            cache.mayGoOn.open()
            #expect(loop.runOut() == .finished)
        }
        #expect(recorders.count(where: \.isDone) == count)
        let stored = (0..<count).count(where: {
            cache.cachedResponse(for: URLRequest(url: server.url("/\($0)"))) != nil
        })
        #expect(1...CacheWriter.maximumWaiting + 1 ~= stored)
    }

    /// Says when it is asked about a response.
    private final class Asked: NSObject, URLConnectionDataDelegate, Sendable {
        let isAsked = Box(false)

        func connection(
            _ connection: URLConnection, willCacheResponse cachedResponse: CachedURLResponse
        ) -> CachedURLResponse? {
            isAsked.value = true
            return cachedResponse
        }
    }

    @Test func `RFC 9111 4 a newer response that too many wait before makes the older one go`() throws {
        let isOld = Box(true)
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("200 OK", ["Cache-Control: max-age=100"], body: isOld.value ? "old" : "new")
            }
        }
        let cache = URLCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        var request = URLRequest(url: server.url("/a"))
        try load(request) { $0.configuration.cache = cache }
        #expect(text(cache.cachedResponse(for: request)) == "old")
        isOld.value = false
        request.cachePolicy = .reloadIgnoringLocalCacheData
        let slow = WaitingCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        let count = CacheWriter.maximumWaiting + 2
        let recorders = (0..<count).map { _ in Recorder() }
        let asked = Asked()
        try onLoopThread { [request] loop in
            for (number, recorder) in recorders.enumerated() {
                let connection = URLConnection(
                    request: URLRequest(url: server.url("/\(number)")), delegate: recorder,
                    startImmediately: false)
                connection?.configuration.cache = slow
                connection?.start()
            }
            // A load that ends meanwhile has found the writer full.
            #expect(loop.run { recorders.contains(where: \.isDone) })
            let connection = URLConnection(request: request, delegate: asked, startImmediately: false)
            connection?.configuration.cache = cache
            connection?.start()
            #expect(loop.run { asked.isAsked.value })
            slow.mayGoOn.open()
            #expect(loop.runOut() == .finished)
        }
        #expect(text(cache.cachedResponse(for: request)) != "old")
    }

    @Test func `UC-53 Rondo's cache removes an older response before it stores a later one`() throws {
        let directive = Box("max-age=100")
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                try peer.respond("200 OK", ["Cache-Control: \(directive.value)"], body: request.target)
            }
        }
        let cache = URLConnection.Cache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        var request = URLRequest(url: server.url("/a"))
        request.cachePolicy = .reloadIgnoringLocalCacheData
        let slow = WaitingCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        try onLoopThread { [request] loop in
            func start(_ request: URLRequest, _ cache: URLCache, _ recorder: Recorder = Recorder()) {
                let connection = URLConnection(request: request, delegate: recorder, startImmediately: false)
                connection?.configuration.cache = cache
                connection?.start()
            }
            // The removal would wait for another cache's response.
            start(URLRequest(url: server.url("/b")), slow)
            #expect(loop.run { slow.began.isOpen })
            for next in ["no-store", "max-age=100", ""] {
                let recorder = Recorder()
                start(request, cache, recorder)
                #expect(loop.run { recorder.isDone })
                #expect((cache.cachedResponse(for: request) == nil) == (directive.value == "no-store"))
                directive.value = next
            }
            slow.mayGoOn.open()
            #expect(loop.runOut() == .finished)
        }
        #expect(cache.cachedResponse(for: request) != nil)
    }
}

import Rondo
import RondoMutex
import RondoTestSupport
import RondoTesting
import Testing

@testable import RondoConnections

/// The cache over real connections: what is asked, stored and answered.
/// Each test runs with Rondo's own cache and with Foundation's.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections, .eachKindOfCache) struct CacheLoadTests {
    /// `@unchecked Sendable`: URLCache has a lock of its own.
    private final class Store: @unchecked Sendable {
        let cache: URLCache

        init(memory: Int = 1 << 22, disk: Int = 0, path: String? = nil) {
            let path = path ?? NSTemporaryDirectory() + "/rondo-cache-\(UUID().uuidString)"
            cache = CacheKind.current.make(memory: memory, disk: disk, path: path)
        }
    }

    /// A recorder that is asked what to store.
    private final class Keeper: NSObject, URLConnectionDataDelegate, Sendable {
        let log = EventLog()
        let body = Box(Data())
        let ended = Latch()
        let answer: @Sendable (CachedURLResponse) -> CachedURLResponse?

        init(_ answer: @escaping @Sendable (CachedURLResponse) -> CachedURLResponse? = { $0 }) {
            self.answer = answer
        }

        func connection(_ connection: URLConnection, didReceive response: URLResponse) {
            log.note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        }

        func connection(_ connection: URLConnection, didReceive data: Data) {
            body.mutate { $0.append(data) }
        }

        func connection(
            _ connection: URLConnection, willCacheResponse cachedResponse: CachedURLResponse
        ) -> CachedURLResponse? {
            log.note("willCache \(cachedResponse.data.count)")
            return answer(cachedResponse)
        }

        func connectionDidFinishLoading(_ connection: URLConnection) {
            log.note("finish")
            ended.open()
        }

        func connection(_ connection: URLConnection, didFailWithError error: any Error) {
            log.note("fail \((error as? URLError)?.errorCode ?? 0)")
            ended.open()
        }
    }

    /// Loads with a cache; answers what the delegate was told.
    private static func get(
        _ url: URL, _ store: Store, _ policy: NSURLRequest.CachePolicy = .useProtocolCachePolicy,
        queue: OperationQueue? = nil, keeper: Keeper = Keeper(),
        _ change: (inout URLRequest) -> Void = { _ in }
    ) throws -> (calls: [String], text: String) {
        var request = URLRequest(url: url)
        request.cachePolicy = policy
        change(&request)
        try onLoopThread { [request] loop in
            let connection = URLConnection(request: request, delegate: keeper, startImmediately: false)
            connection?.configuration.cache = store.cache
            connection?.schedule(in: loop, forMode: .default)
            connection?.start()
            #expect(keeper.log.entries.isEmpty)
            loop.runOut()
        }
        return (keeper.log.entries, String(decoding: keeper.body.value, as: UTF8.self))
    }

    /// Loads on this thread's loop with a cache, to the end.
    private static func run(
        _ request: URLRequest, _ delegate: any URLConnectionDataDelegate & Sendable, _ store: Store,
        on loop: RunLoop, configure: (inout URLConnection.Configuration) -> Void = { _ in }
    ) {
        let connection = URLConnection(request: request, delegate: delegate, startImmediately: false)
        connection?.configuration.cache = store.cache
        if let connection { configure(&connection.configuration) }
        connection?.schedule(in: loop, forMode: .default)
        connection?.start()
        loop.runOut()
    }

    /// It has nothing to say of what is stored.
    private final class Silent: NSObject, URLConnectionDataDelegate, Sendable {}

    @Test(arguments: [false, true])
    func `UC-54 a response that the program removes from its cache is stored by the next load`(isAsked: Bool)
        throws
    {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("200 OK", ["ETag: \"1\"", "Cache-Control: max-age=0"], body: "text")
            peer.finish()
        }
        let store = Store()
        let request = URLRequest(url: server.url())
        for _ in 1...3 {
            let delegate: any URLConnectionDataDelegate & Sendable = isAsked ? Keeper() : Silent()
            try onLoopThread { loop in Self.run(request, delegate, store, on: loop) }
            #expect(store.cache.cachedResponse(for: request)?.data == Data("text".utf8))
            store.cache.removeAllCachedResponses()
        }
    }

    /// An answer that may be stored, and is gzip.
    private static func codedServer() throws -> (server: TestServer, coded: Data) {
        let coded = try #require(Data(base64Encoded: "H4sIAAAAAAACAyvJSFVIzs8rSc0rAQBznWdrCwAAAA=="))
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.send(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\nContent-Encoding: gzip\r\n"
                        + "Content-Length: \(coded.count)\r\n\r\n")
                try peer.send(Array(coded))
            }
        }
        return (server, coded)
    }

    @Test func `UC-54 UC-79 content that is not what other loads of the URL get is neither stored nor used`()
        throws
    {
        let (server, coded) = try Self.codedServer()
        let store = Store()
        func load(
            _ policy: NSURLRequest.CachePolicy = .useProtocolCachePolicy,
            _ change: @escaping @Sendable (inout URLConnection.Configuration) -> Void = { _ in }
        ) throws -> Data {
            var request = URLRequest(url: server.url("/a"))
            request.cachePolicy = policy
            let keeper = Keeper()
            try onLoopThread { [request] loop in
                Self.run(request, keeper, store, on: loop, configure: change)
            }
            return keeper.body.value
        }
        #expect(try load { $0.decodesContent = false } == coded)
        #expect(try load { $0.requestTarget = "/b" } == Data("the content".utf8))
        #expect(try load() == Data("the content".utf8))
        #expect(try load() == Data("the content".utf8))
        #expect(try load { $0.decodesContent = false } == coded)
        #expect(try load { $0.requestTarget = "/b" } == Data("the content".utf8))
        #expect(server.requests.map(\.target) == ["/a", "/b", "/a", "/a", "/b"])
        // Caches on the way are told to ask the server all the same (rule UC-56).
        _ = try load(.reloadIgnoringLocalAndRemoteCacheData) { $0.requestTarget = "/b" }
        #expect(server.requests.last?.value("Cache-Control") == "no-cache")
    }

    @Test
    func
        `RFC 9111 4.3.4 after a 304 with a new Vary other requests get no such response, from the disk neither`()
        throws
    {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                let user = request.value("X-User") ?? "nobody"
                let fields = ["ETag: \"\(user)\"", "Cache-Control: max-age=1000"]
                if request.value("If-None-Match") == "\"\(user)\"" {
                    try peer.respond("304 Not Modified", fields + ["Vary: X-User"])
                } else {
                    let varies = user == "a" ? [] : ["Vary: X-User"]
                    try peer.respond("200 OK", fields + varies, body: "of \(user)")
                }
            }
        }
        let path = NSTemporaryDirectory() + "/rondo-vary-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let store = Store(disk: 1 << 22, path: path)
        func text(
            _ user: String, _ store: Store, _ policy: NSURLRequest.CachePolicy = .useProtocolCachePolicy
        ) throws -> String {
            defer { (store.cache as? URLConnection.Cache)?.flush() }
            let found = try Self.get(server.url("/a"), store, policy) {
                $0.setValue(user, forHTTPHeaderField: "X-User")
            }
            return found.text
        }
        #expect(try text("a", store) == "of a")
        #expect(try text("a", store, .reloadRevalidatingCacheData) == "of a")
        // With nothing in memory, and with what is there.
        #expect(try text("b", Store(disk: 1 << 22, path: path)) == "of b")
        for user in ["b", "a"] { #expect(try text(user, store) == "of \(user)") }
    }

    @Test func `RFC 9111 4.3.4 a response that a 304 has made stale is stale on the disk too`() throws {
        let server = try TestServer { peer in
            while true {
                let isAskedAgain = try peer.readRequest().value("If-None-Match") != nil
                let fields = ["ETag: \"1\"", "Cache-Control: max-age=\(isAskedAgain ? 0 : 1000)"]
                try peer.respond(
                    isAskedAgain ? "304 Not Modified" : "200 OK", fields, body: isAskedAgain ? "" : "text")
            }
        }
        let path = NSTemporaryDirectory() + "/rondo-stale-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        for policy in [
            .useProtocolCachePolicy, .reloadRevalidatingCacheData, .useProtocolCachePolicy,
        ] as [NSURLRequest.CachePolicy] {
            // With nothing in memory.
            let store = Store(disk: 1 << 22, path: path)
            #expect(try Self.get(server.url("/a"), store, policy).text == "text")
            (store.cache as? URLConnection.Cache)?.flush()
        }
        #expect(server.requests.map { $0.value("If-None-Match") } == [nil, "\"1\"", "\"1\""])
    }

    /// RFC 9110 §8.8.1: a weak tag does not identify the bytes.
    @Test(arguments: [[], ["ETag: W/\"1\""]] as [[String]])
    func `UC-54 UC-56 a reload replaces content of the same length whose head says nothing of it`(
        fields: [String]
    ) throws {
        let body = Box("")
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("200 OK", ["Cache-Control: max-age=60"] + fields, body: body.value)
            }
        }
        let (store, keeper) = (Store(), Keeper())
        // On one loop, whose connections share equal heads.
        try onLoopThread { loop in
            func run(
                _ policy: NSURLRequest.CachePolicy, _ delegate: any URLConnectionDataDelegate & Sendable
            ) {
                var request = URLRequest(url: server.url())
                request.cachePolicy = policy
                Self.run(request, delegate, store, on: loop)
            }
            // The first load finds out that the delegate is not asked.
            for text in ["1", "1", "2"] {
                body.value = text
                run(.reloadIgnoringLocalCacheData, Silent())
            }
            run(.returnCacheDataDontLoad, keeper)
        }
        #expect(keeper.body.value == Data("2".utf8))
    }

    @Test
    func `UC-78 RFC 9111 5_2_1_7 conditions and directives of the settings count like the request's own`()
        throws
    {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                let isKnown = request.value("If-None-Match") == "\"1\""
                try peer.respond(
                    isKnown ? "304 Not Modified" : "200 OK",
                    ["ETag: \"1\"", "Cache-Control: max-age=1000"], body: isKnown ? "" : "text")
            }
        }
        let store = Store()
        func get(_ path: String, _ name: String, _ value: String) throws -> Recorder {
            try load(server.url(path)) {
                $0.configuration.cache = store.cache
                $0.configuration.additionalFields = [.init(name: name, value: value)]
            }
        }
        for _ in 0..<2 { #expect(try get("/a", "X-Own", "1").text == "text") }
        #expect(server.requests.count == 1, "the second comes from the cache")
        #expect(try get("/a", "If-None-Match", "\"1\"").response?.statusCode == 304)
        #expect(try get("/a", "range", "bytes=0-").text == "text")
        #expect(server.requests.count == 3)
        #expect(try get("/b", "cache-control", "only-if-cached").error?.code == .cannotLoadFromNetwork)
        #expect(server.requests.count == 3)
    }

    @Test
    func `UC-56 caches on the way are told to ask the server where the load has no cache of its own, too`()
        throws
    {
        let server = try TestServer.answering { _ in "text" }
        func load(_ policy: NSURLRequest.CachePolicy, _ method: String, _ own: String?) throws -> String? {
            var request = URLRequest(url: server.url("/a"))
            (request.cachePolicy, request.httpMethod) = (policy, method)
            try onLoopThread { [request] loop in
                let connection = URLConnection(request: request, delegate: Silent(), startImmediately: false)
                connection?.configuration.cache = nil
                connection?.configuration.additionalFields =
                    own.map { [.init(name: "Cache-Control", value: $0)] } ?? []
                connection?.schedule(in: loop, forMode: .default)
                connection?.start()
                loop.runOut()
            }
            return server.requests.last?.value("Cache-Control")
        }
        #expect(try load(.useProtocolCachePolicy, "POST", nil) == nil)
        for method in ["GET", "POST"] {
            #expect(try load(.reloadIgnoringLocalAndRemoteCacheData, method, nil) == "no-cache")
            #expect(try load(.reloadRevalidatingCacheData, method, nil) == "max-age=0")
            #expect(try load(.reloadRevalidatingCacheData, method, "no-store") == "no-store")
        }
    }

    /// Saves what has come as it has come.
    private final class Saver: NSObject, URLDownloadDelegate, Sendable {
        func download(_ download: URLDownload, shouldDecodeSourceDataOfMIMEType encodingType: String) -> Bool
        { false }
    }

    @Test func `UC-54 UC-68 a download that is saved with its codings is not stored`() throws {
        let (server, coded) = try Self.codedServer()
        let store = Store()
        let path = NSTemporaryDirectory() + "/rondo-coded-\(UUID().uuidString)"
        defer { unlink(path) }
        try onLoopThread { loop in
            let download = URLDownload(
                request: URLRequest(url: server.url("/a")), delegate: Saver(), startImmediately: false)
            download.configuration.cache = store.cache
            download.setDestination(path, allowOverwrite: true)
            download.schedule(in: loop, forMode: .default)
            download.start()
            loop.runOut()
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == coded)
        #expect(try Self.get(server.url("/a"), store).text == "the content")
        #expect(server.requests.count == 2)
    }

    @Test func `UC-54 UC-74 without a method of the delegate each response is stored`() throws {
        let server = try Self.counting("Cache-Control: max-age=1000")
        let store = Store()
        let silent = Silent()
        for path in ["/a", "/b", "/c"] {
            try onLoopThread { loop in
                Self.run(URLRequest(url: server.url(path)), silent, store, on: loop)
            }
        }
        for (path, text) in [("/a", "1"), ("/b", "2"), ("/c", "3")] {
            #expect(try Self.get(server.url(path), store).text == text)
        }
        #expect(server.requests.count == 3)
    }

    @Test func `RFC 9110 8.8.3 a tag that is not UTF-8 is not sent back in other bytes`() throws {
        let date = "Tue, 14 Nov 2023 22:13:20 GMT"
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nCache-Control: max-age=0\r\n"
                let validators = "Last-Modified: \(date)\r\nETag: \""
                try peer.send(Array((head + validators).utf8) + [0xFC] + Array("\"\r\n\r\ntext".utf8))
            }
        }
        let store = Store()
        for _ in 0..<2 { #expect(try Self.get(server.url("/a"), store).text == "text") }
        #expect(server.requests.map { $0.value("If-None-Match") } == [nil, nil])
        #expect(server.requests.map { $0.value("If-Modified-Since") } == [nil, date])
    }

    /// Answers "1", "2" and so on, with the given fields; 304 to a request with If-None-Match.
    private static func counting(
        _ fields: String..., status: String = "200 OK", after: String? = nil
    ) throws -> TestServer {
        let count = Mutex(0)
        return try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                if request.value("If-None-Match") != nil, after == nil {
                    try peer.send(
                        "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=100\r\nX-New: yes\r\n\r\n")
                } else if number > 1, let after {
                    if after == "close" { return peer.reset() }
                    try peer.respond(after, body: "sorry")
                } else {
                    try peer.respond(status, fields, body: "\(number)")
                }
            }
        }
    }

    private static let told = ["response 200", "finish"]
    private static let asked = ["response 200", "willCache 1", "finish"]

    // MARK: Storing

    @Test func `UC-53 UC-55 the delegate is asked after the data, a fresh entry makes the same calls`() throws
    {
        let (server, store) = (try Self.counting("Cache-Control: max-age=100"), Store())
        let first = try Self.get(server.url("/a"), store)
        #expect(first.calls == Self.asked && first.text == "1")
        // The same callbacks, from the loop and not inside `start()`, as `get` looks (rule UC-55).
        let second = try Self.get(server.url("/a"), store)
        #expect(second.calls == Self.told && second.text == "1")
        #expect(server.requests.count == 1)
    }

    @Test(arguments: [
        ("Cache-Control: no-store", "200 OK", "GET"), ("Vary: *", "200 OK", "GET"),
        ("Cache-Control: max-age=100", "404 Not Found", "GET"),
        ("Cache-Control: max-age=100", "206 Partial Content", "GET"),
        ("Cache-Control: max-age=100", "200 OK", "POST"),
    ])
    func `UC-53 the delegate is not asked where nothing may be stored`(
        _ field: String, _ status: String, _ method: String
    ) throws {
        let (server, store) = (try Self.counting(field, status: status), Store())
        let calls = try Self.get(server.url("/a"), store) { $0.httpMethod = method }.calls
        #expect(calls == ["response \(status.prefix(3))", "finish"])
        #expect(try Self.get(server.url("/a"), store).text == "2")
    }

    @Test
    func `UC-53 the delegate is not asked about a response larger than a twentieth of the store`() throws {
        for (size, isAsked) in [(1_000, true), (1_001, false)] {
            for isChunked in [true, false] {
                let server = try TestServer { peer in
                    _ = try peer.readRequest()
                    let body = longText(size)
                    if isChunked {
                        try peer.send("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n\r\n")
                        try peer.send("\(String(size, radix: 16))\r\n\(body)\r\n0\r\n\r\n")
                    } else {
                        try peer.respond("200 OK", ["ETag: \"a\""], body: body)
                    }
                    peer.waitForEnd()
                }
                let calls = try Self.get(server.url("/a"), Store(memory: 20_000)).calls
                #expect(calls.contains("willCache \(size)") == isAsked)
                #expect(calls.last == "finish")
            }
        }
    }

    @Test func `UC-54 the delegate's version of a response is stored, or nothing`() throws {
        let (server, store) = (try Self.counting("Cache-Control: max-age=100"), Store())
        let none = try Self.get(server.url("/none"), store, keeper: Keeper { _ in nil })
        #expect(none.calls == Self.asked)
        #expect(try Self.get(server.url("/none"), store).text == "2")
        let changed = Keeper { cached in
            CachedURLResponse(
                response: cached.response, data: Data("changed".utf8), userInfo: ["mine": "yes"],
                storagePolicy: .allowedInMemoryOnly)
        }
        #expect(try Self.get(server.url("/changed"), store, keeper: changed).text == "3")
        #expect(try Self.get(server.url("/changed"), store).text == "changed")
        let kept = store.cache.cachedResponse(for: URLRequest(url: server.url("/changed")))
        #expect(kept?.userInfo?["mine"] as? String == "yes" && kept?.storagePolicy == .allowedInMemoryOnly)
        let forbidden = Keeper { cached in
            CachedURLResponse(response: cached.response, data: cached.data, storagePolicy: .notAllowed)
        }
        _ = try Self.get(server.url("/forbidden"), store, keeper: forbidden)
        #expect(try Self.get(server.url("/forbidden"), store).text == "5")
    }

    @Test func `UC-11 willCacheResponse is called on the delegate queue`() throws {
        let (server, store) = (try Self.counting("Cache-Control: max-age=100"), Store())
        let keeper = Keeper()
        let connection = URLConnection(
            request: URLRequest(url: server.url("/a")), delegate: keeper, startImmediately: false)
        connection?.configuration.cache = store.cache
        connection?.setDelegateQueue(OperationQueue())
        connection?.start()
        try waitFor("the end") { keeper.log.entries.contains("finish") ? () : nil }
        #expect(keeper.log.entries == Self.asked)
        #expect(try Self.get(server.url("/a"), store).text == "1")
    }

    @Test func `UC-73 the cache's key is the whole canonical URL`() throws {
        let (server, store) = (try Self.counting("Cache-Control: max-age=100"), Store())
        let base = "http://127.0.0.1:\(server.port)"
        #expect(try Self.get(url(base), store).text == "1")
        #expect(try Self.get(url(base + "/"), store).text == "1")
        #expect(try Self.get(url("HTTP://127.0.0.1:\(server.port)/#part"), store).text == "1")
        #expect(try Self.get(url(base + "/?a=1"), store).text == "2")
        #expect(try Self.get(url(base + "/?a=2"), store).text == "3")
        #expect(try Self.get(url(base + "/A"), store).text == "4")
        #expect(try Self.get(url(base + "/a"), store).text == "5")
    }

    // MARK: Policies

    @Test func `UC-56 each policy with a fresh entry, a stale one, and none`() throws {
        let expected: [(NSURLRequest.CachePolicy, [String])] = [
            (.useProtocolCachePolicy, ["1", "2", "1"]), (.reloadIgnoringLocalCacheData, ["2", "2", "1"]),
            (.returnCacheDataElseLoad, ["1", "1", "1"]), (.returnCacheDataDontLoad, ["1", "1", "-2000"]),
            (.reloadIgnoringLocalAndRemoteCacheData, ["2", "2", "1"]),
            (.reloadRevalidatingCacheData, ["2", "2", "1"]),
        ]
        for (policy, texts) in expected {
            for (field, text) in zip(["Cache-Control: max-age=100", "Cache-Control: max-age=0"], texts) {
                let (server, store) = (try Self.counting(field), Store())
                _ = try Self.get(server.url("/a"), store)
                #expect(try Self.get(server.url("/a"), store, policy).text == text, "\(policy), \(field)")
            }
            let (server, store) = (try Self.counting("Cache-Control: max-age=100"), Store())
            let (calls, text) = try Self.get(server.url("/a"), store, policy)
            #expect(texts[2] == "-2000" ? calls == ["fail -2000"] : text == texts[2])
            if texts[2] == "-2000" { #expect(server.accepted == 0) }
            let tells = server.requests.first?.value("Cache-Control") == "no-cache"
            #expect(tells == (policy == .reloadIgnoringLocalAndRemoteCacheData))
        }
    }

    @Test func `UC-56 asking again asks the caches on the way too, RFC 9111 5_2_1_1`() throws {
        let (server, store) = (try Self.counting("Cache-Control: max-age=100", "ETag: \"a\""), Store())
        _ = try Self.get(server.url("/a"), store)
        #expect(try Self.get(server.url("/a"), store, .reloadRevalidatingCacheData).text == "1")
        #expect(server.requests.map { $0.value("Cache-Control") } == [nil, "max-age=0"])
        #expect(server.requests.last?.value("If-None-Match") == "\"a\"")
        _ = try Self.get(server.url("/a"), store, .reloadRevalidatingCacheData) {
            $0.setValue("max-age=5", forHTTPHeaderField: "Cache-Control")
        }
        #expect(server.requests.last?.value("Cache-Control") == "max-age=5")
    }

    @Test func `RFC 9111 4 a stored response has its age, and no fields of the connection that it came over`()
        throws
    {
        let server = try Self.counting(
            "Cache-Control: max-age=1000", "Age: 30", "Connection: Hop", "Hop: x", "Keep-Alive: timeout=5",
            "Kept: y")
        let store = Store()
        let recorders = [Recorder(), Recorder()]
        for recorder in recorders {
            try load(server.url("/a"), recorder: recorder) { $0.configuration.cache = store.cache }
        }
        let (first, second) = (try #require(recorders[0].response), try #require(recorders[1].response))
        #expect(first.value(forHTTPHeaderField: "Age") == "30")
        #expect(first.value(forHTTPHeaderField: "Hop") == "x")
        let age = try #require(second.value(forHTTPHeaderField: "Age").flatMap { Int($0) })
        #expect(age >= 30 && age < 1_000)
        for name in ["Connection", "Hop", "Keep-Alive"] {
            #expect(second.value(forHTTPHeaderField: name) == nil)
        }
        #expect(second.value(forHTTPHeaderField: "Kept") == "y" && second.expectedContentLength == 1)
        let kept = store.cache.cachedResponse(for: URLRequest(url: server.url("/a")))
        #expect((kept?.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Hop") == nil)
    }

    @Test func `UC-56 an entry that the program stored by itself is used too`() throws {
        let (server, store) = (try Self.counting("Cache-Control: max-age=100"), Store())
        let request = URLRequest(url: server.url("/mine"))
        let response = try #require(
            HTTPURLResponse(
                url: server.url("/mine"), statusCode: 200, httpVersion: "HTTP/1.1",
                headerFields: ["Content-Type": "text/plain"]))
        store.cache.storeCachedResponse(
            CachedURLResponse(response: response, data: Data("mine".utf8)), for: request)
        #expect(try Self.get(server.url("/mine"), store, .returnCacheDataDontLoad).text == "mine")
        #expect(try Self.get(server.url("/mine"), store).text == "1")
    }

    @Test func `UC-56 a request for the cache only fails without the network if there is no response`() throws
    {
        let (server, store) = (try Self.counting("Cache-Control: max-age=100"), Store())
        let calls = try Self.get(server.url("/a"), store, .returnCacheDataDontLoad) { $0.httpMethod = "POST" }
        #expect(calls.calls == ["fail -2000"] && server.accepted == 0)
    }

    @Test
    func `UC-53 UC-56 a response without freshness is stored for the policies that do not ask the server`()
        throws
    {
        let (server, store) = (try Self.counting("X: y"), Store())
        #expect(try Self.get(server.url("/a"), store).calls == Self.asked)
        #expect(try Self.get(server.url("/a"), store, .returnCacheDataElseLoad).text == "1")
        #expect(try Self.get(server.url("/a"), store, .returnCacheDataDontLoad).text == "1")
        // By HTTP's rules it is stale at once, and nothing can be asked about it.
        #expect(try Self.get(server.url("/a"), store).text == "2")
        #expect(server.requests.last?.value("If-None-Match") == nil)
        #expect(try Self.get(server.url("/a"), store, .returnCacheDataDontLoad).text == "2")
    }

    // MARK: Places in the store

    @Test func `UC-73 URLs that differ in their queries alone are kept side by side`() throws {
        let (server, store) = (try Self.counting("Cache-Control: max-age=100"), Store())
        let paths = ["/a?1", "/a?2", "/a", "/a?3"]
        for _ in 0..<2 {
            for (number, path) in paths.enumerated() {
                #expect(try Self.get(server.url(path), store).text == "\(number + 1)")
            }
        }
        #expect(server.requests.count == 4)
        // The first stands where the program would look for it.
        let first = store.cache.cachedResponse(for: URLRequest(url: server.url("/a?1")))
        #expect(first?.data == Data("1".utf8))
        // An unsafe request makes its own go, and no other.
        for (number, path) in ["/a?1", "/a?3"].enumerated() {
            _ = try Self.get(server.url(path), store) { $0.httpMethod = "POST" }
            #expect(try Self.get(server.url(path), store).text == "\(6 + 2 * number)")
        }
        #expect(try Self.get(server.url("/a?2"), store).text == "2")
        #expect(try Self.get(server.url("/a"), store).text == "3")
    }

    @Test func `RFC 9111 4.1 variants are kept side by side, and go together`() throws {
        let server = try Self.counting("Cache-Control: max-age=100", "Vary: X-Who, X-What")
        let store = Store()
        let asking = { (who: String?, path: String) in
            try Self.get(server.url(path), store) { $0.setValue(who, forHTTPHeaderField: "X-Who") }.text
        }
        for path in ["/a", "/a?q"] {
            let first = server.requests.count
            for _ in 0..<2 {
                #expect(try asking("a", path) == "\(first + 1)")
                #expect(try asking("b", path) == "\(first + 2)")
                #expect(try asking(nil, path) == "\(first + 3)")
                #expect(try asking("", path) == "\(first + 4)")
            }
        }
        #expect(server.requests.count == 8)
        _ = try Self.get(server.url("/a"), store) { $0.httpMethod = "PUT" }
        #expect(try asking("b", "/a") == "10")
        #expect(try asking("a", "/a") == "11")
        #expect(try asking("b", "/a") == "10")
        #expect(try asking("b", "/a?q") == "6")
        // Variants that were forgotten do not come back with the next base, whose names for Vary are the same.
        _ = try Self.get(server.url("/a"), store) { $0.httpMethod = "PUT" }
        #expect(try asking("b", "/a") == "13")
        #expect(try asking("a", "/a") == "14")
    }

    @Test func `a variant is asked about by its own tag, and renewed in its own place`() throws {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                let who = request.value("X-Who") ?? ""
                if request.value("If-None-Match") == "\"\(who)\"" {
                    try peer.send("HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=100\r\n\r\n")
                } else {
                    try peer.respond(
                        "200 OK", ["Cache-Control: max-age=0", "Vary: X-Who", "ETag: \"\(who)\""], body: who)
                }
            }
        }
        let store = Store()
        for count in [2, 4, 4] {
            for who in ["a", "b"] {
                let text = try Self.get(server.url("/a"), store) {
                    $0.setValue(who, forHTTPHeaderField: "X-Who")
                }.text
                #expect(text == who)
            }
            #expect(server.requests.count == count)
        }
    }

    @Test func `loads go on when the store makes room for responses that were stored again`() throws {
        let count = Mutex(0)
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                try peer.respond("200 OK", ["Cache-Control: max-age=100"], body: longText(400 + number))
            }
        }
        let store = Store(memory: 12_000)
        for path in ["/a", "/b"] {
            for _ in 0..<3 { _ = try Self.get(server.url(path), store, .reloadIgnoringLocalCacheData) }
        }
        for number in 0..<30 { _ = try Self.get(server.url("/\(number)"), store) }
        let kept = server.requests.count
        _ = try Self.get(server.url("/29"), store)
        #expect(server.requests.count == kept)
    }

    // MARK: Validation, Vary, errors, invalidation

    @Test func `RFC 9111 4.3 a stale entry is asked about, and a 304 renews it`() throws {
        let server = try Self.counting("Cache-Control: max-age=0", "ETag: \"a\"", "Content-Type: a/b")
        let store = Store()
        #expect(try Self.get(server.url("/a"), store).text == "1")
        let second = try Self.get(server.url("/a"), store)
        #expect(second.calls == Self.told && second.text == "1")
        #expect(server.requests.last?.value("If-None-Match") == "\"a\"")
        let kept = store.cache.cachedResponse(for: URLRequest(url: server.url("/a")))
        let response = kept?.response as? HTTPURLResponse
        #expect(response?.value(forHTTPHeaderField: "X-New") == "yes" && response?.mimeType == "a/b")
        // Fresh by now, and on one connection.
        #expect(try Self.get(server.url("/a"), store).text == "1")
        #expect(server.requests.count == 2)
    }

    @Test(arguments: ["Cache-Control: no-store", "Vary: *"])
    func `RFC 9111 3 a response whose 304 forbids storing is used once more, and goes`(field: String) throws {
        let server = try TestServer { peer in
            while true {
                if try peer.readRequest().value("If-None-Match") != nil {
                    try peer.send("HTTP/1.1 304 Not Modified\r\n\(field)\r\n\r\n")
                } else {
                    let fields = ["Cache-Control: max-age=0", "ETag: \"a\""]
                    try peer.respond("200 OK", fields, body: "text")
                }
            }
        }
        let store = Store()
        #expect(try Self.get(server.url("/a"), store).text == "text")
        #expect(try Self.get(server.url("/a"), store).text == "text")
        #expect(store.cache.cachedResponse(for: URLRequest(url: server.url("/a"))) == nil)
        #expect(try Self.get(server.url("/a"), store).text == "text")
        #expect(server.requests.map { $0.value("If-None-Match") } == [nil, "\"a\"", nil])
    }

    @Test func `UC-54 a response that the delegate has changed stays so after a 304`() throws {
        let server = try Self.counting("Cache-Control: max-age=0", "ETag: \"a\"", "X-Old: server", "Age: 3")
        let store = Store()
        let changed = Keeper { cached in
            guard let response = cached.response as? HTTPURLResponse, let url = response.url else {
                return nil
            }
            var fields = response.allHeaderFields as? [String: String] ?? [:]
            fields["X-Old"] = "delegate"
            fields["X-Mine"] = "yes"
            let mine = HTTPURLResponse(url: url, statusCode: 203, httpVersion: nil, headerFields: fields)
            return CachedURLResponse(response: mine ?? response, data: Data("mine".utf8))
        }
        _ = try Self.get(server.url("/a"), store, keeper: changed)
        #expect(try Self.get(server.url("/a"), store).calls == ["response 203", "finish"])
        #expect(server.requests.last?.value("If-None-Match") == "\"a\"")
        let kept = store.cache.cachedResponse(for: URLRequest(url: server.url("/a")))
        let response = try #require(kept?.response as? HTTPURLResponse)
        let names = ["X-Old", "X-Mine", "X-New", "Cache-Control", "ETag", "Age"]
        #expect(
            names.map { response.value(forHTTPHeaderField: $0) }
                == ["delegate", "yes", "yes", "max-age=100", "\"a\"", nil])
        #expect(response.statusCode == 203 && response.expectedContentLength == 4)
        // Fresh by now, by what the server has said.
        let last = try Self.get(server.url("/a"), store)
        #expect(last.calls == ["response 203", "finish"] && last.text == "mine")
        #expect(server.requests.count == 2)
    }

    /// Not all that is kept is a response by HTTP: what the delegate puts there is delivered as it is.
    @Test func `UC-54 a response that the delegate has replaced outlives a 304`() throws {
        let server = try Self.counting("Cache-Control: max-age=0", "ETag: \"a\"")
        let store = Store()
        let plain = Keeper { cached in
            let url = cached.response.url ?? server.url()
            return CachedURLResponse(
                response: URLResponse(
                    url: url, mimeType: "mine/own", expectedContentLength: 4, textEncodingName: nil),
                data: Data("mine".utf8))
        }
        _ = try Self.get(server.url("/a"), store, keeper: plain)
        for _ in 0..<2 {
            let again = try Self.get(server.url("/a"), store)
            #expect(again.calls == ["response 0", "finish"] && again.text == "mine")
        }
        #expect(server.requests.count == 2)
        let kept = store.cache.cachedResponse(for: URLRequest(url: server.url("/a")))
        #expect(kept?.response.mimeType == "mine/own")
    }

    @Test func `RFC 9111 3 a request with the program's own condition or range bypasses the cache`() throws {
        let (server, store) = (try Self.counting("Cache-Control: max-age=100", "ETag: \"a\""), Store())
        _ = try Self.get(server.url("/a"), store)
        let own = try Self.get(server.url("/a"), store) {
            $0.setValue("\"a\"", forHTTPHeaderField: "If-None-Match")
        }
        #expect(own.calls == ["response 304", "finish"])
        let part = try Self.get(server.url("/a"), store) {
            $0.setValue("bytes=0-0", forHTTPHeaderField: "Range")
        }
        #expect(part.calls == Self.told && part.text == "3")
    }

    @Test func `RFC 9111 4.1 Vary is honoured, also for what the connection adds`() throws {
        let server = try Self.counting("Cache-Control: max-age=100", "Vary: X-Who, Accept-Encoding")
        let store = Store()
        let asking = { (who: String) in
            try Self.get(server.url("/a"), store) { $0.setValue(who, forHTTPHeaderField: "X-Who") }.text
        }
        #expect(try asking("a") == "1")
        #expect(try asking("a") == "1")
        #expect(try asking("b") == "2")
        #expect(try asking("b") == "2")
    }

    @Test(arguments: ["503 Busy", "close"])
    func `RFC 5861 4 a stale entry stands in for a server that fails`(_ failure: String) throws {
        let server = try Self.counting(
            "Cache-Control: max-age=0, stale-if-error=100", "ETag: \"a\"", after: failure)
        let store = Store()
        #expect(try Self.get(server.url("/a"), store).text == "1")
        let second = try Self.get(server.url("/a"), store)
        #expect(second.calls == Self.told && second.text == "1")
        #expect(server.requests.count >= 2)
    }

    /// Time passes by a clock that the server moves until the load has ended.
    @Test(arguments: [false, true])
    func `RFC 5861 4 a stale entry stands in for a silent server, not for a load that is too long`(
        isLimited: Bool
    ) throws {
        let (clock, store) = (ManualClock(advancesAutomatically: false), Store())
        let keeper = Keeper()
        let server = try TestServer { peer in
            while true {
                guard try peer.readRequest().value("If-None-Match") != nil else {
                    let fields = ["ETag: \"a\"", "Cache-Control: max-age=0, stale-if-error=86400"]
                    try peer.respond("200 OK", fields, body: "old")
                    continue
                }
                for _ in 0..<1_000 where !keeper.ended.isOpen(within: 0.01) { clock.advance(by: 60.1) }
                // The end of the connection is a reason for `stale-if-error` too.
                if !keeper.ended.isOpen(within: 0) { Issue.record("the clock did not end the load") }
                return
            }
        }
        #expect(try Self.get(server.url("/a"), store).text == "old")
        try onLoopThread { loop in
            clock.attach(to: loop)
            let request = URLRequest(url: server.url("/a"))
            let connection = URLConnection(request: request, delegate: keeper, startImmediately: false)
            connection?.configuration.cache = store.cache
            if isLimited { connection?.configuration.totalTimeout = 30 }
            connection?.schedule(in: loop, forMode: .default)
            connection?.start()
            _ = loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false)
        }
        #expect(keeper.log.entries == (isLimited ? ["fail -1001"] : Self.told))
        #expect(String(decoding: keeper.body.value, as: UTF8.self) == (isLimited ? "" : "old"))
        #expect(server.requests.count == 2)
    }

    /// Has no credential, and says so.
    private final class Refusing: NSObject, URLConnectionDataDelegate, Sendable {
        let recorder = Recorder()

        func connection(
            _ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge
        ) {
            challenge.sender?.cancel(challenge)
        }

        func connection(_ connection: URLConnection, didReceive response: URLResponse) {
            recorder.connection(connection, didReceive: response)
        }

        func connectionDidFinishLoading(_ connection: URLConnection) {
            recorder.connectionDidFinishLoading(connection)
        }

        func connection(_ connection: URLConnection, didFailWithError error: any Error) {
            recorder.connection(connection, didFailWithError: error)
        }
    }

    @Test func `RFC 5861 4 no entry stands in for what the delegate has refused`() throws {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.value("If-None-Match") == nil {
                    let fields = ["ETag: \"a\"", "Cache-Control: max-age=0, stale-if-error=100"]
                    try peer.respond("200 OK", fields, body: "old")
                } else {
                    try peer.respond("401 Who", ["WWW-Authenticate: Basic realm=\"r\""], body: "who?")
                }
            }
        }
        let (store, delegate) = (Store(), Refusing())
        #expect(try Self.get(server.url("/a"), store).text == "old")
        try onLoopThread { loop in
            let request = URLRequest(url: server.url("/a"))
            let connection = URLConnection(request: request, delegate: delegate, startImmediately: false)
            connection?.configuration.cache = store.cache
            connection?.start()
            loop.runOut()
        }
        #expect(delegate.recorder.calls == ["fail -1012"])
        #expect(server.requests.count == 2)
    }

    @Test func `RFC 5861 3 a stale entry answers while it is brought up to date`() throws {
        let server = try Self.counting("Cache-Control: max-age=0, stale-while-revalidate=100", "ETag: \"a\"")
        let store = Store()
        _ = try Self.get(server.url("/a"), store)
        #expect(try Self.get(server.url("/a"), store).text == "1")
        try waitFor("the refresh") { server.requests.count == 2 ? () : nil }
        #expect(server.requests.last?.value("If-None-Match") == "\"a\"")
        try waitFor("the renewed entry") { () -> Void? in
            let kept = store.cache.cachedResponse(for: URLRequest(url: server.url("/a")))
            let response = kept?.response as? HTTPURLResponse
            return response?.value(forHTTPHeaderField: "X-New") == "yes" ? () : nil
        }
    }

    @Test
    func
        `RFC 5861 3 UC-33 the renewal of what redirects led to gets nothing that is meant for the first origin`()
        throws
    {
        let target = try Self.counting("Cache-Control: max-age=0, stale-while-revalidate=100")
        let location = target.url("/b").absoluteString
        let first = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("302 Found", ["Location: \(location)", "Connection: close"])
        }
        let store = Store()
        for _ in 1...2 {
            let keeper = Keeper()
            try onLoopThread { loop in
                let request = URLRequest(url: first.url("/a"))
                let connection = URLConnection(request: request, delegate: keeper, startImmediately: false)
                connection?.configuration.cache = store.cache
                connection?.configuration.additionalFields = [
                    .init(name: "Authorization", value: "secret"), .init(name: "X-Own", value: "1"),
                ]
                connection?.start()
                loop.runOut()
            }
            #expect(keeper.log.entries.last == "finish")
        }
        try waitFor("the refresh") { target.requests.count == 2 ? () : nil }
        #expect(first.requests.map { $0.value("Authorization") } == ["secret", "secret"])
        #expect(target.requests.map { $0.value("Authorization") } == [nil, nil])
        #expect(target.requests.map { $0.value("X-Own") } == ["1", "1"])
    }

    /// Loads what a server first answers with "old", reloads what it then answers otherwise, and loads once more.
    private static func outdating(
        _ status: String, _ fields: [String], body: String, keeper: Keeper = Keeper()
    ) throws -> (text: String, requests: Int) {
        let isOld = Box(true)
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                if isOld.value {
                    try peer.respond("200 OK", ["Cache-Control: max-age=1000"], body: "old")
                } else if fields.contains("Transfer-Encoding: chunked") {
                    let size = String(body.utf8.count, radix: 16)
                    try peer.send(
                        "HTTP/1.1 \(status)\r\n\(fields.joined(separator: "\r\n"))\r\n\r\n"
                            + "\(size)\r\n\(body)\r\n0\r\n\r\n")
                } else {
                    try peer.respond(status, fields, body: body)
                }
            }
        }
        let store = Store()
        #expect(try get(server.url("/a"), store).text == "old")
        isOld.value = false
        let reloaded = try get(server.url("/a"), store, .reloadIgnoringLocalCacheData, keeper: keeper)
        #expect(reloaded.text == body)
        let text = try get(server.url("/a"), store).text
        return (text, server.requests.count)
    }

    @Test(
        arguments: [
            ("200 OK", ["Cache-Control: no-store"], 3), ("404 Not Found", [], 3), ("410 Gone", [], 3),
            // More than a twentieth of the store, announced and not.
            ("200 OK", ["Cache-Control: max-age=1000"], 250_000),
            ("200 OK", ["Cache-Control: max-age=1000", "Transfer-Encoding: chunked"], 250_000),
        ] as [(String, [String], Int)])
    func `RFC 9111 4 a newer response that is not stored is not answered by the older one`(
        status: String, fields: [String], size: Int
    ) throws {
        let body = longText(size)
        let (text, requests) = try Self.outdating(status, fields, body: body)
        #expect(text == body)
        #expect(requests == 3)
    }

    @Test
    func `UC-54 RFC 9111 4 a newer response that the delegate keeps out removes the older one`() throws {
        let answers: [@Sendable (CachedURLResponse) -> CachedURLResponse?] = [
            { _ in nil },
            { CachedURLResponse(response: $0.response, data: $0.data, storagePolicy: .notAllowed) },
        ]
        for answer in answers {
            let (text, requests) = try Self.outdating(
                "200 OK", ["Cache-Control: max-age=1000"], body: "new", keeper: Keeper(answer))
            #expect(text == "new")
            #expect(requests == 3)
        }
    }

    /// Notes which threads remove responses.
    ///
    /// `@unchecked Sendable`, as its superclass is: what it adds has a lock of its own.
    private final class NotingCache: URLCache, @unchecked Sendable {
        let removers = Box<[pthread_t]>([])

        override func removeCachedResponse(for request: URLRequest) {
            removers.mutate { $0.append(pthread_self()) }
            super.removeCachedResponse(for: request)
        }
    }

    @Test(arguments: ["GET", "POST"])
    func `RFC 9111 4 no run loop removes an older response from a URLCache of the program`(method: String)
        throws
    {
        let directive = Box("max-age=1000")
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("200 OK", ["Cache-Control: \(directive.value)"], body: "text")
            }
        }
        let cache = NotingCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        var request = URLRequest(url: server.url("/a"))
        request.cachePolicy = .reloadIgnoringLocalCacheData
        try onLoopThread { [request] loop in
            for next in ["no-store", ""] {
                var sent = request
                if next.isEmpty { sent.httpMethod = method }
                // Removals do not come to its thread only because it stores something.
                #expect(throws: Never.self) {
                    try waitFor("the writer") { CacheWriter.shared.isBusy ? nil : () }
                }
                let connection = URLConnection(request: sent, delegate: Recorder(), startImmediately: false)
                connection?.configuration.cache = cache
                connection?.start()
                #expect(loop.runOut() == .finished)
                #expect((cache.cachedResponse(for: request) == nil) == next.isEmpty)
                directive.value = next
            }
            #expect(!cache.removers.value.isEmpty)
            #expect(!cache.removers.value.contains(pthread_self()))
        }
    }

    @Test func `RFC 9111 4 an error of the server leaves the stored response`() throws {
        let (text, requests) = try Self.outdating("503 Busy", [], body: "sorry")
        #expect(text == "old")
        #expect(requests == 2)
    }

    @Test(arguments: ["ETag", "Content-Length"])
    func `RFC 9111 4.3.5 a response to HEAD that differs makes the entry go`(difference: String) throws {
        let body = Box("old")
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                let text = body.value
                var head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\nVary: Accept-Encoding\r\n"
                if difference == "ETag" { head += "ETag: \"\(text)\"\r\n" }
                head += "Content-Length: \(text.utf8.count)\r\n\r\n"
                try peer.send(request.method == "HEAD" ? head : head + text)
            }
        }
        let store = Store()
        #expect(try Self.get(server.url("/a"), store).text == "old")
        for (text, count) in [("old", 2), (difference == "ETag" ? "new" : "newer", 4)] {
            body.value = text
            _ = try Self.get(server.url("/a"), store) { $0.httpMethod = "HEAD" }
            #expect(try Self.get(server.url("/a"), store).text == text)
            #expect(server.requests.count == count)
        }
    }

    @Test func `RFC 9111 4.4 an unsafe request makes the entry go`() throws {
        let (server, store) = (try Self.counting("Cache-Control: max-age=100"), Store())
        _ = try Self.get(server.url("/a"), store)
        _ = try Self.get(server.url("/a"), store) { $0.httpMethod = "DELETE" }
        #expect(try Self.get(server.url("/a"), store).text == "3")
    }

    @Test func `only-if-cached fails where nothing is kept`() throws {
        let (server, store) = (try Self.counting("Cache-Control: max-age=100"), Store())
        let asking = {
            try Self.get(server.url("/a"), store) {
                $0.setValue("only-if-cached", forHTTPHeaderField: "Cache-Control")
            }
        }
        #expect(try asking().calls == ["fail -2000"])
        _ = try Self.get(server.url("/a"), store)
        #expect(try asking().text == "1")
    }

    @Test func `decoded content is kept decoded`() throws {
        let encoded: [UInt8] = [
            0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 2, 0xFF, 0xCB, 0xCF, 6, 0, 0x47, 0xDD, 0xDC, 0x79, 2, 0, 0, 0,
        ]
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            let head =
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nCache-Control: max-age=100\r\n"
                + "Content-Length: \(encoded.count)\r\n\r\n"
            try peer.send(Array(head.utf8) + encoded)
            peer.waitForEnd()
        }
        let store = Store()
        #expect(try Self.get(server.url("/a"), store).text == "ok")
        #expect(try Self.get(server.url("/a"), store).text == "ok")
        #expect(server.accepted == 1)
    }

    /// A piece of a body that the delegate gets shows a part of the memory that it was received in, 128 KiB: a cache
    /// that kept it would take several times what it counts.
    @Test func `a store keeps no more memory than the response has`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("200 OK", ["Cache-Control: max-age=100"], body: longText(20_000))
            peer.waitForEnd()
        }
        let store = Store()
        let recorder = Recorder()
        try load(server.url(), recorder: recorder) { $0.configuration.cache = store.cache }
        let kept = try #require(store.cache.cachedResponse(for: URLRequest(url: server.url()))?.data)
        #expect(kept == recorder.body)
        let starts = (recorder.pieces + [kept]).map { data in data.withUnsafeBytes { $0.baseAddress } }
        #expect(Set(starts).count == starts.count)
    }

    /// Answers each request with something that may be stored.
    private static func storable() throws -> TestServer {
        try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                try peer.respond("200 OK", ["Cache-Control: max-age=100"], body: request.target)
            }
        }
    }

    @Test func `UC-54 a loop serves others while a response is stored, and the end waits until it is there`()
        throws
    {
        let server = try Self.storable()
        let cache = WaitingCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        let isThere = Box<Bool?>(nil)
        let request = URLRequest(url: server.url("/a"))
        let recorder = Recorder { call, _ in
            if call == .finish { isThere.value = cache.cachedResponse(for: request) != nil }
        }
        let other = Recorder()
        try onLoopThread { loop in
            let connection = URLConnection(request: request, delegate: recorder, startImmediately: false)
            connection?.configuration.cache = cache
            connection?.start()
            #expect(loop.run { cache.began.isOpen })
            let second = URLConnection(
                request: URLRequest(url: server.url("/b")), delegate: other, startImmediately: false)
            second?.configuration.cache = nil
            second?.start()
            #expect(loop.run { other.isDone })
            #expect(recorder.calls == ["response 200", "data"])
            cache.mayGoOn.open()
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(isThere.value == true)
        #expect(other.calls == ["response 200", "data", "finish"])
    }

    @Test func `UC-55 a response that is being stored is already used`() throws {
        let server = try Self.storable()
        let cache = WaitingCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        let target = server.url("/a")
        let recorders = [Recorder(), Recorder()]
        try onLoopThread { loop in
            let begin = { (recorder: Recorder) in
                let connection = URLConnection(
                    request: URLRequest(url: target), delegate: recorder, startImmediately: false)
                connection?.configuration.cache = cache
                connection?.start()
            }
            begin(recorders[0])
            #expect(loop.run { cache.began.isOpen })
            begin(recorders[1])
            #expect(loop.run { recorders[1].isDone })
            cache.mayGoOn.open()
            #expect(loop.runOut() == .finished)
        }
        #expect(recorders.map(\.text) == ["/a", "/a"])
        #expect(server.requests.count == 1)
    }

    /// A load's miss is remembered for a moment only.
    @Test func `UC-54 a load finds what was stored, also if another one has missed it meanwhile`() throws {
        let server = try Self.storable()
        let cache = WaitingCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        let recorders = (0..<4).map { _ in Recorder() }
        try onLoopThread { loop in
            let begin = { (number: Int, path: String) -> URLConnection? in
                let connection = URLConnection(
                    request: URLRequest(url: server.url(path)), delegate: recorders[number],
                    startImmediately: false)
                connection?.configuration.cache = cache
                connection?.start()
                return connection
            }
            _ = begin(0, "/a")
            #expect(loop.run { cache.began.isOpen })
            _ = begin(1, "/b")
            #expect(loop.run { recorders[1].calls.last == "data" })
            // Its answer is on its way to the cache by then.
            for _ in 0..<20 { _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false) }
            let third = begin(2, "/b")
            #expect(loop.run { server.requests.count == 3 })
            third?.cancel()
            cache.mayGoOn.open()
            #expect(loop.runOut() == .finished)
            _ = begin(3, "/b")
            #expect(loop.runOut() == .finished)
        }
        #expect(recorders.map(\.isDone) == [true, true, false, true])
        #expect(server.requests.count == 3)
    }

    @Test func `UC-56 a response that waits to be stored does not outlive what makes it invalid`() throws {
        let server = try Self.storable()
        let cache = WaitingCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        var post = URLRequest(url: server.url("/b"))
        post.httpMethod = "POST"
        let requests = [URLRequest(url: server.url("/a")), URLRequest(url: server.url("/b")), post]
        let recorders = requests.map { _ in Recorder() }
        try onLoopThread { loop in
            for (request, recorder) in zip(requests, recorders) {
                let connection = URLConnection(request: request, delegate: recorder, startImmediately: false)
                connection?.configuration.cache = cache
                connection?.start()
                #expect(loop.run { recorder.calls.contains("data") && cache.began.isOpen })
            }
            cache.mayGoOn.open()
            #expect(loop.runOut() == .finished)
        }
        #expect(recorders.map(\.isDone) == [true, true, true])
        #expect(cache.cachedResponse(for: requests[0]) != nil)
        #expect(cache.cachedResponse(for: requests[1]) == nil)
    }

    @Test func `UC-54 a load that is cancelled before it is stored does not keep the next one out`() throws {
        let server = try Self.storable()
        let cache = WaitingCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        let recorders = (0..<3).map { _ in Recorder() }
        try onLoopThread { loop in
            let begin = { (path: String, recorder: Recorder) -> URLConnection? in
                var request = URLRequest(url: server.url(path))
                request.cachePolicy = .reloadIgnoringLocalCacheData
                let connection = URLConnection(request: request, delegate: recorder, startImmediately: false)
                connection?.configuration.cache = cache
                connection?.start()
                #expect(loop.run { recorder.calls.contains("data") })
                return connection
            }
            _ = begin("/a", recorders[0])
            begin("/b", recorders[1])?.cancel()
            // While the first is still being stored: the third finds that the second has it stored.
            _ = begin("/b", recorders[2])
            cache.mayGoOn.open()
            #expect(loop.runOut() == .finished)
        }
        #expect(recorders.map(\.isDone) == [true, false, true])
        #expect(cache.cachedResponse(for: URLRequest(url: server.url("/b"))) != nil)
    }

    /// Notes about caches are kept by the caches' addresses.
    @Test func `UC-54 a cache that has the address of one that has gone keeps what it is given`() throws {
        let server = try Self.storable()
        for _ in 0..<20 {
            let store = Store()
            try load(server.url("/a")) { $0.configuration.cache = store.cache }
            #expect(store.cache.cachedResponse(for: URLRequest(url: server.url("/a"))) != nil)
        }
    }

    @Test func `UC-58 the time that storing takes is not the server's, and the end is not lost`() throws {
        let server = try Self.storable()
        let cache = WaitingCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        let recorder = Recorder()
        let request = URLRequest(url: server.url("/a"))
        let clock = ManualClock(advancesAutomatically: false)
        try onLoopThread { loop in
            clock.attach(to: loop)
            let connection = URLConnection(request: request, delegate: recorder, startImmediately: false)
            connection?.configuration.cache = cache
            connection?.start()
            Thread.detachNewThread {
                do { try cache.began.wait() } catch { Issue.record(error) }
                // More than the timeout, again and again, before the store has ended and while it does.
                for step in 0..<20 {
                    clock.advance(by: 60.1)
                    if step == 10 { cache.mayGoOn.open() }
                }
            }
            #expect(loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false) == .finished)
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    @Test func `UC-17 a load that is cancelled while its response is stored makes no call any more`() throws {
        let server = try Self.storable()
        let cache = WaitingCache(memoryCapacity: 1 << 22, diskCapacity: 0, diskPath: nil)
        let recorder = Recorder()
        try onLoopThread { loop in
            let connection = URLConnection(
                request: URLRequest(url: server.url("/a")), delegate: recorder, startImmediately: false)
            connection?.configuration.cache = cache
            connection?.start()
            #expect(loop.run { cache.began.isOpen })
            connection?.cancel()
            #expect(loop.runOut() == .finished)
            cache.mayGoOn.open()
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.calls == ["response 200", "data"])
    }

    @Test func `an entry outlives the store's memory, on the disk`() throws {
        let path = NSTemporaryDirectory() + "/rondo-cache-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let server = try Self.counting("Cache-Control: max-age=100", "Vary: X-Who")
        _ = try Self.get(server.url("/a"), Store(disk: 1 << 22, path: path))
        #expect(try Self.get(server.url("/a"), Store(disk: 1 << 22, path: path)).text == "1")
    }
}

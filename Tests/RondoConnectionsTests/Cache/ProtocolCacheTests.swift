import Rondo
import RondoTestSupport
import Testing

/// Loads by a protocol of the program, and the cache: `rondo-cached://policy/path`, whose host is the storage policy.
private final class CachedProtocol: URLProtocol {
    /// Whether the protocol takes the cache's response for valid.
    static let isValid = Box(true)
    static let log = Box<[String]>([])
    static let count = Box(0)

    override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "rondo-cached" }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let client, let url = request.url else { return }
        let note = cachedResponse == nil ? "loads" : "has it"
        Self.log.mutate { $0.append(note) }
        if let cachedResponse, Self.isValid.value {
            client.urlProtocol(self, cachedResponseIsValid: cachedResponse)
            // What comes after that is of no interest.
            client.urlProtocol(self, didLoad: Data("more".utf8))
            client.urlProtocolDidFinishLoading(self)
            return
        }
        let policies: [String: URLCache.StoragePolicy] = [
            "allowed": .allowed, "memory": .allowedInMemoryOnly, "no": .notAllowed, "error": .allowed,
        ]
        let response = HTTPURLResponse(
            url: url, statusCode: url.host == "error" ? 404 : 200, httpVersion: "HTTP/1.1", headerFields: nil)
        guard let response else { return }
        client.urlProtocol(
            self, didReceive: response, cacheStoragePolicy: policies[url.host ?? ""] ?? .notAllowed)
        let number = Self.count.mutate { count in
            count += 1
            return count
        }
        client.urlProtocol(self, didLoad: Data("load ".utf8))
        client.urlProtocol(self, didLoad: Data("\(number)".utf8))
        client.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}

@Suite(.timeLimit(.minutes(5)), .leavesNoConnections, .serialized, .eachKindOfCache) struct ProtocolCacheTests
{
    private final class Keeper: NSObject, URLConnectionDataDelegate, Sendable {
        let log = EventLog()
        let body = Box(Data())

        func connection(_ connection: URLConnection, didReceive data: Data) {
            body.mutate { $0.append(data) }
        }

        func connection(
            _ connection: URLConnection, willCacheResponse cachedResponse: CachedURLResponse
        ) -> CachedURLResponse? {
            log.note("willCache \(cachedResponse.data.count) \(cachedResponse.storagePolicy.rawValue)")
            return cachedResponse
        }

        func connectionDidFinishLoading(_ connection: URLConnection) { log.note("finish") }

        func connection(_ connection: URLConnection, didFailWithError error: any Error) {
            log.note("fail \((error as? URLError)?.errorCode ?? 0)")
        }
    }

    /// `@unchecked Sendable`: URLCache has a lock of its own.
    private final class Store: @unchecked Sendable {
        let cache = CacheKind.current.make(
            memory: 1 << 20, disk: 0, path: NSTemporaryDirectory() + "/rondo-cache-\(UUID().uuidString)")
    }

    private static func get(
        _ text: String, _ store: Store, _ policy: NSURLRequest.CachePolicy = .useProtocolCachePolicy,
        method: String = "GET"
    ) throws -> (calls: [String], text: String) {
        var request = URLRequest(url: url(text))
        request.cachePolicy = policy
        request.httpMethod = method
        let keeper = Keeper()
        try onLoopThread { [request] loop in
            let connection = URLConnection(request: request, delegate: keeper, startImmediately: false)
            connection?.configuration.cache = store.cache
            connection?.start()
            loop.runOut()
        }
        return (keeper.log.entries, String(decoding: keeper.body.value, as: UTF8.self))
    }

    private static func registered(_ body: (Store) throws -> Void) throws {
        URLConnection.registerProtocol(CachedProtocol.self)
        CachedProtocol.log.value = []
        CachedProtocol.count.value = 0
        CachedProtocol.isValid.value = true
        defer { URLConnection.unregisterProtocol(CachedProtocol.self) }
        try body(Store())
    }

    @Test func `UC-53 UC-66 a response that a protocol allows is stored, and passed to it the next time`()
        throws
    {
        try Self.registered { (store: Store) throws in
            let first = try Self.get("rondo-cached://allowed/a", store)
            #expect(first.calls == ["willCache 6 0", "finish"] && first.text == "load 1")
            let second = try Self.get("rondo-cached://allowed/a", store)
            #expect(second.calls == ["finish"] && second.text == "load 1")
            CachedProtocol.isValid.value = false
            let third = try Self.get("rondo-cached://allowed/a", store)
            #expect(third.calls == ["willCache 6 0", "finish"] && third.text == "load 2")
            #expect(CachedProtocol.log.value == ["loads", "has it", "has it"])
            // Another query is another response.
            #expect(try Self.get("rondo-cached://allowed/a?b", store).text == "load 3")
            CachedProtocol.isValid.value = true
            #expect(try Self.get("rondo-cached://allowed/a", store).text == "load 2")
            #expect(try Self.get("rondo-cached://allowed/a?b", store).text == "load 3")
        }
    }

    @Test
    func `UC-53 the delegate is not asked where a protocol does not allow it, or the response is an error`()
        throws
    {
        try Self.registered { (store: Store) throws in
            for host in ["no", "error"] {
                for text in ["load", "load"] {
                    let got = try Self.get("rondo-cached://\(host)/a", store)
                    #expect(got.calls == ["finish"] && got.text.hasPrefix(text))
                }
            }
            #expect(CachedProtocol.log.value == ["loads", "loads", "loads", "loads"])
        }
    }

    @Test func `UC-53 the cache is not used for a request that a protocol loads`() throws {
        try Self.registered { (store: Store) throws in
            let address = "rondo-cached://allowed/a"
            #expect(try Self.get(address, store).text == "load 1")
            let post = try Self.get(address, store, method: "POST")
            #expect(post.calls == ["finish"] && post.text == "load 2")
            #expect(try Self.get(address, store).text == "load 1")
            #expect(
                try Self.get(address, store, .returnCacheDataDontLoad, method: "POST").calls == [
                    "fail -2000"
                ])
            #expect(CachedProtocol.log.value == ["loads", "loads", "has it"])
        }
    }

    @Test func `UC-54 the storage policy is the protocol's`() throws {
        try Self.registered { (store: Store) throws in
            #expect(try Self.get("rondo-cached://memory/a", store).calls == ["willCache 6 1", "finish"])
        }
    }

    @Test func `UC-56 the policies hold for a protocol's loads`() throws {
        try Self.registered { (store: Store) throws in
            let address = "rondo-cached://allowed/a"
            #expect(try Self.get(address, store, .returnCacheDataDontLoad).calls == ["fail -2000"])
            #expect(try Self.get(address, store, .returnCacheDataElseLoad).text == "load 1")
            #expect(try Self.get(address, store, .returnCacheDataElseLoad).text == "load 1")
            #expect(try Self.get(address, store, .returnCacheDataDontLoad).text == "load 1")
            #expect(CachedProtocol.log.value == ["loads"])
            #expect(try Self.get(address, store, .reloadIgnoringLocalCacheData).text == "load 2")
            #expect(try Self.get(address, store, .reloadRevalidatingCacheData).text == "load 2")
            #expect(CachedProtocol.log.value == ["loads", "loads", "has it"])
        }
    }
}

import Rondo
import RondoHTTP
import RondoTestSupport
import Testing

@testable import RondoConnections
@testable import RondoCore

/// Tests which responses are not written to a cache of the program's, since they were written a moment ago.
@Suite struct ForeignStoreTests {
    private enum Answer { case write, isWritten, nothing }

    /// Asks what is to be done about a response.
    private struct Asker {
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)

        func callAsFunction(
            _ text: String, _ head: ResponseHead, path: String = "/a", to fields: [(String, String)] = [],
            isChanged: Bool = false, isHeldUp: Bool = false
        ) throws -> Answer {
            let url = try #require(URL(string: "http://host.example" + path))
            let (data, fields) = (Data(text.utf8), HeaderFields(fields))
            let response = URLResponse(
                url: url, mimeType: nil, expectedContentLength: data.count, textEncodingName: nil)
            var received = ReceivedResponse(
                head: head, requestFields: fields, requestedAt: Date(), receivedAt: Date(), content: data,
                response: response, bodyLength: nil)
            received.isChanged = isChanged
            let decision = ForeignStore(cache: cache).store(received, for: LoadRequest(URLRequest(url: url)))
            switch decision {
            case .write(let write):
                if !isHeldUp { write.noteAsWritten() }
                return .write
            case .isWritten: return .isWritten
            case .nothing: return .nothing
            }
        }
    }

    private func head(_ fields: (String, String)...) -> ResponseHead {
        ResponseHead(status: 200, fields: HeaderFields(fields))
    }

    /// Returns the answers to questions about a cache of their own. It asks anew where they have taken longer than a
    /// moment, as they may on a machine that has much to do.
    private func answers(_ ask: (Asker) throws -> [Answer]) throws -> [Answer] {
        while true {
            let began = LoopClock.systemNow
            let answers = try ask(Asker())
            if LoopClock.systemNow.seconds(since: began) < ForeignStore.rewriteInterval { return answers }
        }
    }

    @Test
    func `a response that is stored again at once is not written again, whichever head tells it`() throws {
        let (tagged, equal) = (head(("ETag", "1")), head(("ETag", "1")))
        let answers = try answers { asked in
            try [
                asked("1", tagged), asked("1", tagged), asked("1", tagged), asked("1", equal),
                asked("1", tagged, path: "/b"), asked("1", tagged),
            ]
        }
        #expect(answers == [.write, .isWritten, .isWritten, .isWritten, .write, .isWritten])
    }

    @Test func `a different response is written, whichever was the last`() throws {
        let (tagged, other) = (head(("ETag", "1")), head(("ETag", "2")))
        let answers = try answers { asked in
            try [asked("1", tagged), asked("22", tagged), asked("1", other), asked("1", tagged)]
        }
        #expect(answers == [.write, .write, .write, .write])
    }

    /// RFC 9110 §8.8.1: a weak tag does not identify the bytes.
    @Test(arguments: [("Cache-Control", "max-age=100"), ("ETag", "W/\"1\"")])
    func `without a strong tag the content says whether it is another one`(name: String, value: String) throws
    {
        let head = head((name, value))
        let answers = try answers { asked in
            try [asked("1", head), asked("1", head), asked("2", head)]
        }
        #expect(answers == [.write, .isWritten, .write])
    }

    @Test func `a response written a moment ago is not collected again, if it is as long`() throws {
        let (tagged, equal) = (head(("ETag", "1")), head(("ETag", "1")))
        var found: [Bool] = []
        let answers = try answers { asked in
            let store = ForeignStore(cache: asked.cache)
            let request = { LoadRequest(URLRequest(url: url("http://host.example" + $0))) }
            found = [store.hasJustStored(tagged, size: 1, for: request("/a"))]
            let answers = try [asked("1", tagged)]
            found += [
                store.hasJustStored(tagged, size: 1, for: request("/a")),
                store.hasJustStored(tagged, size: 2, for: request("/a")),
                store.hasJustStored(equal, size: 1, for: request("/a")),
                store.hasJustStored(tagged, size: 1, for: request("/b")),
            ]
            store.forgetWritten(url("http://host.example/a"))
            found.append(store.hasJustStored(tagged, size: 1, for: request("/a")))
            return answers
        }
        #expect(answers == [.write])
        #expect(found == [false, true, false, false, false, false])
    }

    @Test func `each variant of a response is written once`() throws {
        let varying = head(("ETag", "1"), ("Vary", "A"))
        let answers = try answers { asked in
            try ["x", "x", "y", "y", "x"].map { try asked("1", varying, to: [("A", $0)]) }
        }
        #expect(answers == [.write, .isWritten, .write, .isWritten, .isWritten])
    }

    @Test func `a response changed by a delegate is written, and so is the next one`() throws {
        let tagged = head(("ETag", "1"))
        let answers = try answers { asked in
            try [false, false, true, false].map { try asked("1", tagged, isChanged: $0) }
        }
        #expect(answers == [.write, .isWritten, .write, .write])
    }

    /// It stands where the variants were found by.
    @Test func `variants are written again after a response that a delegate has changed`() throws {
        let (varying, single) = (head(("ETag", "1"), ("Vary", "A")), head(("ETag", "2")))
        let answers = try answers { asked in
            let ask = { try asked("1", varying, to: [("A", $0)]) }
            let before = try [ask("x"), ask("y"), ask("x")]
            let changed = try asked("2", single, isChanged: true)
            return try before + [changed, ask("x"), ask("y"), ask("x")]
        }
        #expect(answers == [.write, .write, .isWritten, .write, .write, .write, .isWritten])
    }

    /// A load that finds a response noted relies on the cache to have it.
    @Test func `a response that is not written yet is not noted as written`() throws {
        let tagged = head(("ETag", "1"))
        let answers = try answers { asked in
            try [asked("1", tagged, isHeldUp: true), asked("1", tagged), asked("1", tagged)]
        }
        #expect(answers == [.write, .write, .isWritten])
    }

    @Test func `a removed response is written again`() throws {
        let tagged = head(("ETag", "1"))
        let url = try #require(URL(string: "http://host.example/a"))
        let answers = try answers { asked in
            let before = try [asked("1", tagged), asked("1", tagged)]
            ForeignStore(cache: asked.cache).remove(url)
            return try before + [asked("1", tagged)]
        }
        #expect(answers == [.write, .isWritten, .write])
    }

    /// Counts how often it is asked for a response.
    private final class CountingCache: URLCache, @unchecked Sendable {
        let lookUps = Box(0)

        override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
            lookUps.mutate { $0 += 1 }
            return super.cachedResponse(for: request)
        }
    }

    @Test(arguments: [false, true])
    func `a removed response is not looked for in a moment, unless it is written`(isOfProtocol: Bool) throws {
        let url = try #require(URL(string: "http://host.example/a"))
        var (looked, isFound) = (true, false)
        _ = try answers { _ in
            let cache = CountingCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
            let store = ForeignStore(cache: cache)
            let find = {
                store.find(LoadRequest(URLRequest(url: url)), mayOverlook: true, fields: { HeaderFields() })
            }
            store.remove(url)
            let before = cache.lookUps.value
            looked = find() != nil || cache.lookUps.value != before
            let response = try #require(
                HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: ["A": "b"]))
            let cached = CachedURLResponse(response: response, data: Data("text".utf8))
            let entry = try #require(CacheEntry(storedByProgram: cached))
            if isOfProtocol { store.write(cached, url) } else { store.write(cached, entry, url) }
            isFound = find() != nil
            return []
        }
        #expect(!looked)
        #expect(isFound)
    }

    /// As if the program had taken it out of its cache: nothing is written here.
    @Test func `a response that a load has not found is written again, and so are its variants`() throws {
        for fields in [[], [("Vary", "A")]] {
            let tagged = ResponseHead(status: 200, fields: HeaderFields([("ETag", "1")] + fields))
            let answers = try answers { asked in
                let ask = { try asked("1", tagged, to: [("A", "x")]) }
                let before = try [ask(), ask()]
                let request = LoadRequest(URLRequest(url: url("http://host.example/a")))
                let found = ForeignStore(cache: asked.cache).find(
                    request, mayOverlook: true, fields: { HeaderFields() })
                #expect(found == nil)
                return try before + [ask(), ask()]
            }
            #expect(answers == [.write, .isWritten, .write, .isWritten])
        }
    }

    /// Notes about caches are kept by the caches' addresses.
    @Test func `a new cache at the address of an old one is given the response`() throws {
        let tagged = head(("ETag", "1"))
        for _ in 0..<20 {
            let answers = try answers { asked in try [asked("1", tagged), asked("1", tagged)] }
            #expect(answers == [.write, .isWritten])
        }
    }
}

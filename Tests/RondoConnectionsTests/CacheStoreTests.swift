import Rondo
import RondoHTTP
import Testing

@testable import RondoConnections

/// What is not written since the same was written a moment ago. (No test takes the second that a moment is.)
@Suite struct CacheStoreTests {
    private enum Answer { case write, isWritten, nothing }

    /// What is to be done about a response.
    private struct Asker {
        var cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)

        func callAsFunction(
            _ text: String, _ head: ResponseHead, path: String = "/a", to fields: [(String, String)] = [],
            isChanged: Bool = false
        ) throws -> Answer {
            let url = try #require(URL(string: "http://host.example" + path))
            let (data, fields) = (Data(text.utf8), HeaderFields(fields))
            let decision = CacheStore(cache: cache).prepare(
                data, head, to: fields, for: LoadRequest(URLRequest(url: url)), isChanged: isChanged
            ) {
                let response = URLResponse(
                    url: url, mimeType: nil, expectedContentLength: data.count, textEncodingName: nil)
                return CachedURLResponse(response: response, data: data)
            } entry: {
                CacheEntry(head, to: fields, requestedAt: Date(), receivedAt: Date())
            }
            return switch decision {
            case .write: .write
            case .isWritten: .isWritten
            case .nothing: .nothing
            }
        }
    }

    private func head(_ fields: (String, String)...) -> ResponseHead {
        ResponseHead(status: 200, fields: HeaderFields(fields))
    }

    @Test func `the same is written once in a moment, by whichever head it is told`() throws {
        let (asked, tagged) = (Asker(), head(("ETag", "1")))
        #expect(try asked("1", tagged) == .write)
        for _ in 0..<2 { #expect(try asked("1", tagged) == .isWritten) }
        #expect(try asked("1", head(("ETag", "1"))) == .isWritten)
        #expect(try asked("1", tagged, path: "/b") == .write)
        #expect(try asked("1", tagged) == .isWritten)
    }

    @Test func `what is another one is written, whichever was the last`() throws {
        let (asked, tagged) = (Asker(), head(("ETag", "1")))
        #expect(try asked("1", tagged) == .write)
        #expect(try asked("22", tagged) == .write)
        #expect(try asked("1", head(("ETag", "2"))) == .write)
        #expect(try asked("1", tagged) == .write)
    }

    @Test func `without a tag the content says whether it is another one`() throws {
        let (asked, untagged) = (Asker(), head(("Cache-Control", "max-age=100")))
        #expect(try asked("1", untagged) == .write)
        #expect(try asked("1", untagged) == .isWritten)
        #expect(try asked("2", untagged) == .write)
    }

    @Test func `variants are others`() throws {
        let (asked, varying) = (Asker(), head(("ETag", "1"), ("Vary", "A")))
        for value in ["x", "y"] {
            #expect(try asked("1", varying, to: [("A", value)]) == .write)
            #expect(try asked("1", varying, to: [("A", value)]) == .isWritten)
        }
        #expect(try asked("1", varying, to: [("A", "x")]) == .isWritten)
    }

    @Test func `what a delegate has changed is written, and so is what comes after it`() throws {
        let (asked, tagged) = (Asker(), head(("ETag", "1")))
        #expect(try asked("1", tagged) == .write)
        #expect(try asked("1", tagged) == .isWritten)
        #expect(try asked("1", tagged, isChanged: true) == .write)
        #expect(try asked("1", tagged) == .write)
    }

    @Test func `what was removed is written again`() throws {
        let (asked, tagged) = (Asker(), head(("ETag", "1")))
        #expect(try asked("1", tagged) == .write)
        #expect(try asked("1", tagged) == .isWritten)
        CacheStore(cache: asked.cache).remove(try #require(URL(string: "http://host.example/a")))
        #expect(try asked("1", tagged) == .write)
    }

    /// What is noted of caches is noted by their addresses.
    @Test func `another cache is given what it has not got`() throws {
        let tagged = head(("ETag", "1"))
        for _ in 0..<20 {
            let asked = Asker()
            #expect(try asked("1", tagged) == .write)
            #expect(try asked("1", tagged) == .isWritten)
        }
    }
}

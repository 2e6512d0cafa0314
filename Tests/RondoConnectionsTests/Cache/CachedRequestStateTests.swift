import Rondo
import RondoHTTP
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Tests what the cache remembers of a request while it is loaded.
@Suite struct CachedRequestStateTests {
    private let store = ResponseCache(memoryCapacity: 1 << 20, diskCapacity: 0, path: nil)
    private let request = LoadRequest(URLRequest(url: url("http://host.example/a")))

    private func response(length: Int) -> URLResponse {
        URLResponse(
            url: url("http://host.example/a"), mimeType: nil, expectedContentLength: length,
            textEncodingName: nil)
    }

    private func begun() throws -> CachedRequestState {
        var state = CachedRequestState()
        let isUsed = state.begin(request, store, .protocolRules, additionalFields: [])
        try #require(isUsed && state.isInProgress && !state.isOfProtocol)
        return state
    }

    @Test func `a response that is refused still has the older one removed that it outdates`() throws {
        var state = try begun()
        state.older = .outdated
        let isStored = state.begin(storing: response(length: 1), nil, bodyLength: nil, isOfUse: true)
        #expect(isStored && state.incoming != nil)
        state.refuse()
        #expect(state.incoming == nil && state.removal != nil)
        state.end()
        #expect(state.removal == nil && !state.isInProgress && state.older == .none)
    }

    @Test func `a response that is refused and outdates none ends the use of the cache`() throws {
        var state = try begun()
        state.older = .possible
        #expect(state.removal == nil)
        state.refuse()
        #expect(!state.isInProgress && state.policy == nil)
    }

    @Test func `UC-53 a response that is known to be too large is not collected`() throws {
        var state = try begun()
        let isStored = state.begin(
            storing: response(length: store.maximumSize + 1), nil, bodyLength: nil, isOfUse: true)
        #expect(!isStored && state.incoming == nil)
    }

    @Test func `a protocol is offered a stored response once`() {
        var state = CachedRequestState()
        state.begin(ofProtocol: request, store, .protocolRules)
        state.offer(CachedURLResponse(response: response(length: 1), data: Data([1])))
        let (first, second) = (state.takeOffered(), state.takeOffered())
        #expect(first != nil && second == nil && state.isOfProtocol)
    }

    @Test func `a stored response is held until another one is stored, or none is`() throws {
        let cached = CachedURLResponse(
            response: try #require(
                HTTPURLResponse(
                    url: url("http://host.example/a"), statusCode: 200, httpVersion: "HTTP/1.1",
                    headerFields: [:])), data: Data([1]))
        let entry = try #require(CacheEntry(storedByProgram: cached))
        var state = try begun()
        state.hold(nil, isToBeConfirmed: true)
        #expect(state.candidate == nil)
        state.hold(FoundResponse(entry, cached), isToBeConfirmed: true)
        #expect(state.candidate?.isToBeConfirmed == true)
        let isStored = state.begin(storing: response(length: 1), nil, bodyLength: nil, isOfUse: true)
        #expect(isStored && state.candidate == nil)
    }
}

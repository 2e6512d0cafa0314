import Rondo
import RondoHTTP
import Testing

@testable import RondoConnections

/// Tests when a request is sent again because its connection was lost.
@Suite struct RetryRuleTests {
    private static func request(_ method: String) throws -> LoadRequest {
        var request = URLRequest(url: try #require(URL(string: "http://host/")))
        request.httpMethod = method
        return LoadRequest(request)
    }

    private static func facts(
        isReused: Bool = true, isUnsent: Bool = false, isWaitingForGoAhead: Bool = false,
        hasResponse: Bool = false, hasInformational: Bool = false
    ) -> RetryRule.Facts {
        RetryRule.Facts(
            isReusedConnection: isReused, isUnsent: isUnsent, isWaitingForGoAhead: isWaitingForGoAhead,
            hasResponse: hasResponse, hasInformational: hasInformational)
    }

    private static let closed = ExchangeFailure.http(HTTPFailure(.peer(.closedBeforeResponse)))

    @Test
    func `RFC 9110 9.2.2 a request that does no harm twice is sent again over a new connection`() throws {
        let rule = RetryRule()
        let (get, post) = (try Self.request("GET"), try Self.request("POST"))
        #expect(rule.allowsRetry(of: get, after: Self.closed, Self.facts()))
        #expect(!rule.allowsRetry(of: get, after: Self.closed, Self.facts(isReused: false)))
        #expect(!rule.allowsRetry(of: get, after: Self.closed, Self.facts(hasResponse: true)))
        #expect(!rule.allowsRetry(of: post, after: Self.closed, Self.facts()))
        #expect(rule.allowsRetry(of: post, after: Self.closed, Self.facts(isUnsent: true)))
    }

    @Test func `UC-42 a request whose body waits for the go-ahead is sent again, whatever it does`() throws {
        let post = try Self.request("POST")
        let waiting = Self.facts(isReused: false, isWaitingForGoAhead: true)
        #expect(RetryRule().allowsRetry(of: post, after: Self.closed, waiting))
        // The server does not wait for the body of a request that it has not got.
        let unsent = Self.facts(isReused: false, isUnsent: true, isWaitingForGoAhead: true)
        #expect(!RetryRule().allowsRetry(of: post, after: Self.closed, unsent))
        let answered = Self.facts(isReused: false, isWaitingForGoAhead: true, hasResponse: true)
        #expect(!RetryRule().allowsRetry(of: post, after: Self.closed, answered))
    }

    @Test func `RFC 9110 15.5.9 a 408 that crossed with the request is like a closed connection`() throws {
        let rule = RetryRule()
        let (get, post) = (try Self.request("GET"), try Self.request("POST"))
        #expect(rule.allowsRetry(of: get, afterStatus: 408, Self.facts(hasResponse: true)))
        #expect(!rule.allowsRetry(of: get, afterStatus: 503, Self.facts(hasResponse: true)))
        #expect(!rule.allowsRetry(of: get, afterStatus: 408, Self.facts(hasInformational: true)))
        #expect(!rule.allowsRetry(of: post, afterStatus: 408, Self.facts(hasResponse: true)))
        #expect(!rule.allowsRetry(of: get, afterStatus: 408, Self.facts(isReused: false)))
    }

    @Test func `a request is sent again once, and the count begins anew with another request`() throws {
        var rule = RetryRule()
        let get = try Self.request("GET")
        rule.noteRetry()
        #expect(!rule.allowsRetry(of: get, after: Self.closed, Self.facts()))
        #expect(!rule.allowsRetry(of: get, afterStatus: 408, Self.facts(hasResponse: true)))
        rule.reset()
        #expect(rule.allowsRetry(of: get, afterStatus: 408, Self.facts(hasResponse: true)))
        #expect(rule.allowsRetry(of: get, after: Self.closed, Self.facts()))
    }

    @Test(arguments: [
        ExchangeFailure.bodyTooShort(announced: 10, given: 5), .bodyTooLong(announced: 5),
        .bodyStreamFailed(NSError(domain: "test", code: 1)), .http(HTTPFailure(.local(.missingHost))),
    ])
    func `UC-35 a request that is at fault itself is not sent again`(failure: ExchangeFailure) throws {
        let put = try Self.request("PUT")
        #expect(!RetryRule().allowsRetry(of: put, after: failure, Self.facts(isUnsent: true)))
    }
}

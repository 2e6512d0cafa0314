internal import FoundationNetworking
internal import RondoCore

/// Calls of the delegate methods in their spellings of 2015.
///
/// They are deprecated for programs, but still have to be called. Through a protocol that is not itself
/// deprecated these calls cause no warning.
enum OldSpellings {
    static var calls: any OldCalls.Type { DeprecatedCalls.self }
    static var dataCalls: any OldDataCalls.Type { DeprecatedCalls.self }
}

/// The calls of `URLConnectionDelegate` in the spellings of 2015.
protocol OldCalls {
    static func didFail(_ to: some URLConnectionDelegate, _ connection: URLConnection, _ error: NSError)
    static func willSendRequestFor(
        _ to: some URLConnectionDelegate, _ connection: URLConnection,
        _ challenge: URLAuthenticationChallenge)
    static func didReceive(
        _ to: some URLConnectionDelegate, _ connection: URLConnection,
        _ challenge: URLAuthenticationChallenge)
    static func didCancel(
        _ to: some URLConnectionDelegate, _ connection: URLConnection,
        _ challenge: URLAuthenticationChallenge)
}

/// The calls of `URLConnectionDataDelegate` in the spellings of 2015.
protocol OldDataCalls {
    static func willSend(
        _ to: some URLConnectionDataDelegate, _ connection: URLConnection, _ request: URLRequest,
        _ response: URLResponse?
    ) -> URLRequest?
    static func didReceiveResponse(
        _ to: some URLConnectionDataDelegate, _ connection: URLConnection, _ response: URLResponse)
    static func didReceiveData(
        _ to: some URLConnectionDataDelegate, _ connection: URLConnection, _ data: Data)
}

/// Makes the deprecated calls. Other code calls them through the two protocols, without a warning.
private enum DeprecatedCalls: OldCalls, OldDataCalls {
    @available(*, deprecated)
    static func didFail(_ to: some URLConnectionDelegate, _ connection: URLConnection, _ error: NSError) {
        to.connection(connection, didFailWithError: error)
    }

    @available(*, deprecated)
    static func willSendRequestFor(
        _ to: some URLConnectionDelegate, _ connection: URLConnection,
        _ challenge: URLAuthenticationChallenge
    ) {
        to.connection(connection, willSendRequestForAuthenticationChallenge: challenge)
    }

    @available(*, deprecated)
    static func didReceive(
        _ to: some URLConnectionDelegate, _ connection: URLConnection,
        _ challenge: URLAuthenticationChallenge
    ) {
        to.connection(connection, didReceiveAuthenticationChallenge: challenge)
    }

    @available(*, deprecated)
    static func didCancel(
        _ to: some URLConnectionDelegate, _ connection: URLConnection,
        _ challenge: URLAuthenticationChallenge
    ) {
        to.connection(connection, didCancelAuthenticationChallenge: challenge)
    }

    @available(*, deprecated)
    static func willSend(
        _ to: some URLConnectionDataDelegate, _ connection: URLConnection, _ request: URLRequest,
        _ response: URLResponse?
    ) -> URLRequest? {
        to.connection(connection, willSendRequest: request, redirectResponse: response)
    }

    @available(*, deprecated)
    static func didReceiveResponse(
        _ to: some URLConnectionDataDelegate, _ connection: URLConnection, _ response: URLResponse
    ) {
        to.connection(connection, didReceiveResponse: response)
    }

    @available(*, deprecated)
    static func didReceiveData(
        _ to: some URLConnectionDataDelegate, _ connection: URLConnection, _ data: Data
    ) {
        to.connection(connection, didReceiveData: data)
    }
}

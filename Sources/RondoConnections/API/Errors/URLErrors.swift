internal import FoundationNetworking
package import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// Translates failures into `URLError`s, in this one place (rule UC-59).
package enum URLErrors {
    /// The value of `NSURLErrorFailingURLStringErrorKey`, which Foundation has deprecated and rule UC-59
    /// requires.
    private static let failingURLStringKey = "NSErrorFailingURLStringKey"

    /// The error for the delegate: a `URLError`, unless a protocol of the program has an error of its own.
    package static func anyError(_ failure: LoadFailure, url: URL?) -> any Error {
        guard case .program(let cause) = failure else { return error(failure, url: url) }
        return cause.value as? URLError ?? cause.value
    }

    /// The error of a load that needs a thread of the package when the system has none.
    package static func noThread(_ error: SystemError, url: URL?) -> URLError {
        self.error(
            .resourceUnavailable,
            "The load was not started, since the system has no thread for it: \(error). Raise the limit (ulimit -u, "
                + "the container's pids.max), or try again when others have ended.",
            url: url, cause: error as NSError)
    }

    package static func error(_ failure: LoadFailure, url: URL?) -> URLError {
        let (code, sentence, cause) = explain(failure, host: url?.host ?? "the server")
        return URLError(_nsError: FailureError(failure, code, userInfo(sentence, url: url, cause: cause)))
    }

    /// The failure that `error` was made of; nil if it was made in another way.
    package static func failure(of error: any Error) -> LoadFailure? {
        ((error as? URLError)?._nsError as? FailureError)?.failure
    }

    package static func error(
        _ code: URLError.Code, _ sentence: String, url: URL?, cause: (any Error)? = nil
    ) -> URLError {
        let userInfo = userInfo(sentence, url: url, cause: cause)
        return URLError(_nsError: NSError(domain: NSURLErrorDomain, code: code.rawValue, userInfo: userInfo))
    }

    private static func userInfo(_ sentence: String, url: URL?, cause: (any Error)?) -> [String: Any] {
        var userInfo: [String: Any] = [NSLocalizedDescriptionKey: sentence]
        if let url {
            userInfo[NSURLErrorFailingURLErrorKey] = url
            userInfo[failingURLStringKey] = url.absoluteString
        }
        if let cause { userInfo[NSUnderlyingErrorKey] = cause }
        return userInfo
    }

    /// The same error with another URL: a scheme that the engine knows by another name fails with the
    /// program's URL.
    package static func error(_ error: URLError, at url: URL) -> URLError {
        var userInfo = error.userInfo
        userInfo[NSURLErrorFailingURLErrorKey] = url
        userInfo[failingURLStringKey] = url.absoluteString
        return URLError(
            _nsError: NSError(domain: NSURLErrorDomain, code: error.code.rawValue, userInfo: userInfo))
    }

    private static func explain(
        _ failure: LoadFailure, host: String
    ) -> (URLError.Code, String, (any Error)?) {
        switch failure {
        case .channel(let error):
            return (code(of: error), error.description, error.underlyingError)
        case .http(let error):
            let cause = NSError(
                domain: error.version, code: 0, userInfo: [NSLocalizedDescriptionKey: error.description])
            return (code(of: error.kind), "\(host): \(error.description)", cause)
        case .timedOut(let seconds):
            return (
                .timedOut,
                "Nothing came from \(host) for \(seconds.formatted()) s. Raise the request's timeoutInterval if "
                    + "the server may take longer.", nil
            )
        case .exceededTotalTime(let seconds):
            return (
                .timedOut,
                "The load from \(host) did not end within its limit of \(seconds.formatted()) s "
                    + "(totalTimeout, or timeoutIntervalForResource of a session).", nil
            )
        case .tooManyRedirects(let count):
            return (
                .httpTooManyRedirects,
                "\(host) redirected more than \(count) times; the last redirect was not followed.",
                nil
            )
        case .redirectWithoutLocation(let status):
            return (
                .redirectToNonExistentLocation,
                "\(host) answered \(status), a redirect, without one Location that can be followed.", nil
            )
        case .unsupportedRedirect(let target):
            return (
                .unsupportedURL,
                "\(host) redirected to \(target.absoluteString), which is neither http nor https.", nil
            )
        case .canonicalRequestRefused:
            return (.cancelled, "The delegate refused the canonical form of its own request to \(host).", nil)
        case .unusableResponse(let status):
            return (
                .badServerResponse,
                "\(host) answered with a status that Foundation's response cannot represent: \(status).", nil
            )
        case .unsupportedURL:
            return (
                .unsupportedURL,
                "Only http and https URLs with a host, file and data URLs can be loaded, and URLs that a registered "
                    + "URLProtocol accepts.", nil
            )
        case .impossiblePort:
            return (
                .badURL, "The URL names a port of \(host) that does not exist; they go from 1 to 65535.", nil
            )
        case .unsupportedProxy:
            return (
                .unsupportedURL,
                "The environment, or the session's connectionProxyDictionary, names a proxy for \(host) that is "
                    + "neither one of HTTP nor one of SOCKS, or has no host, a port that does not exist, or an "
                    + "unknown version.",
                nil
            )
        case .invalidDataURL:
            return (.badURL, "The data URL holds no comma, or its base64 is malformed.", nil)
        case .noResponse:
            return (.badServerResponse, "The protocol that loads from \(host) ended without a response.", nil)
        case .program(let error):
            return (.unknown, error.value.localizedDescription, error.value)
        case .cancelled:
            return (.cancelled, "The load from \(host) was cancelled.", nil)
        case .authenticationCancelled:
            return (
                .userCancelledAuthentication, "\(host) asked for a credential, and the answer was to cancel.",
                nil
            )
        case .failedMutualAuthentication(let isProxy):
            return (
                .badServerResponse,
                "\(isProxy ? "The proxy on the way to \(host)" : host) gives a proof that it knows the password "
                    + "(rspauth), and the proof is wrong: the response may come from another server.", nil
            )
        case .bodyStreamMissing:
            return (
                .requestBodyStreamExhausted,
                "There is no stream to send the body of the request to \(host) from, or it was read already and "
                    + "has to be sent again; the delegate's needNewBodyStream method can give one each time.",
                nil
            )
        case .unusableResumeData:
            return (
                .unsupportedURL,
                "The resume data are not those of a download of Rondo's, or are damaged; uploads cannot be resumed.",
                nil
            )
        case .bodyStreamFailed(let error):
            return (
                // If the body is read from a file, that file's error is more exact.
                (error as any Error as? URLError)?.code ?? .requestBodyStreamExhausted,
                "The body stream of the request to \(host) failed: \(error.localizedDescription).", error
            )
        case .bodyTooShort(let announced, let given):
            return (
                .requestBodyStreamExhausted,
                "The body stream of the request to \(host) ended after \(given) bytes; its Content-Length "
                    + "says \(announced).", nil
            )
        case .bodyTooLong(let announced):
            return (
                .requestBodyStreamExhausted,
                "The body stream of the request to \(host) holds more than the \(announced) bytes that its "
                    + "Content-Length says.", nil
            )
        case .file(let code, let sentence, let cause):
            let error = NSError(
                domain: NSPOSIXErrorDomain, code: Int(cause.code),
                userInfo: [NSLocalizedDescriptionKey: cause.description])
            return (code, "\(sentence): \(cause).", error)
        case .upgrade(let code, let sentence): return (code, "\(host): \(sentence)", nil)
        case .notInCache:
            return (
                .cannotLoadFromNetwork,
                "The cache holds no answer of \(host), and the request's cache policy forbids to ask it.", nil
            )
        case .content(let error):
            var cause: NSError?
            if case .outOfMemory = error { cause = NSError(domain: NSPOSIXErrorDomain, code: Int(ENOMEM)) }
            return (code(of: error), "\(host): \(error.description)", cause)
        case .multipart(let error):
            return (.cannotParseResponse, "\(host): \(error.description)", nil)
        case .noRunLoop:
            return (
                .cannotLoadFromNetwork,
                "The calling thread's run loop could not run; the log says why (usually a lack of file descriptors).",
                nil
            )
        case .errorStatus(let status):
            let phrase = HTTPURLResponse.localizedString(forStatusCode: status)
            return (.badServerResponse, "\(host) answered \(status) (\(phrase)).", nil)
        case .tooLongLine(let limit):
            return (
                .dataLengthExceedsMaximum,
                "The response of \(host) has a line of more than \(limit) bytes; take it by its chunks.", nil
            )
        case .collectedTooMuch(let limit):
            return (
                .dataLengthExceedsMaximum,
                "The response of \(host) is longer than the \(limit) bytes that are collected in memory; take it "
                    + "as it comes, with a delegate.", nil
            )
        }
    }

    /// The codes distinguish a response that cannot be parsed from one that is parsed and contradicts itself,
    /// such as two different lengths, or a switch to a protocol that was not requested.
    private static func code(of kind: HTTPFailure.Kind) -> URLError.Code {
        switch kind {
        case .invalidRequest: .badURL
        case .closedEarly, .truncatedBody: .networkConnectionLost
        case .notHTTP, .unreadable, .unreadableBody: .cannotParseResponse
        case .contradictory: .badServerResponse
        }
    }

    private static func code(of error: ContentDecodingError) -> URLError.Code {
        switch error {
        case .corrupt, .truncated, .outOfMemory, .missingLibrary: .cannotDecodeRawData
        case .tooManyCodings: .cannotDecodeContentData
        case .exceededRatio, .exceededSize: .dataLengthExceedsMaximum
        }
    }
}

/// The `NSError` of a `URLError`, with the failure that it tells of.
///
/// `@unchecked Sendable`, as its superclass is: `failure` is a constant and `Sendable` itself.
private final class FailureError: NSError, @unchecked Sendable {
    let failure: LoadFailure

    init(_ failure: LoadFailure, _ code: URLError.Code, _ userInfo: [String: Any]) {
        self.failure = failure
        super.init(domain: NSURLErrorDomain, code: code.rawValue, userInfo: userInfo)
    }

    /// Never called: archives name the superclass.
    required init?(coder: NSCoder) { nil }

    override var classForCoder: AnyClass { NSError.self }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoStreams

/// A method that a delegate may leave out, where it matters whether it has (rule UC-74).
enum OptionalMethod {
    case willSendRequestForChallenge
    case canAuthenticate
    case didReceiveChallenge
    case needNewBodyStream
}

/// A connection's delegate, with the protocols that it conforms to: found out once, and not in every call.
///
/// The delegate need not be Sendable. `@unchecked Sendable`: it is handed over when the connection is made,
/// and one callback at a time gets it.
final class DelegateObject: @unchecked Sendable {
    let data: (any URLConnectionDataDelegate)?
    let kind: DelegateClass?
    /// Of a delegate that is more or less than a data delegate, which nearly all are.
    private let other: Other?

    private final class Other {
        let base: (any URLConnectionDelegate)?
        let download: (any URLConnectionDownloadDelegate)?
        /// Kept alive, whatever it is.
        private let object: Any

        init(_ object: Any, isForDownloads: Bool) {
            self.object = object
            download = isForDownloads ? object as? any URLConnectionDownloadDelegate : nil
            base = download ?? (object as? any URLConnectionDelegate)
        }
    }

    var base: (any URLConnectionDelegate)? { data ?? other?.base }
    var download: (any URLConnectionDownloadDelegate)? { other?.download }

    /// - Parameter given: Anything, since it may be an Optional that was handed on as `Any`.
    static func of(_ given: consuming Any?) -> DelegateObject {
        guard let object = given else { return DelegateObject() }
        let kind = DelegateClass.of(type(of: object))
        if !kind.isClass, let inside = object as? any URLConnectionDelegate {
            return DelegateObject(inside, DelegateClass.of(type(of: inside)))
        }
        return DelegateObject(object, kind)
    }

    private init() { (data, kind, other) = (nil, nil, nil) }

    private init(_ object: Any, _ kind: DelegateClass) {
        self.kind = kind
        data = kind.dataDelegate(object)
        let isDataDelegateAlone = data != nil && !kind.isForDownloads
        other = isDataDelegateAlone ? nil : Other(object, isForDownloads: kind.isForDownloads)
    }

    /// The default of `method` was called for `object`: this delegate itself, or an object that it has forwarded to.
    func noteDefault(of method: DelegateDefaults.Method, by object: AnyObject) {
        if base === object { defaults?.insert(method) }
    }

    /// The methods that are known to be defaults. Those of a download depend on the class of its own delegate.
    var defaults: DelegateDefaults? {
        guard let kind else { return nil }
        return kind.isDownloadSaver ? (data as? DownloadSaver)?.defaults : kind.defaults
    }
}

// How a call of a load becomes a call of a method of the delegate.

extension DelegateCall {
    /// Makes the call, on the thread on which the delegate wants it, and has traces tell of it.
    func make(to delegate: DelegateObject, of connection: URLConnection) -> Reply {
        RunLoop.tracingDelegateCall(
            names.connection, of: connection, label: connection.nameInRunLoops, on: connection.firstLoop
        ) { deliver(to: delegate, of: connection) }
    }

    private func deliver(to delegate: DelegateObject, of connection: URLConnection) -> Reply {
        switch self {
        case .willSend(let request, let response):
            guard let delegate = delegate.data else { return .request(request) }
            return .request(delegate.connection(connection, willSend: request, redirectResponse: response))
        case .shouldUseCredentialStorage:
            return .usesStorage(delegate.base?.connectionShouldUseCredentialStorage(connection) ?? true)
        case .challenge(let challenge, let silent, let isTrust):
            return .challenge(
                Self.show(challenge, silent: silent, isTrust: isTrust, to: delegate.base, of: connection))
        case .didCancel(let challenge): delegate.base?.connection(connection, didCancel: challenge)
        case .needNewBodyStream(let request):
            return Self.newBodyStream(for: request, from: delegate.data, of: connection)
        case .sent(let bytes, let total, let expected):
            delegate.data?.connection(
                connection, didSendBodyData: bytes, totalBytesWritten: total,
                totalBytesExpectedToWrite: expected)
        case .response(let response, _): delegate.data?.connection(connection, didReceive: response)
        case .data(let data): delegate.data?.connection(connection, didReceive: data)
        case .willCache(let cached):
            guard let delegate = delegate.data else { return .cached(cached) }
            return .cached(delegate.connection(connection, willCacheResponse: cached))
        case .wrote(let count, let total, let expected):
            delegate.download?.connection(
                connection, didWriteData: Int64(count), totalBytesWritten: total,
                expectedTotalBytes: expected)
        case .resumed(let total, let expected):
            delegate.download?.connectionDidResumeDownloading(
                connection, totalBytesWritten: total, expectedTotalBytes: expected)
        case .upgraded(_, _, let call): call()
        // Of sessions' tasks only.
        case .informational, .waitingForConnectivity: break
        case .metrics(let metrics):
            delegate.base?.connection(connection, didCollect: URLConnection.Metrics(metrics))
        case .finish: delegate.data?.connectionDidFinishLoading(connection)
        case .finishDownload(let file):
            delegate.download?.connectionDidFinishDownloading(connection, destinationURL: file.url)
            file.discard()
        case .fail(let error, _): delegate.base?.connection(connection, didFailWithError: error)
        }
        return .none
    }

    /// Rules UC-44 to UC-46.
    private static func show(
        _ challenge: URLAuthenticationChallenge, silent: URLCredential?, isTrust: Bool,
        to delegate: (any URLConnectionDelegate)?, of connection: URLConnection
    ) -> ChallengeHandling {
        guard let delegate else { return .performDefaultHandling }
        let hasMethod = connection.implements(.willSendRequestForChallenge) {
            delegate.connection(connection, willSendRequestFor: challenge)
        }
        if hasMethod { return .taken }
        var wants = false
        let decides = connection.implements(.canAuthenticate) {
            wants = delegate.connection(
                connection, canAuthenticateAgainstProtectionSpace: challenge.protectionSpace)
        }
        guard decides ? wants : !isTrust else { return .performDefaultHandling }
        if silent != nil { return .useSilently }
        let hasOlderMethod = connection.implements(.didReceiveChallenge) {
            delegate.connection(connection, didReceive: challenge)
        }
        return hasOlderMethod ? .takenByOlderMethod : .performDefaultHandling
    }

    private static func newBodyStream(
        for request: URLRequest, from delegate: (any URLConnectionDataDelegate)?, of connection: URLConnection
    ) -> Reply {
        guard let delegate else { return .noBodyStreamMethod }
        var stream: Foundation.InputStream?
        let hasMethod = connection.implements(.needNewBodyStream) {
            stream = delegate.connection(connection, needNewBodyStream: request)
        }
        return hasMethod ? .bodyStream(stream) : .noBodyStreamMethod
    }
}

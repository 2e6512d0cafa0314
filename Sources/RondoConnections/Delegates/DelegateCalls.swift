internal import FoundationNetworking
internal import RondoCore
internal import RondoStreams

/// An optional method for which it matters whether the delegate implements it (rule UC-74).
enum OptionalMethod {
    case willSendRequestForChallenge
    case canAuthenticate
    case didReceiveChallenge
    case needNewBodyStream
}

/// A connection's delegate and the protocols that it conforms to, which are looked up once instead of in
/// every call.
///
/// The delegate need not be Sendable. `@unchecked Sendable`: the delegate is handed over when the connection
/// is made, and is used by one callback at a time.
final class DelegateObject: @unchecked Sendable {
    let data: (any URLConnectionDataDelegate)?
    let kind: DelegateClass?
    /// Set only if the delegate is not simply a data delegate; nearly all are.
    private let other: Other?

    private final class Other {
        let base: (any URLConnectionDelegate)?
        let download: (any URLConnectionDownloadDelegate)?
        /// Retains the object, whatever its type.
        private let object: Any

        init(_ object: Any, isForDownloads: Bool) {
            self.object = object
            download = isForDownloads ? object as? any URLConnectionDownloadDelegate : nil
            base = download ?? (object as? any URLConnectionDelegate)
        }
    }

    var base: (any URLConnectionDelegate)? { data ?? other?.base }
    /// The methods that are known to be defaults; nil if the object is no delegate.
    var defaults: DelegateDefaults? {
        guard data != nil || other?.base != nil else { return nil }
        return ownDefaults ?? kind?.defaults
    }
    /// Used instead of the defaults of the delegate's class. Set before the load starts, by a delegate of
    /// Rondo's own.
    var ownDefaults: DelegateDefaults?
    var download: (any URLConnectionDownloadDelegate)? { other?.download }

    /// - Parameter given: An `Any?`, since the delegate may itself be an Optional that was passed as `Any`.
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

    /// Notes that the default of `method` was called for `object`, unless `object` is another one, to which
    /// the delegate has forwarded the call.
    func noteDefault(of method: DelegateDefaults.Method, by object: AnyObject) {
        if base === object { defaults?.insert(method) }
    }
}

// The translation of a load's calls into calls of the delegate's methods.

extension DelegateCall {
    /// Makes the call, on the thread that the delegate is called on, and records it in traces.
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
        case .challenge(let challenge, let silent, let isOfTLS):
            return .challenge(
                Self.show(challenge, silent: silent, isOfTLS: isOfTLS, to: delegate.base, of: connection))
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
        // Only the tasks of sessions report these.
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

    /// Delivers a challenge as rules UC-44 to UC-46 say.
    private static func show(
        _ challenge: URLAuthenticationChallenge, silent: URLCredential?, isOfTLS: Bool,
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
        guard decides ? wants : !isOfTLS else { return .performDefaultHandling }
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

internal import FoundationNetworking
internal import RondoCore

/// One call to a delegate, on its way.
enum DelegateCall {
    case willSend(URLRequest, redirectResponse: URLResponse?)
    case shouldUseCredentialStorage
    /// `silent`: a credential of the URL or the storage that has not failed yet.
    case challenge(URLAuthenticationChallenge, silent: URLCredential?, isTrust: Bool)
    case didCancel(URLAuthenticationChallenge)
    case needNewBodyStream(URLRequest)
    case sent(Int, total: Int, expected: Int)
    case response(URLResponse)
    case data(Data)
    case willCache(CachedURLResponse)
    case wrote(Int, total: Int64, expected: Int64)
    case resumed(total: Int64, expected: Int64)
    case metrics(LoadMetrics)
    case finish
    case finishDownload(DownloadFile)
    case fail(any Error)

    /// What a delegate says to a call; on its way from the delegate queue to the loop.
    ///
    /// `@unchecked Sendable`: handed over once. A stream is not used by the delegate any more.
    enum Answer: @unchecked Sendable {
        case none
        case request(URLRequest?)
        case usesStorage(Bool)
        case challenge(ChallengeAnswer)
        /// Nil: the delegate has none. `.notImplemented` is told apart.
        case bodyStream(Foundation.InputStream?)
        case noBodyStreamMethod
        case cached(CachedURLResponse?)
    }

    /// What becomes of a challenge that the delegate was shown.
    enum ChallengeAnswer {
        /// The delegate answers by the challenge's sender, or has done so already.
        case taken
        /// The same, by the older method, which is told when the challenge is cancelled.
        case takenByOlderMethod
        /// A credential that was there already is used; the delegate was not asked.
        case useSilently
        case performDefaultHandling
    }

    var isTerminal: Bool {
        switch self {
        case .finish, .finishDownload, .fail: true
        case .willSend, .shouldUseCredentialStorage, .challenge, .didCancel, .needNewBodyStream, .sent,
            .response, .data, .willCache, .wrote, .resumed, .metrics:
            false
        }
    }

    /// Whether the load cannot go on before it has the answer.
    var isQuestion: Bool {
        switch self {
        case .willSend, .shouldUseCredentialStorage, .challenge, .needNewBodyStream, .willCache: true
        case .didCancel, .sent, .response, .data, .wrote, .resumed, .metrics, .finish, .finishDownload, .fail:
            false
        }
    }

    /// Bytes that it keeps from being forgotten.
    var size: Int {
        switch self {
        case .data(let data): data.count
        // They are on the disk; but a delegate that lags behind should not be told of gigabytes one by one.
        case .wrote(let count, _, _): count
        default: 0
        }
    }
}

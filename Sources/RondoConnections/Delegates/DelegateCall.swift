package import FoundationNetworking
package import RondoCore

/// A call to a delegate that is to be made.
package enum DelegateCall {
    case willSend(URLRequest, redirectResponse: URLResponse?)
    case shouldUseCredentialStorage
    /// `silent`: a credential of the URL or the storage that has not failed yet.
    /// `isOfTLS`: TLS asks for trust in the server, or for an identity of the client.
    case challenge(URLAuthenticationChallenge, silent: URLCredential?, isOfTLS: Bool)
    case didCancel(URLAuthenticationChallenge)
    case needNewBodyStream(URLRequest)
    case sent(Int, total: Int, expected: Int)
    /// `isQuestion`: the body is not read before the client has decided what to do with it.
    case response(URLResponse, isQuestion: Bool)
    case data(Data)
    case willCache(CachedURLResponse)
    case wrote(Int, total: Int64, expected: Int64)
    case resumed(total: Int64, expected: Int64)
    /// An informational response other than 100 and 101.
    case informational(HTTPURLResponse)
    case waitingForConnectivity
    case metrics(LoadMetrics)
    /// A call of an upgrade; `size`: the number of bytes that it retains.
    case upgraded(name: String, size: Int, @Sendable () -> Void)
    case finish
    case finishDownload(DownloadFile)
    /// `partial`: the bytes so far of a download that can be resumed.
    case fail(any Error, partial: PartialDownload? = nil)

    /// One report of sent bytes in place of this one and the next; nil if they are no such reports, or the
    /// body was begun anew in between.
    func joined(with next: DelegateCall) -> DelegateCall? {
        guard case .sent(let bytes, let total, _) = self,
            case .sent(let more, let newTotal, let expected) = next,
            newTotal == total + more
        else { return nil }
        return .sent(bytes + more, total: newTotal, expected: expected)
    }

    /// A delegate's reply to a call, passed from the delegate queue to the loop.
    ///
    /// `@unchecked Sendable`: a reply is handed over once. The delegate must not use a stream afterwards.
    package enum Reply: @unchecked Sendable {
        case none
        /// `Load.reply(_:)` will give the reply.
        case later
        case disposition(ResponseDisposition)
        case request(URLRequest?)
        case usesStorage(Bool)
        case challenge(ChallengeHandling)
        /// Nil if the delegate has no stream to give.
        case bodyStream(Foundation.InputStream?)
        /// The delegate does not implement the method.
        case noBodyStreamMethod
        /// The response that may be stored; nil to store none.
        case cached(CachedURLResponse?)
    }

    /// A client's decision about a response.
    package enum ResponseDisposition {
        /// The client gets its body piece by piece.
        case allow
        /// The body goes to a file.
        case becomeDownload(URLResponse)
        /// For a 101: the upgrade gets the connection; the closure gets its owner.
        case becomeUpgrade((any UpgradeOwner) -> Void)
    }

    /// How a challenge is handled, and by which of the delegate's methods.
    package enum ChallengeHandling {
        /// The delegate has the challenge, and tells the challenge's sender its decision, now or later.
        case taken
        /// As `taken`, but through the older method; the delegate is told if the challenge is cancelled.
        case takenByOlderMethod
        /// A known credential is used; the delegate was not asked.
        case useSilently
        case performDefaultHandling
    }

    package var isTerminal: Bool {
        switch self {
        case .finish, .finishDownload, .fail: true
        case .willSend, .shouldUseCredentialStorage, .challenge, .didCancel, .needNewBodyStream, .sent,
            .response, .data, .willCache, .wrote, .resumed, .informational, .waitingForConnectivity, .metrics,
            .upgraded:
            false
        }
    }

    /// Whether the call is still made when the client has ended the load (rule US-32). A success is not: the
    /// failure that the client has named follows.
    var isMadeAfterAbort: Bool {
        switch self {
        case .metrics, .fail: true
        case .willSend, .shouldUseCredentialStorage, .challenge, .didCancel, .needNewBodyStream, .sent,
            .response, .data, .willCache, .wrote, .resumed, .informational, .waitingForConnectivity,
            .upgraded, .finish, .finishDownload:
            false
        }
    }

    /// The partial file of a failed download, which goes with the call.
    var partial: PartialDownload? { if case .fail(_, let partial) = self { partial } else { nil } }

    /// Whether the load cannot continue before it has the reply.
    var isQuestion: Bool {
        switch self {
        case .willSend, .shouldUseCredentialStorage, .challenge, .needNewBodyStream, .willCache: true
        case .response(_, let isQuestion): isQuestion
        case .didCancel, .sent, .data, .wrote, .resumed, .informational, .waitingForConnectivity, .metrics,
            .upgraded, .finish, .finishDownload, .fail:
            false
        }
    }

    /// The number of bytes that the call retains.
    var size: Int {
        switch self {
        case .data(let data): data.count
        // The bytes are on the disk. They count all the same, so that a slow delegate stops the reading and
        // does not get a backlog of many calls.
        case .wrote(let count, _, _): count
        case .upgraded(_, let size, _): size
        case .willSend, .shouldUseCredentialStorage, .challenge, .didCancel, .needNewBodyStream, .sent,
            .response, .willCache, .resumed, .informational, .waitingForConnectivity, .metrics, .finish,
            .finishDownload, .fail:
            0
        }
    }
}

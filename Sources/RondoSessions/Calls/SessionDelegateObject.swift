internal import RondoCore

/// A delegate object with its conformances, which are looked up once and not at each call.
///
/// `@unchecked Sendable`: a delegate need not be Sendable. It is handed over when its session or task is
/// made; afterwards only the delegate queue or the session's run loop uses it.
final class SessionDelegateObject: @unchecked Sendable {
    let base: any URLSessionDelegate
    let task: (any URLSessionTaskDelegate)?
    let data: (any URLSessionDataDelegate)?
    let download: (any URLSessionDownloadDelegate)?
    let webSocket: (any URLSessionWebSocketDelegate)?
    let stream: (any URLSessionStreamDelegate)?
    let kind: SessionDelegateClass

    init(_ object: any URLSessionDelegate) {
        base = object
        task = object as? any URLSessionTaskDelegate
        data = object as? any URLSessionDataDelegate
        download = object as? any URLSessionDownloadDelegate
        webSocket = object as? any URLSessionWebSocketDelegate
        stream = object as? any URLSessionStreamDelegate
        kind = SessionDelegateClass.of(type(of: object))
        if task == nil {
            kind.noteLacking(
                .created, .waiting, .redirect, .redirectAsync, .taskChallenge, .taskChallengeAsync,
                .bodyStream, .bodyStreamAsync, .sent, .informational, .metrics, .completed)
        }
        if data == nil {
            kind.noteLacking(
                .response, .responseAsync, .becameDownload, .becameStream, .data, .willCache,
                .willCacheAsync)
        }
        if download == nil { kind.noteLacking(.wrote, .resumed) }
        if webSocket == nil { kind.noteLacking(.opened, .closed) }
        if stream == nil { kind.noteLacking(.readClosed, .writeClosed, .captured) }
        // A class that conforms only to the base protocols may have methods of the others by mistake: a
        // warning names them.
        DelegateMethodCheck.sessions.lookOnce(
            at: type(of: object), conforms: data != nil || download != nil)
    }
}

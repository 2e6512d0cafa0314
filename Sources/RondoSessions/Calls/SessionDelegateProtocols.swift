internal import RondoCore

// The methods of the delegate protocols, by name and types. A method of the same name in a delegate class is
// probably meant to be one of them.

extension DelegateMethodCheck {
    static let sessions = DelegateMethodCheck(protocols: [
        .session, .sessionTask, .sessionData, .sessionDownload, .sessionWebSocket, .sessionStream,
    ]) {
        Log.sessions.warning("\($0)")
    }
}

extension DelegateProtocol {
    fileprivate static let session = DelegateProtocol(
        "URLSessionDelegate",
        methods: [
            "urlSession(_: URLSession, didBecomeInvalidWithError: Error?)",
            "urlSession(_: URLSession, didReceive: URLAuthenticationChallenge, completionHandler: (AuthChallengeDisposition, URLCredential?) -> ())",
            "urlSession(_: URLSession, didReceive: URLAuthenticationChallenge)",
        ]
    ) { $0 is any URLSessionDelegate.Type }

    fileprivate static let sessionTask = DelegateProtocol(
        "URLSessionTaskDelegate",
        methods: [
            "urlSession(_: URLSession, didCreateTask: URLSessionTask)",
            "urlSession(_: URLSession, taskIsWaitingForConnectivity: URLSessionTask)",
            "urlSession(_: URLSession, task: URLSessionTask, willPerformHTTPRedirection: HTTPURLResponse, newRequest: URLRequest, completionHandler: (URLRequest?) -> ())",
            "urlSession(_: URLSession, task: URLSessionTask, willPerformHTTPRedirection: HTTPURLResponse, newRequest: URLRequest)",
            "urlSession(_: URLSession, task: URLSessionTask, didReceive: URLAuthenticationChallenge, completionHandler: (AuthChallengeDisposition, URLCredential?) -> ())",
            "urlSession(_: URLSession, task: URLSessionTask, didReceive: URLAuthenticationChallenge)",
            "urlSession(_: URLSession, task: URLSessionTask, needNewBodyStream: (InputStream?) -> ())",
            "urlSession(_: URLSession, needNewBodyStreamForTask: URLSessionTask)",
            "urlSession(_: URLSession, task: URLSessionTask, didSendBodyData: Int64, totalBytesSent: Int64, totalBytesExpectedToSend: Int64)",
            "urlSession(_: URLSession, task: URLSessionTask, didReceiveInformationalResponse: HTTPURLResponse)",
            "urlSession(_: URLSession, task: URLSessionTask, didFinishCollecting: URLSessionTaskMetrics)",
            "urlSession(_: URLSession, task: URLSessionTask, didCompleteWithError: Error?)",
        ]
    ) { $0 is any URLSessionTaskDelegate.Type }

    fileprivate static let sessionData = DelegateProtocol(
        "URLSessionDataDelegate",
        methods: [
            "urlSession(_: URLSession, dataTask: URLSessionDataTask, didReceive: URLResponse, completionHandler: (ResponseDisposition) -> ())",
            "urlSession(_: URLSession, dataTask: URLSessionDataTask, didReceive: URLResponse)",
            "urlSession(_: URLSession, dataTask: URLSessionDataTask, didBecome: URLSessionDownloadTask)",
            "urlSession(_: URLSession, dataTask: URLSessionDataTask, didBecome: URLSessionStreamTask)",
            "urlSession(_: URLSession, dataTask: URLSessionDataTask, didReceive: Data)",
            "urlSession(_: URLSession, dataTask: URLSessionDataTask, willCacheResponse: CachedURLResponse, completionHandler: (CachedURLResponse?) -> ())",
            "urlSession(_: URLSession, dataTask: URLSessionDataTask, willCacheResponse: CachedURLResponse)",
        ]
    ) { $0 is any URLSessionDataDelegate.Type }

    fileprivate static let sessionDownload = DelegateProtocol(
        "URLSessionDownloadDelegate",
        methods: [
            "urlSession(_: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo: URL)",
            "urlSession(_: URLSession, downloadTask: URLSessionDownloadTask, didWriteData: Int64, totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)",
            "urlSession(_: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset: Int64, expectedTotalBytes: Int64)",
        ]
    ) { $0 is any URLSessionDownloadDelegate.Type }

    fileprivate static let sessionWebSocket = DelegateProtocol(
        "URLSessionWebSocketDelegate",
        methods: [
            "urlSession(_: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol: String?)",
            "urlSession(_: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith: CloseCode, reason: Data?)",
        ]
    ) { $0 is any URLSessionWebSocketDelegate.Type }

    fileprivate static let sessionStream = DelegateProtocol(
        "URLSessionStreamDelegate",
        methods: [
            "urlSession(_: URLSession, readClosedFor: URLSessionStreamTask)",
            "urlSession(_: URLSession, writeClosedFor: URLSessionStreamTask)",
            "urlSession(_: URLSession, streamTask: URLSessionStreamTask, didBecome: InputStream, outputStream: OutputStream)",
        ]
    ) { $0 is any URLSessionStreamDelegate.Type }
}

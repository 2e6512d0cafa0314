internal import RondoCore

// The methods of the delegates' protocols, by name and types: a method of a class that has such a name is
// probably meant to implement it. A test compares these lists with the protocols.

extension DelegateMethodCheck {
    static let connections = DelegateMethodCheck(protocols: [.data, .download, .base]) {
        Log.connections.warning("\($0)")
    }

    static let downloads = DelegateMethodCheck(protocols: [.fileDownload]) {
        Log.connections.warning("\($0)")
    }

    /// Checks the class of `delegate`, which was passed to a `URLDownload`.
    func lookOnce(at delegate: Any?) {
        guard let delegate, let type = type(of: delegate) as? AnyClass else { return }
        lookOnce(at: type, conforms: delegate is any URLDownloadDelegate)
    }
}

extension DelegateProtocol {
    static let base = DelegateProtocol(
        "URLConnectionDelegate",
        methods: [
            "connection(_: URLConnection, didFailWithError: Error)",
            "connectionShouldUseCredentialStorage(_: URLConnection)",
            "connection(_: URLConnection, willSendRequestFor: URLAuthenticationChallenge)",
            "connection(_: URLConnection, canAuthenticateAgainstProtectionSpace: URLProtectionSpace)",
            "connection(_: URLConnection, didReceive: URLAuthenticationChallenge)",
            "connection(_: URLConnection, didCancel: URLAuthenticationChallenge)",
            "connection(_: URLConnection, didCollect: Metrics)",
            "connection(_: URLConnection, didFailWithError: NSError)",
            "connection(_: URLConnection, willSendRequestForAuthenticationChallenge: URLAuthenticationChallenge)",
            "connection(_: URLConnection, didReceiveAuthenticationChallenge: URLAuthenticationChallenge)",
            "connection(_: URLConnection, didCancelAuthenticationChallenge: URLAuthenticationChallenge)",
        ]
    ) { $0 is any URLConnectionDelegate.Type }

    static let data = DelegateProtocol(
        "URLConnectionDataDelegate",
        methods: [
            "connection(_: URLConnection, willSend: URLRequest, redirectResponse: URLResponse?)",
            "connection(_: URLConnection, didReceive: URLResponse)",
            "connection(_: URLConnection, didReceive: Data)",
            "connection(_: URLConnection, needNewBodyStream: URLRequest)",
            "connection(_: URLConnection, didSendBodyData: Int, totalBytesWritten: Int, totalBytesExpectedToWrite: Int)",
            "connection(_: URLConnection, willCacheResponse: CachedURLResponse)",
            "connectionDidFinishLoading(_: URLConnection)",
            "connection(_: URLConnection, willSendRequest: URLRequest, redirectResponse: URLResponse?)",
            "connection(_: URLConnection, didReceiveResponse: URLResponse)",
            "connection(_: URLConnection, didReceiveData: Data)",
        ]
    ) { $0 is any URLConnectionDataDelegate.Type }

    static let download = DelegateProtocol(
        "URLConnectionDownloadDelegate",
        methods: [
            "connection(_: URLConnection, didWriteData: Int64, totalBytesWritten: Int64, expectedTotalBytes: Int64)",
            "connectionDidResumeDownloading(_: URLConnection, totalBytesWritten: Int64, expectedTotalBytes: Int64)",
            "connectionDidFinishDownloading(_: URLConnection, destinationURL: URL)",
        ]
    ) { $0 is any URLConnectionDownloadDelegate.Type }

    static let fileDownload = DelegateProtocol(
        "URLDownloadDelegate",
        methods: [
            "downloadDidBegin(_: URLDownload)",
            "download(_: URLDownload, willSend: URLRequest, redirectResponse: URLResponse?)",
            "downloadShouldUseCredentialStorage(_: URLDownload)",
            "download(_: URLDownload, canAuthenticateAgainstProtectionSpace: URLProtectionSpace)",
            "download(_: URLDownload, didReceive: URLAuthenticationChallenge)",
            "download(_: URLDownload, didCancel: URLAuthenticationChallenge)",
            "download(_: URLDownload, didReceive: URLResponse)",
            "download(_: URLDownload, shouldDecodeSourceDataOfMIMEType: String)",
            "download(_: URLDownload, willResumeWith: URLResponse, fromByte: Int64)",
            "download(_: URLDownload, decideDestinationWithSuggestedFilename: String)",
            "download(_: URLDownload, didCreateDestination: String)",
            "download(_: URLDownload, didReceiveDataOfLength: Int)",
            "downloadDidFinish(_: URLDownload)",
            "download(_: URLDownload, didFailWithError: Error)",
        ]
    ) { $0 is any URLDownloadDelegate.Type }
}

internal import RondoCore

extension DelegateCall {
    /// The call's names in traces: the method of a connection's delegate, and the method of a task's
    /// delegate.
    package var names: (connection: String, session: String) {
        switch self {
        case .willSend: ("willSend", "willPerformHTTPRedirection")
        case .shouldUseCredentialStorage: both("shouldUseCredentialStorage")
        case .challenge: ("challenge", "didReceive challenge")
        case .didCancel: both("didCancel challenge")
        case .needNewBodyStream: both("needNewBodyStream")
        case .sent: both("didSendBodyData")
        case .response: both("didReceive response")
        case .data: both("didReceive data")
        case .willCache: both("willCacheResponse")
        case .wrote: both("didWriteData")
        case .resumed: ("didResumeDownloading", "didResumeAtOffset")
        case .informational: both("didReceiveInformationalResponse")
        case .waitingForConnectivity: both("taskIsWaitingForConnectivity")
        case .metrics: ("didCollect metrics", "didFinishCollecting metrics")
        case .upgraded(let name, _, _): both(name)
        case .finish: ("connectionDidFinishLoading", "didCompleteWithError")
        case .finishDownload: ("connectionDidFinishDownloading", "didCompleteWithError")
        case .fail: ("didFailWithError", "didCompleteWithError")
        }
    }

    private func both(_ name: String) -> (connection: String, session: String) { (name, name) }
}

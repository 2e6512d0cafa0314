import Rondo
import RondoLab

/// What is done at each call of the delegate. On the loop's thread only.
final class FetchDelegate: NSObject, URLConnectionDataDelegate {
    enum Outcome {
        case finished
        case failed(FetchFailure)
    }

    /// Nil while the load is under way.
    private(set) var outcome: Outcome?
    private(set) var received = 0
    /// Where the time went; nil after a cancel.
    private(set) var metrics: URLConnection.Metrics?
    private(set) var contentType: String?

    private let plan: FetchPlan
    private let heads: HeadLog
    private let progress: ProgressBar?
    private let sink: BodySink
    private let digest: Digest?

    init(plan: FetchPlan, heads: HeadLog, progress: ProgressBar?) {
        self.plan = plan
        self.heads = heads
        self.progress = progress
        sink = BodySink(plan.output)
        digest = plan.printsEvents ? Digest() : nil
    }

    // MARK: Calls of the connection

    func connection(
        _ connection: URLConnection, willSend request: URLRequest, redirectResponse: URLResponse?
    ) -> URLRequest? {
        guard let redirectResponse else { return request }
        report(EventLines.redirect(to: request, after: redirectResponse, followed: plan.followsRedirects))
        return plan.followsRedirects ? Origin.redirected(request, first: plan.request) : nil
    }

    /// Name and password of `-u` were sent in Basic already, to the origin of the URL; where that asks for them in
    /// another scheme they are sent so. All else is handled as usual.
    func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge) {
        report(EventLines.challenge(challenge))
        let space = challenge.protectionSpace
        guard let user = plan.user, challenge.previousFailureCount == 0, !space.isProxy(),
            space.authenticationMethod == NSURLAuthenticationMethodHTTPDigest,
            Origin(connection.currentRequest.url) == Origin(plan.request.url)
        else {
            challenge.sender?.performDefaultHandling(for: challenge)
            return
        }
        let parts = user.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let password = parts.count > 1 ? String(parts[1]) : ""
        challenge.sender?.use(
            URLCredential(user: String(parts[0]), password: password, persistence: .none), for: challenge)
    }

    func connection(_ connection: URLConnection, didCollect metrics: URLConnection.Metrics) {
        self.metrics = metrics
    }

    func connection(
        _ connection: URLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
        totalBytesExpectedToWrite: Int
    ) {
        report(
            EventLines.sent(
                bytes: bytesWritten, total: totalBytesWritten, expected: totalBytesExpectedToWrite))
    }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        report(EventLines.response(response))
        contentType = (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Type")
        let expected = response.expectedContentLength
        progress?.begin(expected: expected >= 0 ? Int(expected) : nil)
        keepOrCancel(connection) { () throws(FetchFailure) in
            try sink.open()
            if plan.printsHeads {
                let text = heads.take(orMakeFrom: response)
                try sink.write(Data((sink.isTerminal ? TerminalText.harmless(text) : text).utf8))
            }
        }
    }

    func connection(_ connection: URLConnection, didReceive data: Data) {
        received += data.count
        if let digest { data.withUnsafeBytes { digest.update($0) } }
        report(EventLines.data(length: data.count))
        progress?.received = received
        keepOrCancel(connection) { () throws(FetchFailure) in
            try sink.write(data)
        }
    }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        end(.finished)
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        end(.failed(FetchFailure(error, url: connection.currentRequest.url ?? plan.request.url)))
    }

    // MARK: The end

    /// Ends the load with a failure of our own; the connection has been cancelled.
    func fail(_ failure: FetchFailure) {
        end(.failed(failure))
    }

    private func end(_ outcome: Outcome) {
        guard self.outcome == nil else { return }
        var outcome = outcome
        do {
            try sink.close()
        } catch {
            if case .finished = outcome { outcome = .failed(error) }
        }
        self.outcome = outcome
        progress?.end()
        switch outcome {
        case .finished: report(EventLines.finish(bytes: received, sha256: digest?.finish() ?? ""))
        case .failed(let failure): report(EventLines.fail(failure))
        }
    }

    /// Ends the load where the body has no place to go.
    private func keepOrCancel(_ connection: URLConnection, _ body: () throws(FetchFailure) -> Void) {
        guard outcome == nil else { return }
        do {
            try body()
        } catch {
            connection.cancel()
            fail(error)
        }
    }

    private func report(_ event: @autoclosure () -> JSONText) {
        guard plan.printsEvents else { return }
        Terminal.standardOutput.write(event().text + "\n")
    }
}

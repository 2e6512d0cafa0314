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

    /// The answer is the usual one: name and password have been sent already, if there are any. Connections
    /// give no challenges yet, so this is not called before they do.
    func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge) {
        report(EventLines.challenge(challenge))
        challenge.sender?.performDefaultHandling(for: challenge)
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
        let expected = response.expectedContentLength
        progress?.begin(expected: expected >= 0 ? Int(expected) : nil)
        keepOrCancel(connection) { () throws(FetchFailure) in
            try sink.open()
            if plan.printsHeads { try sink.write(Data(heads.take(orMakeFrom: response).utf8)) }
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

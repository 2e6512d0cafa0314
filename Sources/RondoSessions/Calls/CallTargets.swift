internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// The session, the task and the delegates of one call.
struct CallTargets: Sendable {
    let session: URLSession
    let task: URLSessionTask
    let receiver: TaskReceiver
    let delegates: AskedDelegates
    /// The delegates that get response, content and file.
    let contentDelegates: AskedDelegates

    // MARK: - Telling

    /// Calls the first delegate that implements `method`.
    ///
    /// - Parameter delegates: The candidates; nil means all delegates.
    func tell(
        _ method: SessionMethod, _ delegates: AskedDelegates? = nil,
        _ call: (SessionDelegateObject) -> Void
    ) {
        for delegate in delegates ?? self.delegates where !delegate.kind.lacks(method) {
            call(delegate)
            // Try the next delegate if the call showed that this one has only the default implementation.
            if !delegate.kind.lacks(method) { return }
        }
    }

    func tellSent(_ bytes: Int, total: Int, expected: Int) {
        tell(.sent) { delegate in
            delegate.task?.urlSession(
                session, task: task, didSendBodyData: Int64(bytes), totalBytesSent: Int64(total),
                totalBytesExpectedToSend: Int64(expected))
        }
    }

    func tellWrote(_ bytes: Int, total: Int64, expected: Int64) {
        tellOfFile(.wrote) { delegate, task in
            delegate.urlSession(
                session, downloadTask: task, didWriteData: Int64(bytes), totalBytesWritten: total,
                totalBytesExpectedToWrite: expected > 0 ? expected : -1)
        }
    }

    func tellResumed(at total: Int64, expected: Int64) {
        tellOfFile(.resumed) { delegate, task in
            delegate.urlSession(
                session, downloadTask: task, didResumeAtOffset: total,
                expectedTotalBytes: expected > 0 ? expected : -1)
        }
    }

    /// Calls the first of the content delegates that implements `method` of `URLSessionDownloadDelegate`.
    private func tellOfFile(
        _ method: SessionMethod, _ call: (any URLSessionDownloadDelegate, URLSessionDownloadTask) -> Void
    ) {
        guard let task = task as? URLSessionDownloadTask else { return }
        tell(method, contentDelegates) { delegate in delegate.download.map { call($0, task) } }
    }

    /// Hands the complete file to the delegate. The file is deleted on return unless the delegate has moved
    /// it.
    func finish(_ file: DownloadFile) {
        if let task = task as? URLSessionDownloadTask {
            for delegate in contentDelegates {
                guard let delegate = delegate.download else { continue }
                delegate.urlSession(session, downloadTask: task, didFinishDownloadingTo: file.url)
                break
            }
        }
        file.discard()
    }

    // MARK: - Asking

    /// Puts `question` to the first delegate that implements a method for it.
    ///
    /// - Parameters:
    ///   - delegates: The candidates; nil means all delegates.
    ///   - reply: Turns the delegate's reply into that to the load; nil stands for no delegate with such a
    ///     method, or no reply.
    func ask<Value>(
        _ question: Question<Value>, of work: TaskWork, _ delegates: AskedDelegates? = nil,
        _ reply: @escaping @Sendable (Value?) -> DelegateCall.Reply
    ) -> DelegateCall.Reply {
        let asked = question.ask(delegates ?? self.delegates, of: work, on: session.engine.schedule) {
            work.reply(reply($0))
        }
        switch asked {
        case .replied(let value): return reply(value)
        case .later: return .later
        case .notImplemented: return reply(nil)
        }
    }

    // MARK: - Challenges (rules US-55 and US-56)

    /// Passes a challenge to the delegates. The reply goes to the challenge's sender.
    func show(_ challenge: URLAuthenticationChallenge, isOfTLS: Bool, of work: TaskWork) {
        guard isOfTLS else { return showToTasks(challenge, of: work) }
        let question = Question.session(session, challenge)
        let asked = question.ask(delegates, of: work, on: session.engine.schedule) { verdict in
            if let verdict { return give(verdict, to: challenge, of: work) }
            // The task may have ended, or was cancelled, since (rules US-33 and US-41).
            work.perform { if work.isOutstanding { showToTasks(challenge, of: work) } }
        }
        switch asked {
        case .replied(let verdict): give(verdict, to: challenge, of: work)
        case .later: break
        case .notImplemented: showToTasks(challenge, of: work)
        }
    }

    private func showToTasks(_ challenge: URLAuthenticationChallenge, of work: TaskWork) {
        let standard = ChallengeVerdict(.performDefaultHandling, nil)
        let question = Question.task(session, task, challenge)
        let asked = question.ask(delegates, of: work, on: session.engine.schedule) {
            give($0 ?? standard, to: challenge, of: work)
        }
        switch asked {
        case .replied(let verdict): give(verdict, to: challenge, of: work)
        case .later: break
        case .notImplemented: give(standard, to: challenge, of: work)
        }
    }

    /// Passes the delegate's verdict to the challenge's sender. Any thread.
    private func give(
        _ verdict: ChallengeVerdict, to challenge: URLAuthenticationChallenge, of work: TaskWork
    ) {
        work.noteOwedReply(nil)
        let sender = challenge.sender
        switch verdict.disposition {
        case .useCredential:
            if let credential = verdict.credential {
                sender?.use(credential, for: challenge)
            } else {
                sender?.continueWithoutCredential(for: challenge)
            }
        case .performDefaultHandling: sender?.performDefaultHandling(for: challenge)
        case .cancelAuthenticationChallenge: task.cancel()
        case .rejectProtectionSpace: sender?.rejectProtectionSpaceAndContinue(with: challenge)
        }
    }
}

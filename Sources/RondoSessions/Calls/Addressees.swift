internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// What one call of a task is made with: session, task, and the delegates that are asked for it.
struct Addressees: Sendable {
    let session: URLSession
    let task: URLSessionTask
    let receiver: TaskReceiver
    /// In the order in which they are asked (rule US-40).
    let delegates: [SessionDelegateObject]
    /// Those of them that hear of response, content and file.
    let contentDelegates: [SessionDelegateObject]

    // MARK: - Telling

    /// Calls the first of the delegates that has `method`.
    ///
    /// - Parameter delegates: Nil: of all.
    func tell(
        _ method: SessionMethod, _ delegates: [SessionDelegateObject]? = nil,
        _ call: (SessionDelegateObject) -> Void
    ) {
        for delegate in delegates ?? self.delegates where !delegate.kind.lacks(method) {
            call(delegate)
            // It may have been a default that was called.
            if !delegate.kind.lacks(method) { return }
        }
    }

    func tellOfFile(
        _ method: SessionMethod, _ call: (any URLSessionDownloadDelegate, URLSessionDownloadTask) -> Void
    ) {
        guard let task = task as? URLSessionDownloadTask else { return }
        tell(method, contentDelegates) { delegate in delegate.download.map { call($0, task) } }
    }

    /// The file is complete. It is gone when this returns, unless the delegate has moved it.
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

    /// Has the first delegate answer that can.
    ///
    /// - Parameters:
    ///   - delegates: Nil: all.
    ///   - answer: What its answer is to the load; nil: no delegate has such a method, or has answered.
    func ask<Value>(
        _ question: Question<Value>, of work: TaskWork, _ delegates: [SessionDelegateObject]? = nil,
        _ answer: @escaping @Sendable (Value?) -> DelegateCall.Answer
    ) -> DelegateCall.Answer {
        let asked = question.ask(delegates ?? self.delegates, on: session.engine.driver) {
            work.answer(answer($0))
        }
        switch asked {
        case .answered(let value): return answer(value)
        case .later:
            work.noteOwedAnswer(question.name)
            return .later
        case .notImplemented: return answer(nil)
        }
    }

    // MARK: - Challenges (rules US-55 and US-56)

    /// The delegate answers by the challenge's sender.
    func show(_ challenge: URLAuthenticationChallenge, isOfTLS: Bool) {
        guard isOfTLS else { return showToTasks(challenge) }
        let driver = session.engine.driver
        let asked = Question.session(session, challenge).ask(delegates, on: driver) { verdict in
            if let verdict { return give(verdict, to: challenge) }
            driver.perform { showToTasks(challenge) }
        }
        switch asked {
        case .answered(let verdict): give(verdict, to: challenge)
        case .later: break
        case .notImplemented: showToTasks(challenge)
        }
    }

    private func showToTasks(_ challenge: URLAuthenticationChallenge) {
        let standard = ChallengeVerdict(.performDefaultHandling, nil)
        let asked = Question.task(session, task, challenge).ask(delegates, on: session.engine.driver) {
            give($0 ?? standard, to: challenge)
        }
        switch asked {
        case .answered(let verdict): give(verdict, to: challenge)
        case .later: break
        case .notImplemented: give(standard, to: challenge)
        }
    }

    /// Any thread.
    private func give(_ verdict: ChallengeVerdict, to challenge: URLAuthenticationChallenge) {
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

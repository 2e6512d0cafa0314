internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

// The work of a task as the client of its load, and the calls of its client.

extension TaskWork: LoadClient {
    /// Always false: a cancelled load still has its last call to make.
    var isCancelled: Bool { false }

    var keepsPartialDownloads: Bool { true }

    var nameInRunLoops: String? {
        if let description = state.withLock({ $0.description }) { return description }
        guard RunLoop.isTraced else { return nil }
        if let stream = plan.stream { return "\(stream.host):\(stream.port)" }
        return plan.request?.url.map { ($0.host ?? "") + $0.path }
    }

    /// The queue of the calls; nil if a loop makes them. Nil also if no delegate takes part: then the loop
    /// that moves the task collects the content and resumes an async function directly, or puts only the call
    /// of the completion handler on the queue.
    var delegateQueue: DelegateQueue? {
        client?.isCollected ?? plan.isAwaited ? nil : engine?.schedule.queue
    }

    var decidesOnResponses: Bool {
        (plan.kind == .data || plan.kind == .upload) && client?.decidesOnResponses ?? false
    }

    var wantsInformational: Bool { client?.wantsInformational ?? false }
    var sharesTrustDecisions: Bool { client?.sharesTrustDecisions ?? false }

    func make(_ call: DelegateCall) -> DelegateCall.Reply {
        guard let client, note(call) else { return .none }
        return client.make(call, of: self)
    }

    func setCurrentRequest(_ request: URLRequest) {
        let shown = webSocket == nil ? request : WebSocketURL.shown(request)
        state.withLock { $0.currentRequest = shown }
    }

    /// The delegate may have used the challenge's sender, and kept the handler.
    func challengeWasDecided() { noteOwedReply(nil) }

    func loadDidEnd() {
        let old = state.withLock { state in
            let old = (state.load, state.metrics, state.upgrade, state.resumeDataHandlers, state.heldStep)
            (state.load, state.metrics, state.upgrade, state.resumeDataHandlers, state.heldStep) =
                (nil, nil, nil, [], nil)
            state.life.loadDidEnd()
            return old
        }
        withExtendedLifetime(old) {}
        webSocket?.loadDidEnd()
        plan.stream?.loadDidEnd()
        client?.workDidEnd()
    }

    /// Records a call before it is made.
    ///
    /// - Returns: False if the program does not get this call.
    private func note(_ call: DelegateCall) -> Bool {
        switch call {
        case .sent(_, let total, let expected):
            state.withLock { state in
                state.counts.sent = Int64(total)
                state.counts.expectedToSend = Int64(expected)
            }
            showProgress()
        case .response(let response, _):
            state.withLock { state in
                // A later response belongs to a part (rule UC-22), or is a second one of a `URLProtocol`. Its
                // length is not the length of the whole.
                if state.response == nil { state.counts.expectedToReceive = response.expectedContentLength }
                state.response = response
            }
            showProgress()
        case .data: showProgress()
        case .wrote:
            _ = state.withLock { $0.takeAwaitedRest() }
            showProgress()
        case .resumed:
            // A load that continues after a lost connection does not report it.
            return state.withLock { $0.takeAwaitedRest() }
        case .metrics(let metrics):
            state.withLock { $0.metrics = metrics }
            return false
        case .challenge, .waitingForConnectivity:
            // These calls of a stream task may have waited for the delegate queue, or while the task was
            // suspended (rule US-32).
            return !isCanceling
        case .willSend, .shouldUseCredentialStorage, .didCancel, .needNewBodyStream, .willCache,
            .informational, .upgraded, .finish, .finishDownload, .fail:
            break
        }
        return true
    }

    // MARK: - Calls of the client

    /// Records that the load waits for the reply of a delegate's method; nil if it does not.
    func noteOwedReply(_ method: String?) { state.withLock { $0.owedReply = method } }

    /// Passes the delegate's reply to the load. Any thread.
    func reply(_ reply: DelegateCall.Reply) {
        let load = state.withLock { state in
            state.owedReply = nil
            return state.load
        }
        load?.reply(reply)
    }

    /// Fails the load because the collected content exceeds its limit.
    func abort(_ failure: LoadFailure) { state.withLock { $0.load }?.abort(failure) }

    /// Makes another task, with this identifier, the one that the program uses.
    ///
    /// - Returns: False if the task has ended.
    func pass(to successor: Int) -> Bool {
        state.withLock { $0.pass(to: successor) }
    }

    /// Hands the connection over to a stream task.
    ///
    /// - Parameter successor: The stream task's identifier.
    /// - Returns: False if there is no connection to hand over, or the task has ended.
    func becomeStream(_ shared: StreamTaskState, successor: Int) -> Bool {
        guard let upgrade = state.withLock({ $0.becomeStream(successor: successor) }) else { return false }
        upgrade.become(shared)
        reply(.disposition(.becomeUpgrade { upgrade.belong(to: $0) }))
        return true
    }

    /// True if the task can become a stream task.
    var hasUpgraded: Bool {
        state.withLock { $0.upgrade != nil && ($0.response as? HTTPURLResponse)?.statusCode == 101 }
    }

    // MARK: - The end

    /// The outcome of the load as the program gets it; nil if the last call was made already.
    ///
    /// - Parameter partial: The part that has arrived of a download that failed.
    func outcome(_ outcome: Result<DownloadFile?, any Error>, _ partial: PartialDownload?) -> (
        outcome: Result<DownloadFile?, any Error>, resumeData: Data?
    )? {
        let (life, givesResumeData) = state.withLock { ($0.life, !$0.resumeDataHandlers.isEmpty) }
        if life.isCompleted { return nil }
        var outcome = outcome
        // A challenge's sender that cancels the challenge cancels the task, as the disposition does (rule
        // US-56). The same error of a program's protocol is left as it is.
        if case .failure(let error as URLError) = outcome,
            case .authenticationCancelled? = URLErrors.failure(of: error)
        {
            outcome = .failure(URLError(.cancelled, userInfo: error.userInfo))
        }
        // Cancelling an open WebSocket closes it in order and is not an error (rule WS-18).
        if life.isCanceling, !(webSocket?.isOpen ?? false) { outcome = .failure(cancellation) }
        let added = engine?.values.additionalFields ?? []
        let resumeData =
            !life.isCanceling || givesResumeData
            ? partial?.keep(without: added, isAsked: givesResumeData) : nil
        if let resumeData, case .failure(let error) = outcome {
            outcome = .failure(Self.error(error, resumeData))
        }
        return (outcome, resumeData)
    }

    /// Notes the end of the task before its last call; nil if that was made already.
    func complete(_ error: (any Error)?) -> TaskProperties.Ending? {
        let ending = state.withLock { $0.complete(error, isCaptured: plan.stream?.isCaptured ?? false) }
        if ending != nil { showProgress() }
        return ending
    }

    var cancellation: URLError {
        URLErrors.error(.cancelled, "cancelled", url: state.withLock { $0.currentRequest }?.url ?? plan.url)
    }

    /// `error` with the resume data of the download.
    private static func error(_ error: any Error, _ resumeData: Data) -> any Error {
        guard let error = error as? URLError else { return error }
        var userInfo = error.userInfo
        userInfo[NSURLSessionDownloadTaskResumeData] = resumeData
        return URLError(error.code, userInfo: userInfo)
    }

    // MARK: - Progress (rule US-38)

    /// The progress of the task with the identifier `number`. The first call makes it, with `cancel` as a
    /// handler.
    func progress(of number: Int, cancel: @escaping @Sendable () -> Void) -> Progress {
        let received = bytesReceived
        return state.withLock { state in
            state.progress.object(
                showing: state.progressValues(received: received), cancel: cancel
            ) { [weak self] in self?.followProgress(number) }
        }
    }

    private func showProgress() {
        guard let progress = state.withLock({ $0.progress.current }) else { return }
        let received = bytesReceived
        let values = state.withLock { $0.progressValues(received: received) }
        // This may run code of the program, which may have made it part of another progress.
        values.show(in: progress)
    }
}

internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoStreams

// How a call of a load becomes a call of a delegate's method, or of a completion handler.

extension TaskWork {
    /// What a call is made with; nil once the task has ended.
    struct Addressees {
        let session: URLSession
        let task: URLSessionTask
        let receiver: TaskReceiver
        /// In the order in which they are asked (rule US-40).
        let delegates: [SessionDelegateObject]
        /// Those of them that hear of response, content and file.
        let contentDelegates: [SessionDelegateObject]
        let load: Load?
    }

    var addressees: Addressees? {
        let (session, task, receiver, own, load) = state.withLock {
            ($0.session, $0.task, $0.receiver, $0.delegate, $0.load)
        }
        guard let session, let task else { return nil }
        let delegates = [own, session.delegateObject].compactMap { $0 }
        return Addressees(
            session: session, task: task, receiver: receiver, delegates: delegates,
            contentDelegates: receiver.isDelegate ? delegates : isAwaited ? own.map { [$0] } ?? [] : [],
            load: load)
    }

    var answersResponses: Bool {
        guard let addressees, kind == .data || kind == .upload else { return false }
        return !addressees.contentDelegates.allSatisfy { $0.kind.lacks(.response, .responseAsync) }
    }

    /// Of a task that has a delegate of its own that one alone has agreed.
    var sharesVerdicts: Bool {
        state.withLock { $0.delegate == nil && !($0.session?.isShared ?? true) }
    }

    var hearsOfInformational: Bool {
        guard let addressees else { return false }
        return !addressees.delegates.allSatisfy { $0.kind.lacks(.informational) }
    }

    /// Before the function returns that makes the task.
    func tellCreated(_ task: URLSessionTask) {
        guard let session = state.withLock({ $0.session }), let delegate = session.delegateObject,
            !delegate.kind.lacks(.created)
        else { return }
        delegate.task?.urlSession(session, didCreateTask: task)
    }

    func make(_ call: DelegateCall) -> DelegateCall.Answer {
        guard let addressees else { return .none }
        return RunLoop.tracingDelegateCall(
            call.sessionName, of: addressees.task, label: nameInRunLoops, on: driver?.loop
        ) { deliver(call, to: addressees) }
    }

    private func deliver(_ call: DelegateCall, to all: Addressees) -> DelegateCall.Answer {
        let (session, task) = (all.session, all.task)
        switch call {
        case .willSend(let request, let redirect):
            // There is no response to show with a canonical request (rule US-53).
            guard let response = redirect as? HTTPURLResponse else { return .request(request) }
            return askAboutRedirect(response, request, all)
        case .shouldUseCredentialStorage: return .usesStorage(true)
        case .challenge(let challenge, _, let isOfTLS): return show(challenge, isOfTLS: isOfTLS, to: all)
        case .didCancel: return .none
        case .needNewBodyStream:
            return ask(.bodyStream(session, task), all) { answer in
                answer.map { .bodyStream($0.stream) } ?? .noBodyStreamMethod
            }
        case .sent(let bytes, let total, let expected):
            state.withLock { state in
                state.counts.sent = Int64(total)
                state.counts.expectedToSend = Int64(expected)
            }
            showProgress()
            tell(.sent, all) { delegate in
                delegate.task?.urlSession(
                    session, task: task, didSendBodyData: Int64(bytes), totalBytesSent: Int64(total),
                    totalBytesExpectedToSend: Int64(expected))
            }
        case .response(let response, let isQuestion): return receive(response, isQuestion, all)
        case .data(let data):
            showProgress()
            receive(data, all)
        case .willCache(let cached):
            guard let task = task as? URLSessionDataTask else { return .cached(cached) }
            return ask(.willCache(session, task, cached), all, all.contentDelegates) { .cached($0 ?? cached) }
        case .wrote(let bytes, let total, let expected):
            state.withLock { $0.awaitsRest = false }
            showProgress()
            tellOfFile(.wrote, all) { delegate, task in
                delegate.urlSession(
                    session, downloadTask: task, didWriteData: Int64(bytes), totalBytesWritten: total,
                    totalBytesExpectedToWrite: expected > 0 ? expected : -1)
            }
        case .resumed(let total, let expected):
            // A connection that was lost meanwhile is no affair of the delegate's.
            guard state.withLock({ $0.awaitsRest }) else { break }
            state.withLock { $0.awaitsRest = false }
            tellOfFile(.resumed, all) { delegate, task in
                delegate.urlSession(
                    session, downloadTask: task, didResumeAtOffset: total,
                    expectedTotalBytes: expected > 0 ? expected : -1)
            }
        case .informational(let response):
            tell(.informational, all) {
                $0.task?.urlSession(session, task: task, didReceiveInformationalResponse: response)
            }
        case .waitingForConnectivity:
            tell(.waiting, all) { $0.task?.urlSession(session, taskIsWaitingForConnectivity: task) }
        case .metrics(let metrics): state.withLock { $0.metrics = metrics }
        case .upgraded(_, _, let call): call()
        case .finish: end(.success(nil))
        case .finishDownload(let file): end(.success(file))
        case .fail(let error, let partial): end(.failure(error), partial)
        }
        return .none
    }

    private func askAboutRedirect(
        _ response: HTTPURLResponse, _ request: URLRequest, _ all: Addressees
    ) -> DelegateCall.Answer {
        guard webSocket != nil else {
            return ask(.redirect(all.session, all.task, response, request), all) { .request($0 ?? request) }
        }
        let shown = WebSocketURL.shown(request)
        return ask(.redirect(all.session, all.task, response, shown), all) { answer in
            .request((answer ?? shown).flatMap { WebSocketURL.sent($0) ?? $0 })
        }
    }

    // MARK: - Delegates

    /// Calls the first of all delegates that has `method`.
    func tell(_ method: SessionMethod, _ all: Addressees, _ call: (SessionDelegateObject) -> Void) {
        tell(method, all.delegates, call)
    }

    private func tell(
        _ method: SessionMethod, _ delegates: [SessionDelegateObject], _ call: (SessionDelegateObject) -> Void
    ) {
        for delegate in delegates where !delegate.kind.lacks(method) {
            call(delegate)
            if !delegate.kind.lacks(method) { return }
        }
    }

    private func tellOfFile(
        _ method: SessionMethod, _ all: Addressees,
        _ call: (any URLSessionDownloadDelegate, URLSessionDownloadTask) -> Void
    ) {
        guard let task = all.task as? URLSessionDownloadTask else { return }
        tell(method, all.contentDelegates) { delegate in delegate.download.map { call($0, task) } }
    }

    /// Has the first delegate answer that can.
    ///
    /// - Parameters:
    ///   - delegates: Nil: all.
    ///   - answer: What its answer is to the load; nil: no delegate has such a method, or has answered.
    private func ask<Value>(
        _ question: Question<Value>, _ all: Addressees, _ delegates: [SessionDelegateObject]? = nil,
        _ answer: @escaping @Sendable (Value?) -> DelegateCall.Answer
    ) -> DelegateCall.Answer {
        let asked = question.ask(delegates ?? all.delegates, on: all.session.driver) {
            [self, load = all.load] in
            state.withLock { $0.owedAnswer = nil }
            load?.answer(answer($0))
        }
        switch asked {
        case .answered(let value): return answer(value)
        case .later:
            state.withLock { $0.owedAnswer = question.name }
            return .later
        case .notImplemented: return answer(nil)
        }
    }

    // MARK: - Challenges (rules US-55 and US-56)

    private func show(
        _ challenge: URLAuthenticationChallenge, isOfTLS: Bool, to all: Addressees
    ) -> DelegateCall.Answer {
        guard isOfTLS else { return showToTasks(challenge, all) }
        let asked = Question.session(all.session, challenge).ask(all.delegates, on: all.session.driver) {
            [self] verdict in
            if let verdict { return give(verdict, to: challenge) }
            all.session.driver.perform { _ = self.showToTasks(challenge, all) }
        }
        switch asked {
        case .answered(let verdict): give(verdict, to: challenge)
        case .later: break
        case .notImplemented: return showToTasks(challenge, all)
        }
        return .challenge(.taken)
    }

    private func showToTasks(
        _ challenge: URLAuthenticationChallenge, _ all: Addressees
    ) -> DelegateCall.Answer {
        let standard = ChallengeVerdict(.performDefaultHandling, nil)
        let asked = Question.task(all.session, all.task, challenge).ask(
            all.delegates, on: all.session.driver
        ) { [self] in give($0 ?? standard, to: challenge) }
        switch asked {
        case .answered(let verdict): give(verdict, to: challenge)
        case .later: break
        case .notImplemented: give(standard, to: challenge)
        }
        return .challenge(.taken)
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
        case .cancelAuthenticationChallenge: state.withLock { $0.task }?.cancel()
        case .rejectProtectionSpace: sender?.rejectProtectionSpaceAndContinue(with: challenge)
        }
    }

    // MARK: - Response and content

    private func receive(_ response: URLResponse, _ isQuestion: Bool, _ all: Addressees)
        -> DelegateCall.Answer
    {
        state.withLock { state in
            state.response = response
            state.counts.note(response)
            state.body = Data()
        }
        showProgress()
        let feed: ByteFeed? = if case .bytes(let feed) = all.receiver { feed } else { nil }
        guard isQuestion, let task = all.task as? URLSessionDataTask else {
            feed?.source.received(response)
            return isQuestion ? .disposition(.allow) : .none
        }
        return ask(.response(all.session, task, response), all, all.contentDelegates) { [self] disposition in
            switch disposition ?? .allow {
            case .allow:
                feed?.source.received(response)
                return .disposition(.allow)
            case .becomeDownload where isAwaited:
                Log.sessions.warning("A task that an async function waits for cannot become a download.")
                feed?.source.received(response)
                return .disposition(.allow)
            case .cancel:
                task.cancel()
                return .later
            case .becomeDownload:
                // The answer may have come on any thread.
                all.session.driver.perform { self.becomeDownload(task, response, all) }
                return .later
            }
        }
    }

    private func receive(_ data: Data, _ all: Addressees) {
        if let task = all.task as? URLSessionDataTask {
            tell(.data, all.contentDelegates) {
                $0.data?.urlSession(all.session, dataTask: task, didReceive: data)
            }
        }
        switch all.receiver {
        case .delegate, .download: break
        case .bytes(let feed): feed.source.received(data)
        case .data:
            let limit = URLConnection.maximumCollectedBytes
            let isTooMuch = state.withLock { state in
                if state.body.count + data.count > limit { return true }
                if state.body.isEmpty { state.body = data } else { state.body.append(data) }
                return false
            }
            if isTooMuch { all.load?.abort(.collectedTooMuch(limit)) }
        }
    }

    // MARK: - The end

    /// The last calls.
    ///
    /// - Parameter partial: What there is of a download that has failed.
    func end(_ outcome: Result<DownloadFile?, any Error>, _ partial: PartialDownload? = nil) {
        guard let all = addressees, !state.withLock({ $0.life.isCompleted }) else { return }
        var outcome = outcome
        // A WebSocket that has opened is closed, and not broken off, by its cancellation (rule WS-18).
        let isClosing = webSocket?.hasOpened ?? false
        let (isCanceling, givesResumeData) = state.withLock { state in
            (state.life.isCanceling, !state.resumeDataHandlers.isEmpty)
        }
        if isCanceling, !isClosing { outcome = .failure(cancellation) }
        let resumeData = !isCanceling || givesResumeData ? partial?.keep() : nil
        if let resumeData, case .failure(let error) = outcome {
            outcome = .failure(Self.error(error, resumeData))
        }
        if case .success(let file?) = outcome, all.receiver.isDelegate || !all.contentDelegates.isEmpty {
            finish(file, all)
            // That call may have cancelled the task.
            if state.withLock({ $0.life.isCanceling }) { outcome = .failure(cancellation) }
        }
        var error: (any Error)? = if case .failure(let error) = outcome { error } else { nil }
        if let webSocket { error = webSocket.end(error) }
        let (isFirst, response, body, metrics, handlers) = state.withLock { state in
            let isFirst = state.life.complete()
            if isFirst {
                state.error = error
                state.counts.received = all.load?.transferredBytes ?? 0
            }
            defer { state.resumeDataHandlers = [] }
            return (isFirst, state.response, state.body, state.metrics, state.resumeDataHandlers)
        }
        guard isFirst else { return }
        showProgress()
        for handler in handlers { handler(resumeData) }
        if let metrics { tell(metrics, all) }
        switch all.receiver {
        case .delegate:
            tell(.completed, all) {
                $0.task?.urlSession(all.session, task: all.task, didCompleteWithError: error)
            }
        case .data(let handler):
            let give: @Sendable () -> Void = { [error] in
                error == nil ? handler(body, response, nil) : handler(nil, response, error)
            }
            if !isAwaited, isCollected, let queue = all.session.driver.queue {
                queue.submit(give)
            } else {
                give()
            }
        case .download(let handler):
            if case .success(let file?) = outcome {
                handler(file.url, response, nil)
                file.discard()
            } else {
                handler(nil, response, error)
            }
        case .bytes(let feed): feed.end(error)
        }
    }

    private func finish(_ file: DownloadFile, _ all: Addressees) {
        if let task = all.task as? URLSessionDownloadTask {
            for delegate in all.contentDelegates {
                guard let delegate = delegate.download else { continue }
                delegate.urlSession(all.session, downloadTask: task, didFinishDownloadingTo: file.url)
                break
            }
        }
        if all.receiver.isDelegate { file.discard() }
    }

    private func tell(_ metrics: LoadMetrics, _ all: Addressees) {
        tell(.metrics, all) {
            $0.task?.urlSession(
                all.session, task: all.task,
                didFinishCollecting: URLSessionTaskMetrics(metrics, createdAt: createdAt))
        }
    }

    private var cancellation: URLError {
        URLErrors.error(.cancelled, "cancelled", url: state.withLock { $0.currentRequest }?.url)
    }

    /// `error` with what it takes to go on with the download.
    private static func error(_ error: any Error, _ resumeData: Data) -> any Error {
        guard let error = error as? URLError else { return error }
        var userInfo = error.userInfo
        userInfo[NSURLSessionDownloadTaskResumeData] = resumeData
        return URLError(error.code, userInfo: userInfo)
    }

    // MARK: - Progress (rule US-38)

    func progress(of task: URLSessionTask) -> Progress {
        let received = bytesReceived
        return state.withLock { state in
            let values = Self.progressValues(state, received: received)
            return state.progress.object(
                showing: values, cancel: { [weak task] in task?.cancel() },
                pause: { [weak task] in task?.suspend() }, resume: { [weak task] in task?.resume() })
        }
    }

    private func showProgress() {
        let (progress, load) = state.withLock { ($0.progress.current, $0.load) }
        guard let progress else { return }
        let values = state.withLock { state in
            Self.progressValues(state, received: load?.transferredBytes ?? state.counts.received)
        }
        // Those that it is a part of may be the program's.
        values.show(in: progress)
    }

    private static func progressValues(_ state: State, received: Int64) -> TaskProgress.Values {
        TaskProgress.Values(
            state.counts, received: received, hasResponse: state.response != nil,
            hasSucceeded: state.life.isCompleted && state.error == nil)
    }

    // MARK: - Becoming a download (rule US-46)

    private func becomeDownload(_ dataTask: URLSessionDataTask, _ response: URLResponse, _ all: Addressees) {
        let download = URLSessionDownloadTask(self, identifier: all.session.table.nextIdentifier())
        let isRunning = state.withLock { state in
            guard state.life.isOutstanding, state.successor == nil, state.task === dataTask else {
                return false
            }
            state.task = download
            state.successor = download.taskIdentifier
            // The new task has one of its own.
            state.progress = TaskProgress()
            return true
        }
        guard isRunning else { return }
        all.session.table.replace(dataTask, by: download)
        tell(.becameDownload, all) {
            $0.data?.urlSession(all.session, dataTask: dataTask, didBecome: download)
        }
        all.load?.answer(.disposition(.becomeDownload(response)))
    }
}

extension DelegateCall {
    /// What traces call it.
    fileprivate var sessionName: String {
        switch self {
        case .willSend: "willPerformHTTPRedirection"
        case .shouldUseCredentialStorage: "shouldUseCredentialStorage"
        case .challenge: "didReceive challenge"
        case .didCancel: "didCancel challenge"
        case .needNewBodyStream: "needNewBodyStream"
        case .sent: "didSendBodyData"
        case .response: "didReceive response"
        case .data: "didReceive data"
        case .willCache: "willCacheResponse"
        case .wrote: "didWriteData"
        case .resumed: "didResumeAtOffset"
        case .informational: "didReceiveInformationalResponse"
        case .waitingForConnectivity: "taskIsWaitingForConnectivity"
        case .metrics: "didFinishCollecting metrics"
        case .upgraded(let name, _, _): name
        case .finish, .finishDownload, .fail: "didCompleteWithError"
        }
    }
}

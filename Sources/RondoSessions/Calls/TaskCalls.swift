internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex

/// The calls of one task: turns the calls of its work into calls of delegate methods or of a completion
/// handler.
///
/// While the task runs, its session and this object own each other; the last call releases everything.
final class TaskCalls: TaskClient, Sendable {
    /// The task object of the calls, and what keeps it alive.
    private enum Ownership {
        /// The task has not begun: only the program owns it. It may have ended in an invalidated session.
        case made(WeakTask)
        /// Owned from `begin()` to the last call. It is a different object once the task has become a
        /// download, or if the program has released a task that only it owned.
        ///
        /// `isCollected` is that of `TaskClient`.
        case owned(URLSessionTask, isCollected: Bool)
        /// The task runs, and only the program keeps it alive (rule WS-27).
        case loose(WeakTask)
        /// Made for a call while another thread deallocates the loose task, whose replacement it becomes.
        case standIn(URLSessionTask)
        case ended

        mutating func end() {
            if case .made = self { return }
            self = .ended
        }
    }

    private struct State {
        /// Nil once the task has ended.
        var session: URLSession?
        /// The calls of the session, with its delegate; nil once the task has ended, so that a finished task
        /// keeps neither alive.
        var sessionCalls: SessionCalls?
        var ownership = Ownership.made(WeakTask())
        /// The task's own delegate.
        var delegate: SessionDelegateObject?
        var receiver: TaskReceiver
        /// The body for a completion handler.
        var body = CollectedBody()

        /// The task to make calls with; nil before it has begun and once it has ended.
        ///
        /// - Parameter work: Allows to make a new task object if the program has released the old one; nil
        ///   does not.
        mutating func currentTask(of work: TaskWork?, _ calls: TaskCalls) -> URLSessionTask? {
            switch ownership {
            case .made, .ended: return nil
            case .owned(let task, isCollected: _), .standIn(let task): return task
            case .loose(let loose):
                if let task = loose.task { return task }
                guard let work, let shared = work.webSocket else { return nil }
                let new = URLSessionWebSocketTask(
                    .init(work: work, calls: calls), shared, identifier: work.identifier)
                ownership = .standIn(new)
                return new
            }
        }
    }

    private let identifier: Int
    private let isAwaited: Bool
    private let state: Mutex<State>

    init(
        _ identifier: Int, _ session: URLSession, _ sessionCalls: SessionCalls, _ receiver: TaskReceiver,
        isAwaited: Bool
    ) {
        self.identifier = identifier
        self.isAwaited = isAwaited
        state = Mutex(State(session: session, sessionCalls: sessionCalls, receiver: receiver))
    }

    deinit {
        let session = state.withLock { state -> URLSession? in
            if case .made = state.ownership { state.session } else { nil }
        }
        session?.table.forget(identifier)
    }

    /// The targets of a call; nil once the task has ended.
    ///
    /// - Parameters:
    ///   - work: The work of the task, if a call is about to be made.
    ///   - new: The task, if it has not begun.
    private func targets(of work: TaskWork? = nil, created new: URLSessionTask? = nil) -> CallTargets? {
        let (session, sessionCalls, task, receiver, own) = state.withLock {
            ($0.session, $0.sessionCalls, new ?? $0.currentTask(of: work, self), $0.receiver, $0.delegate)
        }
        guard let session, let task else { return nil }
        let ofSession = sessionCalls?.delegateObject
        return CallTargets(
            session: session, task: task, receiver: receiver,
            delegates: AskedDelegates(own: own, ofSession: ofSession),
            contentDelegates: AskedDelegates(
                own: receiver.isDelegate || isAwaited ? own : nil,
                ofSession: receiver.isDelegate ? ofSession : nil))
    }

    private var sessionDelegate: SessionDelegateObject? { state.withLock { $0.sessionCalls }?.delegateObject }

    // MARK: - TaskClient

    func begin() -> Bool {
        let hasSessionDelegate = sessionDelegate != nil
        let begun = state.withLock { state -> (URLSession, URLSessionTask)? in
            guard let session = state.session, case .made(let made) = state.ownership, let task = made.task
            else { return nil }
            let hasDelegate = hasSessionDelegate || state.delegate != nil
            let mayCollect = if case .data = state.receiver { true } else { isAwaited }
            state.ownership = .owned(task, isCollected: mayCollect && !hasDelegate)
            return (session, task)
        }
        guard let (session, task) = begun else { return false }
        return session.table.retain(task)
    }

    var isCollected: Bool {
        state.withLock { state in
            guard case .owned(_, isCollected: let isCollected) = state.ownership else { return false }
            return isCollected
        }
    }

    var defaults: DelegateDefaults {
        let (isDelegate, own) = state.withLock { ($0.receiver.isDelegate, $0.delegate) }
        let session = sessionDelegate
        if let own {
            let defaults = DelegateDefaults(lacking: [own.kind] + (session.map { [$0.kind] } ?? []))
            if !isDelegate, !isAwaited { defaults.insert(.willCacheResponse) }
            return defaults
        }
        guard let session else { return .ofNoDelegate }
        return isDelegate ? session.kind.ofTasks : session.kind.ofHandlers
    }

    var decidesOnResponses: Bool {
        guard let targets = targets() else { return false }
        return !targets.contentDelegates.allSatisfy { $0.kind.lacks(.response, .responseAsync) }
    }

    var wantsInformational: Bool {
        guard let targets = targets() else { return false }
        return !targets.delegates.allSatisfy { $0.kind.lacks(.informational) }
    }

    /// False unless it is known that the task's own delegate has not decided about its server: its verdict
    /// holds for no other task (rule US-58). It is asked before the session's delegate, first by the
    /// session's methods and then by the task's (rules US-40 and US-55); that a class lacks a method is known
    /// once it was asked.
    var sharesTrustDecisions: Bool {
        let (isShared, own) = state.withLock { ($0.session?.engine.isShared ?? true, $0.delegate) }
        guard !isShared else { return false }
        guard let own else { return true }
        guard own.kind.lacks(.sessionChallenge, .sessionChallengeAsync) else { return false }
        if let sessionDelegate, !sessionDelegate.kind.lacks(.sessionChallenge, .sessionChallengeAsync) {
            return true
        }
        return own.kind.lacks(.taskChallenge, .taskChallengeAsync)
    }

    func make(_ call: DelegateCall, of work: TaskWork) -> DelegateCall.Reply {
        guard let all = targets(of: work) else { return .none }
        return RunLoop.tracingDelegateCall(
            call.names.session, of: all.task, label: work.nameInRunLoops,
            on: all.session.engine.schedule.servingLoop
        ) { deliver(call, of: work, to: all) }
    }

    func endBeforeStart(_ error: URLError, of work: TaskWork) {
        let old = releaseReferences()
        if let schedule = old.session?.engine.schedule { old.receiver.fail(error, of: work, on: schedule) }
    }

    func workDidEnd() {
        var old = releaseReferences()
        let task = old.currentTask(of: nil, self)
        old.session?.taskDidEnd(task?.taskIdentifier ?? identifier)
    }

    /// Releases the references that calls need; no call can be made afterwards.
    ///
    /// - Returns: The old references, to be released after the lock.
    private func releaseReferences() -> State {
        state.withLock { state in
            let old = state
            state.session = nil
            state.sessionCalls = nil
            state.ownership.end()
            state.receiver = .delegate
            state.delegate = nil
            state.body = CollectedBody()
            return old
        }
    }

    // MARK: - Calls

    private func deliver(_ call: DelegateCall, of work: TaskWork, to all: CallTargets) -> DelegateCall.Reply {
        let (session, task) = (all.session, all.task)
        switch call {
        case .willSend(let request, let redirect):
            // A canonical request has no response to show (rule US-53).
            guard let response = redirect as? HTTPURLResponse else { return .request(request) }
            return askAboutRedirect(response, request, of: work, all)
        case .shouldUseCredentialStorage: return .usesStorage(true)
        case .challenge(let challenge, _, let isOfTLS):
            all.show(challenge, isOfTLS: isOfTLS, of: work)
            return .challenge(.taken)
        case .needNewBodyStream:
            return all.ask(.bodyStream(session, task), of: work) { given in
                given.map { .bodyStream($0.stream) } ?? .noBodyStreamMethod
            }
        case .sent(let bytes, let total, let expected):
            all.tellSent(bytes, total: total, expected: expected)
        case .response(let response, let isQuestion): return receive(response, isQuestion, of: work, all)
        case .data(let data): receive(data, of: work, all)
        case .willCache(let cached):
            guard let task = task as? URLSessionDataTask else { return .cached(cached) }
            return all.ask(.willCache(session, task, cached), of: work, all.contentDelegates) {
                .cached($0 ?? cached)
            }
        case .wrote(let bytes, let total, let expected):
            all.tellWrote(bytes, total: total, expected: expected)
        case .resumed(let total, let expected):
            all.tellResumed(at: total, expected: expected)
        case .informational(let response):
            all.tell(.informational) {
                $0.task?.urlSession(session, task: task, didReceiveInformationalResponse: response)
            }
        case .waitingForConnectivity:
            all.tell(.waiting) { $0.task?.urlSession(session, taskIsWaitingForConnectivity: task) }
        case .upgraded(_, _, let call): call()
        case .didCancel, .metrics: break
        case .finish: end(.success(nil), of: work, all)
        case .finishDownload(let file): end(.success(file), of: work, all)
        case .fail(let error, let partial): end(.failure(error), partial, of: work, all)
        }
        return .none
    }

    private func askAboutRedirect(
        _ response: HTTPURLResponse, _ request: URLRequest, of work: TaskWork, _ all: CallTargets
    ) -> DelegateCall.Reply {
        guard work.webSocket != nil else {
            return all.ask(.redirect(all.session, all.task, response, request), of: work) {
                .request($0 ?? request)
            }
        }
        let shown = WebSocketURL.shown(request)
        return all.ask(.redirect(all.session, all.task, response, shown), of: work) { reply in
            .request((reply ?? shown).flatMap { WebSocketURL.sent($0) ?? $0 })
        }
    }

    // MARK: - Response and content

    private func receive(
        _ response: URLResponse, _ isQuestion: Bool, of work: TaskWork, _ all: CallTargets
    ) -> DelegateCall.Reply {
        state.withLock { $0.body.begin(response) }
        let feed = all.receiver.feed
        guard isQuestion, let task = all.task as? URLSessionDataTask else {
            feed?.source.received(response)
            return isQuestion ? .disposition(.allow) : .none
        }
        return all.ask(.response(all.session, task, response), of: work, all.contentDelegates) {
            [self] disposition in
            switch disposition ?? .allow {
            case .allow:
                feed?.source.received(response)
                return .disposition(.allow)
            case .becomeDownload where isAwaited:
                Log.sessions.warning("A task that an async function waits for cannot become a download.")
                feed?.source.received(response)
                return .disposition(.allow)
            case .becomeStream where !work.hasUpgraded || isAwaited:
                Log.sessions.warning(
                    "A data task can become a stream task only by a 101 response to an Upgrade in its request."
                )
                task.cancel()
                return .later
            case .becomeStream:
                work.perform { self.becomeStream(task, of: work, all) }
                return .later
            case .cancel:
                task.cancel()
                return .later
            case .becomeDownload:
                // The reply may have been given on any thread.
                work.perform { self.becomeDownload(task, response, of: work, all) }
                return .later
            }
        }
    }

    private func receive(_ data: Data, of work: TaskWork, _ all: CallTargets) {
        if let task = all.task as? URLSessionDataTask {
            all.tell(.data, all.contentDelegates) {
                $0.data?.urlSession(all.session, dataTask: task, didReceive: data)
            }
        }
        switch all.receiver {
        case .delegate, .download: break
        case .bytes(let feed): feed.source.received(data)
        case .data:
            if let failure = state.withLock({ $0.body.add(data) }) { work.abort(failure) }
        }
    }

    /// Makes a download task that takes the place of the data task (rule US-46).
    private func becomeDownload(
        _ dataTask: URLSessionDataTask, _ response: URLResponse, of work: TaskWork, _ all: CallTargets
    ) {
        let download = URLSessionDownloadTask(
            .init(work: work, calls: self), identifier: all.session.table.nextIdentifier())
        guard work.pass(to: download.taskIdentifier) else { return }
        state.withLock { $0.ownership = .owned(download, isCollected: false) }
        all.session.table.replace(dataTask, by: download)
        all.tell(.becameDownload) {
            $0.data?.urlSession(all.session, dataTask: dataTask, didBecome: download)
        }
        work.reply(.disposition(.becomeDownload(response)))
    }

    /// Makes a stream task that takes the place of the data task (rule US-47).
    private func becomeStream(_ dataTask: URLSessionDataTask, of work: TaskWork, _ all: CallTargets) {
        guard work.isOutstanding else { return }
        let url = dataTask.currentRequest?.url
        let shared = StreamTaskState(
            host: url?.host ?? "", port: url?.port ?? (url?.scheme == "https" ? 443 : 80),
            schedule: all.session.engine.schedule, awaitsConnection: true)
        let stream = all.session.making.stream(over: shared)
        if let own = state.withLock({ $0.delegate })?.task { stream.delegate = own }
        // The stream task begins before the data task ends, so that the session is never without a task.
        stream.resume()
        all.tell(.becameStream) {
            $0.data?.urlSession(all.session, dataTask: dataTask, didBecome: stream)
        }
        if !work.becomeStream(shared, successor: stream.taskIdentifier) { shared.loseConnection() }
    }

    // MARK: - The end

    /// Makes the last calls of the task.
    ///
    /// - Parameter partial: The part that has arrived of a download that failed.
    private func end(
        _ outcome: Result<DownloadFile?, any Error>, _ partial: PartialDownload? = nil, of work: TaskWork,
        _ all: CallTargets
    ) {
        guard let (known, resumeData) = work.outcome(outcome, partial) else { return }
        var outcome = known
        if case .success(let file?) = outcome, all.receiver.isDelegate {
            all.finish(file)
            // The delegate may have cancelled the task in that call.
            if work.isCanceling { outcome = .failure(work.cancellation) }
        }
        var error: (any Error)? = if case .failure(let error) = outcome { error } else { nil }
        if let webSocket = work.webSocket { error = webSocket.end(error) }
        work.plan.stream?.end(error)
        guard let ending = work.complete(error), !ending.isSilent else { return }
        for handler in ending.resumeDataHandlers { handler(resumeData) }
        if let metrics = ending.metrics {
            all.tell(.metrics) {
                $0.task?.urlSession(
                    all.session, task: all.task,
                    didFinishCollecting: URLSessionTaskMetrics(metrics, createdAt: work.createdAt))
            }
        }
        giveOutcome(outcome, ending.response, error, of: work, to: all)
    }

    /// Makes the last call: of the delegate, the completion handler or the reader.
    private func giveOutcome(
        _ outcome: Result<DownloadFile?, any Error>, _ response: URLResponse?, _ error: (any Error)?,
        of work: TaskWork, to all: CallTargets
    ) {
        switch all.receiver {
        case .delegate:
            all.tell(.completed) {
                $0.task?.urlSession(all.session, task: all.task, didCompleteWithError: error)
            }
        case .data(let handler):
            let body = error == nil ? takeBody() : nil
            guard !isAwaited, isCollected, let queue = all.session.engine.schedule.queue else {
                return handler(body, response, error)
            }
            work.noteHandler(waits: true)
            queue.submit {
                work.noteHandler(waits: false)
                handler(body, response, error)
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

    private func takeBody() -> Data { state.withLock { $0.body.data } }
}

extension TaskCalls: TaskDelegation {
    func belong(to task: URLSessionTask) { state.withLock { $0.ownership = .made(WeakTask(task: task)) } }

    var delegate: (any URLSessionTaskDelegate)? { state.withLock { $0.delegate }?.task }

    func setDelegate(_ delegate: (any URLSessionTaskDelegate)?) -> Bool {
        let object = delegate.map { SessionDelegateObject($0) }
        let (isLate, old) = state.withLock { state -> (Bool, SessionDelegateObject?) in
            guard case .made = state.ownership else { return (true, nil) }
            defer { state.delegate = object }
            return (false, state.delegate)
        }
        withExtendedLifetime(old) {}
        return !isLate
    }

    func loosen() {
        let loosened = state.withLock { state -> (URLSession, URLSessionTask)? in
            guard let session = state.session,
                let task = state.currentTask(of: nil, self) as? URLSessionWebSocketTask
            else { return nil }
            state.ownership = .loose(WeakTask(task: task))
            return (session, task)
        }
        // If the program has released the task already, `loosened` is its last reference.
        if let (session, task) = loosened { session.table.loosen(task.taskIdentifier) }
    }

    func replacement(of work: TaskWork) -> URLSessionTask? {
        let (session, task) = state.withLock { state -> (URLSession?, URLSessionTask?) in
            if case .owned = state.ownership { return (nil, nil) }
            guard let task = state.currentTask(of: work, self) else { return (nil, nil) }
            state.ownership = .owned(task, isCollected: false)
            return (state.session, task)
        }
        guard let session, let task, session.table.retain(task) else { return nil }
        return task
    }

    func tellCreated(_ task: URLSessionTask) {
        guard let all = targets(created: task) else { return }
        all.tell(.created) { $0.task?.urlSession(all.session, didCreateTask: task) }
    }
}

extension TaskCalls: WebSocketClient {
    func tellOpened(_ subprotocol: String?) {
        guard let all = targets(), let task = all.task as? URLSessionWebSocketTask else { return }
        all.tell(.opened) {
            $0.webSocket?.urlSession(all.session, webSocketTask: task, didOpenWithProtocol: subprotocol)
        }
    }

    func tellClosed(_ code: Int, _ reason: Data?) {
        guard let all = targets(), let task = all.task as? URLSessionWebSocketTask,
            let code = URLSessionWebSocketTask.CloseCode(rawValue: code)
        else { return }
        all.tell(.closed) {
            $0.webSocket?.urlSession(all.session, webSocketTask: task, didCloseWith: code, reason: reason)
        }
    }
}

extension TaskCalls: StreamClient {
    /// Calls the first delegate that implements `method`.
    private func tellOfStream(
        _ method: SessionMethod,
        _ call: (any URLSessionStreamDelegate, URLSession, URLSessionStreamTask) -> Void
    ) {
        guard let all = targets(), let task = all.task as? URLSessionStreamTask else { return }
        all.tell(method) { delegate in delegate.stream.map { call($0, all.session, task) } }
    }

    func tellReadClosed() { tellOfStream(.readClosed) { $0.urlSession($1, readClosedFor: $2) } }
    func tellWriteClosed() { tellOfStream(.writeClosed) { $0.urlSession($1, writeClosedFor: $2) } }

    func tellCaptured(_ streams: CapturedStreams) {
        tellOfStream(.captured) {
            $0.urlSession($1, streamTask: $2, didBecome: streams.input, outputStream: streams.output)
        }
    }
}

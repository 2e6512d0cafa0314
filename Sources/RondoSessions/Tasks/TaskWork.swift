internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex

/// What a task does: its load, and where it stands. The calls that tell of it are in `TaskCalls`.
///
/// While it runs its session holds it, and it holds its session; with its last call it lets go of everything.
final class TaskWork: LoadClient, Sendable {
    struct State {
        var life = TaskLife()
        /// Nil once the task has ended.
        var session: URLSession?
        /// Held from the first `resume()` to the last call.
        var task: URLSessionTask?
        /// The identifier of the task that has taken the place of the one that was made with this.
        var successor: Int?
        var load: Load?
        var receiver: TaskReceiver
        /// The task's own.
        var delegate: SessionDelegateObject?
        var currentRequest: URLRequest?
        var response: URLResponse?
        var error: (any Error)?
        var description: String?
        var priority: Float = URLSessionTask.defaultPriority
        var earliestBeginDate: Date?
        var prefersIncrementalDelivery = true
        var counts = TaskCounts()
        var progress = TaskProgress()
        /// Get what there is of a download, before the end.
        var resumeDataHandlers: [@Sendable (Data?) -> Void] = []
        /// The rest of an earlier download may be told of still.
        var awaitsRest = false
        /// What a completion handler is to get.
        var body = Data()
        /// The delegate's method that has not answered yet, for explanations.
        var owedAnswer: String?
        /// Told right before the end.
        var metrics: LoadMetrics?
        /// No delegate hears of the task.
        var hasNoDelegates = false
    }

    let identifier: Int
    let kind: TaskKind
    /// An async function waits for it: its own delegate hears of the content, and no other (rule US-83).
    let isAwaited: Bool
    let originalRequest: URLRequest?
    let content: TaskContent
    let createdAt = Date()
    let driver: SessionDriver?
    /// Of a WebSocket task.
    let webSocket: WebSocketLink?
    let state: Mutex<State>
    private let live = LiveObject(.sessionTask)

    /// - Parameter request: As it was given; nil: the task fails when it begins.
    init(
        _ session: URLSession, _ request: URLRequest?, _ kind: TaskKind, _ receiver: TaskReceiver,
        _ content: TaskContent = .ofRequest, webSocket: WebSocketLink? = nil, isAwaited: Bool = false
    ) {
        self.webSocket = webSocket
        identifier = session.table.nextIdentifier()
        self.isAwaited = isAwaited
        self.kind = kind
        self.content = content
        originalRequest = request
        driver = session.driver
        let prepared = content.prepare(session.values.configured(request ?? TaskContent.noRequest))
        var state = State(session: session, receiver: receiver, currentRequest: prepared)
        state.counts.expectedToSend = UploadBody.length(of: prepared)
        state.awaitsRest = content.isRest
        self.state = Mutex(state)
    }

    /// Of no session: it never does anything.
    init() {
        identifier = 0
        kind = .data
        webSocket = nil
        isAwaited = false
        originalRequest = nil
        content = .ofRequest
        driver = nil
        state = Mutex(State(receiver: .delegate))
    }

    deinit {
        let state = state.withLock { $0 }
        if !state.life.wasResumed { state.session?.table.forget(identifier) }
    }

    /// Bytes of the response's body, as they were transferred.
    var bytesReceived: Int64 {
        let (load, counted) = state.withLock { ($0.load, $0.counts.received) }
        return load?.transferredBytes ?? counted
    }

    var isOutstanding: Bool { state.withLock { $0.life.isOutstanding } }

    // MARK: - What the program says

    func resume(_ task: URLSessionTask) { change(task) { $0.resume() } }
    func suspend(_ task: URLSessionTask) { change(task) { $0.suspend() } }
    func cancel(_ task: URLSessionTask) { change(task) { $0.cancel() } }

    private func change(_ task: URLSessionTask, _ change: @Sendable (inout TaskLife) -> TaskLife.Action) {
        let number = task.taskIdentifier
        let action = state.withLock { state in
            // Another task may have taken its place.
            number == state.successor ?? identifier ? change(&state.life) : .nothing
        }
        perform(action, task)
    }

    func state(of task: URLSessionTask) -> URLSessionTask.State {
        let number = task.taskIdentifier
        return state.withLock { number == $0.successor ?? identifier ? $0.life.state : .completed }
    }

    private func perform(_ action: TaskLife.Action, _ task: URLSessionTask) {
        switch action {
        case .nothing: break
        case .start, .abortUnresumed: start(task)
        case .applySuspension: applySuspension()
        case .abort: abort()
        }
    }

    private func abort() {
        let (load, keeps) = state.withLock { ($0.load, !$0.resumeDataHandlers.isEmpty) }
        load?.abort(.cancelled, keepingDownload: keeps)
    }

    /// - Parameter handler: Called once, where the session's calls come: before the end is told, if that is still to come.
    func cancel(_ task: URLSessionTask, givingResumeData handler: @escaping @Sendable (Data?) -> Void) {
        let number = task.taskIdentifier
        let action = state.withLock { state -> TaskLife.Action? in
            guard number == state.successor ?? identifier, !state.life.isCompleted else { return nil }
            state.resumeDataHandlers.append(handler)
            return state.life.cancel()
        }
        guard let action else {
            driver?.perform { handler(nil) }
            return
        }
        perform(action, task)
    }

    /// Several threads may come here at once: the last one leaves the load as it should be.
    private func applySuspension() {
        while true {
            let (load, isSuspended) = state.withLock { ($0.load, $0.life.isSuspended) }
            guard let load else { return }
            if isSuspended { load.suspend() } else { load.resume() }
            if state.withLock({ $0.life.isSuspended }) == isSuspended { return }
        }
    }

    // MARK: - The load

    private func start(_ task: URLSessionTask) {
        let (session, request, delegate) = state.withLock { state in
            state.task = task
            state.hasNoDelegates = state.delegate == nil && state.session?.delegateObject == nil
            return (state.session, state.currentRequest, state.delegate)
        }
        guard let session, let request else { return }
        guard session.table.hold(task) else { return endUnborn(task) }
        let order = content.order(request)
        let sent: URLRequest
        do throws(URLError) {
            sent = try sentRequest(order.request)
        } catch {
            return session.driver.perform { [self] in
                end(.failure(error))
                loadDidEnd()
            }
        }
        state.withLock { state in
            state.currentRequest = order.request
            state.counts.expectedToSend = UploadBody.length(of: order.request)
        }
        let schedule: [LoopMode]
        do throws(SystemError) {
            schedule = try session.driver.schedule()
        } catch {
            let failure = URLErrors.noThread(error, url: request.url)
            return session.driver.perform { [self] in
                end(.failure(failure), order.earlier)
                loadDidEnd()
            }
        }
        let load = Load(
            for: self, request: LoadRequest(sent), schedule: schedule, settings: session.settings,
            defaults: defaults(session.delegateObject, delegate), writesFile: kind == .download,
            continuing: order.earlier, upgrade: webSocket.map { WebSocketWire($0) })
        let (isSuspended, isCanceling, priority) = state.withLock { state in
            state.load = load
            return (state.life.isSuspended, state.life.isCanceling, state.priority)
        }
        load.priority = priority
        if isSuspended { load.suspend() }
        if isCanceling { abort() }
        if let failure = order.failure { load.abort(failure) }
        load.start()
        // Another thread may have found no load meanwhile.
        applySuspension()
        if state.withLock({ $0.life.isCanceling }) { abort() }
    }

    func setPriority(_ priority: Float) {
        let priority = priority.isNaN ? URLSessionTask.defaultPriority : min(max(priority, 0), 1)
        let load = state.withLock { state in
            state.priority = priority
            return state.load
        }
        load?.priority = priority
    }

    /// What the load can know of the delegates.
    private func defaults(_ session: SessionDelegateObject?, _ own: SessionDelegateObject?)
        -> DelegateDefaults
    {
        let isDelegate = state.withLock { $0.receiver.isDelegate }
        if let own {
            let defaults = DelegateDefaults(lacking: [own.kind] + (session.map { [$0.kind] } ?? []))
            if !isDelegate, !isAwaited { defaults.insert(.willCacheResponse) }
            return defaults
        }
        guard let session else { return .ofNoDelegate }
        return isDelegate ? session.kind.ofTasks : session.kind.ofHandlers
    }

    // MARK: - LoadClient

    /// A load that was cancelled has its last call to make still.
    var isCancelled: Bool { false }

    var keepsPartialDownloads: Bool { true }

    var nameInRunLoops: String? {
        if let description = state.withLock({ $0.description }) { return description }
        return RunLoop.isTraced ? originalRequest?.url.map { ($0.host ?? "") + $0.path } : nil
    }

    /// Nil too where nothing but an async function or a handler at the end is told of the task: the driver collects the
    /// content, resumes the one by itself, and has the other called on the queue.
    var delegateQueue: DelegateQueue? { isCollected ? nil : driver?.queue }

    /// There is no delegate: content goes to an async function, or to a completion handler with the end.
    var isCollected: Bool {
        state.withLock { state in
            guard state.hasNoDelegates else { return false }
            if case .data = state.receiver { return true }
            return isAwaited
        }
    }

    /// The program wants no more content at present, or again. Any thread.
    func holdBack(_ holds: Bool) { state.withLock { $0.load }?.holdBack(holds) }

    func setCurrentRequest(_ request: URLRequest) {
        let shown = webSocket == nil ? request : WebSocketURL.shown(request)
        state.withLock { $0.currentRequest = shown }
    }

    func loadDidEnd() {
        let old = state.withLock { state in
            let old = state
            state.session = nil
            state.task = nil
            state.load = nil
            state.receiver = .delegate
            state.delegate = nil
            state.body = Data()
            state.metrics = nil
            return old
        }
        webSocket?.loadDidEnd()
        if let task = old.task { old.session?.taskDidEnd(task) }
    }

    // MARK: - The end

    /// The session takes no tasks any more: the task is over before it has begun (rule US-75).
    func endUnborn(_ task: URLSessionTask) {
        let error = URLErrors.error(
            .cancelled, "The session was invalidated: it makes no more tasks.", url: originalRequest?.url)
        let (receiver, handlers) = state.withLock { state in
            guard state.life.complete() else {
                return (TaskReceiver.delegate, [] as [@Sendable (Data?) -> Void])
            }
            state.error = error
            state.session = nil
            state.task = nil
            defer {
                state.receiver = .delegate
                state.resumeDataHandlers = []
            }
            return (state.receiver, state.resumeDataHandlers)
        }
        if let webSocket { driver?.perform { _ = webSocket.end(error) } }
        for handler in handlers { driver?.perform { handler(nil) } }
        switch receiver {
        case .delegate: break
        case .data(let handler): driver?.perform { handler(nil, nil, error) }
        case .download(let handler): driver?.perform { handler(nil, nil, error) }
        case .bytes(let feed): feed.end(error)
        }
    }
}

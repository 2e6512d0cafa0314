internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex

/// What a task does: its load, and where it stands. What it tells goes to its audience.
///
/// With its last call it lets go of everything.
final class TaskWork: Sendable {
    struct State {
        var life = TaskLife()
        /// The identifier of the task that has taken the place of the one that was made with this.
        var successor: Int?
        var load: (any TaskLoad)?
        /// Of a data task whose request asks for another protocol.
        var upgrade: StreamUpgrade?
        /// A stream task has taken its place.
        var hasBecomeStream = false
        var currentRequest: URLRequest?
        var response: URLResponse?
        var error: (any Error)?
        var description: String?
        var priority = TaskWork.defaultPriority
        var earliestBeginDate: Date?
        var prefersIncrementalDelivery = true
        var counts = TaskCounts()
        var progress = TaskProgress()
        /// Get what there is of a download, before the end.
        var resumeDataHandlers: [@Sendable (Data?) -> Void] = []
        /// The rest of an earlier download may be told of still.
        var awaitsRest = false
        /// The delegate's method that has not answered yet, for explanations.
        var owedAnswer: String?
        /// Told right before the end.
        var metrics: LoadMetrics?
    }

    static let defaultPriority: Float = 0.5

    let identifier: Int
    let plan: TaskPlan
    let createdAt = Date()
    /// Nil: of no session, as `audience`.
    let engine: SessionEngine?
    let audience: (any TaskAudience)?
    let state: Mutex<State>
    private let live = LiveObject(.sessionTask)

    init(_ identifier: Int, _ plan: TaskPlan, by engine: SessionEngine, for audience: any TaskAudience) {
        self.identifier = identifier
        self.plan = plan
        self.engine = engine
        self.audience = audience
        let prepared = plan.content.prepare(engine.values.configured(plan.request ?? TaskContent.noRequest))
        // A stream has no request.
        var state = State(currentRequest: plan.kind == .stream ? nil : prepared)
        state.counts.expectedToSend = UploadBody.length(of: prepared)
        state.awaitsRest = plan.content.isRest
        self.state = Mutex(state)
    }

    /// Of no session: it never does anything.
    init() {
        identifier = 0
        plan = TaskPlan(.data, nil)
        engine = nil
        audience = nil
        state = Mutex(State())
    }

    var webSocket: WebSocketLink? { plan.webSocket }

    /// Bytes of the response's body, as they were transferred.
    var bytesReceived: Int64 {
        let (load, counted) = state.withLock { ($0.load, $0.counts.received) }
        return load?.transferredBytes ?? counted
    }

    var isOutstanding: Bool { state.withLock { $0.life.isOutstanding } }
    var isCanceling: Bool { state.withLock { $0.life.isCanceling } }

    // MARK: - What the program says

    // `number` is the identifier of the task that the program has: another one may have taken its place, and then nothing
    // that is said to it counts.

    func resume(_ number: Int) { change(number) { $0.resume() } }
    func suspend(_ number: Int) { change(number) { $0.suspend() } }
    func cancel(_ number: Int) { change(number) { $0.cancel() } }

    private func change(_ number: Int, _ change: @Sendable (inout TaskLife) -> TaskLife.Action) {
        perform(
            state.withLock { state in
                number == state.successor ?? identifier ? change(&state.life) : .nothing
            })
    }

    func standing(of number: Int) -> TaskLife.Standing {
        state.withLock { number == $0.successor ?? identifier ? $0.life.standing : .completed }
    }

    private func perform(_ action: TaskLife.Action) {
        switch action {
        case .nothing: break
        case .start, .abortUnresumed: start()
        case .applySuspension: applySuspension()
        case .abort: abort()
        }
    }

    private func abort() {
        let (load, keeps) = state.withLock { ($0.load, !$0.resumeDataHandlers.isEmpty) }
        load?.abort(.cancelled, keepingDownload: keeps)
    }

    /// - Parameter handler: Called once, where the session's calls come: before the end is told, if that is still to come.
    func cancel(_ number: Int, givingResumeData handler: @escaping @Sendable (Data?) -> Void) {
        let action = state.withLock { state -> TaskLife.Action? in
            guard number == state.successor ?? identifier, !state.life.isCompleted else { return nil }
            state.resumeDataHandlers.append(handler)
            return state.life.cancel()
        }
        guard let action else {
            engine?.driver.perform { handler(nil) }
            return
        }
        perform(action)
    }

    /// The task is being cancelled, by a closing handshake: it goes on if it was suspended.
    func beginClosing() {
        let load = state.withLock { state in
            _ = state.life.cancel()
            return state.load
        }
        load?.resume()
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

    func setPriority(_ priority: Float) {
        let priority = priority.isNaN ? Self.defaultPriority : min(max(priority, 0), 1)
        let load = state.withLock { state in
            state.priority = priority
            return state.load
        }
        load?.priority = priority
    }

    /// The program wants no more content at present, or again. Any thread.
    func holdBack(_ holds: Bool) { state.withLock { $0.load }?.holdBack(holds) }

    // MARK: - The beginning

    private func start() {
        guard let engine, let audience else { return }
        let request = state.withLock { $0.currentRequest } ?? TaskContent.noRequest
        guard audience.begin() else { return endUnborn() }
        let order = plan.content.order(request)
        let sent: URLRequest
        do throws(URLError) {
            sent = try webSocket?.sentRequest(order.request) ?? order.request
        } catch {
            return fail(error)
        }
        state.withLock { state in
            if state.currentRequest != nil { state.currentRequest = order.request }
            state.counts.expectedToSend = UploadBody.length(of: order.request)
        }
        let schedule: [LoopMode]
        do throws(SystemError) {
            schedule = try engine.driver.schedule()
        } catch {
            return fail(URLErrors.noThread(error, url: plan.stream?.url ?? request.url), order.earlier)
        }
        let load: any TaskLoad =
            if let stream = plan.stream {
                StreamLoad(for: self, stream, schedule: schedule, by: engine)
            } else {
                Load(
                    for: self, request: LoadRequest(sent), schedule: schedule, settings: engine.settings,
                    defaults: audience.defaults, writesFile: plan.kind == .download,
                    continuing: order.earlier,
                    upgrade: webSocket.map { WebSocketWire($0) } ?? streamUpgrade(order.request))
            }
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
        if self.isCanceling { abort() }
    }

    /// What can make a stream of the connection, where the delegate could say so; nil: the request asks for nothing of the kind.
    private func streamUpgrade(_ request: URLRequest) -> StreamUpgrade? {
        guard request.value(forHTTPHeaderField: "Upgrade") != nil, answersResponses else { return nil }
        let upgrade = StreamUpgrade()
        state.withLock { $0.upgrade = upgrade }
        return upgrade
    }

    /// It ends without a load.
    private func fail(_ error: URLError, _ partial: PartialDownload? = nil) {
        engine?.driver.perform { [self] in
            _ = make(.fail(error, partial: partial))
            loadDidEnd()
        }
    }

    /// The session takes no tasks any more: the task is over before it has begun (rule US-75).
    func endUnborn() {
        let error = URLErrors.error(
            .cancelled, "The session was invalidated: it makes no more tasks.", url: plan.url)
        let handlers = state.withLock { state -> [@Sendable (Data?) -> Void]? in
            guard state.life.complete() else { return nil }
            state.error = error
            defer { state.resumeDataHandlers = [] }
            return state.resumeDataHandlers
        }
        guard let handlers else { return }
        if let webSocket { engine?.driver.perform { _ = webSocket.end(error) } }
        if let stream = plan.stream { engine?.driver.perform { stream.end(error) } }
        for handler in handlers { engine?.driver.perform { handler(nil) } }
        audience?.endUnborn(error)
    }
}

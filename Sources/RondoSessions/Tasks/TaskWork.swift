internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// The work of a task: its state and its load. Its client calls the delegates and completion handlers; after
/// the last call everything is released.
final class TaskWork: Sendable {
    static let defaultPriority: Float = 0.5

    let identifier: Int
    let plan: TaskPlan
    let createdAt = Date()
    /// Nil, like `client`, if the task belongs to no session.
    let engine: SessionEngine?
    let client: (any TaskClient)?
    /// Changed in `+Load` too, and by `URLSessionTask`, whose properties are stored here.
    let state: Mutex<TaskProperties>
    /// The task has ended, and its completion handler waits for the delegate queue.
    private let handlerWaits = Atomic(false)
    private let live = LiveObject(.sessionTask)

    init(_ identifier: Int, _ plan: TaskPlan, by engine: SessionEngine, for client: any TaskClient) {
        self.identifier = identifier
        self.plan = plan
        self.engine = engine
        self.client = client
        let configured = engine.values.configured(plan.request ?? TaskContent.noRequest) {
            plan.content.mayAdd($0)
        }
        let prepared = plan.content.prepare(configured)
        // A stream has no request.
        state = Mutex(
            TaskProperties(
                plan.kind == .stream ? nil : prepared, expectedToSend: UploadBody.length(of: prepared),
                awaitsRest: plan.content.isRest))
    }

    /// Makes the work of a task without a session, which never does anything.
    init() {
        identifier = 0
        plan = TaskPlan(.data, nil)
        engine = nil
        client = nil
        state = Mutex(TaskProperties())
    }

    var webSocket: WebSocketTaskState? { plan.webSocket }

    /// Bytes of the response's body as transferred.
    var bytesReceived: Int64 {
        let (load, counted) = state.withLock { ($0.load, $0.counts.received) }
        return load?.transferredBytes ?? counted
    }

    /// Notes that the completion handler waits for the session's queue or loop, or that its call begins.
    func noteHandler(waits: Bool) {
        handlerWaits.store(waits, ordering: .relaxed)
        engine?.noteHandler(waits: waits)
    }

    var hasWaitingHandler: Bool { handlerWaits.load(ordering: .relaxed) }
    var isOutstanding: Bool { state.withLock { $0.life.isOutstanding } }
    var isCanceling: Bool { state.withLock { $0.life.isCanceling } }

    // MARK: - Calls of the program

    // `number` is the identifier of the task that the program calls. If another task has taken its place, the
    // call has no effect.

    func resume(_ number: Int) { change(number) { $0.life.resume() } }
    func suspend(_ number: Int) { change(number) { $0.life.suspend() } }
    func cancel(_ number: Int) { change(number) { $0.life.cancel() } }
    func followProgress(_ number: Int) { change(number) { $0.followProgress() } }

    /// Cancels the task of a session that is invalidated, also if another one is taking its place. A
    /// WebSocket that closes gets no more time.
    func cancel() {
        webSocket?.limitClosing()
        perform(state.withLock { $0.life.cancel() })
    }

    private func change(_ number: Int, _ change: @Sendable (inout TaskProperties) -> TaskStateMachine.Action)
    {
        perform(
            state.withLock { state in
                number == state.successor ?? identifier ? change(&state) : .nothing
            })
    }

    func publicState(of number: Int) -> TaskStateMachine.PublicState {
        state.withLock { number == $0.successor ?? identifier ? $0.life.publicState : .completed }
    }

    private func perform(_ action: TaskStateMachine.Action) {
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

    /// - Parameter handler: Called once, on the delegate queue or the session's run loop, before the last
    ///   call of the task if that has not been made.
    func cancel(_ number: Int, givingResumeData handler: @escaping @Sendable (Data?) -> Void) {
        let action = state.withLock { state -> TaskStateMachine.Action? in
            guard number == state.successor ?? identifier else { return nil }
            return state.cancel(for: handler)
        }
        guard let action else {
            engine?.schedule.perform { handler(nil) }
            return
        }
        perform(action)
    }

    /// Cancels the task by a closing handshake, which goes on if the task was suspended.
    func beginClosing() {
        let load = state.withLock { state in
            _ = state.life.cancel()
            return state.load
        }
        load?.resume()
    }

    /// Several threads may call this at once: the last one sets the load to the final state.
    private func applySuspension() {
        while true {
            let (load, isSuspended) = state.withLock { ($0.load, $0.life.isSuspended) }
            guard let load else { return }
            if isSuspended { load.suspend() } else { load.resume() }
            let (isFinal, step) = state.withLock { state in
                let isFinal = state.life.isSuspended == isSuspended
                return (isFinal, isFinal ? state.takeHeldStep() : nil)
            }
            if let step { perform(step) }
            if isFinal { return }
        }
    }

    /// Performs `step` on the delegate queue or the session's run loop: later, and not while the task is
    /// suspended (rule US-30). If the task ends while it is suspended, `step` is released.
    func perform(_ step: @escaping @Sendable () -> Void) {
        engine?.schedule.perform { [self] in
            if state.withLock({ !$0.hold(step) }) { step() }
        }
    }

    func setPriority(_ priority: Float) {
        let priority = priority.isNaN ? Self.defaultPriority : min(max(priority, 0), 1)
        let load = state.withLock { state in
            state.priority = priority
            return state.load
        }
        load?.setPriority(priority)
    }

    /// Stops or continues reading for the program. Any thread.
    func holdBack(_ holds: Bool) { state.withLock { $0.load }?.holdBack(holds) }

    // MARK: - The beginning

    private func start() {
        guard let engine, let client else { return }
        let request = state.withLock { $0.currentRequest } ?? TaskContent.noRequest
        guard client.begin() else { return endBeforeStart() }
        var order = plan.content.order(request)
        var sent = order.request
        do throws(LoadFailure) {
            if let webSocket { sent = try webSocket.sentRequest(sent) }
        } catch {
            order.failure = error
        }
        state.withLock { state in
            if state.currentRequest != nil { state.currentRequest = order.request }
            state.counts.expectedToSend = UploadBody.length(of: order.request)
        }
        let modes: [LoopMode]
        do throws(SystemError) {
            modes = try engine.schedule.startedModes()
        } catch {
            return fail(URLErrors.noThread(error, url: plan.stream?.url ?? request.url), order.earlier)
        }
        begin(makeLoad(order, sending: sent, in: modes, by: engine, for: client))
    }

    /// - Parameter request: The request of `order` as it is sent, which a WebSocket changes.
    private func makeLoad(
        _ order: TaskContent.Order, sending request: URLRequest, in modes: [LoopMode],
        by engine: SessionEngine, for client: any TaskClient
    ) -> any TaskLoad {
        if let stream = plan.stream {
            return StreamLoad(for: self, stream, in: modes, by: engine)
        }
        return Load(
            for: self, request: LoadRequest(request), in: modes,
            settings: plan.content.settings(engine.settings),
            defaults: client.defaults, writesFile: plan.kind == .download,
            continuing: order.earlier,
            upgrade: webSocket.map { WebSocketUpgrade($0) } ?? streamUpgrade(order.request),
            failing: order.failure)
    }

    private func begin(_ load: any TaskLoad) {
        let (isSuspended, isCanceling, priority) = state.withLock { state in
            state.load = load
            return (state.life.isSuspended, state.life.isCanceling, state.priority)
        }
        load.setPriority(priority)
        if isSuspended { load.suspend() }
        if isCanceling { abort() }
        load.start()
        // Another thread may have called while there was no load.
        applySuspension()
        if self.isCanceling { abort() }
    }

    /// Makes the object that turns the connection into a stream, if the delegate may ask for it; nil if the
    /// request has no Upgrade field.
    private func streamUpgrade(_ request: URLRequest) -> StreamUpgrade? {
        guard request.value(forHTTPHeaderField: "Upgrade") != nil, decidesOnResponses else { return nil }
        let upgrade = StreamUpgrade()
        state.withLock { $0.upgrade = upgrade }
        return upgrade
    }

    /// Ends the task without a load, for which there is no thread.
    private func fail(_ error: URLError, _ partial: PartialDownload?) {
        engine?.schedule.perform { [self] in
            _ = make(.fail(error, partial: partial))
            loadDidEnd()
        }
    }

    /// Ends a task that was made in an invalidated session (rule US-75).
    func endBeforeStart() {
        let error = URLErrors.error(
            .cancelled, "The session was invalidated: it makes no more tasks.", url: plan.url)
        guard let ending = state.withLock({ $0.complete(error, isCaptured: false) }) else { return }
        webSocket?.endBeforeStart(error)
        plan.stream?.endBeforeStart(error)
        for handler in ending.resumeDataHandlers { engine?.schedule.perform { handler(nil) } }
        client?.endBeforeStart(error, of: self)
    }
}

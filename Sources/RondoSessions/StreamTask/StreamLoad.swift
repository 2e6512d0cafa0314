internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex
internal import RondoStreams

/// The running connection of a stream task: connects in the modes of the session, and has its
/// transfer perform the operations.
///
/// All modes of a session belong to one loop, so that one thread does the work. Other threads write their
/// commands into `commands`.
///
/// `@unchecked Sendable`: `commands`, `shared` and `registration` have their own locks. Only the loop's
/// thread touches the rest; if that thread has ended, the one that first asks to tear the load down
/// (`loopHasEnded()`).
final class StreamLoad: TaskLoad, RegisteredClient, StreamOwner, @unchecked Sendable {
    /// The state that other threads see and change.
    private struct Commands {
        enum Order {
            case run
            case suspend
            case abort(LoadFailure)
            /// The last call has returned: leave the loop.
            case leave
        }

        /// The network, as far as the task depends on it (rule US-70).
        enum Network {
            case notAwaited
            /// The task waits for a network.
            case awaited
            /// The task waits, and there may be a network again.
            case perhapsBack
        }

        var order = Order.run
        var network = Network.notAwaited
        /// The thread of the loop has ended, and a thread tears the load down or has done so.
        private var isLost = false

        var isSuspended: Bool { if case .suspend = order { true } else { false } }

        mutating func setSuspended(_ isSuspended: Bool) {
            switch order {
            case .run, .suspend: order = isSuspended ? .suspend : .run
            case .abort, .leave: break
            }
        }

        /// Notes that the thread of the loop has ended.
        ///
        /// - Returns: False if that was noted before.
        mutating func noteLoss() -> Bool {
            defer { isLost = true }
            return !isLost
        }

        /// The first failure counts.
        mutating func abort(_ failure: LoadFailure) {
            switch order {
            case .run, .suspend: order = .abort(failure)
            case .abort, .leave: break
            }
        }
    }

    /// The state on the loop's thread.
    private enum Phase {
        /// The first pass has not begun, a data task has not handed its connection over yet, or a wait for a
        /// network has ended.
        case unconnected
        /// The channel connects, or is open.
        case connected(SocketChannel)
        /// The connection failed while the task was suspended. This is reported when it is resumed (rule
        /// US-30).
        case failed(SocketChannel, ChannelError)
        case waitingForConnectivity(ConnectivityWait)
        case ended
    }

    private let shared: StreamTaskState
    private let engine: SessionEngine
    private let modes: [LoopMode]
    private let registration: ModeRegistration
    private let commands = Mutex(Commands())
    /// Retained from start to end.
    private var client: TaskWork?
    private let transfer: StreamTransfer
    private var phase = Phase.unconnected
    /// The channel is scheduled in `modes`.
    private var isScheduled = false
    /// The maximum time of the task in total (rule US-69); nil if there is none.
    private let total: TotalTime?
    private var hasToldOfConnectivity = false
    /// The calls that wait for the delegate queue, if the session has one.
    private let calls = QueuedCalls()
    /// The calls that the loop makes, if the session has no queue: they wait while the task is suspended.
    private var waiting = FIFO<DelegateCall>()
    private let startedAt = LoopClock.now
    private let live = LiveObject(.load)

    init(
        for client: TaskWork, _ shared: StreamTaskState, in modes: [LoopMode], by engine: SessionEngine
    ) {
        self.client = client
        self.shared = shared
        self.engine = engine
        self.modes = modes
        registration = ModeRegistration(modes)
        total = TotalTime.of(seconds: engine.values.totalTimeout)
        transfer = StreamTransfer(shared, tls: engine.settings.tlsOfConnections)
    }

    // MARK: - TaskLoad

    func start() {
        shared.state.withLock { $0.load = self }
        guard registration.join(as: self, label: client?.nameInRunLoops) else { return loopHasEnded() }
        wakeUp()
    }

    func suspend() { setSuspended(true) }
    func resume() { setSuspended(false) }

    private func setSuspended(_ isSuspended: Bool) {
        commands.withLock { $0.setSuspended(isSuspended) }
        shared.setSuspended(isSuspended)
        calls.setSuspended(isSuspended)
        wakeUp()
    }

    func abort(_ failure: LoadFailure, keepingDownload keeps: Bool) {
        commands.withLock { $0.abort(failure) }
        shared.willEnd()
        // The end is reported even while the task is suspended.
        calls.setSuspended(false)
        wakeUp()
    }

    /// Does nothing: the server is held back already if the program does not read.
    func holdBack(_ holds: Bool) {}
    /// Does nothing: the only questions of a stream are challenges, which have a sender.
    func reply(_ reply: DelegateCall.Reply) {}
    /// Does nothing: the task has a connection of its own and waits for no other.
    func setPriority(_ priority: Float) {}

    var transferredBytes: Int64 { shared.state.withLock { $0.received } }
    var hasWaitingCalls: Bool { calls.hasWaiting }
    var obstacle: LoadObstacle? {
        switch commands.withLock({ $0.network }) {
        case .notAwaited: nil
        case .awaited, .perhapsBack: .noNetwork
        }
    }

    // MARK: - StreamOwner

    func wakeUp() { registration.wakeUp(self, deferred: false) }

    func call(_ name: String, _ call: @escaping @Sendable () -> Void) {
        deliver(.upgraded(name: name, size: 0, call))
    }

    func show(_ challenge: URLAuthenticationChallenge) {
        deliver(.challenge(challenge, silent: nil, isOfTLS: true))
    }

    func challengeWasDecided() { client?.challengeWasDecided() }

    func timer(after seconds: Double, _ fire: @escaping @Sendable () -> Void) -> ScheduleTimer {
        ScheduleTimer(modes, after: seconds, repeats: false) { _ in fire() }
    }

    func end(_ failure: LoadFailure?) {
        guard !hasEnded, client != nil else { return }
        closeConnection()
        // A stream has no requests, and so no transactions.
        deliver(.metrics(LoadMetrics(since: startedAt, redirectCount: 0, transfers: [])))
        deliver(failure.map { .fail(URLErrors.anyError($0, url: shared.url)) } ?? .finish)
    }

    // MARK: - Calls

    private func deliver(_ call: DelegateCall) {
        guard let client else { return }
        let added = calls.add(call, to: client.delegateQueue) { [self] call in
            _ = client.make(call)
            guard call.isTerminal else { return }
            // The load must leave its loop on the loop's thread.
            commands.withLock { $0.order = .leave }
            wakeUp()
        }
        guard case .notQueued = added else { return }
        waiting.append(call)
        makeWaitingCalls()
    }

    /// Makes the calls that wait for the loop, unless the task is suspended, or until one of them suspends
    /// it.
    private func makeWaitingCalls() {
        while mayCall, let client, let call = waiting.popFirst() {
            _ = client.make(call)
            if call.isTerminal { leave() }
        }
    }

    /// The end is reported even while the task is suspended, after what was done before.
    private var mayCall: Bool { commands.withLock { !$0.isSuspended } }

    // MARK: - On the loop's thread

    private var hasEnded: Bool { if case .ended = phase { true } else { false } }

    private var channel: SocketChannel? {
        switch phase {
        case .connected(let channel), .failed(let channel, _): channel
        case .unconnected, .waitingForConnectivity, .ended: nil
        }
    }

    func serve(by queue: SharedQueue) -> Bool {
        guard registration.takeWakeUp(by: queue, of: self) else { return false }
        servePass()
        return true
    }

    private func servePass() {
        if case .leave = commands.withLock({ $0.order }) { return leave() }
        makeWaitingCalls()
        guard !hasEnded, client != nil else { return }
        let (order, network) = commands.withLock { ($0.order, $0.network) }
        switch order {
        case .run: break
        case .suspend:
            transfer.suspend()
            total?.suspend()
            return schedule(false)
        case .abort(let failure): return end(failure)
        case .leave: return
        }
        continueTotalTime()
        if case .failed(_, let failure) = phase {
            fail(failure)
            // If the task waits for a network, its times go on, in another pass: the delegate that was told
            // of it may have suspended or cancelled the task.
            if !hasEnded { wakeUp() }
            return
        }
        if case .perhapsBack = network { endConnectivityWait() }
        open()
        schedule(true)
        transfer.resume()
        transfer.serve()
    }

    private func open() {
        guard case .unconnected = phase, let client else { return }
        switch shared.takeSource() {
        case .awaited: return
        case .lost:
            return end(
                .upgrade(
                    .networkConnectionLost,
                    sentence: "The connection ended before the stream task could use it.")
            )
        case .given(let connection):
            use(connection.channel, client)
            schedule(true)
            return transfer.begin(connection.channel, received: connection.received)
        case .host: break
        }
        guard 1...65_535 ~= shared.port else { return end(.impossiblePort) }
        let configuration: ChannelConfiguration
        do throws(LoadFailure) {
            configuration = try engine.settings.connection(
                toHost: shared.host, port: shared.port, limit: engine.values.requestTimeout)
        } catch {
            return end(error)
        }
        let channel = SocketChannel(configuration)
        use(channel, client)
        channel.open()
    }

    private func use(_ channel: SocketChannel, _ client: TaskWork) {
        phase = .connected(channel)
        channel.registration.label = client.nameInRunLoops
        // `closeConnection()` releases the channel before `self` is deallocated.
        channel.handler = { [unowned self] event in handle(event) }
    }

    /// A suspended task's connection is in no loop: no name is looked up, and nothing is connected, read or
    /// written.
    private func schedule(_ isWanted: Bool) {
        guard isWanted != isScheduled, let channel else { return }
        isScheduled = isWanted
        guard isWanted else { return channel.removeFromAllLoops() }
        for scheduled in modes { channel.schedule(in: scheduled.loop, forMode: scheduled.mode) }
    }

    private func handle(_ event: ChannelEvent) {
        guard let channel else { return }
        switch event {
        case .resolving, .connecting, .connected, .negotiating, .securing: break
        case .secured: transfer.secured()
        case .open: transfer.begin(channel)
        case .readable: transfer.becameReadable()
        case .writable: transfer.becameWritable()
        case .failed(let error):
            if commands.withLock({ $0.isSuspended }) { phase = .failed(channel, error) } else { fail(error) }
        }
    }

    // MARK: - Connectivity (rule US-70)

    /// Ends the load, or waits if there is no network.
    private func fail(_ error: ChannelError) {
        let failure = LoadFailure.channel(error)
        guard engine.values.waitsForConnectivity, failure.isLackOfConnectivity else { return end(failure) }
        closeChannel()
        commands.withLock { $0.network = .awaited }
        phase = .waitingForConnectivity(
            ConnectivityWait(in: modes) { [weak self] in
                self?.commands.withLock { if case .awaited = $0.network { $0.network = .perhapsBack } }
                self?.wakeUp()
            })
        if hasToldOfConnectivity { return }
        hasToldOfConnectivity = true
        deliver(.waitingForConnectivity)
    }

    private func endConnectivityWait() {
        phase = .unconnected
        commands.withLock { $0.network = .notAwaited }
    }

    // MARK: - The end

    /// Closes the connection for good, unless the transfer has moved it into another channel.
    private func closeConnection() {
        transfer.close()
        total?.stop()
        closeChannel()
        commands.withLock { $0.network = .notAwaited }
        phase = .ended
    }

    private func closeChannel() {
        guard let channel else { return }
        (phase, isScheduled) = (.unconnected, false)
        channel.handler = nil
        channel.removeFromAllLoops()
        channel.close()
    }

    private func leave() {
        registration.leave(self)
        waiting = FIFO()
        if let client = client.take() { client.loadDidEnd() }
    }

    /// Ends the load without a call (rule US-41). The ending thread of the loop and the one in `start()` may
    /// both call this, at the same time.
    func loopHasEnded() {
        // The second one only leaves what `start()` has joined meanwhile.
        guard commands.withLock({ $0.noteLoss() }) else { return registration.leave(self) }
        closeConnection()
        leave()
    }

    // MARK: - Total time

    /// Starts the total time, or lets it go on after a suspension.
    private func continueTotalTime() {
        guard let total else { return }
        let wasSuspended = total.resume()
        if !total.hasStarted {
            total.start(registration, isToldOfDelay: false, makeTimer: totalTimer)
        } else if wasSuspended {
            checkTotalTime()
        }
    }

    private func totalTimer(after seconds: Double) -> ScheduleTimer {
        ScheduleTimer(modes, after: seconds, repeats: true) { [weak self] _ in self?.checkTotalTime() }
    }

    private func checkTotalTime() {
        guard !hasEnded, let total, total.check(makeTimer: totalTimer) else { return }
        abort(.exceededTotalTime(seconds: total.seconds), keepingDownload: false)
    }

    func shortDelayHasPassed() { checkTotalTime() }
}

internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex
internal import RondoStreams

private import struct Synchronization.Atomic

/// The running connection of a stream task: connects in the modes of the session's driver, and has its
/// transfer perform the operations.
///
/// All modes of a session belong to one loop, so that one thread does the work. Other threads write their
/// commands into `commands`.
///
/// `@unchecked Sendable`: `commands`, `shared` and `registration` have their own locks. Only the loop's
/// thread touches the rest, except for the registration in `start()`, which precedes it.
final class StreamLoad: TaskLoad, RegisteredClient, StreamOwner, @unchecked Sendable {
    /// The commands of other threads.
    private struct Commands {
        var isSuspended = false
        var abortion: LoadFailure?
        /// The task waits for a network.
        var isWaiting = false
        /// There may be a network again.
        var mayTryAgain = false
        /// The last call has returned.
        var isOver = false
    }

    private let shared: StreamTaskState
    private let engine: SessionEngine
    private let modes: [LoopMode]
    private let registration: ModeRegistration
    private let commands = Mutex(Commands())
    private let rank = Atomic(TaskWork.defaultPriority.bitPattern)
    /// Retained from start to end.
    private var client: TaskWork?
    private let transfer: StreamTransfer
    private var channel: SocketChannel?
    private var isScheduled = false
    /// The maximum time of the task in total (rule US-69); nil if there is none.
    private let total: TotalTime?
    private var hasEnded = false
    /// Not nil while the task waits for a network (rule US-70).
    private var connectivityWait: ConnectivityWait?
    private var hasToldOfConnectivity = false
    /// A failure of the connection that came while the task was suspended, and is reported when it is resumed (rule US-30).
    private var failure: ChannelError?
    /// The calls that wait for the delegate queue, if the session has one.
    private let calls = QueuedCalls()
    /// The calls that the loop makes, if the session has no queue: they wait while the task is suspended.
    private var waiting = FIFO<DelegateCall>()
    private let startedAt = LoopClock.now
    private let live = LiveObject(.load)

    init(
        for client: TaskWork, _ shared: StreamTaskState, schedule: [LoopMode], by engine: SessionEngine
    ) {
        self.client = client
        self.shared = shared
        self.engine = engine
        modes = schedule
        registration = ModeRegistration(schedule)
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
        commands.withLock { $0.isSuspended = isSuspended }
        shared.setSuspended(isSuspended)
        calls.setSuspended(isSuspended)
        wakeUp()
    }

    func abort(_ failure: LoadFailure, keepingDownload keeps: Bool) {
        commands.withLock { $0.abortion = $0.abortion ?? failure }
        shared.willEnd()
        // The end is reported even while the task is suspended.
        calls.setSuspended(false)
        wakeUp()
    }

    /// Does nothing: the server is held back already if the program does not read.
    func holdBack(_ holds: Bool) {}
    /// Does nothing: the only questions of a stream are challenges, which have a sender.
    func reply(_ reply: DelegateCall.Reply) {}

    /// Has no effect: the task has a connection of its own and waits for no other.
    var priority: Float {
        get { Float(bitPattern: rank.load(ordering: .relaxed)) }
        set { rank.store(newValue.bitPattern, ordering: .relaxed) }
    }

    var transferredBytes: Int64 { shared.state.withLock { $0.received } }
    var obstacle: LoadObstacle? { commands.withLock { $0.isWaiting ? .noNetwork : nil } }

    // MARK: - StreamOwner

    func wakeUp() { registration.wakeUp(self, deferred: false) }

    func call(_ name: String, _ call: @escaping @Sendable () -> Void) {
        deliver(.upgraded(name: name, size: 0, call))
    }

    func show(_ challenge: URLAuthenticationChallenge) {
        deliver(.challenge(challenge, silent: nil, isTrust: true))
    }

    func challengeWasDecided() { client?.challengeWasDecided() }

    func timer(after seconds: Double, _ fire: @escaping @Sendable () -> Void) -> ScheduleTimer {
        ScheduleTimer(modes, after: seconds, repeats: false) { _ in fire() }
    }

    func end(_ failure: LoadFailure?) {
        guard !hasEnded, client != nil else { return }
        hasEnded = true
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
            commands.withLock { $0.isOver = true }
            wakeUp()
        }
        guard case .notQueued = added else { return }
        waiting.append(call)
        makeWaitingCalls()
    }

    /// Makes the calls that wait for the loop, unless the task is suspended, or until one of them suspends it.
    private func makeWaitingCalls() {
        while mayCall, let client, let call = waiting.popFirst() {
            _ = client.make(call)
            if call.isTerminal { leave() }
        }
    }

    /// The end is reported even while the task is suspended, after what was done before.
    private var mayCall: Bool { commands.withLock { !$0.isSuspended || $0.abortion != nil } }

    // MARK: - On the loop's thread

    func serve(by queue: SharedQueue) -> Bool {
        guard registration.takeWakeUp(by: queue, of: self) else { return false }
        servePass()
        return true
    }

    private func servePass() {
        if self.commands.withLock({ $0.isOver }) { return leave() }
        makeWaitingCalls()
        guard !hasEnded, client != nil else { return }
        let commands = commands.withLock { $0 }
        if let failure = commands.abortion { return end(failure) }
        if commands.isSuspended {
            transfer.pause()
            total?.suspend()
            return schedule(false)
        }
        continueTotalTime()
        if let failure = failure.take() {
            fail(failure)
            // If the task waits for a network, its times go on, in another pass: the delegate that was told of it may have
            // suspended or cancelled the task.
            if !hasEnded { wakeUp() }
            return
        }
        if commands.mayTryAgain { endConnectivityWait() }
        open()
        schedule(true)
        transfer.resume()
        transfer.serve()
    }

    private func open() {
        guard channel == nil, connectivityWait == nil, let client else { return }
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
        guard 1...65_535 ~= shared.port, !shared.host.isEmpty else { return end(.impossiblePort) }
        let channel = SocketChannel(
            engine.settings.connection(
                toHost: shared.host, port: shared.port, limit: engine.values.requestTimeout))
        use(channel, client)
        channel.open()
    }

    private func use(_ channel: SocketChannel, _ client: TaskWork) {
        self.channel = channel
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
        guard !hasEnded, let channel else { return }
        let isSuspended = commands.withLock { $0.isSuspended }
        switch event {
        case .resolving, .connecting, .connected, .negotiating: break
        case .secured: transfer.secured()
        case .open: transfer.begin(channel)
        case .readable: transfer.readable()
        case .writable: transfer.writable()
        case .failed(let error): if isSuspended { failure = error } else { fail(error) }
        }
    }

    // MARK: - Connectivity (rule US-70)

    /// Ends the load, or waits if there is no network.
    private func fail(_ error: ChannelError) {
        let failure = LoadFailure.channel(error)
        guard engine.values.waitsForConnectivity, failure.isLackOfConnectivity else { return end(failure) }
        closeChannel()
        connectivityWait = ConnectivityWait(in: modes) { [weak self] in
            self?.commands.withLock { $0.mayTryAgain = true }
            self?.wakeUp()
        }
        commands.withLock { ($0.isWaiting, $0.mayTryAgain) = (true, false) }
        if hasToldOfConnectivity { return }
        hasToldOfConnectivity = true
        deliver(.waitingForConnectivity)
    }

    private func endConnectivityWait() {
        connectivityWait = nil
        commands.withLock { ($0.isWaiting, $0.mayTryAgain) = (false, false) }
    }

    // MARK: - The end

    /// Closes the connection, unless the transfer has moved it into another channel.
    private func closeConnection() {
        transfer.close()
        total?.stop()
        endConnectivityWait()
        closeChannel()
    }

    private func closeChannel() {
        guard let channel = channel.take() else { return }
        isScheduled = false
        channel.handler = nil
        channel.removeFromAllLoops()
        channel.close()
    }

    private func leave() {
        registration.leave(self)
        waiting = FIFO()
        if let client = client.take() { client.loadDidEnd() }
    }

    /// Ends the load without a call (rule US-41).
    func loopHasEnded() {
        hasEnded = true
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

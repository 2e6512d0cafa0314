package import RondoCore
internal import RondoHTTP
internal import RondoStreams

private import struct Synchronization.Atomic

/// One load of a URL, from start to end: its run loops, its clocks, its calls to the client, and the commands
/// that other threads give it. `LoadDriver` handles requests and their answers.
///
/// Only the run loops that the load is scheduled in drive it: there is no other thread. From start to end it
/// is registered with the shared queues of their modes, so that no such mode is empty meanwhile (rule UC-72).
///
/// The load and its driver retain each other until the load ends, and a load ends only if it was started: so
/// `start()` must be called for each load that is made. (`UnservedWatch` says what a weak reference would
/// cost.)
///
/// `@unchecked Sendable`: constants never change or are thread-safe themselves; variables are used only
/// inside the gate, which admits one thread at a time.
package final class Load: RegisteredClient, ChannelGate, @unchecked Sendable {
    let registration: ModeRegistration
    let inbox = LoadInbox()
    let settings: LoadSettings
    private let gate = Gate()
    private let live = LiveObject(.load)
    private let transferred = Atomic<Int64>(0)
    private let rank = Atomic(LoadRank.normal.bits)
    /// The raw value of a `LoadObstacle`; 0 if there is none.
    private let obstacleBits = Atomic<UInt8>(0)

    // Unchecked: used inside the gate, which admits one call at a time, so that no two accesses overlap. With
    // the checks of these bench-guard's http.request takes 4 % more instructions.
    @exclusivity(unchecked) private var delivery: LoadDelivery
    @exclusivity(unchecked) private var times: LoadTimes
    /// Nil once the load has left its loops.
    @exclusivity(unchecked) private var driver: LoadDriver?

    /// - Parameters:
    ///   - earlier: The partial file of an earlier download, whose rest `request` asks for.
    ///   - failure: The failure with which the load ends in its first pass, because its request cannot be
    ///     sent.
    package init(
        for client: any LoadClient, request: LoadRequest, in modes: [LoopMode], settings: LoadSettings,
        defaults: DelegateDefaults?, writesFile: Bool, continuing earlier: PartialDownload? = nil,
        upgrade: (any Upgrade)? = nil, failing failure: LoadFailure? = nil
    ) {
        registration = ModeRegistration(modes)
        self.settings = settings
        delivery = LoadDelivery(to: client)
        times = LoadTimes(
            timeout: request.value.timeoutInterval, settings, in: registration.modes)
        driver = LoadDriver(
            of: self, request: request, settings: settings, defaults: defaults, writesFile: writesFile,
            continuing: earlier, upgrade: upgrade, failing: failure)
    }

    // MARK: - Start and end

    /// Enters the run loops. The first step is made there, not here (rule UC-13).
    package func start() {
        inbox.putStart()
        enter { enterLoops() }
    }

    /// Enters the run loops, once after `start()`. If another thread is inside the gate at that time, for
    /// example in `suspend()`, that thread does so when it catches up.
    private func enterLoops() {
        guard inbox.takeStart() else { return }
        // Another thread may have cancelled it already.
        guard let client, !client.isCancelled, registration.join(as: self, label: client.nameInRunLoops)
        else { return tearDown() }
        times.start(registration) { makeTimer($0) }
        registration.wakeUp(self, deferred: true)
    }

    /// Ends the load without a further callback (rule UC-17). Any thread may call it.
    package func cancel() {
        inbox.dropCalls()
        // If another thread is inside, it tears the load down when it catches up.
        enter { tearDown() }
    }

    /// Call it when the thread of a loop has ended: without any loop the load cannot continue, and is
    /// released.
    package func loopHasEnded() { enter { if registration.isLost { tearDown() } } }

    /// Releases everything, without a call to the delegate.
    private func tearDown() {
        if !inbox.hasMadeLastCall, registration.isLost { client?.loadDidLoseLoops() }
        driver?.cancel()
        leave()
    }

    /// Leaves all loops (rule UC-16); the queue wakes a mode that is empty as a result. Inside the gate.
    func leave() {
        times.stop()
        driver.take()?.close()
        registration.leave(self)
        if let client = delivery.end() { client.loadDidEnd() }
    }

    // MARK: - The gate

    /// Runs `body`, unless another call is inside: the other call then catches up before it leaves.
    func enter(_ body: () -> Void) {
        gate.enter(body, catchUp: { catchUp() })
    }

    package func admit(_ event: () -> Void, onRefusal: () -> Void) {
        guard registration.modes.servesCallingThread else { return }
        gate.enter(
            {
                event()
                // The idle time begins after the event (rule UC-58).
                times.endEvents()
            },
            catchUp: { catchUp() }, onRefusal: onRefusal)
    }

    /// Called inside the gate after another call was refused: carries out the commands of other threads, and
    /// has everything else checked in a pass of a scheduled mode.
    private func catchUp() {
        enterLoops()
        if inbox.hasMadeLastCall || registration.isLost || client?.isCancelled ?? true { return tearDown() }
        if inbox.isAborted {
            stop()
        } else if inbox.isSuspended {
            applySuspension()
        } else {
            resumeAfterSuspension()
        }
        wakeUp()
    }

    // MARK: - Passes

    /// Makes the load be served in a pass of a scheduled mode. Any thread may call it.
    package func wakeUp() { registration.wakeUp(self, deferred: false) }

    package func serve(by queue: SharedQueue) -> Bool {
        guard registration.takeWakeUp(by: queue, of: self) else { return false }
        var called = false
        enter {
            delivery.beginPass()
            serve()
            called = delivery.hasCalled
        }
        return called
    }

    private func serve() {
        guard let driver, let client else { return }
        if client.isCancelled { return tearDown() }
        if inbox.isAborted {
            // This pass may come before `abort` has stopped the load.
            stop()
            guard let abortion = inbox.takeAbortion() else { return }
            return driver.endAborted(abortion.failure, partial: abortion.partial)
        }
        if inbox.isSuspended { return }
        makeWaitingCalls()
        if driver.failsAtOnce { return driver.begin() }
        let messages = inbox.take()
        if messages.events.contains(.ratePauseOver) { times.endPause() }
        if messages.events.contains(.timeCheck) { checkTimes() }
        // A load that has ended cannot time out, and its last call must not be lost.
        if times.hasReachedLimit, driver.isTimed {
            if let failure = times.takeFailure(isLocal: driver.waitsLocally) {
                return driver.timedOut(failure, reply: messages.reply)
            }
            // Bytes have come since the check that found the time over, and that check has set no timer:
            // check again.
            checkTimes()
        }
        times.begin()
        driver.serve(messages)
        if driver.isTimed { times.endEvents() }
    }

    // MARK: - Calls to the client

    var client: (any LoadClient)? { delivery.client }

    /// Makes a call to the client: at once on this loop's thread, through its queue, or when the load is
    /// resumed. Check earlier decisions again afterwards: the delegate can cancel.
    ///
    /// - Returns: True if the call is made later, by the queue or after `resume()`, or if another end is
    ///   reported in its place.
    @discardableResult
    func deliver(_ call: DelegateCall) -> Bool {
        let client: any LoadClient
        switch delivery.method(of: call, inbox) {
        case .dropped: return false
        case .waits, .superseded: return true
        case .byQueue(let queue, let called):
            client = called
            let outcome = inbox.beginQueueing()
                .add(call, to: queue, make: { [self] in make($0, for: called) })
            guard case .queued(let mayRead) = outcome else { break }
            if !mayRead { driver?.stopReading() }
            return true
        case .atOnce(let called): client = called
        }
        delivery.noteCall()
        let reply = client.make(call)
        if client.isCancelled {
            tearDown()
        } else if call.isQuestion {
            if inbox.isSuspended { inbox.put(reply) } else { driver?.handle(reply) }
        }
        return false
    }

    /// Makes a call on the delegate queue, outside the gate.
    private func make(_ call: DelegateCall, for client: any LoadClient) {
        // The client may have ended the load after `deliver` had looked and before the queue had the call.
        guard !client.isCancelled, !inbox.isAborted || call.isMadeAfterAbort else { return }
        let reply = client.make(call)
        if call.isTerminal {
            inbox.noteLastCall()
            enter { leave() }
        } else if call.isQuestion {
            self.reply(reply)
        } else if inbox.callsAllowReading {
            // The load stopped reading because too many calls waited for the delegate; now it continues.
            wakeUp()
        }
    }

    /// Makes the calls that waited while the load was suspended.
    private func makeWaitingCalls() {
        // If one of them suspends the load again, the others wait again.
        guard let calls = delivery.takeWaiting() else { return }
        for call in calls where !deliver(call) && call.isTerminal { leave() }
    }

    /// Notes that the program was called, or may have been.
    func noteCall() { delivery.noteCall() }

    /// Reports a step that has no delegate method to the settings' listener, if the load was not cancelled
    /// (rule UC-17).
    func report(_ step: ExchangeStep, at url: URL?) {
        if case .unusableCredential(let reason) = step {
            Log.connections.warning("A credential was not sent to \(url?.host ?? "a server"): \(reason)")
        }
        guard let client, !client.isCancelled, let listener = settings.values.onStep,
            registration.modes.servesCallingThread
        else { return }
        noteCall()
        listener(step)
    }

    /// True if the program takes content, and the content has not come faster than the settings allow.
    var takesContent: Bool { inbox.programTakesContent && !times.isPausing }

    // MARK: - Time

    private func makeTimer(_ seconds: TimeInterval) -> ScheduleTimer {
        ScheduleTimer(registration.modes, after: seconds, repeats: true) { [self] _ in shortDelayHasPassed() }
    }

    /// A wait for a network, at whose end the load is told of it (`LoadInbox.Event`).
    func makeConnectivityWait() -> ConnectivityWait {
        ConnectivityWait(in: registration.modes) { [self] in
            inbox.put(.networkMayBeBack)
            wakeUp()
        }
    }

    /// Checks whether the load has been idle for too long.
    package func shortDelayHasPassed() {
        // If the gate is taken, the next pass makes the check.
        inbox.put(.timeCheck)
        enter { if inbox.takeTimeCheck() { checkTimes() } }
    }

    private func checkTimes() {
        guard let driver, registration.isJoined, driver.isTimed else { return }
        // A pass makes the check after `resume()`: if this was the one after the short delay, there is no
        // timer yet.
        if inbox.isSuspended { return inbox.put(.timeCheck) }
        // The client is told in a pass of the shared queue, because a delivery has to count as a handled
        // source, which a timer does not (rule UC-72).
        switch times.check(isLocal: driver.waitsLocally, makeTimer: { makeTimer($0) }) {
        case .nothing: break
        case .wakeUp(let deferred): registration.wakeUp(self, deferred: deferred)
        }
    }

    /// The instant of the load's first step.
    var startedAt: LoopInstant { times.startedAt }

    /// Restarts the idle time, because the server or the connection to it has shown a sign of life.
    func noteProgress() { times.noteProgress() }

    /// Stops the timeout, because another protocol has the connection: silence is not a failure any more.
    func stopTimeout() { times.stopTimeout() }

    /// Stops all clocks, because nothing more will come.
    func stopTimes() { times.stop() }

    /// Notes that bytes of the body were taken, and begins a pause if they have come faster than the settings
    /// allow.
    ///
    /// - Returns: Whether no more are to be taken for now.
    func limitRate(after count: Int) -> Bool {
        times.rate?.received(count) { [self] in
            inbox.put(.ratePauseOver)
            wakeUp()
        } ?? false
    }

    // MARK: - Commands of the client (any thread)

    /// Ends the load with `failure`: nothing more is sent or read, and the client is only told of metrics and
    /// of this end, in a pass of a scheduled mode, or through its queue. Of several failures the first
    /// counts.
    ///
    /// If the load has not started yet, the end is reported after the start.
    ///
    /// - Parameter keeps: Whether the partial file of a download is handed over with the end.
    package func abort(_ failure: LoadFailure, keepingDownload keeps: Bool = false) {
        inbox.abort(failure, keepingDownload: keeps)
        enter { stop() }
        wakeUp()
    }

    private func stop() {
        if let partial = delivery.dropWaiting() { inbox.putDropped(partial) }
        driver?.abort()
    }

    /// Suspends the load: nothing is sent, read or reported, and no time counts towards the timeout, until
    /// `resume()`.
    package func suspend() {
        inbox.suspend(true)
        enter { applySuspension() }
    }

    package func resume() {
        inbox.suspend(false)
        enter { if !inbox.isSuspended { resumeAfterSuspension() } }
        wakeUp()
    }

    /// Stops the clocks and the answer while the load is suspended, and lets other loads pass.
    private func applySuspension() {
        guard inbox.isSuspended else { return }
        times.suspend()
        driver?.suspend()
    }

    /// Undoes `applySuspension()`, and has the events that the gate has refused come again.
    private func resumeAfterSuspension() {
        if times.resume() { inbox.put(.timeCheck) }
        driver?.resume()
    }

    /// Gives the delegate's reply to a question whose first reply was `.later`.
    package func reply(_ reply: DelegateCall.Reply) {
        inbox.put(reply)
        wakeUp()
    }

    /// Stops delivering content, or continues.
    package func holdBack(_ holds: Bool) {
        inbox.holdBack(holds)
        if !holds { wakeUp() }
    }

    /// The priority among the loads that wait for a connection.
    var priority: Float { LoadRank(bits: rank.load(ordering: .relaxed)).priority }

    package func setPriority(_ priority: Float) {
        guard priority != self.priority else { return }
        rank.store(LoadRank(priority: priority).bits, ordering: .relaxed)
        wakeUp()
    }

    // MARK: - Questions of the client (any thread)

    /// The obstacle, other than its server and its client, for which the load waits; nil if there is none.
    package var obstacle: LoadObstacle? { LoadObstacle(rawValue: obstacleBits.load(ordering: .relaxed)) }

    /// Whether a call waits for the delegate queue.
    package var hasWaitingCalls: Bool { inbox.hasWaitingCalls }

    func noteObstacle(_ new: LoadObstacle?) { obstacleBits.store(new?.rawValue ?? 0, ordering: .relaxed) }

    /// Bytes of the body that is delivered, as they were transferred.
    package var transferredBytes: Int64 { transferred.load(ordering: .relaxed) }

    func noteTransferred(_ count: Int) { transferred.wrappingAdd(Int64(count), ordering: .relaxed) }

    // MARK: - During the call that delivers a response

    /// The codings of its content, in the order in which they were applied.
    var contentCodings: [ContentCoding] { driver?.contentCodings ?? [] }

    /// Decodes only that many codings, the ones applied last.
    func undoCodings(_ count: Int) { driver?.undoCodings(count) }
}

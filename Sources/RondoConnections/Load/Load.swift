package import RondoCore
internal import RondoHTTP
package import RondoStreams

private import struct Synchronization.Atomic

/// A load: the meeting point of threads, run loops, the clock and the client. `LoadDriver` handles requests
/// and their answers.
///
/// The run loops that the load is scheduled in are its only engine. It is registered with the shared queues of their
/// modes from start to end, so that none of them is empty while the load waits for anything (rule UC-72).
///
/// The load and its driver retain each other until the load ends, which it certainly does once it is started:
/// so `start()` has to be called for each load that is made. (A weak reference would make every use of an
/// object slower.)
///
/// `@unchecked Sendable`: what is `let` never changes, or is safe for any thread by itself; the rest is touched inside the
/// gate only, which lets one thread in.
package final class Load: RegisteredClient, ChannelGate, @unchecked Sendable {
    let registration: LoadRegistration
    let inbox = LoadInbox()
    private let settings: LoadSettings
    private let gate = Gate()
    private let live = LiveObject(.load)
    private let transferred = Atomic<Int64>(0)
    private let rank = Atomic(LoadRank.normal.bits)
    /// The raw value of a `LoadObstacle`; 0 if there is none.
    private let obstacleBits = Atomic<UInt8>(0)
    // Inside the gate, which lets one call in at a time, so that no access overlaps with another. To check that for these and
    // for those of `LoadDriver` takes 10 % of the instructions of bench-guard's http.request.

    @exclusivity(unchecked) private var delivery: LoadDelivery
    @exclusivity(unchecked) private var times: LoadTimes
    /// Nil once the load has left its loops.
    @exclusivity(unchecked) private var driver: LoadDriver?
    /// That of the connection under way.
    @exclusivity(unchecked) private var channel: SocketChannel?

    /// - Parameter earlier: The partial file of an earlier download, whose rest `request` asks for.
    package init(
        for client: any LoadClient, request: LoadRequest, schedule: [LoopMode], settings: LoadSettings,
        defaults: DelegateDefaults?, writesFile: Bool, continuing earlier: PartialDownload? = nil,
        upgrade: (any Upgrade)? = nil
    ) {
        registration = LoadRegistration(schedule)
        self.settings = settings
        delivery = LoadDelivery(to: client)
        times = LoadTimes(
            timeout: request.value.timeoutInterval, settings, in: registration.modes)
        driver = LoadDriver(
            of: self, request: request, settings: settings, defaults: defaults, writesFile: writesFile,
            continuing: earlier, upgrade: upgrade)
    }

    // MARK: - Start and end

    /// Enters the run loops. The first step is made there, not here (rule UC-13).
    package func start() {
        inbox.putStart()
        enter { enterLoops() }
    }

    /// Takes the first step once, after `start()`: another thread inside may suspend the load before it has
    /// begun.
    private func enterLoops() {
        guard inbox.takeStart() else { return }
        // Another thread may have cancelled it already.
        guard let client, !client.isCancelled, registration.join(as: self, label: client.nameInRunLoops)
        else { return tearDown() }
        times.start(registration) { makeTimer($0) }
        registration.wakeUp(self, deferred: true)
    }

    /// No more callbacks (rule UC-17). Any thread.
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
        driver?.cancel()
        leave()
    }

    /// Leaves all loops (rule UC-16); the queue wakes a mode that is empty as a result. Inside the gate.
    func leave() {
        times.stop()
        registration.leave(self, idleStay: driver.take()?.close())
        if let client = delivery.end() { client.loadDidEnd() }
    }

    // MARK: - The gate

    /// Runs `body`, unless another call is inside: that one catches up before it leaves.
    func enter(_ body: () -> Void) {
        gate.enter(body, catchUp: { catchUp() }, turnedAway: { inbox.suspendInterest() })
    }

    /// Lets in what a loop brings to the channel of the connection under way.
    ///
    /// A callback that a loop has begun may be held up before it comes here: the request that it was for is over by
    /// then, and the channel serves another load, which is in other loops perhaps. Then it does nothing, and nothing is
    /// lost: a descriptor that is ready is so for the loops that watch it now.
    package func enter(for interest: ChannelInterest, _ body: (SocketChannel) -> Void) {
        guard registration.modes.servesCallingThread else { return }
        enter {
            // The load may have gone on to another connection.
            guard let channel, channel.has(interest) else { return }
            body(channel)
            // The idle time begins behind it (rule UC-58).
            times.endEvents()
        }
    }

    /// What loops bring to `channel` is let in from here on; nil: to none.
    func setChannel(_ channel: SocketChannel?) {
        // A call that was turned away has silenced the old one, which its next owner has to hear.
        let old = self.channel
        self.channel = channel
        inbox.setInterest(channel?.interest)
        old?.removeGate()
        channel?.gate = self
    }

    /// A call was turned away: what brought it is looked at again, in a pass of a scheduled mode.
    private func catchUp() {
        enterLoops()
        if inbox.isOver || registration.isLost || client?.isCancelled ?? true { return tearDown() }
        if inbox.isAborted {
            stop()
        } else if inbox.isSuspended {
            applySuspension()
        } else {
            endSuspension()
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
            guard let failure = inbox.takeAbortion() else { return }
            stop()
            return driver.endAborted(failure)
        }
        if inbox.isSuspended { return }
        makeWaitingCalls()
        let messages = inbox.take()
        if messages.ratePauseIsOver { times.endPause() }
        if messages.mustCheckTimes { checkTimes() }
        // A load that has ended cannot time out, and its last call must not be lost.
        if times.isOver, let failure = times.takeFailure(isLocal: driver.waitsLocally),
            !driver.isEnded
        {
            return driver.fail(failure)
        }
        times.begin()
        driver.serve(messages)
        if !driver.isEnded { times.endEvents() }
    }

    // MARK: - Calls to the client

    var client: (any LoadClient)? { delivery.client }

    /// Makes a call to the client: at once on this loop's thread, through its queue, or when the load is
    /// resumed. Check earlier decisions again afterwards: the delegate can cancel.
    ///
    /// - Returns: Whether the call has still to be made, so that the load continues after it.
    @discardableResult
    func deliver(_ call: DelegateCall) -> Bool {
        let client: any LoadClient
        switch delivery.method(of: call, inbox) {
        case .dropped: return false
        case .waits: return true
        case .byQueue(let queue, let owner):
            client = owner
            let outcome = inbox.calls.add(call, to: queue, make: { [self] in make($0, for: owner) })
            guard case .queued(let mayRead) = outcome else { break }
            if !mayRead { driver?.pause() }
            return true
        case .atOnce(let owner): client = owner
        }
        delivery.noteCall()
        let reply = client.make(call)
        if client.isCancelled {
            tearDown()
        } else if call.isQuestion {
            if inbox.isSuspended { inbox.put(reply) } else { driver?.take(reply) }
        }
        return false
    }

    /// Makes a call on the delegate queue, outside the gate.
    private func make(_ call: DelegateCall, for client: any LoadClient) {
        guard !client.isCancelled else { return }
        let reply = client.make(call)
        if call.isTerminal {
            inbox.noteOver()
            enter { leave() }
        } else if call.isQuestion {
            self.reply(reply)
        } else if inbox.callsAllowReading {
            // The loop goes on where it waited for the delegate.
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

    /// The program takes content, and it has not come faster than the settings want.
    var wantsMore: Bool { inbox.wantsMore && !times.isPausing }

    // MARK: - Time

    private func makeTimer(_ seconds: TimeInterval) -> ScheduleTimer {
        ScheduleTimer(registration.modes, after: seconds, repeats: true) { [self] _ in shortDelayHasPassed() }
    }

    /// Checks whether the load has been idle for too long.
    package func shortDelayHasPassed() {
        // If the gate is taken, the next pass makes the check.
        inbox.putTimeCheck()
        enter { if inbox.takeTimeCheck() { checkTimes() } }
    }

    private func checkTimes() {
        guard let driver, registration.isJoined, !driver.isEnded, !inbox.isSuspended else { return }
        // The client is told in a pass of the shared queue: a delivery has to be a handled source, which a
        // timer is not (rule UC-72).
        switch times.look(isLocal: driver.waitsLocally, makeTimer: { makeTimer($0) }) {
        case .nothing: break
        case .wakeUp(let deferred): registration.wakeUp(self, deferred: deferred)
        }
    }

    /// When the load made its first step.
    var startedAt: LoopInstant { times.startedAt }

    /// Notes a sign of life.
    func noteProgress() { times.noteProgress() }

    /// Stops the timeout, because another protocol has the connection: silence is not a failure any more.
    func stopTimeout() { times.stopTimeout() }

    /// Stops all clocks, because nothing more will come.
    func stopTimes() { times.stop() }

    /// Notes that bytes of the body were taken, and begins a pause if they have come faster than the settings allow.
    ///
    /// - Returns: Whether no more are to be taken for now.
    func limitRate(after count: Int) -> Bool {
        times.rate?.received(count) { [self] in
            inbox.putRatePauseEnd()
            wakeUp()
        } ?? false
    }

    // MARK: - Commands of the client (any thread)

    /// Ends the load with `failure`: nothing more is sent or read, and the client is only told of metrics and
    /// of this end, in a pass of a scheduled mode, or through its queue. Of several failures the first
    /// counts.
    ///
    /// A load that is ended before its start reports that after it.
    ///
    /// - Parameter keeps: Whether the partial file of a download is handed over with the end.
    package func abort(_ failure: LoadFailure, keepingDownload keeps: Bool = false) {
        inbox.abort(failure, keepingDownload: keeps)
        enter { stop() }
        wakeUp()
    }

    private func stop() {
        delivery.dropWaiting()
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
        enter { if !inbox.isSuspended { endSuspension() } }
        wakeUp()
    }

    /// Stops the clocks and the channel's events while the load is suspended.
    private func applySuspension() {
        guard inbox.isSuspended else { return }
        times.suspend()
        inbox.suspendInterest()
    }

    /// Undoes `applySuspension()`.
    private func endSuspension() {
        if times.resume() { inbox.putTimeCheck() }
        channel?.resumeInterest()
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
    package var priority: Float {
        get { LoadRank(bits: rank.load(ordering: .relaxed)).priority }
        set {
            guard newValue != priority else { return }
            rank.store(LoadRank(priority: newValue).bits, ordering: .relaxed)
            settings.values.pool.rankWaiters()
            wakeUp()
        }
    }

    // MARK: - Questions of the client (any thread)

    /// The obstacle, other than its server and its client, for which the load waits; nil if there is none.
    package var obstacle: LoadObstacle? { LoadObstacle(rawValue: obstacleBits.load(ordering: .relaxed)) }

    func noteObstacle(_ new: LoadObstacle?) { obstacleBits.store(new?.rawValue ?? 0, ordering: .relaxed) }

    /// Bytes of the body that is delivered, as they were transferred.
    package var transferredBytes: Int64 { transferred.load(ordering: .relaxed) }

    func noteTransferred(_ count: Int) { transferred.wrappingAdd(Int64(count), ordering: .relaxed) }

    // MARK: - Within the call that tells of a response

    /// The codings of its content, in the order in which they were applied.
    var contentCodings: [ContentCoding] { driver?.contentCodings ?? [] }

    /// Decodes only that many codings, the ones applied last.
    func undoCodings(_ count: Int) { driver?.undoCodings(count) }
}

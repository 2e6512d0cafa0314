package import RondoCore
internal import RondoHTTP
package import RondoStreams

private import struct Synchronization.Atomic

/// One load: where threads, run loops, the clock and the client meet it. What it does with requests and their answers is
/// `LoadDriver`'s.
///
/// The run loops that the load is scheduled in are its only engine. It is registered with the shared queues of their
/// modes from start to end, so that none of them is empty while the load waits for anything (rule UC-72).
///
/// It and its driver hold each other until the load ends, which comes in any case once it is started: so `start()` is called
/// for each load that is made. (A weak reference makes every use of an object slower.)
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
    /// The raw value of a `LoadObstacle`; 0: there is none.
    private let obstacleBits = Atomic<UInt8>(0)
    // Inside the gate, which lets one call in at a time, so that no access overlaps with another. To check that for these and
    // for those of `LoadDriver` takes 10 % of the instructions of bench-guard's http.request.

    @exclusivity(unchecked) private var delivery: LoadDelivery
    @exclusivity(unchecked) private var times: LoadTimes
    /// Nil once the load has left its loops.
    @exclusivity(unchecked) private var driver: LoadDriver?
    /// That of the connection under way.
    @exclusivity(unchecked) private var channel: SocketChannel?

    /// - Parameter earlier: What an earlier download has left of this one, whose rest `request` asks for.
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

    /// Once, as `start()` has asked: another thread may be inside meanwhile, which suspends the load before it has begun.
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
        // If another thread is inside, that thread clears up: it catches up before it leaves.
        enter { tearDown() }
    }

    /// The thread of a loop has ended: with the last of them the load cannot go on, and is released.
    package func loopHasEnded() { enter { if registration.isLost { tearDown() } } }

    /// Releases everything, without a word to the delegate.
    private func tearDown() {
        driver?.cancel()
        leave()
    }

    /// The load leaves all its loops (rule UC-16); a mode that is empty by that is woken by its queue. Inside the gate.
    func leave() {
        times.stop()
        registration.leave(self, idle: driver.take()?.close())
        if let client = delivery.end() { client.loadDidEnd() }
    }

    // MARK: - The gate

    /// Runs `body`, unless a call is inside: that one catches up before it leaves.
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
            standStill()
        } else {
            goOn()
        }
        wakeUp()
    }

    // MARK: - Passes

    /// Has the load served in a pass of a scheduled mode. Any thread.
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
        if messages.mustGoOn { times.endPause() }
        if messages.mustCheckTimes { checkTimes() }
        // What has ended has no time any more, and its last call must not be lost.
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

    /// Calls the delegate, at once on this loop's thread, by its queue, or when the load is resumed. What was decided
    /// before may be otherwise afterwards: the delegate can cancel.
    ///
    /// - Returns: Whether the call is still to be made, and the load goes on when it was.
    @discardableResult
    func deliver(_ call: DelegateCall) -> Bool {
        let client: any LoadClient
        switch delivery.way(of: call, inbox) {
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

    /// On the delegate queue, and not inside the gate.
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

    /// Makes the calls that came up while the load was suspended.
    private func makeWaitingCalls() {
        // After one that suspends the load again, the others wait anew.
        guard let calls = delivery.takeWaiting() else { return }
        for call in calls where !deliver(call) && call.isTerminal { leave() }
    }

    /// The program was called, or may have been.
    func noteCall() { delivery.noteCall() }

    /// The program takes content, and it has not come faster than the settings want.
    var wantsMore: Bool { inbox.wantsMore && !times.isPausing }

    // MARK: - Time

    private func makeTimer(_ seconds: TimeInterval) -> ScheduleTimer {
        ScheduleTimer(registration.modes, after: seconds, repeats: true) { [self] _ in shortDelayHasPassed() }
    }

    /// The load may have been idle for too long.
    package func shortDelayHasPassed() {
        // A call that finds the gate taken leaves the check to the pass that follows.
        inbox.putTimeCheck()
        enter { if inbox.takeTimeCheck() { checkTimes() } }
    }

    private func checkTimes() {
        guard let driver, registration.isJoined, !driver.isEnded, !inbox.isSuspended else { return }
        // Told in a pass of the shared queue: a delivery is a handled source, which no timer is (rule UC-72).
        switch times.look(isLocal: driver.waitsLocally, makeTimer: { makeTimer($0) }) {
        case .nothing: break
        case .pass(let mayWait): registration.wakeUp(self, deferred: mayWait)
        }
    }

    /// When the load made its first step.
    var startedAt: LoopInstant { times.startedAt }

    /// There was a sign of life.
    func noteProgress() { times.noteProgress() }

    /// Another protocol has the connection: silence is no failure any more.
    func stopTimeout() { times.stopTimeout() }

    /// Nothing more comes.
    func stopTimes() { times.stop() }

    /// Bytes of the body were taken; whether no more are for now, since they have come faster than the settings want.
    func mustPause(after count: Int) -> Bool {
        times.rate?.received(count) { [self] in
            inbox.putGoOn()
            wakeUp()
        } ?? false
    }

    // MARK: - What the client may do with it. Any thread.

    /// Ends the load with `failure`: nothing more is sent or read, and the client hears of metrics and of that end alone, in
    /// a pass of a scheduled mode, or by its queue. Of several failures the first counts.
    ///
    /// A load that is ended before its start tells so after it.
    ///
    /// - Parameter keeps: What there is of a download goes with the end.
    package func abort(_ failure: LoadFailure, keepingDownload keeps: Bool = false) {
        inbox.abort(failure, keepingDownload: keeps)
        enter { stop() }
        wakeUp()
    }

    private func stop() {
        delivery.dropWaiting()
        driver?.abort()
    }

    /// Nothing is sent, read or told any more, and no time passes for the timeout, until `resume()`.
    package func suspend() {
        inbox.suspend(true)
        enter { standStill() }
    }

    package func resume() {
        inbox.suspend(false)
        enter { if !inbox.isSuspended { goOn() } }
        wakeUp()
    }

    /// The loops leave the channel alone.
    private func standStill() {
        guard inbox.isSuspended else { return }
        times.hold()
        inbox.suspendInterest()
    }

    /// As far as it stood still.
    private func goOn() {
        if times.go() { inbox.putTimeCheck() }
        channel?.resumeInterest()
    }

    /// The delegate's reply to a question, which was `.later` at first.
    package func reply(_ reply: DelegateCall.Reply) {
        inbox.put(reply)
        wakeUp()
    }

    /// The program wants no more content at present, or again.
    package func holdBack(_ holds: Bool) {
        inbox.holdBack(holds)
        if !holds { wakeUp() }
    }

    /// Among the loads that wait for a connection those of higher ranks go first.
    package var priority: Float {
        get { LoadRank(bits: rank.load(ordering: .relaxed)).priority }
        set {
            guard newValue != priority else { return }
            rank.store(LoadRank(priority: newValue).bits, ordering: .relaxed)
            settings.values.pool.rankWaiters()
            wakeUp()
        }
    }

    // MARK: - What the client may ask. Any thread.

    /// What the load waits for beside its server and its client; nil: nothing.
    package var obstacle: LoadObstacle? { LoadObstacle(rawValue: obstacleBits.load(ordering: .relaxed)) }

    func noteObstacle(_ new: LoadObstacle?) { obstacleBits.store(new?.rawValue ?? 0, ordering: .relaxed) }

    /// Bytes of the body that is delivered, as they were transferred.
    package var transferredBytes: Int64 { transferred.load(ordering: .relaxed) }

    func noteTransferred(_ count: Int) { transferred.wrappingAdd(Int64(count), ordering: .relaxed) }

    // MARK: - Within the call that tells of a response

    /// The codings of its content, in the order in which they were applied.
    var contentCodings: [ContentCoding] { driver?.contentCodings ?? [] }

    /// Has only so many of them undone, those that were applied last.
    func undoCodings(_ count: Int) { driver?.undoCodings(count) }
}

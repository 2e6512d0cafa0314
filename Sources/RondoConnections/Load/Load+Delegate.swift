internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

// What a load tells the program, and what the program says: delegate, diagnostics, cookies.

extension Load {
    /// Calls the delegate, at once on this loop's thread or by its queue. What was decided before may be
    /// otherwise afterwards: the delegate can cancel.
    ///
    /// - Returns: Whether the call goes by the queue, and the load goes on when it was made.
    @discardableResult
    func deliver(_ call: DelegateCall) -> Bool {
        guard let client, !client.isCancelled else { return false }
        let queue = client.delegateQueue
        if let calls = queue == nil ? calls : madeCalls {
            let adding = calls.add(call, to: queue) { [self] call in makeQueued(call, for: client) }
            if case .queued(let mayRead) = adding {
                if !mayRead { answer?.pause() }
                return true
            }
        }
        hasCalled = true
        let answer = client.make(call)
        if client.isCancelled {
            tearDown()
        } else if call.isQuestion {
            take(answer)
        }
        return false
    }

    /// The calls that wait for a delegate queue, from now on.
    private var madeCalls: QueuedCalls {
        if let calls { return calls }
        let calls = QueuedCalls()
        self.calls = calls
        shared.withLock { $0.calls = calls }
        return calls
    }

    /// On the delegate queue.
    private func makeQueued(_ call: DelegateCall, for client: any LoadClient) {
        guard !client.isCancelled else { return }
        let answer = client.make(call)
        if call.isTerminal {
            shared.withLock { $0.isOver = true }
            enter { leave() }
        } else if call.isQuestion {
            shared.withLock { $0.answer = answer }
            wakeUp()
        } else if shared.withLock({ $0.calls })?.mayRead ?? true {
            // The loop goes on where it waited for the delegate.
            wakeUp()
        }
    }

    /// Goes on with what the delegate has said.
    func take(_ answer: DelegateCall.Answer) {
        switch answer {
        case .none: break
        case .cached(let answer):
            guard state.answeredCaching() else { return }
            cache?.answered(answer)
            finishIfStored()
        case .challenge(let answer): self.answer?.answered(answer)
        case .request(let request): perform(state.answered(request))
        case .usesStorage(let uses):
            usesCredentialStorage = uses
            perform(state.answeredStorage())
        case .bodyStream(let stream): server?.answered(bodyStream: .some(stream))
        case .noBodyStreamMethod: server?.answered(bodyStream: .none)
        }
    }

    /// Whether a call of `method` would come to its default, as is known from an earlier one. Traces tell of every
    /// call, so that all are made while there is a listener.
    func spares(_ method: DelegateDefaults.Method) -> Bool {
        defaults?.contains(method) ?? false && !RunLoop.isTraced
    }

    /// Tells the listener, if there is one, what happens below the delegate's methods, until the end.
    func report(_ step: ExchangeStep) {
        if case .unusableCredential(let reason) = step {
            Log.connections.warning(
                "A credential was not sent to \(state.url?.host ?? "a server"): \(reason)")
        }
        guard client != nil, let listener = settings.values.onStep else { return }
        hasCalled = true
        listener(step)
    }

    func noteCall() { hasCalled = true }

    // MARK: - How much is wanted

    /// The program wants no more content at present, or again. Any thread.
    func holdBack(_ holds: Bool) {
        isHeldBack.store(holds, ordering: .sequentiallyConsistent)
        if !holds { wakeUp() }
    }

    /// The program takes content, and what waits for the delegate queue is not too much.
    var wantsMore: Bool { !isHeldBack.load(ordering: .sequentiallyConsistent) && calls?.mayRead ?? true }

    var takesMore: Bool { !state.isAsking && !state.isEnded && wantsMore }

    // MARK: - Time (rule UC-58)

    func noteProgress() { hasProgressed = true }

    /// Afterwards, since the time that the delegate takes is not the server's.
    func restartIdleTime() {
        guard hasProgressed else { return }
        hasProgressed = false
        if !state.isEnded { idleTime.restart() }
    }

    /// Seconds until the load has been idle for too long. What has come is looked at before the clock is.
    var secondsLeft: TimeInterval {
        restartIdleTime()
        let isOurs = answer?.isWaitingForThisSide ?? false || content.hasUnread || isStoring
        if isOurs { idleTime.restart() }
        return timeout - idleTime.seconds
    }

    private var hasTimeout: Bool { timeout > 0 && timeout.isFinite }

    /// Most loads are over in no time: so there is a timer only for one that takes longer than a short delay.
    func beginMeasuringIdleTime() {
        guard hasTimeout else { return }
        if timeout <= 2 * SharedQueue.shortDelay || !registration.notifyAfterShortDelay() {
            idleTimer = makeIdleTimer()
        }
    }

    private func makeIdleTimer() -> ScheduleTimer {
        ScheduleTimer(registration.modes, after: timeout, repeats: true) { [self] _ in mayHaveBeenIdle() }
    }

    func shortDelayHasPassed() { mayHaveBeenIdle() }

    private func mayHaveBeenIdle() {
        // A call that is turned away at the gate leaves it to the pass that follows.
        shared.withLock { $0.mustLookAtTheClock = true }
        enter {
            let mustLook = shared.withLock { shared in
                defer { shared.mustLookAtTheClock = false }
                return shared.mustLookAtTheClock
            }
            if mustLook { lookAtTheClock() }
        }
    }

    func lookAtTheClock() {
        guard registration.isJoined, !state.isEnded, hasTimeout else { return }
        let left = secondsLeft
        if left > 0 {
            let timer = idleTimer ?? makeIdleTimer()
            idleTimer = timer
            timer.move(to: left)
        } else {
            // Told in a pass of the shared queue: a delivery is a handled source, which no timer is (rule UC-72).
            isOutOfTime = true
            wakeUp()
        }
    }
}

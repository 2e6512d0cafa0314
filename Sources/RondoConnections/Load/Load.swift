internal import FoundationNetworking
package import RondoCore
internal import RondoHTTP
internal import RondoStreams

private import struct Synchronization.Atomic

/// One load: performs what its state decides, by an answer on one side and the client's delegate on the other.
///
/// The run loops that the load is scheduled in are its only engine. It is registered with the shared queues of their
/// modes from start to end, so that none of them is empty while the load waits for anything (rule UC-72).
///
/// What it hands out may hold it: its end always comes, by `leave()`, which releases all that holds it. (A weak
/// reference makes every use of an object slower.)
///
/// `@unchecked Sendable`: what is `let` never changes, or is safe for any thread by itself; the rest is touched inside
/// the gate only.
package final class Load: RegisteredClient, ServerAnswerOwner, StoreWaiter, UpgradeOwner, @unchecked Sendable
{
    private let registration: LoadRegistration
    private let settings: LoadSettings
    private let defaults: DelegateDefaults?
    private let gate = Gate()
    /// What the server is asked for beside a response; nil for nearly all.
    private let upgrade: (any Upgrade)?
    let inbox = LoadInbox()
    private let live = LiveObject(.load)

    // The gate lets one call in at a time, so that no access overlaps with another: to check each of the fifty that a small
    // GET on a kept connection makes takes 7 % of its instructions (bench-guard's http.request).

    @exclusivity(unchecked) private var state: LoadState
    /// Kept alive by the load from start to end (rule UC-15).
    @exclusivity(unchecked) private var client: (any LoadClient)?
    /// Nil before the first request is answered, and at the end.
    @exclusivity(unchecked) private var answers: LoadAnswers?
    @exclusivity(unchecked) private var usesCredentialStorage = true
    @exclusivity(unchecked) private var content: ContentReader
    /// Of the last head.
    @exclusivity(unchecked) private var origin = ResponseOrigin()
    @exclusivity(unchecked) private var startedAt = LoopInstant(nanoseconds: 0)
    @exclusivity(unchecked) private var timeout: LoadTimeout
    @exclusivity(unchecked) private var totalTime: TotalTime
    @exclusivity(unchecked) private var connectivity = ConnectivityWait()
    /// Nil: the settings set none.
    @exclusivity(unchecked) private var limits: LoadLimits?
    /// The program was called since the last pass began.
    @exclusivity(unchecked) private var hasCalled = false
    /// Calls that wait until the load is resumed; nil: there never was one.
    @exclusivity(unchecked) private var suspendedCalls: [DelegateCall]?
    /// What there was of a download when the client ended the load.
    @exclusivity(unchecked) private var partial: PartialDownload?
    /// Bytes of the body that is delivered, as they were transferred.
    private let transferred = Atomic<Int64>(0)
    private let rank = Atomic(LoadRank.normal.bits)
    private let standing = Atomic(LoadStanding.underWay.rawValue)

    /// - Parameter earlier: What an earlier download has left of this one, whose rest `request` asks for.
    package init(
        for client: any LoadClient, request: LoadRequest, schedule: [LoopMode], settings: LoadSettings,
        defaults: DelegateDefaults?, writesFile: Bool, continuing earlier: PartialDownload? = nil,
        upgrade: (any Upgrade)? = nil
    ) {
        self.upgrade = upgrade
        self.client = client
        registration = LoadRegistration(schedule)
        self.settings = settings
        self.defaults = defaults
        state = LoadState(
            request, protocols: settings.values.protocols, redirects: settings.values.redirects,
            isWebSocket: upgrade != nil)
        timeout = LoadTimeout(seconds: request.value.timeoutInterval, in: schedule)
        totalTime = TotalTime(seconds: settings.values.totalTimeout)
        content = ContentReader(
            limits: settings.values.contentLimits, decodes: settings.values.decodesContent,
            isDownload: writesFile, continuing: earlier)
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
        guard let client, !client.isCancelled else { return tearDown() }
        guard registration.join(as: self, label: client.nameInRunLoops) else { return tearDown() }
        let isToldOfDelay = timeout.start(registration) { makeTimer($0) }
        totalTime.start(registration, isToldOfDelay: isToldOfDelay) { makeTimer($0) }
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
        state.cancelled()
        leave()
    }

    /// The load leaves all its loops (rule UC-16); a mode that is empty by that is woken by its queue.
    private func leave() {
        let answers = answers.take()
        partial = nil
        content.discardAll()
        stopTimers()
        registration.leave(self, idle: answers?.close())
        if let client = client.take() { client.loadDidEnd() }
    }

    // MARK: - The gate

    /// Runs `body`, unless a call is inside: that one catches up before it leaves.
    func enter(_ body: () -> Void) {
        gate.enter(body, catchUp: { catchUp() }, turnedAway: { inbox.suspendInterest() })
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
            hasCalled = false
            serve()
            called = hasCalled
        }
        return called
    }

    private func serve() {
        guard let client else { return }
        if client.isCancelled { return tearDown() }
        if inbox.isAborted { return endAborted() }
        if inbox.isSuspended { return }
        makeSuspendedCalls()
        let messages = inbox.take()
        if messages.mustGoOn { limits?.endPause() }
        if messages.mustLookAtTheClock { lookAtTheClock() }
        if totalTime.takeReached(), !state.isEnded {
            return perform(state.failed(.exceededTotalTime(seconds: totalTime.seconds)))
        }
        // What has ended has no time any more, and its last call must not be lost.
        if timeout.takeReached(), !state.isEnded, !state.isUpgraded,
            timeout.secondsLeft(isOnThisSide: waitsForThisSide) <= 0
        {
            return perform(state.failed(.timedOut(seconds: timeout.seconds)))
        }
        if let answer = messages.answer { take(answer) }
        begin()
        if messages.hasCookies, let request = state.takeRequestWithCookies() { answer(request) }
        if messages.mustTryAgain { tryAgain() }
        answers?.current?.serve()
        readContent()
        finishIfStored()
        if state.deliversBody || state.isUpgraded, wantsMore { answers?.current?.resume() }
        if !state.isEnded { timeout.restartAfterProgress() }
    }

    private func begin() {
        guard !state.hasBegun else { return }
        startedAt = LoopClock.now
        timeout.noteProgress()
        if settings.hasLimits { limits = LoadLimits(settings.values, in: registration.modes) }
        perform(state.begin(asksAboutStorage: !defaults.spares(.shouldUseCredentialStorage)))
    }

    // MARK: - What the state decides

    private func perform(_ action: LoadState.Action) {
        switch action {
        case .nothing: break
        case .askAboutStorage: deliver(.shouldUseCredentialStorage)
        case .ask(let request, let redirect):
            answers?.current?.pause()
            deliver(.willSend(request, redirectResponse: redirect.flatMap { response($0) }))
        case .send(let request): send(request)
        case .authenticate(let head):
            answers?.current?.pause()
            answers?.challenged(by: head)
        case .deliver(let reply): deliver(reply)
        case .finish: finish()
        case .fail(let failure):
            let keeps = client?.keepsPartialDownloads ?? false
            let partial = keeps ? content.takePartial(of: state.request) : nil
            content.discardAll()
            end(.fail(URLErrors.anyError(failure, url: state.url), partial: partial))
        }
    }

    /// The one place where a request is sent, or sent again with other fields. (That a kept connection breaks, and a new
    /// one takes its place, is `ServerAnswer`'s own affair.)
    private func send(_ request: LoadRequest) {
        // It is the client's already: the first one, or the last one again with credentials.
        if request !== state.lastSent { client?.setCurrentRequest(request.value) }
        content.discard()
        if let answers {
            answers.cancel()
            if let before = state.lastSent.url, let url = state.url, !Redirect.areSameOrigin(before, url) {
                answers.leaveOrigin()
            }
        }
        state.noteSending()
        if mustWaitForCookies(request) { return state.waitForCookies(request) }
        answer(request)
    }

    private func answer(_ request: LoadRequest) {
        let answers =
            answers
            ?? LoadAnswers(
                for: self, in: registration.modes, settings, defaults: defaults,
                isDownload: content.download != nil, timesFrom: collectsMetrics ? startedAt : nil,
                usesCredentialStorage: usesCredentialStorage)
        self.answers = answers
        if upgrade == nil { answers.answer(request) } else { answers.answerByServer(request) }
    }

    /// Whether the request has to wait until its cookies can be read, which is nearly never: they have to be read from
    /// the disk first, or a thread is bringing others to where the program sees them.
    private func mustWaitForCookies(_ request: LoadRequest) -> Bool {
        guard request.address != nil, request.handlesCookies, let jar = settings.jar else { return false }
        return !jar.store.isReady(orTell: {
            { [self] in
                inbox.putCookies()
                wakeUp()
            }
        })
    }

    // MARK: - What the answer says

    func received(_ event: AnswerEvent) {
        switch event {
        case .step(let step): report(step)
        case .progress: break
        case .sent(let bytes, let total, let expected):
            deliver(.sent(bytes, total: total, expected: expected))
        case .informational(let head):
            guard client?.hearsOfInformational ?? false, let url = state.url,
                let response = LoadedResponse(url: url, head: head, bodyLength: nil)
            else { return }
            deliver(.informational(response))
        case .needsBodyStream(let request): deliver(.needNewBodyStream(request))
        case .challenge(let challenge, let silent, let isTrust):
            deliver(.challenge(challenge, silent: silent, isTrust: isTrust))
        case .cancelledChallenge(let challenge): deliver(.didCancel(challenge))
        case .hasCredential: perform(state.authenticated())
        case .hasNoCredential:
            perform(state.notAuthenticated())
            // The answer to a CONNECT is a head alone; its connection is gone.
            if !(answers?.isExchanging ?? false) { perform(state.bodyEnded()) }
        case .head(let head, let bodyLength, let origin): received(head, bodyLength: bodyLength, from: origin)
        case .response(let response, let policy):
            if let policy { answers?.cache.beginStoring(response, policy) }
            perform(state.received(response))
        case .redirect(let request, let response): perform(state.redirected(to: request, by: response))
        case .content(let data):
            guard state.deliversBody else { return }
            transferred.wrappingAdd(Int64(data.count), ordering: .relaxed)
            content.receive(data)
            readContent()
            keepPace(data.count)
        case .end: receivedEnd()
        case .failed(let failure): failed(failure)
        }
    }

    private func received(_ head: ResponseHead, bodyLength: Int64?, from origin: ResponseOrigin) {
        switch content.download?.receive(head, from: state.url) ?? .notAwaited {
        case .notAwaited: break
        case .failed(let failure): return perform(state.failed(failure))
        case .wholeIsNeeded:
            content.download?.forgetEarlier()
            return perform(state.askForWhole())
        case .follows:
            guard let target = content.download else { return }
            deliver(.resumed(total: target.length, expected: target.expectedLength))
            return
        }
        switch answers?.received(head, from: origin, to: state.lastSent) {
        case .deliver: break
        case .fail(let failure): return perform(state.failed(failure))
        case .answeredAnew, nil: return
        }
        self.origin = origin
        perform(
            state.received(
                head, bodyLength: bodyLength, isHoldingBackBody: origin.isHoldingBackBody,
                isFromProxy: origin.isFromProxy))
        if origin.isHeadAlone, state.deliversBody { perform(state.bodyEnded()) }
    }

    private func receivedEnd() {
        guard state.deliversBody else {
            // A server's response is read to its end although it is not delivered.
            return answers?.isByServer ?? false ? () : perform(state.failed(.noResponse))
        }
        if let failure = content.download?.restFailure { return perform(state.failed(failure)) }
        content.receiveEnd()
        readContent()
    }

    private func failed(_ failure: LoadFailure) {
        if !state.deliversBody, answers?.answerByStandIn() ?? false { return }
        if waitForConnectivity(after: failure) { return }
        guard let target = content.download else { return perform(state.failed(failure)) }
        if let first = target.takeFirstFailure() { return perform(state.failed(first)) }
        if state.deliversBody, !content.isChanged,
            let rest = target.requestForRest(after: failure, of: state.request)
        {
            answers?.answerByServer(rest, mayReuse: false)
            return
        }
        perform(state.failed(failure))
    }

    // MARK: - Without a network

    /// - Returns: Whether the load waits for one, instead of failing.
    private func waitForConnectivity(after failure: LoadFailure) -> Bool {
        guard settings.values.waitsForConnectivity, failure.isLackOfConnectivity, !state.deliversBody,
            !state.isEnded
        else { return false }
        let isFirst = connectivity.begin(in: registration.modes) { [self] in
            inbox.putTryAgain()
            wakeUp()
        }
        noteStanding(.waitsForConnectivity)
        if isFirst { deliver(.waitingForConnectivity) }
        return true
    }

    private func tryAgain() {
        guard connectivity.end(), !state.isEnded else { return }
        noteStanding(.underWay)
        noteProgress()
        answers?.answerByServer(state.lastSent)
    }

    /// Tells the listener, if there is one, what happens below the delegate's methods, until the end.
    private func report(_ step: ExchangeStep) {
        if case .unusableCredential(let reason) = step {
            Log.connections.warning(
                "A credential was not sent to \(state.url?.host ?? "a server"): \(reason)")
        }
        guard client != nil, let listener = settings.values.onStep else { return }
        hasCalled = true
        listener(step)
    }

    // MARK: - What the answer asks

    var nameInRunLoops: String? { client?.nameInRunLoops }
    var onlyQueue: SharedQueue? { registration.onlyQueue }
    /// The program takes content, and it has not come faster than the settings want.
    private var wantsMore: Bool { inbox.wantsMore && !(limits?.isPausing ?? false) }

    /// Takes no more for now if bytes have come faster than the settings want.
    private func keepPace(_ count: Int) {
        guard let limits, !state.isEnded else { return }
        let pauses = limits.received(count) { [self] in
            inbox.putGoOn()
            wakeUp()
        }
        if pauses { answers?.current?.pause() }
    }

    var sharesVerdicts: Bool { client?.sharesVerdicts ?? false }
    var takesMore: Bool { !state.isAsking && !state.isEnded && wantsMore }
    func forEachQueue(_ body: (SharedQueue) -> Void) { registration.forEachQueue(body) }
    func isAtOrigin(_ address: WebAddress) -> Bool { state.isAtOrigin(address) }
    func addFields(of request: LoadRequest, to fields: inout HeaderFields) {
        answers?.addFields(of: request, to: &fields)
        upgrade?.addFields(to: &fields)
    }
    func noteSent(_ fields: HeaderFields) { answers?.cache.noteSent(fields) }
    func setInterest(_ interest: ChannelInterest?) { inbox.setInterest(interest) }
    func noteProgress() { timeout.noteProgress() }
    func noteCall() { hasCalled = true }

    // MARK: - Upgrade

    /// Whether the request asks for another protocol: a proxy is asked for a tunnel then.
    var wantsTunnel: Bool { upgrade != nil }

    /// The response is an answer to the upgrade, or else the load fails.
    private func deliver(_ reply: LoadReply, _ response: URLResponse, to upgrade: any Upgrade) {
        deliver(.response(response, isQuestion: false))
        guard state.deliversBody, case .http(let head, _) = reply else { return }
        if let sentence = upgrade.refusal(of: head, for: self) {
            return perform(state.failed(.upgrade(.badServerResponse, sentence: sentence)))
        }
        state.upgraded()
        timeout.stop()
        answers?.upgrade(to: upgrade)
    }

    package func call(_ name: String, size: Int, _ call: @escaping @Sendable () -> Void) {
        deliver(.upgraded(name: name, size: size, call))
    }

    package func endUpgrade(_ failure: LoadFailure?) {
        guard state.isUpgraded else { return }
        perform(failure.map { state.failed($0) } ?? state.bodyEnded())
    }

    package func upgradeTimer(after seconds: Double, _ fire: @escaping @Sendable () -> Void) -> ScheduleTimer
    {
        ScheduleTimer(registration.modes, after: seconds, repeats: false) { _ in fire() }
    }

    // MARK: - Content

    /// A response is told of, and its content made ready to be read.
    private func deliver(_ reply: LoadReply) {
        guard let response = response(reply) else {
            return perform(state.failed(.unusableResponse(status: reply.status)))
        }
        if let upgrade { return deliver(reply, response, to: upgrade) }
        do throws(LoadFailure) {
            try content.begin(reply, response, method: state.lastSent.method)
        } catch {
            return perform(state.failed(error))
        }
        if case .http(let head, let bodyLength) = reply {
            answers?.cache.beginStoring(
                response, head, bodyLength: bodyLength, isPlain: !content.isChanged && inbox.callsOnLoop,
                hasParts: content.hasParts, isVerified: origin.isTrustworthy(for: state.lastSent))
        }
        if client?.answersResponses ?? false { state.askAboutResponse() }
        deliver(.response(response, isQuestion: state.isAsking))
        if let target = content.download, target.continuesEarlier {
            deliver(.resumed(total: target.length, expected: target.expectedLength))
        }
        if state.isAsking {
            answers?.current?.pause()
        } else if state.deliversBody {
            answers?.current?.resume()
        }
    }

    /// Nil where Foundation makes none.
    private func response(_ reply: LoadReply) -> URLResponse? {
        answers?.response(reply, to: state.request)
    }

    /// Hands on what has come, as far as the delegate takes it.
    private func readContent() {
        while state.deliversBody, wantsMore {
            do throws(LoadFailure) {
                switch try content.next() {
                case .nothing: return
                case .data(let data):
                    answers?.cache.received(data)
                    deliver(.data(data))
                    noteProgress()
                case .written(let data, let total, let expected):
                    deliver(.wrote(data.count, total: total, expected: expected))
                    noteProgress()
                case .part(let head): deliverPart(head)
                case .end: return perform(state.bodyEnded())
                }
            } catch {
                return perform(state.failed(error))
            }
        }
        // What comes now would only be stored.
        if state.deliversBody { answers?.current?.pause() }
    }

    /// A part of a multipart has its own response (rule UC-22).
    private func deliverPart(_ head: ResponseHead) {
        let response = state.url.flatMap { LoadedResponse(url: $0, head: head, bodyLength: nil) }
        perform(response.map { state.received($0) } ?? state.failed(.unusableResponse(status: head.status)))
    }

    /// The codings of its content, in the order in which they were applied. Within the call that tells of a response.
    var contentCodings: [ContentCoding] { content.codings }

    /// Has only so many of them undone, those that were applied last. Within the call that tells of a response.
    func undoCodings(_ count: Int) {
        do throws(LoadFailure) {
            try content.undoCodings(count)
        } catch {
            perform(state.failed(error))
        }
    }

    /// The program wants no more content at present, or again. Any thread.
    package func holdBack(_ holds: Bool) {
        inbox.holdBack(holds)
        if !holds { wakeUp() }
    }

    /// Bytes of the body that is delivered, as they were transferred. Any thread.
    package var transferredBytes: Int64 { transferred.load(ordering: .relaxed) }

    // MARK: - The end

    /// All has come.
    private func finish() {
        if case .ask(let proposal) = answers?.cache.receivedEnd(callsOnLoop: inbox.callsOnLoop) {
            state.askAboutCaching()
            deliver(.willCache(proposal))
        } else {
            finishIfStored()
        }
    }

    /// Ends the load that has all, as soon as it is stored.
    private func finishIfStored() {
        guard !inbox.isStoring, state.stored() else { return }
        do throws(LoadFailure) {
            guard let file = try content.download?.close() else { return end(.finish) }
            end(.finishDownload(file))
        } catch {
            end(.fail(URLErrors.error(error, url: state.url)))
        }
    }

    func beginStoring() { inbox.beginStoring() }

    func endStoring() { if inbox.endStoring() { wakeUp() } }

    private func end(_ call: DelegateCall) {
        answers?.end()
        content.discard()
        stopTimers()
        if collectsMetrics {
            let (redirects, transfers) = (state.redirectCount, answers?.transfers ?? [])
            deliver(.metrics(LoadMetrics(since: startedAt, redirectCount: redirects, transfers: transfers)))
        }
        if !deliver(call) { leave() }
    }

    /// The delegate wants to know, as far as is known.
    private var collectsMetrics: Bool { defaults != nil && !defaults.spares(.didCollectMetrics) }

    // MARK: - Calls to the delegate

    /// Calls the delegate, at once on this loop's thread or by its queue. What was decided before may be
    /// otherwise afterwards: the delegate can cancel.
    ///
    /// - Returns: Whether the call goes by the queue, and the load goes on when it was made.
    @discardableResult
    private func deliver(_ call: DelegateCall) -> Bool {
        guard let client, !client.isCancelled else { return false }
        if inbox.isAborted {
            guard call.isTerminal || call.isMetrics else { return false }
        } else if inbox.isSuspended || suspendedCalls != nil {
            // What came up later does not overtake what waits still.
            suspendedCalls = (suspendedCalls ?? []) + [call]
            return true
        }
        let queue = client.delegateQueue
        if let calls = inbox.calls(isWanted: queue != nil),
            case .queued(let mayRead) = calls.add(call, to: queue, make: { [self] in make($0, for: client) })
        {
            if !mayRead { answers?.current?.pause() }
            return true
        }
        hasCalled = true
        let answer = client.make(call)
        if client.isCancelled {
            tearDown()
        } else if call.isQuestion {
            if inbox.isSuspended { inbox.put(answer) } else { take(answer) }
        }
        return false
    }

    /// On the delegate queue.
    private func make(_ call: DelegateCall, for client: any LoadClient) {
        guard !client.isCancelled else { return }
        let answer = client.make(call)
        if call.isTerminal {
            inbox.noteOver()
            enter { leave() }
        } else if call.isQuestion {
            inbox.put(answer)
            wakeUp()
        } else if inbox.callsAllowReading {
            // The loop goes on where it waited for the delegate.
            wakeUp()
        }
    }

    /// Goes on with what the delegate has said.
    private func take(_ answer: DelegateCall.Answer) {
        switch answer {
        case .none, .later: break
        case .disposition(let disposition): take(disposition)
        case .cached(let answer):
            guard state.answeredCaching() else { return }
            answers?.cache.answered(answer)
            finishIfStored()
        case .challenge(let answer): answers?.current?.answered(answer)
        case .request(let request): perform(state.answered(request))
        case .usesStorage(let uses):
            usesCredentialStorage = uses
            perform(state.answeredStorage())
        case .bodyStream(let stream): answers?.answered(bodyStream: .some(stream))
        case .noBodyStreamMethod: answers?.answered(bodyStream: .none)
        }
    }

    private func take(_ disposition: DelegateCall.Disposition) {
        guard state.answeredResponse() else { return }
        if case .becomeDownload(let response) = disposition {
            answers?.cache.forget()
            do throws(LoadFailure) {
                try content.becomeDownload(of: response)
            } catch {
                return perform(state.failed(error))
            }
        }
        answers?.current?.resume()
        readContent()
    }

    // MARK: - What a task may do with its load. Any thread.

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
        answers?.cancel()
        suspendedCalls = nil
        if inbox.keepsDownload, partial == nil { partial = content.takePartial(of: state.request) }
        content.discardAll()
        state.cancelled()
    }

    private func endAborted() {
        guard let failure = inbox.takeAbortion() else { return }
        stop()
        end(.fail(URLErrors.anyError(failure, url: state.url), partial: partial.take()))
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

    /// As far as it stood still.
    private func goOn() {
        timeout.go()
        if totalTime.go() { inbox.putLookAtTheClock() }
        answers?.resumeInterest()
    }

    /// The loops leave the channel alone.
    private func standStill() {
        guard inbox.isSuspended else { return }
        timeout.hold()
        totalTime.hold()
        inbox.suspendInterest()
    }

    /// Makes the calls that came up while the load was suspended.
    private func makeSuspendedCalls() {
        guard let calls = suspendedCalls.take() else { return }
        // One that suspends the load again has the others put off anew.
        for call in calls where !deliver(call) && call.isTerminal { leave() }
    }

    /// The answer to a question that was answered by `.later` at first.
    package func answer(_ answer: DelegateCall.Answer) {
        inbox.put(answer)
        wakeUp()
    }

    // MARK: - Time

    private func makeTimer(_ seconds: TimeInterval) -> ScheduleTimer {
        ScheduleTimer(registration.modes, after: seconds, repeats: true) { [self] _ in shortDelayHasPassed() }
    }

    /// The load may have been idle for too long.
    package func shortDelayHasPassed() {
        // A call that is turned away at the gate leaves it to the pass that follows.
        inbox.putLookAtTheClock()
        enter { if inbox.takeLookAtTheClock() { lookAtTheClock() } }
    }

    private func lookAtTheClock() {
        guard registration.isJoined, !state.isEnded, !state.isUpgraded, !inbox.isSuspended else { return }
        // Told in a pass of the shared queue: a delivery is a handled source, which no timer is (rule UC-72).
        if timeout.look(isOnThisSide: waitsForThisSide, makeTimer: { makeTimer($0) }) { wakeUp() }
        // What has come by then is looked at before: it may be all (rule US-69).
        if totalTime.look(makeTimer: { makeTimer($0) }) { registration.wakeUp(self, deferred: true) }
    }

    private func stopTimers() {
        timeout.stop()
        totalTime.stop()
        _ = connectivity.end()
        limits.take()?.stop()
    }

    private var waitsForThisSide: Bool {
        answers?.current?.isWaitingForThisSide ?? false || content.hasUnread || inbox.isStoring
            || state.isAsking || connectivity.isWaiting
    }

    // MARK: - Its place among others, and what it waits for. Any thread.

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

    package var currentStanding: LoadStanding {
        LoadStanding(rawValue: standing.load(ordering: .relaxed)) ?? .underWay
    }

    func noteStanding(_ new: LoadStanding) { standing.store(new.rawValue, ordering: .relaxed) }
}

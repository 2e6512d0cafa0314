internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex
internal import RondoStreams

internal import struct Synchronization.Atomic

/// One load: performs what its state decides, by an answer on one side and the delegate on the other.
///
/// The run loops that the connection is scheduled in are its only engine. It is registered with the shared queues of
/// their modes from start to end, so that none of them is empty while the load waits for anything (rule UC-72).
///
/// What it hands out may hold it: its end always comes, by `leave()`, which releases all that holds it. (A weak
/// reference makes every use of an object slower.)
///
/// `@unchecked Sendable`: what is `let` never changes, or has a lock of its own; the rest is touched inside the gate
/// only.
final class Load: RegisteredClient, ServerAnswerOwner, StoreWaiter, @unchecked Sendable {
    struct Shared: ~Copyable {
        /// Calls that wait for the delegate queue; nil: there never was one.
        var calls: QueuedCalls?
        /// The delegate's answer, from the delegate queue.
        var answer: DelegateCall.Answer?
        /// The timeout may have been reached.
        var mustLookAtTheClock = false
        /// What makes the loops leave the channel alone while another call is inside; see `Gate`.
        var interest: ChannelInterest?
        /// The cookies of the request that waits for them can be read.
        var hasCookies = false
        /// The last call has been made by the delegate queue: there is nothing left but to leave.
        var isOver = false
    }

    let registration: LoadRegistration
    let settings: LoadSettings
    let defaults: DelegateDefaults?
    let timeout: TimeInterval
    private let gate = Gate()
    let shared = Mutex(Shared())
    /// The program wants no more content at present.
    let isHeldBack = Atomic(false)
    /// What other threads are storing for this load.
    let storing = Atomic(0)
    private let live = LiveObject(.load)

    // MARK: Inside the gate

    // The gate lets one call in at a time, so that no access overlaps with another: to check each of the fifty that a small
    // GET on a kept connection makes takes 7 % of its instructions (bench-guard's http.request).

    @exclusivity(unchecked) var state: LoadState
    /// Kept alive by the load from start to end (rule UC-15).
    @exclusivity(unchecked) var client: (any LoadClient)?
    /// Calls that go by a delegate queue; nil: none ever did.
    @exclusivity(unchecked) var calls: QueuedCalls?
    /// The answer to the request under way.
    @exclusivity(unchecked) var answer: (any Answer)?
    /// That of servers, which serves all requests of the load.
    @exclusivity(unchecked) var server: ServerAnswer?
    @exclusivity(unchecked) var cache: LoadCache?
    @exclusivity(unchecked) var usesCredentialStorage = true
    @exclusivity(unchecked) var content: ContentReader
    /// Of the last head.
    @exclusivity(unchecked) private var origin = ResponseOrigin()
    @exclusivity(unchecked) private var startedAt = LoopInstant(nanoseconds: 0)
    @exclusivity(unchecked) var idleTime: IdleTime
    @exclusivity(unchecked) var idleTimer: ScheduleTimer?
    @exclusivity(unchecked) var isOutOfTime = false
    /// There was progress since idle time was last restarted, which is done when the loop's work is done.
    @exclusivity(unchecked) var hasProgressed = false
    /// The program was called since the last pass began.
    @exclusivity(unchecked) var hasCalled = false

    init(
        for client: any LoadClient, request: LoadRequest, schedule: [LoopMode], settings: LoadSettings,
        defaults: DelegateDefaults?, writesFile: Bool
    ) {
        self.client = client
        registration = LoadRegistration(schedule)
        self.settings = settings
        self.defaults = defaults
        state = LoadState(request)
        idleTime = IdleTime(schedule)
        content = ContentReader(limits: settings.values.contentLimits, isDownload: writesFile)
        timeout = request.value.timeoutInterval
    }

    // MARK: - Start and end

    /// Enters the run loops. The first step is made there, not here (rule UC-13).
    func start() {
        enter {
            // Another thread may have cancelled it already.
            guard let client, !client.isCancelled else { return tearDown() }
            idleTime.restart()
            guard registration.join(as: self, label: client.nameInRunLoops) else { return tearDown() }
            beginMeasuringIdleTime()
            registration.wakeUp(self, deferred: true)
        }
    }

    /// No more callbacks (rule UC-17). Any thread.
    func cancel() {
        shared.withLock { $0.calls }?.removeAll()
        // If another thread is inside, that thread clears up: it catches up before it leaves.
        enter { tearDown() }
    }

    /// The thread of a loop has ended: with the last of them the load cannot go on, and is released.
    func loopHasEnded() { enter { if registration.isLost { tearDown() } } }

    /// Releases everything, without a word to the delegate.
    func tearDown() {
        state.cancelled()
        leave()
    }

    /// The connection leaves all its loops (rule UC-16); a mode that is empty by that is woken by its queue.
    func leave() {
        answer.take()?.cancel()
        discardContent()
        cache?.forget()
        idleTimer.take()?.invalidate()
        server?.close()
        registration.leave(self, idle: server?.takeIdleConnection())
        server = nil
        if let client = client.take() { client.loadDidEnd() }
    }

    // MARK: - The gate

    /// Runs `body`, unless a call is inside: that one catches up before it leaves.
    func enter(_ body: () -> Void) {
        gate.enter(body, catchUp: { catchUp() }, turnedAway: { shared.withLock { $0.interest?.suspend() } })
    }

    /// A call was turned away: what brought it is looked at again, in a pass of a scheduled mode.
    private func catchUp() {
        let isOver = shared.withLock { $0.isOver }
        if isOver || registration.isLost || client?.isCancelled ?? true { return tearDown() }
        server?.resumeInterest()
        wakeUp()
    }

    func setInterest(_ interest: ChannelInterest?) { shared.withLock { $0.interest = interest } }

    // MARK: - Passes

    /// Has the load served in a pass of a scheduled mode. Any thread.
    func wakeUp() { registration.wakeUp(self, deferred: false) }

    func serve(by queue: SharedQueue) -> Bool {
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
        let (delegateAnswer, mustLookAtTheClock, hasCookies) = shared.withLock { shared in
            defer {
                shared.answer = nil
                shared.mustLookAtTheClock = false
                shared.hasCookies = false
            }
            return (shared.answer, shared.mustLookAtTheClock, shared.hasCookies)
        }
        if mustLookAtTheClock { lookAtTheClock() }
        if isOutOfTime {
            isOutOfTime = false
            // What has ended has no time any more, and its last call must not be lost.
            if !state.isEnded, secondsLeft <= 0 { return perform(state.failed(.timedOut(seconds: timeout))) }
        }
        if let delegateAnswer { take(delegateAnswer) }
        begin()
        if hasCookies, let request = state.takeRequestWithCookies() { answer(request) }
        answer?.serve()
        readContent()
        finishIfStored()
        if state.deliversBody, wantsMore { answer?.resume() }
        restartIdleTime()
    }

    private func begin() {
        guard !state.hasBegun else { return }
        startedAt = LoopClock.now
        perform(state.begin(asksAboutStorage: !spares(.shouldUseCredentialStorage)))
    }

    // MARK: - What the state decides

    func perform(_ action: LoadState.Action) {
        switch action {
        case .nothing: break
        case .askAboutStorage: deliver(.shouldUseCredentialStorage)
        case .ask(let request, let redirect):
            answer?.pause()
            deliver(.willSend(request, redirectResponse: redirect.flatMap { response($0) }))
        case .send(let request): send(request)
        case .authenticate(let head):
            answer?.pause()
            server?.challenged(by: head)
        case .deliver(let reply): deliver(reply)
        case .finish: finish()
        case .fail(let failure):
            discardContent()
            end(.fail(URLErrors.anyError(failure, url: state.url)))
        }
    }

    /// The one place where a request is sent, or sent again with other fields. (That a kept connection breaks, and a new
    /// one takes its place, is `ServerAnswer`'s own affair.)
    private func send(_ request: LoadRequest) {
        // It is the connection's already: the first one, or the last one again with credentials.
        if request !== state.lastSent { client?.setCurrentRequest(request.value) }
        answer.take()?.cancel()
        content.discard()
        if let server, let before = state.lastSent.url, let url = state.url,
            !Redirect.areSameOrigin(before, url)
        {
            server.leaveOrigin()
        }
        state.noteSending()
        if mustWaitForCookies(request) { return state.waitForCookies(request) }
        answer(request)
    }

    /// The one place where it is decided what answers a request: the cache, a protocol of the program, the URL itself, or
    /// a server.
    private func answer(_ request: LoadRequest) {
        let cache =
            self.cache
            ?? LoadCache(settings, defaults: defaults, isDownload: content.download != nil, for: self)
        self.cache = cache
        switch cache.decide(request, fields: { outgoingFields(of: request) }) {
        case .send: answerAnew(request)
        case .use(let response, let data): answerFromCache(response, data)
        case .fail(let failure): perform(state.failed(failure))
        }
    }

    private func answerAnew(_ request: LoadRequest) {
        if let type = ProtocolRegistry.accepting(request.value) {
            // A synchronous request's own mode serves no timers but Rondo's, so that its protocol runs on the loader.
            let isSynchronous = registration.modes.contains { $0.mode == .synchronousRequest }
            let answer = ProtocolAnswer(
                of: type, to: request.value, cached: cache?.takeKept(),
                on: isSynchronous ? RunLoop.loader : nil,
                for: self)
            self.answer = answer
            answer.start()
        } else if request.address == nil, let url = request.url, LocalContent.canLoad(url) {
            do throws(LoadFailure) {
                start(StoredAnswer(try LocalContent(url), for: self))
            } catch {
                perform(state.failed(error))
            }
        } else {
            answerByServer(request)
        }
    }

    private func answerFromCache(_ response: URLResponse, _ data: Data) {
        start(StoredAnswer(response, data, for: self))
    }

    private func start(_ stored: StoredAnswer) {
        answer = stored
        stored.start()
    }

    /// - Parameter mayReuse: The request may go over a connection that was kept.
    private func answerByServer(_ request: LoadRequest, mayReuse: Bool = true) {
        let server =
            self.server
            ?? ServerAnswer(
                for: self, in: registration.modes, settings: settings, defaults: defaults,
                timesFrom: collectsMetrics ? startedAt : nil,
                usesCredentialStorage: usesCredentialStorage)
        self.server = server
        answer = server
        server.start(request, mayReuse: mayReuse)
    }

    // MARK: - What the answer says

    func received(_ event: AnswerEvent) {
        switch event {
        case .step(let step): report(step)
        case .progress: break
        case .sent(let bytes, let total, let expected):
            deliver(.sent(bytes, total: total, expected: expected))
        case .needsBodyStream(let request): deliver(.needNewBodyStream(request))
        case .challenge(let challenge, let silent, let isTrust):
            deliver(.challenge(challenge, silent: silent, isTrust: isTrust))
        case .cancelledChallenge(let challenge): deliver(.didCancel(challenge))
        case .hasCredential: perform(state.authenticated())
        case .hasNoCredential:
            perform(state.notAuthenticated())
            // The answer to a CONNECT is a head alone; its connection is gone.
            if !(server?.isExchanging ?? false) { perform(state.bodyEnded()) }
        case .head(let head, let bodyLength, let origin): received(head, bodyLength: bodyLength, from: origin)
        case .response(let response, let policy):
            if let policy { cache?.beginStoring(response, policy) }
            perform(state.received(response))
        case .redirect(let request, let response): perform(state.redirected(to: request, by: response))
        case .content(let data):
            guard state.deliversBody else { return }
            content.receive(data)
            readContent()
        case .end: receivedEnd()
        case .failed(let failure): failed(failure)
        }
    }

    private func received(_ head: ResponseHead, bodyLength: Int64?, from origin: ResponseOrigin) {
        switch content.download?.receive(head, from: state.url) ?? .notAwaited {
        case .notAwaited: break
        case .failed(let failure): return perform(state.failed(failure))
        case .follows:
            guard let target = content.download else { return }
            deliver(.resumed(total: target.length, expected: target.expectedLength))
            return
        }
        if let failure = server?.verifySender(of: head) { return perform(state.failed(failure)) }
        noteFields(of: head, origin)
        switch cache?.received(head, to: state.lastSent, isVerified: isTrustworthy(origin)) ?? .deliver {
        case .deliver: break
        case .use(let response, let data):
            answer.take()?.cancel()
            return answerFromCache(response, data)
        case .sendAgain:
            answer?.cancel()
            return answerByServer(state.request)
        }
        self.origin = origin
        perform(
            state.received(
                head, bodyLength: bodyLength, isHoldingBackBody: origin.isHoldingBackBody,
                isFromProxy: origin.isFromProxy))
        if origin.isHeadAlone, state.deliversBody { perform(state.bodyEnded()) }
    }

    /// Whether what a server says may be remembered for other loads: it was not let through in spite of its certificate.
    private func isTrustworthy(_ origin: ResponseOrigin) -> Bool {
        !state.lastSent.isSecure || origin.isVerified
    }

    private func receivedEnd() {
        guard state.deliversBody else {
            // A server's response is read to its end although it is not delivered.
            return answer === server ? () : perform(state.failed(.noResponse))
        }
        if let failure = content.download?.restFailure { return perform(state.failed(failure)) }
        content.receiveEnd()
        readContent()
    }

    private func failed(_ failure: LoadFailure) {
        if !state.deliversBody, let (response, data) = cache?.standIn() {
            answer.take()?.cancel()
            return answerFromCache(response, data)
        }
        guard let target = content.download else { return perform(state.failed(failure)) }
        if let first = target.takeFirstFailure() { return perform(state.failed(first)) }
        if state.deliversBody, !content.isChanged,
            let rest = target.requestForRest(after: failure, of: state.request)
        {
            return answerByServer(rest, mayReuse: false)
        }
        perform(state.failed(failure))
    }

    // MARK: - Content

    /// A response is told of, and its content made ready to be read.
    private func deliver(_ reply: LoadReply) {
        guard let response = response(reply) else {
            return perform(state.failed(.unusableResponse(status: reply.status)))
        }
        do throws(LoadFailure) {
            try content.begin(reply, response, method: state.lastSent.method)
        } catch {
            return perform(state.failed(error))
        }
        if case .http(let head, let bodyLength) = reply {
            cache?.beginStoring(
                response, head, bodyLength: bodyLength, isPlain: !content.isChanged && calls == nil,
                hasParts: content.hasParts, isVerified: isTrustworthy(origin))
        }
        deliver(.response(response))
        if state.deliversBody { answer?.resume() }
    }

    /// Nil where Foundation makes none.
    private func response(_ reply: LoadReply) -> URLResponse? {
        switch reply {
        case .http(let head, let bodyLength):
            guard let url = state.url else { return nil }
            // What is remembered holds no user's name and password.
            guard let server, state.request.address?.isPlain ?? false else {
                return LoadedResponse(url: url, head: head, bodyLength: bodyLength)
            }
            return server.response(to: url, head, bodyLength: bodyLength)
        case .other(let response): return response
        }
    }

    /// Hands on what has come, as far as the delegate takes it.
    private func readContent() {
        while state.deliversBody, wantsMore {
            do throws(LoadFailure) {
                switch try content.next() {
                case .nothing: return
                case .data(let data):
                    cache?.received(data)
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
        if state.deliversBody { answer?.pause() }
    }

    private func discardContent() {
        content.discard()
        content.download?.discard()
    }

    /// A part of a multipart has its own response (rule UC-22).
    private func deliverPart(_ head: ResponseHead) {
        guard let url = state.url else { return }
        guard let response = LoadedResponse(url: url, head: head, bodyLength: nil) else {
            return perform(state.failed(.unusableResponse(status: head.status)))
        }
        perform(state.received(response))
    }

    // MARK: - The end

    /// All has come.
    private func finish() {
        if let cache, case .ask(let proposal) = cache.receivedEnd(callsOnLoop: calls == nil) {
            state.askAboutCaching()
            deliver(.willCache(proposal))
        } else {
            finishIfStored()
        }
    }

    /// Ends the load that has all, as soon as it is stored.
    func finishIfStored() {
        guard !isStoring, state.stored() else { return }
        do throws(LoadFailure) {
            guard let file = try content.download?.close() else { return end(.finish) }
            end(.finishDownload(file))
        } catch {
            end(.fail(URLErrors.error(error, url: state.url)))
        }
    }

    var isStoring: Bool { storing.load(ordering: .acquiring) > 0 }

    func beginStoring() { storing.add(1, ordering: .acquiringAndReleasing) }

    func endStoring() {
        if storing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { wakeUp() }
    }

    private func end(_ call: DelegateCall) {
        answer.take()?.cancel()
        content.discard()
        idleTimer.take()?.invalidate()
        server?.closeBody()
        if collectsMetrics { deliver(.metrics(metrics)) }
        if !deliver(call) { leave() }
    }

    /// The delegate wants to know, as far as is known.
    private var collectsMetrics: Bool { defaults != nil && !spares(.didCollectMetrics) }

    private var metrics: LoadMetrics {
        LoadMetrics(
            startDate: LoopClock.date(of: startedAt), duration: LoopClock.now.seconds(since: startedAt),
            redirectCount: state.redirectCount, transfers: server?.transfers ?? [])
    }
}

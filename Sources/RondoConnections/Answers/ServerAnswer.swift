internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// The answer by servers: sends the requests of one load, one after the other, and reports their responses.
///
/// A request goes through steps, each of which may have to wait: preparing the body, choosing the route,
/// leasing a connection, and the exchange. If a kept connection turns out to be dead, the request is sent
/// again once over a new one, without a call to the delegate (see `RetryRule`).
///
/// `@unchecked Sendable`: used inside the gate of its load.
final class ServerAnswer: Answer, ExchangeOwner, @unchecked Sendable {
    private enum Phase {
        /// No request is being sent or answered.
        case idle
        /// The delegate was asked for a new body stream.
        case waitingForBodyStream
        /// The whole body is being read and hashed, because its hash goes into the head.
        case hashingBody
        /// The maximum of connections is in use; `waiterID` identifies this request in the queue.
        case waitingForConnection(LeaseWait, waiterID: Int, Route)
        /// The load was suspended while it waited for a connection.
        case waitingForResumption(Route)
        case exchanging(RunningExchange, Wait)
        /// The end of the last exchange is being reported. Its connection may still be registered with the
        /// queue: `close()`, or else `unregisterEnded()`, unregisters it.
        case reportingEnd(any Exchange, SharedQueue)
    }

    /// The exchange that sends `asked`.
    private struct RunningExchange {
        let exchange: any Exchange
        /// Whether the request goes to a proxy as it is, and not through a tunnel.
        let isToProxy: Bool
        /// Whether the request asks for the server's go-ahead.
        let hasExpectation: Bool
    }

    /// The event, besides those of the connection, that an exchange waits for.
    private enum Wait {
        case none
        /// The body's stream has no bytes yet.
        case body
        /// The body waits for the server's go-ahead, for a limited time.
        case goAhead(GoAheadWait)
    }

    let context: LoadContext
    /// The load's driver, which releases this answer when the load is over.
    let owner: any ServerAnswerOwner
    private var phase = Phase.idle
    /// The first request, and then the last that was started. Not in the phase, which each event of an
    /// exchange copies: with it there bench-guard's http.request takes 7 % more instructions.
    private(set) var asked: AnswerRequest
    private var retryRule = RetryRule()
    /// Allocated by the first request whose body is a stream.
    private var body: RequestBody?
    /// Allocated by the first challenge, proxy or TLS question: most loads have none.
    private var challenges: ServerChallenges?
    /// Nil if metrics are not wanted.
    private let transfers: LoadTransfers?

    init(
        first: LoadRequest, for owner: any ServerAnswerOwner, _ context: LoadContext,
        _ transfers: LoadTransfers?
    ) {
        asked = AnswerRequest(request: first)
        self.owner = owner
        self.context = context
        self.transfers = transfers
    }

    var settings: LoadSettings { context.settings }
    private var modes: [LoopMode] { owner.modes }

    // MARK: - Steps of a request

    /// Sends a request, after the last one has ended or was cancelled.
    func start(_ request: AnswerRequest) {
        unregisterEnded()
        asked = request
        retryRule.reset()
        transfers?.begin()
        authenticator?.beginRequest(for: request.request.url)
        prepareBody()
    }

    /// Sends the same request over a new connection, as `RetryRule` allows.
    private func retry() {
        owner.received(.progress)
        retryRule.noteRetry()
        transfers?.begin()
        asked.mayReuse = false
        prepareBody()
    }

    /// First step: prepares the request's body, if it is a stream.
    private func prepareBody() {
        guard let stream = asked.request.value.httpBodyStream else {
            closeBody()
            return chooseRoute()
        }
        guard bodyCreatingIfNeeded.prepare(stream) else {
            phase = .waitingForBodyStream
            owner.received(.needsBodyStream(asked.request.value))
            return
        }
        chooseRoute()
    }

    /// Takes the delegate's reply to `.needsBodyStream`; `.none` if it does not implement the method.
    func replied(bodyStream reply: Foundation.InputStream??) {
        guard case .waitingForBodyStream = phase, let origin = asked.request.value.httpBodyStream else {
            return
        }
        phase = .idle
        guard bodyCreatingIfNeeded.replace(by: reply, of: origin) else { return fail(.bodyStreamMissing) }
        chooseRoute()
    }

    /// The stream of the body of `asked`; nil if its body is none.
    var bodyStream: BodyStream? { body?.stream }

    private var bodyCreatingIfNeeded: RequestBody {
        if let body { return body }
        let body = RequestBody(in: modes, defaults: owner.defaults) { [weak self] in self?.wakeUp() }
        self.body = body
        return body
    }

    /// Second step: finds the route, direct or by a proxy; then hashes the body, if the credentials for a
    /// challenge protect it as well and the head needs its hash.
    private func chooseRoute() {
        guard let address = asked.request.address else {
            let isPort = asked.request.url.map { URIPort(of: $0) == .impossible } ?? false
            return fail(isPort ? .impossiblePort : .unsupportedURL)
        }
        do throws(LoadFailure) {
            let route = try self.route(to: address)
            if let stream = bodyStream, let authenticator,
                authenticator.bodyHashes(toProxy: route.isForProxy)
                    .contains(where: { stream.digests[$0] == nil })
            {
                stream.open(in: modes)
                phase = .hashingBody
                return wakeUp()
            }
            leaseConnection(by: route)
        } catch {
            fail(error)
        }
    }

    /// Hashes a piece of the body in a pass.
    private func hashBody() {
        guard let body else { return chooseRoute() }
        switch body.hash(by: authenticator?.bodyHashes(toProxy: true) ?? []) {
        case .done: chooseRoute()
        case .more:
            owner.received(.progress)
            wakeUp()
        case .notReady: body.waitForBytes()
        case .failed(let failure): fail(failure)
        }
    }

    /// Third step: leases a connection, a kept or a new one, as soon as one more may be in use.
    private func leaseConnection(by route: Route) {
        let outcome = route.origin.lease(
            route.key, of: modes[0].loop, at: owner.queues.only,
            for: LeaseWait(priority: owner.priority, in: route.origin.ranked) { [owner] in owner.wakeUp() },
            mayReuse: asked.mayReuse)
        switch consume outcome {
        case .granted(let lease): startExchange(by: route, over: lease)
        case .wait(let wait, let waiterID):
            phase = .waitingForConnection(wait, waiterID: waiterID, route)
            owner.received(.obstacle(.connectionLimit))
        }
    }

    /// Takes the lease of the request that was admitted.
    private func leaseAdmitted(by route: Route) {
        owner.received(.obstacle(nil))
        let lease = route.origin.leaseAdmitted(
            route.key, of: modes[0].loop, at: owner.queues.only, mayReuse: asked.mayReuse)
        startExchange(by: route, over: lease)
    }

    /// Last step: starts the exchange, which ends the lease.
    private func startExchange(by route: Route, over lease: consuming Lease) {
        phase = .idle
        let outgoing: OutgoingRequest
        do throws(LoadFailure) {
            outgoing = try outgoingRequest(by: route)
        } catch {
            lease.end()
            return fail(error)
        }
        owner.received(.sending(outgoing.head.fields))
        if let stream = bodyStream {
            // The stream may be of a class of the program, whose methods were called.
            owner.noteCall()
            stream.open(in: modes)
        }
        let exchange = route.makeExchange(
            over: lease, for: self,
            reporting: ExchangeReporting(steps: settings.values.onStep != nil, times: transfers != nil))
        // The delegate is asked about servers only; a proxy has its own TLS settings.
        if !route.isForProxy { askAboutTLS(of: exchange) }
        let running = RunningExchange(
            exchange: exchange, isToProxy: route.isForProxy, hasExpectation: outgoing.expectsContinue)
        phase = .exchanging(running, .none)
        exchange.start(outgoing, in: owner.queues, label: owner.nameInRunLoops)
    }

    /// The route to `address`: direct, or through a proxy.
    private func route(to address: WebAddress) throws(LoadFailure) -> Route {
        let atOrigin = !settings.isForOneOrigin || owner.isAtOrigin(address)
        if settings.isDirect { return settings.directRoute(to: address, atOrigin: atOrigin) }
        guard let proxy = try settings.proxy(for: address) else {
            authenticator?.chooseProxy(nil)
            return settings.directRoute(to: address, atOrigin: atOrigin)
        }
        let authenticator = challengesCreatingIfNeeded.authenticator
        authenticator.chooseProxy(proxy)
        let tls = address.isSecure ? settings.tls(atOrigin: atOrigin) : nil
        return Route(
            to: address, of: settings.values.pool, tls: tls, by: proxy, settings.routeOptions,
            tunnels: context.upgrade != nil
        ) { target in
            // A CONNECT has no body.
            let authorization = authenticator.proxyAuthorization(method: "CONNECT", target: target) {
                $0.hexadecimal(of: "")
            }
            return (authorization, authenticator.proxyProof)
        }
    }

    // MARK: - Answer

    func serve() {
        challenges?.takeDispositions()
        switch phase {
        case .idle, .waitingForBodyStream, .reportingEnd: break
        case .hashingBody: hashBody()
        case .waitingForConnection(let wait, _, let route):
            if wait.isAdmitted { leaseAdmitted(by: route) } else { wait.priority = owner.priority }
        case .waitingForResumption(let route): leaseConnection(by: route)
        case .exchanging(let running, let wait):
            let isOver = takeEnd(of: wait)
            if isOver { phase = .exchanging(running, .none) }
            running.exchange.serve(continuesBody: isOver)
        }
    }

    func stopReading() { current?.exchange.stopReading() }

    func startReading() { current?.exchange.startReading() }

    func suspend() {
        switch phase {
        case .idle, .waitingForBodyStream, .hashingBody, .waitingForResumption, .reportingEnd: break
        case .waitingForConnection(_, let waiterID, let route):
            phase = .waitingForResumption(route)
            route.origin.withdraw(waiterID)
            owner.received(.obstacle(nil))
        case .exchanging(let running, _): running.exchange.suspend()
        }
    }

    func resume() { current?.exchange.resume() }

    func cancel() { releaseExchange() }

    var waitsLocally: Bool {
        if challenges?.isWaiting ?? false { return true }
        switch phase {
        case .idle, .hashingBody, .reportingEnd: return false
        case .waitingForBodyStream, .waitingForConnection, .waitingForResumption: return true
        case .exchanging(let running, _): return running.exchange.waitsLocally
        }
    }

    /// Makes the current connection carry the protocol that the request asked for, from here on.
    func beginUpgrade() { if let upgrade = context.upgrade { current?.exchange.upgrade(to: upgrade) } }

    /// Ends the answer, because the load is over.
    func close() {
        cancel()
        challenges?.close()
        closeBody()
        guard case .reportingEnd(let exchange, let queue) = phase else { return }
        phase = .idle
        // Unregister the connection only after the queue has served its waiting loads: one of them may take
        // the connection without registering it again.
        if let work = exchange.unregistration, !queue.deferWorkBehindClients(work) {
            _ = work.performDeferredWork()
        }
    }

    /// Nil if no exchange is running.
    private var current: RunningExchange? {
        if case .exchanging(let running, _) = phase { running } else { nil }
    }

    // MARK: - Events of the exchange

    func received(_ event: ExchangeEvent) {
        switch event {
        case .waitsForBody: waitForBody()
        case .waitsForGoAhead: waitForGoAhead()
        case .step(let step): owner.received(.step(step))
        case .progress: owner.received(.progress)
        case .informational(let head): owner.received(.informational(head))
        case .mayGoAhead:
            owner.received(.progress)
            endGoAheadWait()
        case .sent(let bytes, let total, let expected):
            owner.received(.sent(bytes, total: total, expected: expected))
        case .head(let head, let bodyLength, let isVerified):
            received(head, bodyLength: bodyLength, isVerified: isVerified)
        case .body(let data):
            authenticator?.received(data)
            owner.received(.content(data))
        case .end: ended()
        case .failed(let failure): failed(failure)
        }
    }

    private func received(_ head: ResponseHead, bodyLength: Int64?, isVerified: Bool) {
        endGoAheadWait()
        transfers?.received(head, bodyLength: bodyLength)
        guard let running = current else { return }
        if retryRule.allowsRetry(of: asked.request, afterStatus: head.status, running.exchange.retryFacts) {
            releaseExchange()
            return retry()
        }
        if let failure = authenticator?.received(head, isFromProxy: running.isToProxy) {
            releaseExchange()
            return fail(failure)
        }
        let source = ResponseSource(
            isFromProxy: running.isToProxy, hadExpectation: running.hasExpectation,
            isVerified: isVerified)
        owner.received(.head(head, bodyLength: bodyLength, from: source))
    }

    private func ended() {
        guard let exchange = current?.exchange else { return }
        let queue = owner.queues.only
        releaseExchange(registeredAt: queue)
        if let queue { phase = .reportingEnd(exchange, queue) }
        owner.received(authenticator?.receivedEnd().map(AnswerEvent.failed) ?? .end)
        // `close()` has done this if the load is over. If not, the load may wait for long.
        unregisterEnded()
    }

    /// Unregisters the connection of the exchange whose end was reported, if it is still idle and registered.
    private func unregisterEnded() {
        guard case .reportingEnd(let exchange, _) = phase else { return }
        phase = .idle
        _ = exchange.unregistration?.performDeferredWork()
    }

    private func failed(_ cause: ExchangeFailure) {
        guard let running = current else { return }
        let facts = running.exchange.retryFacts
        releaseExchange()
        let failure = cause.ofLoad(throughProxyTo: running.isToProxy ? asked.request.url?.host : nil)
        if case .tunnelChallenge(let head, _) = cause {
            owner.received(
                .head(head, bodyLength: 0, from: ResponseSource(isFromProxy: true, isHeadAlone: true)))
        } else if retryRule.allowsRetry(of: asked.request, after: cause, facts) {
            retry()
        } else {
            fail(failure)
        }
    }

    private func fail(_ failure: LoadFailure) { owner.received(.failed(failure)) }

    /// Ends the current exchange. Its connection is kept if it can serve another request, and closed
    /// otherwise.
    ///
    /// - Parameter queue: The queue with which the connection may stay registered for the next request; nil
    ///   for none.
    private func releaseExchange(registeredAt queue: SharedQueue? = nil) {
        endGoAheadWait()
        var phase = Phase.idle
        swap(&phase, &self.phase)
        switch phase {
        case .idle, .waitingForBodyStream, .hashingBody, .waitingForResumption: break
        case .waitingForConnection(_, let waiterID, let route): route.origin.withdraw(waiterID)
        case .reportingEnd: self.phase = phase
        case .exchanging(let running, _):
            transfers?.ended(running.exchange, of: asked.request)
            if !running.exchange.end(registeredAt: queue) {
                owner.received(.step(.closed(reason: "the connection cannot serve another request")))
            }
        }
    }

    // MARK: - Challenges

    var authenticator: Authenticator? { challenges?.authenticator }

    private var challengesCreatingIfNeeded: ServerChallenges {
        if let challenges { return challenges }
        let challenges = ServerChallenges(
            for: owner, credentials: context.usesCredentialStorage ? settings.values.credentials : nil)
        challenges.authenticator.beginRequest(for: asked.request.url)
        self.challenges = challenges
        return challenges
    }

    /// Handles the challenge in the response `head`.
    func challenged(by head: ResponseHead) { challengesCreatingIfNeeded.challenged(by: head) }

    func challengeHandled(_ handling: DelegateCall.ChallengeHandling) { challenges?.handled(handling) }

    /// Drops the credentials, because the next request goes to another origin (rule UC-33).
    func leaveOrigin() { authenticator?.leaveOrigin() }

    /// Makes the exchange ask the delegate about its server, unless the settings have handlers for that or
    /// the delegate has no method to answer: a connection that asks does not resume an earlier TLS session.
    private func askAboutTLS(of exchange: any Exchange) {
        guard let tls = exchange.key.tls, let defaults = owner.defaults, !defaults.leavesTLSToSettings else {
            return
        }
        let (asksForTrust, asksForIdentity) = (tls.trustHandler == nil, tls.identityHandler == nil)
        guard asksForTrust || asksForIdentity else { return }
        challengesCreatingIfNeeded.askAboutTLS(
            of: exchange, asksForTrust: asksForTrust, asksForIdentity: asksForIdentity)
    }

    // MARK: - Waiting

    private func waitForBody() {
        guard let running = current else { return }
        phase = .exchanging(running, .body)
        body?.waitForBytes()
    }

    private func waitForGoAhead() {
        guard case .exchanging(let running, .none) = phase else { return }
        let wait = GoAheadWait(in: modes, for: max(0, settings.values.goAheadTimeout)) { [weak self] in
            self?.wakeUp()
        }
        phase = .exchanging(running, .goAhead(wait))
    }

    private func endGoAheadWait() {
        guard case .exchanging(let running, .goAhead(let wait)) = phase else { return }
        wait.stop()
        phase = .exchanging(running, .none)
    }

    /// Whether `wait` ends in this pass, so that the body is sent on.
    private func takeEnd(of wait: Wait) -> Bool {
        switch wait {
        case .none: return false
        case .body: break
        case .goAhead(let wait):
            guard wait.takeEnd() else { return false }
            // Other loops of the load have timers as well.
            wait.stop()
        }
        // The stream may be of a class of the program, whose methods are called.
        if bodyStream != nil { owner.noteCall() }
        return true
    }

    private func wakeUp() { owner.wakeUp() }

    /// Closes the body of the request, which is not needed any more.
    func closeBody() { body?.close() }

    var gate: any ChannelGate { owner.gate }
    var maySend: Bool { owner.maySend }
}

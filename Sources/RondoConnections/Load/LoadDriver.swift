internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// Carries out the actions of a load's state: sends requests through an answer, and makes calls to the
/// client.
///
/// `@unchecked Sendable`: used inside the gate of its load only, except for members marked "any thread".
final class LoadDriver: ServerAnswerOwner, StoreWaiter, UpgradeOwner, @unchecked Sendable {
    private let load: Load
    let defaults: DelegateDefaults?
    /// The protocol to which the request asks the server to switch; nil for nearly all loads.
    private let upgrade: (any Upgrade)?

    // Unchecked: used inside the gate, which admits one call at a time, so that no two accesses overlap. With
    // the checks of these bench-guard's http.request takes 9 % more instructions.
    @exclusivity(unchecked) private var state: LoadState
    @exclusivity(unchecked) private var sent: SentRequests
    @exclusivity(unchecked) private var content: ContentReader
    /// Nil before the first request is answered, and at the end.
    @exclusivity(unchecked) private var answers: LoadAnswers?

    init(
        of load: Load, request: LoadRequest, settings: LoadSettings,
        defaults: DelegateDefaults?, writesFile: Bool, continuing earlier: PartialDownload?,
        upgrade: (any Upgrade)?, failing failure: LoadFailure?
    ) {
        self.load = load
        self.defaults = defaults
        self.upgrade = upgrade
        state = LoadState(
            request, protocols: settings.values.protocols, redirects: settings.values.redirects,
            isWebSocket: upgrade?.isRequired ?? false, hosts: settings.values.hstsHosts,
            failing: failure)
        sent = SentRequests(request, beginsElsewhere: settings.values.beginsElsewhere)
        content = ContentReader(isDownload: writesFile, continuing: earlier)
    }

    private var client: (any LoadClient)? { load.client }
    private var settings: LoadSettings { load.settings }
    var modes: [LoopMode] { load.registration.modes }
    var isTimed: Bool { state.isTimed }
    var failsAtOnce: Bool { state.failsAtOnce }

    // MARK: - The end

    /// Ends the load without a further call.
    func cancel() { state.cancelled() }

    /// Releases everything. Call it before the load leaves its loops.
    func close() {
        content.discardAll()
        answers.take()?.close()
    }

    /// Stops the load, because the client has ended it. A later pass tells the client (`endAborted(_:)`).
    func abort() {
        answers?.cancel()
        // Read before `state` is changed: the autoclosure below runs during that access.
        let (request, leftOrigin) = (state.request, self.leftOrigin)
        let keeps = load.inbox.keepsDownload
        state.aborted(keeping: keeps ? content.takePartial(of: request, leftOrigin: leftOrigin) : nil)
        content.discardAll()
    }

    /// Tells the client of the end that `abort()` has prepared, or of the file of a failure that it does not
    /// know yet.
    func endAborted(_ failure: LoadFailure, partial: PartialDownload?) {
        end(.fail(URLErrors.anyError(failure, url: state.url), partial: state.takeAborted() ?? partial))
    }

    /// Ends the load, whose time is over; but while no head has come, a stored response may stand in for a
    /// silent server.
    func timedOut(_ failure: LoadFailure, reply: DelegateCall.Reply?) {
        if state.isAskingAboutCaching {
            // All content has come, so the load succeeds. The delegate has not said whether to store it: take
            // its `reply` if one has just come, otherwise store nothing (rule US-69).
            if let reply { handle(reply) }
            return handle(.cached(nil))
        }
        if state.isAnswering { failed(failure) } else { perform(state.failed(failure)) }
    }

    func suspend() { answers?.current?.suspend() }
    func resume() { answers?.current?.resume() }

    // MARK: - A pass

    /// Begins the load.
    func begin() {
        perform(state.started(asksAboutStorage: !defaults.usesDefault(of: .shouldUseCredentialStorage)))
    }

    /// Continues everything that waited for a pass.
    func serve(_ messages: LoadInbox.Messages) {
        if let reply = messages.reply { handle(reply) }
        if !state.hasStarted { begin() }
        if messages.events.contains(.cookiesReadable) { perform(state.cookiesRead()) }
        if messages.events.contains(.networkMayBeBack) { perform(state.networkMayBeBack()) }
        answers?.current?.serve()
        readContent()
        finishIfStored()
        if state.readsAnswer, load.takesContent { startReading() }
    }

    // MARK: - Actions of the state

    private func perform(_ action: consuming LoadState.Action) {
        switch consume action {
        case .nothing: break
        case .askAboutStorage: load.deliver(.shouldUseCredentialStorage)
        case .ask(let request, let redirect):
            stopReading()
            load.deliver(
                .willSend(request, redirectResponse: redirect.flatMap { $0.response(to: state.request) }))
            readOnAfterReply()
        case .send(let request, let reason): send(request, reason)
        case .answer(let request, let reason): beginAnswer(to: request, reason)
        case .useStored(let response, let data): answers?.answerFromCache(response, data, to: sent.last)
        case .waitForNetwork(let isFirst):
            load.noteObstacle(.noNetwork)
            if isFirst { load.deliver(.waitingForConnectivity) }
        case .continueFile(let total):
            content.download?.noteRest(total: total)
            deliverResumption()
        case .authenticate(let head):
            stopReading()
            answers?.server?.challenged(by: head)
            readOnAfterReply()
        case .deliver(let incoming): deliver(incoming)
        case .finish: finish()
        case .fail(let failure):
            let keeps = client?.keepsPartialDownloads ?? false
            let partial = keeps ? content.takePartial(of: state.request, leftOrigin: leftOrigin) : nil
            content.discardAll()
            end(.fail(URLErrors.anyError(failure, url: state.url), partial: partial))
        }
    }

    // MARK: - Sending

    /// Sends a request, for any of the reasons that the load has. Call it for `Action.send` only.
    private func send(_ request: LoadRequest, _ reason: SendReason) {
        switch reason {
        case .first, .redirect, .credential, .withoutExpectation, .wholeFile: prepareNew(request)
        case .withoutConditions: break
        case .network:
            load.noteObstacle(nil)
            load.noteProgress()
        // Bytes that are not in the file yet come again with the rest.
        case .rest: load.noteTransferred(-content.discardUnread())
        }
        answers?.cancel()
        sent.note(request)
        // True nearly always; false while cookies are read from the disk, or copied to Foundation's storage.
        let hasCookies = settings.jar?.prepare(for: request) {
            { [load] in
                load.inbox.put(.cookiesReadable)
                load.wakeUp()
            }
        }
        if hasCookies ?? true {
            beginAnswer(to: request, reason)
        } else {
            state.cookiesDelayed(for: request, reason)
        }
    }

    /// Shows the client the request that is to be sent, and drops what belongs to the last one.
    private func prepareNew(_ request: LoadRequest) {
        // The client knows the first request already, and one that is sent again with credentials.
        if request !== sent.last { client?.setCurrentRequest(request.value) }
        content.discard()
        guard let answers, let before = sent.last.url, let url = state.url else { return }
        if !Redirect.areSameOrigin(before, url) { answers.server?.leaveOrigin() }
    }

    private func beginAnswer(to request: LoadRequest, _ reason: SendReason) {
        let answers =
            answers
            ?? LoadAnswers(
                for: self,
                LoadContext(
                    settings: settings, upgrade: upgrade, startedAt: collectsMetrics ? load.startedAt : nil,
                    usesCredentialStorage: state.usesCredentialStorage),
                isDownload: content.download != nil)
        self.answers = answers
        answers.answer(request, reason)
    }

    /// Whether the load's request goes to another origin than the one that the settings were made for.
    private var leftOrigin: Bool { !(state.request.address.map { isAtOrigin($0) } ?? true) }

    // MARK: - Events of the answer

    func received(_ event: AnswerEvent) {
        // Each event restarts the idle time (rule UC-58).
        load.noteProgress()
        switch event {
        case .step(let step): load.report(step, at: state.url)
        case .progress: break
        case .obstacle(let obstacle): load.noteObstacle(obstacle)
        case .sending(let fields): answers?.cache.noteSent(fields)
        case .sent(let bytes, let total, let expected):
            load.deliver(.sent(bytes, total: total, expected: expected))
        case .informational(let head):
            guard client?.wantsInformational ?? false, let url = state.url,
                let response = LoadedResponse(url: url, head: head, bodyLength: nil)
            else { return }
            load.deliver(.informational(response))
        case .needsBodyStream(let request): load.deliver(.needNewBodyStream(request))
        case .challenge(let challenge, let silent, let isOfTLS):
            load.deliver(.challenge(challenge, silent: silent, isOfTLS: isOfTLS))
        case .decided: client?.challengeWasDecided()
        case .cancelledChallenge(let challenge): load.deliver(.didCancel(challenge))
        case .hasCredential: perform(state.authenticated())
        case .hasNoCredential: perform(state.notAuthenticated())
        case .head(let head, let bodyLength, let source): received(head, bodyLength: bodyLength, from: source)
        case .response(let response, let policy):
            if let policy { answers?.cache.beginStoring(response, policy) }
            perform(state.received(response))
        case .redirect(let request, let response):
            perform(state.protocolRedirected(to: request, by: response))
        case .content(let data):
            guard state.deliversBody else { return }
            load.noteTransferred(data.count)
            content.receive(data)
            readContent()
            if !state.ignoresAnswer, load.limitRate(after: data.count) { stopReading() }
        case .end: receivedEnd()
        case .failed(let failure): failed(failure)
        }
    }

    private func received(_ head: ResponseHead, bodyLength: Int64?, from source: ResponseSource) {
        // A proxy that refuses to make a tunnel is not the server, and anyone on the way to it may have
        // written this.
        if !source.isHeadAlone { answers?.noteFields(of: head, from: source, to: sent.last) }
        if state.isAskingForRest { return perform(state.receivedHeadOfRest(head, bodyLength: bodyLength)) }
        if let target = content.download, !target.canUse(head, bodyLength: bodyLength, from: state.url) {
            target.forgetEarlier()
            return perform(state.receivedUselessPart())
        }
        switch answers?.received(head, from: source, to: sent.last) {
        case .deliver: break
        case .askWithoutConditions: return perform(state.storedResponseRejected())
        case .answeredAnew, nil: return
        }
        perform(
            state.receivedHead(
                head, bodyLength: bodyLength, hadExpectation: source.hadExpectation,
                isFromProxy: source.isFromProxy, isHeadAlone: source.isHeadAlone))
    }

    private func receivedEnd() {
        guard state.deliversBody else {
            // A server's response is read to its end although it is not delivered.
            if answers?.isByServer ?? false { return }
            return perform(state.failed(.noResponse))
        }
        if let failure = content.download?.restFailure { return perform(state.failed(failure)) }
        content.receiveEnd()
        readContent()
    }

    private func failed(_ failure: LoadFailure) {
        perform(state.answerFailed(failure, beginRecourse(after: failure)))
    }

    /// Begins what the load can do instead of failing, in its phase. The load then does that.
    private func beginRecourse(after failure: LoadFailure) -> Recourse {
        if state.isAnswering {
            if failure.isOfServer, let (response, data) = answers?.cache.useStaleResponse() {
                return .staleResponse(response, data)
            }
            if settings.values.waitsForConnectivity, failure.isLackOfConnectivity {
                return .connectivity(load.makeConnectivityWait())
            }
        } else if state.deliversBody, !content.isDecodedOrDivided,
            let (request, rest) = content.download?.makeRequestForRest(after: failure, of: state.request)
        {
            return .rest(request, rest)
        }
        return .none
    }

    // MARK: - For the answer

    var nameInRunLoops: String? { client?.nameInRunLoops }
    var sharesTrustDecisions: Bool { client?.sharesTrustDecisions ?? false }
    var queues: ModeQueues { load.registration.queues }
    func isAtOrigin(_ address: WebAddress) -> Bool { sent.isAtOrigin(address) }
    var gate: any ChannelGate { load }
    func noteCall() { load.noteCall() }
    var maySend: Bool { !load.inbox.isSuspended && !load.inbox.isAborted }
    var mayRead: Bool { !state.isAsking && !state.ignoresAnswer && load.takesContent }
    // Any thread:
    var priority: Float { load.priority }
    func wakeUp() { load.wakeUp() }
    func beginStoring() { load.inbox.beginStoring() }
    func endStoring() { if load.inbox.endStoring() { wakeUp() } }

    // MARK: - Upgrade

    /// Delivers the response to a request for `upgrade`; any other response fails the load.
    private func deliver(_ incoming: IncomingResponse, _ response: URLResponse, for upgrade: any Upgrade) {
        showResponse(response)
        if state.isAsking { stopReading() }
        guard upgrade.isRequired, state.deliversBody, let head = incoming.head else { return }
        if let sentence = incoming.refusalOfTunnel {
            return perform(state.failed(.upgrade(.badServerResponse, sentence: sentence)))
        }
        if let sentence = upgrade.refusal(of: head, for: self) {
            return perform(state.failed(.upgrade(.badServerResponse, sentence: sentence)))
        }
        beginUpgrade()
    }

    private func beginUpgrade() {
        state.upgraded()
        load.stopTimeout()
        answers?.server?.beginUpgrade()
    }

    package func call(_ name: String, size: Int, _ call: @escaping @Sendable () -> Void) {
        load.deliver(.upgraded(name: name, size: size, call))
    }

    package func endUpgrade(_ failure: LoadFailure?) {
        guard state.isUpgraded else { return }
        perform(failure.map { state.failed($0) } ?? state.bodyEnded())
    }

    package func timer(after seconds: Double, _ fire: @escaping @Sendable () -> Void) -> ScheduleTimer {
        ScheduleTimer(modes, after: seconds, repeats: false) { _ in fire() }
    }

    // MARK: - Content

    /// Tells the client of a response, and prepares its content for reading.
    private func deliver(_ incoming: IncomingResponse) {
        guard let answers, let response = incoming.response(to: state.request) else {
            return perform(state.failed(.unusableResponse(status: incoming.status)))
        }
        if let upgrade, upgrade.isRequired || incoming.switchesProtocol {
            return deliver(incoming, response, for: upgrade)
        }
        do throws(LoadFailure) {
            try content.begin(incoming, response, method: sent.last.method, settings)
        } catch {
            return perform(state.failed(error))
        }
        if case .http(let head, let bodyLength) = incoming {
            answers.cache.beginStoring(
                response, head, bodyLength: bodyLength,
                isPlain: !content.isDecodedOrDivided && load.inbox.callsOnLoop,
                hasParts: content.hasParts, defaults, for: self)
        }
        showResponse(response)
        if content.download?.continuesEarlier ?? false { deliverResumption() }
        if state.isAsking { stopReading() }
        if case .headAlone = incoming {
            content.discard()
            content.receiveEnd()
            // Does nothing while the client decides about the response; its reply then ends the load.
            readContent()
        }
    }

    /// Shows the client a response, and asks about its body if the client decides on that. The response to a
    /// required upgrade is no question.
    private func showResponse(_ response: URLResponse) {
        if upgrade?.isRequired != true, client?.decidesOnResponses ?? false { state.askedAboutResponse() }
        load.deliver(.response(response, isQuestion: state.isAsking))
    }

    /// Tells the client that the rest of a download's file follows.
    private func deliverResumption() {
        guard let target = content.download else { return }
        load.deliver(.resumed(total: target.length, expected: target.expectedLength))
    }

    /// Reads no more of the answer, so that flow control holds its sender back.
    func stopReading() { answers?.current?.stopReading() }

    private func startReading() { answers?.current?.startReading() }

    /// Goes on with a response that was kept back for a question, if the reply has come at once; otherwise
    /// the pass that brings the reply does so.
    private func readOnAfterReply() { if state.deliversBody { startReading() } }

    /// Delivers the content that has come, as far as the delegate takes it.
    private func readContent() {
        while state.deliversBody, load.takesContent {
            do throws(LoadFailure) {
                switch try content.next() {
                case .nothing: return
                case .data(let data):
                    answers?.cache.received(data)
                    load.deliver(.data(data))
                    load.noteProgress()
                case .written(let data, let total, let expected):
                    load.deliver(.wrote(data.count, total: total, expected: expected))
                    load.noteProgress()
                case .part(let head): perform(state.receivedPart(head))
                case .end: return perform(state.bodyEnded())
                }
            } catch {
                return perform(state.failed(error))
            }
        }
        // Content that came now would only fill memory.
        if state.deliversBody { stopReading() }
    }

    var contentCodings: [ContentCoding] { content.codings }

    func undoCodings(_ count: Int) {
        answers?.cache.forget()
        do throws(LoadFailure) {
            try content.undoCodings(count)
        } catch {
            perform(state.failed(error))
        }
    }

    // MARK: - The end of the content

    /// Ends the content: everything has come.
    private func finish() {
        let callsOnLoop = load.inbox.callsOnLoop
        let end = answers?.cache.receivedEnd(callsOnLoop: callsOnLoop, defaults, for: self)
        guard case .ask(let proposal) = end else { return finishIfStored() }
        state.askedAboutCaching()
        load.deliver(.willCache(proposal))
    }

    /// Ends the load, whose content is complete, as soon as everything is stored.
    private func finishIfStored() {
        guard state.endsOnceStored, !load.inbox.isStoring else { return }
        state.stored()
        do throws(LoadFailure) {
            guard let file = try content.download?.close() else { return end(.finish) }
            end(.finishDownload(file))
        } catch {
            end(.fail(URLErrors.error(error, url: state.url)))
        }
    }

    private func end(_ call: DelegateCall) {
        answers?.end()
        content.discard()
        load.stopTimes()
        if collectsMetrics {
            let (redirects, transfers) = (state.redirectsFollowed, answers?.transfers?.all ?? [])
            load.deliver(
                .metrics(LoadMetrics(since: load.startedAt, redirectCount: redirects, transfers: transfers)))
        }
        if !load.deliver(call) { load.leave() }
    }

    /// Whether the delegate may implement the method that gets the metrics.
    private var collectsMetrics: Bool { defaults != nil && !defaults.usesDefault(of: .didCollectMetrics) }

    // MARK: - The client's replies

    /// Continues with the delegate's reply to a question.
    func handle(_ reply: DelegateCall.Reply) {
        switch reply {
        case .none, .later: break
        case .disposition(let disposition): handle(disposition)
        case .cached(let approved):
            guard state.isAskingAboutCaching else { return }
            state.repliedAboutCaching()
            answers?.cache.replied(approved, defaults, for: self)
            finishIfStored()
        case .challenge(let handling): answers?.current?.challengeHandled(handling)
        case .request(let request): perform(state.replied(request))
        case .usesStorage(let uses): perform(state.repliedAboutStorage(uses))
        case .bodyStream(let stream): answers?.server?.replied(bodyStream: .some(stream))
        case .noBodyStreamMethod: answers?.server?.replied(bodyStream: .none)
        }
    }

    private func handle(_ disposition: DelegateCall.ResponseDisposition) {
        guard state.isAskingAboutResponse else { return }
        state.repliedAboutResponse()
        if case .becomeUpgrade(let owner) = disposition, upgrade != nil {
            owner(self)
            beginUpgrade()
        } else if case .becomeDownload(let response) = disposition {
            answers?.cache.forget()
            do throws(LoadFailure) {
                try content.becomeDownload(of: response)
            } catch {
                return perform(state.failed(error))
            }
        }
        startReading()
        readContent()
    }

    /// Whether the load waits for something on this machine and not for the sender of the response.
    var waitsLocally: Bool {
        answers?.current?.waitsLocally ?? false || content.hasUnread || load.inbox.isStoring
            || state.waitsLocally
    }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

extension Loader: ExchangeOwner {
    /// Times that a request is sent again because the connection that it went over broke before anything was
    /// heard of the server.
    static var maximumRetries: Int { 1 }

    /// Sends `request` with its body, over a kept connection or a new one.
    func exchange(_ request: LoadRequest, body: BodyStream?, mayReuse: Bool) {
        guard connection != nil else { return }
        guard let address = request.address else {
            let isPort = request.url.map { URIPort(of: $0) == .impossible } ?? false
            return perform(state.failed(isPort ? .impossiblePort : .unsupportedURL))
        }
        let route: Route
        let outgoing: OutgoingRequest
        do throws(LoadFailure) {
            route = try self.route(to: address)
            if let body, !isHashed(body, for: request, toProxy: route.isForProxy, mayReuse: mayReuse) {
                return
            }
            guard obtainLease(route, request, body: body, mayReuse: mayReuse) else { return }
            let isForProxy = route.isForProxy
            isAskingProxy = isForProxy
            outgoing = try OutgoingRequest(
                request, stream: body, omittedFields: settings.values.omittedFields,
                isForProxy: isForProxy
            ) { [self] target, sent, fields in
                setAuthentication(
                    method: request.method, target: target, toProxy: isForProxy ? sent : nil, in: &fields
                ) { hash in
                    body.map { $0.digests[hash] } ?? hash.hexadecimal(of: request.value.httpBody ?? Data())
                }
                setCookies(of: request, in: &fields)
                setCacheFields(of: request, in: &fields)
            }
        } catch {
            return perform(state.failed(error))
        }
        noteSent(outgoing.head.fields)
        if let body {
            // A stream of the program's, perhaps.
            hasCalled = true
            body.open(in: places)
        }
        guard let lease = lease.take() else { return }
        let exchange = HTTP1Exchange(
            outgoing, by: lease, opening: route.channel, of: self,
            telling: .init(steps: settings.values.onDiagnostic != nil, times: collectsMetrics))
        // The delegate is asked about servers; about a proxy its own settings say whom to ask.
        if !route.isForProxy { askAboutTLS(of: exchange) }
        self.exchange = exchange
        shared.withLock { [interest = exchange.interest] in $0.channel = interest }
        exchange.start()
    }

    /// Lets in what a loop brings to `exchange`.
    ///
    /// A callback that a loop has begun looks the gate up, and may be held up before: the load that it was for is
    /// over by then, and the channel another load's, which is in other loops perhaps. There it has nothing to do.
    /// Nothing is lost: a descriptor that is ready is so for the loops that watch it now, and a turn that was
    /// taken was asked for by the load before.
    func enter(for exchange: any Exchange, _ body: () -> Void) {
        guard isServedHere else { return }
        enter {
            // The same load may have gone on to another request.
            guard self.exchange === exchange else { return }
            body()
            noteProgress()
        }
    }

    var label: String? { connection?.nameInRunLoops }

    func noteReceived() { hasProgressed = true }

    /// Whether the calling thread is in a pass of one of the places.
    private var isServedHere: Bool {
        // Where there is one place, its thread alone puts a channel there, which cannot have happened since it has
        // begun the callback: whatever mode of it runs, it is the right one.
        if places.count == 1 { return places[0].loop.isCurrent }
        return places.contains { place in
            guard place.loop.isCurrent, let mode = place.loop.currentMode else { return false }
            return place.mode == mode
                || place.mode == .common && place.loop.modes(named: .common).contains(mode)
        }
    }

    func received(_ event: ExchangeEvent) {
        switch event {
        // That our side waits is no sign of the server's life.
        case .waitsForBody: return waitForBody()
        case .waitsForGoAhead: return waitForGoAhead()
        default: take(event)
        }
        hasProgressed = true
    }

    /// Afterwards, since the time that the delegate takes is not the server's.
    func noteProgress() {
        guard hasProgressed else { return }
        hasProgressed = false
        if exchange != nil || pipe != nil { progressedAt = now }
    }

    private func take(_ event: ExchangeEvent) {
        switch event {
        case .step(let step):
            note(step)
        case .progress, .waitsForBody, .waitsForGoAhead:
            break
        case .mayGoAhead:
            stopGoAheadTimer()
        case .sent(let bytes, let total, let expected):
            deliver(.sent(bytes, total: total, expected: expected))
        case .head(let head, let bodyLength):
            stopGoAheadTimer()
            if exchange?.hasServerTimedOut ?? false, retries < Self.maximumRetries {
                disposeOfExchange()
                return sendAgain()
            }
            if resumed(head) { return }
            guard isAccepted(head) else { return }
            noteFields(head)
            if isTakenByCache(head) { return }
            let isHoldingBackBody = exchange?.isWaitingForGoAhead ?? false
            perform(
                state.received(
                    head, bodyLength: bodyLength, isHoldingBackBody: isHoldingBackBody,
                    isFromProxy: isAskingProxy))
        case .body(let data):
            guard state.deliversBody else { return }
            rare?.bodyProof?.update(data)
            receivedTransferred(data)
            if holdsBack { exchange?.pause() }
        case .end:
            spentExchange = exchange
            disposeOfExchange(mayStay: true)
            if isBodyProven() { transferEnded() }
            // The load is not over yet, and nobody knows when it will be.
            spentExchange?.idleConnection?.leave()
        case .failed(let cause):
            let failure = LoadFailure(cause)
            let mayBeSentAgain = exchange?.mayBeSentAgain ?? false
            disposeOfExchange()
            if let head = Self.challenge(in: failure) {
                perform(state.received(head, bodyLength: 0))
                // One that does not say how: it is the result, and has no body that could end.
                if state.deliversBody { perform(state.bodyEnded()) }
                return
            }
            if mayBeSentAgain, retries < Self.maximumRetries {
                sendAgain()
            } else if !isReplacedByCache(), !resumes(after: failure) {
                perform(state.failed(failure))
            }
        }
    }

    /// The kept connection turned out dead: the same request on one of its own, and nobody notices.
    private func sendAgain() {
        retries += 1
        send(state.request, mayReuse: false)
    }

    func receivedBody(_ data: Data) {
        guard let rare, let file = rare.file else {
            deliver(.data(data))
            return
        }
        do throws(SystemError) {
            try file.write(data)
        } catch {
            return perform(
                state.failed(
                    .file(.cannotWriteToFile, sentence: "The file \(file.path) could not be written", error)))
        }
        rare.fileLength += Int64(data.count)
        deliver(.wrote(data.count, total: rare.fileLength, expected: rare.expectedFileLength))
    }

    /// The file that a download delegate gets (rule UC-67).
    ///
    /// - Returns: False if there is none, and the load has failed.
    func openFile(expecting length: Int64) -> Bool {
        do throws(SystemError) {
            let rare = madeRare
            rare.file = try DownloadFile()
            rare.fileLength = 0
            rare.expectedFileLength = max(0, length)
            return true
        } catch {
            let sentence = "A file could not be created in \(NSTemporaryDirectory())"
            perform(state.failed(.file(.cannotCreateFile, sentence: sentence, error)))
            return false
        }
    }

    /// Keeps the connection to the server if it can serve another request, or closes it.
    ///
    /// - Parameter mayStay: It need not leave its loop at once. Whoever says so has it leave.
    func disposeOfExchange(mayStay: Bool = false) {
        // As at the end of most loads: it is done already.
        guard exchange != nil || lease != nil || rare != nil else { return }
        disposeOfOthers()
        isWaitingForBody = false
        stopGoAheadTimer()
        endLease()
        guard let exchange else { return }
        self.exchange = nil
        shared.withLock { $0.channel = nil }
        noteTransfer(exchange)
        if !exchange.end(registeredAt: mayStay ? onlyCourier : nil) {
            report(.closed(reason: "the connection cannot serve another request"))
        }
    }

    private func note(_ step: ExchangeStep) {
        switch step {
        case .resolving(let host): report(.resolving(host: host))
        case .connecting(let address): report(.connecting(address: address.description))
        case .connected(let address): report(.connected(address: address.description))
        case .secured(let version, let cipher, let subject):
            report(.secured(version: version, cipher: cipher, subject: subject))
        case .reusing(let address):
            report(.reusing(address: address?.description ?? exchange?.key.host ?? ""))
        case .requestHead(let text): report(.requestHead(text))
        case .responseHead(let text): report(.responseHead(text))
        }
    }
}

extension LoadFailure {
    fileprivate init(_ failure: ExchangeFailure) {
        self =
            switch failure {
            case .channel(let error): .channel(error)
            case .http(let error): .http(error)
            case .bodyStreamFailed(let error): .bodyStreamFailed(error)
            case .bodyTooShort(let announced, let given): .bodyTooShort(announced: announced, given: given)
            case .bodyTooLong(let announced): .bodyTooLong(announced: announced)
            }
    }
}

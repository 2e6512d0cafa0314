internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// An exchange over an HTTP/1.1 connection of its own, which is served in the modes of its load.
///
/// `@unchecked Sendable`: used inside the gate of its load, which the events of the channel pass too.
final class HTTP1Exchange: Exchange, @unchecked Sendable {
    private enum Phase {
        case opening
        case open
        /// As `open`, but another protocol gets the connection once the codec has read that the server
        /// switches to it.
        case switching(any Upgrade)
        /// Another protocol has the connection.
        case upgraded(any Upgrade)
        /// No event comes any more. The connection may be open still, until `end(registeredAt:)`.
        case finished
    }

    private let connection: HTTP1Connection
    /// Whether the connection is opened for this exchange.
    private let isNew: Bool
    /// Whether the connection was already registered with the loop that is to serve it.
    private let isRegistered: Bool
    /// The owner, which releases its exchange when that has ended.
    private let owner: any ExchangeOwner
    private let reportsSteps: Bool
    /// Nil if metrics are not wanted.
    private let times: ExchangeTimes?

    // Unchecked, because the gate admits one call at a time. With the checks of these and of
    // `HTTP1Connection.codec` bench-guard's http.request takes 6 % more instructions.
    @exclusivity(unchecked) private var phase: Phase
    /// Sends the request; nil before the start.
    @exclusivity(unchecked) private var sender: HTTP1RequestSender?
    @exclusivity(unchecked) private var input = HTTP1Input()

    private var sendFailure: ChannelError?
    private var bodyReceived: Int64 = 0
    /// The status of the final response, once it has come.
    private var status: Int?
    private var hasInformational = false
    /// Nil after `end(registeredAt:)`. An exchange that is dropped without it drops the lease, which closes
    /// the connection: if that counted as in use for ever, all loads of its server would wait in the end.
    private var lease: Lease?

    /// - Parameters:
    ///   - connection: That of the lease; not open yet if it is new.
    ///   - lease: The lease, which the exchange ends.
    init(
        over connection: HTTP1Connection, by lease: consuming Lease, of owner: any ExchangeOwner,
        reporting: ExchangeReporting
    ) {
        reportsSteps = reporting.steps
        times = reporting.times ? ExchangeTimes() : nil
        self.owner = owner
        self.connection = connection
        isNew = !connection.isReused
        isRegistered = !isNew && connection.takeRegistration()
        phase = isNew ? .opening : .open
        self.lease = consume lease
    }

    deinit { input.giveBack() }

    var retryFacts: RetryRule.Facts {
        RetryRule.Facts(
            isReusedConnection: connection.isReused, isUnsent: sender?.nothingWasSent ?? true,
            isWaitingForGoAhead: sender?.isWaitingForGoAhead ?? false,
            hasResponse: connection.codec.hasReceivedAnyByteOfResponse, hasInformational: hasInformational)
    }

    private var isSent: Bool { sender?.isSent ?? false }

    /// Whether the exchange sends and receives over the connection: it is open, and no other protocol has it.
    private var isRunning: Bool {
        switch phase {
        case .open, .switching: true
        case .opening, .upgraded, .finished: false
        }
    }

    var waitsLocally: Bool { !channel.wantsRead || hasUnreadInput }

    /// Whether bytes have come that were not parsed yet.
    private var hasUnreadInput: Bool {
        isRunning && (!input.isEmpty || channel.hasUnreadBytes)
    }

    var key: ConnectionKey { connection.key }

    var record: ExchangeRecord {
        ExchangeRecord(
            status: status, address: channel.remoteAddress,
            isReusedConnection: connection.isReused, protocolName: "http/1.1",
            times: times ?? ExchangeTimes(), headBytesSent: sender?.headSent ?? 0,
            bodyBytesSent: sender?.bodySent ?? 0,
            bodyBytesReceived: bodyReceived)
    }

    func makePrivate() { connection.makePrivate() }

    // MARK: - Loops

    var channel: SocketChannel { connection.channel }

    var unregistration: (any DeferredWork)? { connection.isRegisteredIdle ? connection : nil }

    func askAboutPeer(_ trust: ((TLSTrust) -> Void)?, identity: ((TLSIdentityRequest) -> Void)?) {
        guard isNew else { return }
        if let trust { channel.handlers.onTrust = trust }
        if let identity { channel.handlers.onIdentityRequest = identity }
    }

    func suspend() { channel.suspend() }

    func resume() { channel.resume() }

    // MARK: - Running

    func start(_ request: consuming OutgoingRequest, in queues: ModeQueues, label: String?) {
        // `end(registeredAt:)` ends it.
        channel.registration.beginAccess(to: channel, by: owner.gate)
        if reportsSteps, !isNew {
            owner.received(.step(.reusing(address: channel.remoteAddress?.description ?? key.host)))
        }
        if !isNew { times?.reuse(channel) }
        channel.registration.label = label
        if !isRegistered { queues.forEach { channel.schedule(with: $0) } }
        // `abandon()` breaks this cycle.
        channel.handler = { [self] in handle($0) }
        do throws(HTTP1Error) {
            sender = try HTTP1RequestSender(request, codec: &connection.codec)
        } catch {
            return fail(.http(HTTPFailure(error)))
        }
        // A connection that is being opened is read once it is open, unless `stopReading()` comes before.
        channel.wantsRead = true
        switch phase {
        case .opening: channel.open()
        case .open: didOpen()
        case .switching, .upgraded, .finished: break
        }
    }

    func end(registeredAt queue: SharedQueue?) -> Bool {
        // This also undoes a suspension, by the load or after a refused event: the next exchange needs the
        // events.
        channel.registration.endAccess()
        discardRest()
        if isNew {
            channel.handlers.onTrust = nil
            channel.handlers.onIdentityRequest = nil
        }
        guard startNextCycle() else {
            let wasOpen = channel.isOpen
            lease.take()?.end()
            return !wasOpen
        }
        let staysRegistered = queue.map { channel.registration.mayStayRegistered(in: $0.loop) } ?? false
        lease.take()?.keep(registeredAt: staysRegistered ? queue : nil)
        return true
    }

    /// Makes sure that no further event comes.
    private func abandon() {
        phase = .finished
        channel.handler = nil
    }

    /// Parses what the buffer holds of the rest of an unwanted response: if that is all of it, the connection
    /// can serve another request. Reads nothing from the socket.
    private func discardRest() {
        guard case .open = phase else { return abandon() }
        abandon()
        while true {
            do throws(HTTP1Error) {
                switch try connection.codec.nextEvent(from: input.bytes, consumed: &input.consumed) {
                case .informational, .response, .body, .trailers: continue
                case .end, .needMoreData, .paused, .closed, .switchedProtocol: return
                }
            } catch {
                // The connection is not reused after a codec error; nothing else matters here.
                return
            }
        }
    }

    func stopReading() {
        if case .upgraded(let upgrade) = phase { return upgrade.stopReading() }
        channel.wantsRead = false
    }

    func startReading() {
        if case .upgraded(let upgrade) = phase { return upgrade.startReading() }
        guard !channel.wantsRead else { return }
        channel.wantsRead = true
        parse()
    }

    private func handle(_ event: SocketChannel.Event) {
        if case .upgraded(let upgrade) = phase { return hand(event, to: upgrade) }
        times?.note(event, of: channel)
        switch event {
        case .resolving(let host): tell(.resolving(host: host))
        case .connecting(let address): tell(.connecting(address: address.description))
        case .connected(let address): tell(.connected(address: address.description))
        case .negotiating: owner.received(.progress)
        case .securing: break
        case .secured(let version, let cipher, let subject):
            tell(.secured(version: version, cipher: cipher, subject: subject))
        case .open: didOpen()
        case .readable: receive()
        case .writable: send()
        case .failed(let error):
            let challenge = TunnelNegotiation.challenge(in: error)
            fail(challenge.map { .tunnelChallenge($0, error) } ?? .channel(error))
        }
    }

    // MARK: - Upgrade

    func upgrade(to upgrade: any Upgrade) {
        guard case .open = phase else { return }
        phase = .switching(upgrade)
        connection.makePrivate()
        // Taken out and put back, so that no access to the variable lasts while other code runs. None of that
        // ends this exchange.
        guard var lease = lease.take() else { return }
        lease.leaveServerCount()
        self.lease = consume lease
    }

    private func hand(_ event: SocketChannel.Event, to upgrade: any Upgrade) {
        switch event {
        case .resolving, .connecting, .connected, .negotiating, .securing, .secured, .open: break
        case .readable: upgrade.becameReadable()
        case .writable: upgrade.becameWritable()
        case .failed(let error): upgrade.failed(error)
        }
    }

    /// Hands the connection over. Bytes after the head belong to the other protocol.
    private func begin(_ upgrade: any Upgrade) {
        phase = .upgraded(upgrade)
        times?.endResponse()
        channel.wantsWrite = false
        let (rest, buffer) = input.takeRest()
        // The protocol may end the exchange; the bytes have to stay in place until it returns.
        withExtendedLifetime(buffer) { upgrade.begin(channel, received: rest) }
    }

    /// Begins the upgrade that was asked for; without one the response fails the exchange.
    private func switchProtocol() {
        if case .switching(let upgrade) = phase {
            begin(upgrade)
        } else {
            end(by: .failed(.http(.unusedSwitch)))
        }
    }

    private func tell(_ step: @autoclosure () -> ExchangeStep) {
        owner.received(reportsSteps ? .step(step()) : .progress)
    }

    private func didOpen() {
        phase = .open
        times?.beginRequest(over: channel)
        tell(.requestHead(sender?.headText ?? ""))
        guard isRunning else { return }
        send()
    }

    private func fail(_ failure: ExchangeFailure) {
        if case .finished = phase { return }
        abandon()
        owner.received(.failed(failure))
    }

    // MARK: - Sending

    private func send() {
        sender?.beginPass()
        while isRunning, sendFailure == nil {
            // The delegate may have suspended the load in a call before this one.
            if !isSent, !owner.maySend {
                channel.wantsWrite = true
                return
            }
            guard let outcome = sender?.send(over: connection) else { return }
            switch outcome {
            case .progress(let now, let total, let expected):
                owner.received(.sent(now, total: total, expected: expected))
                continue
            case .blocked:
                channel.wantsWrite = true
                return
            case .waitsForBody: owner.received(.waitsForBody)
            case .waitsForGoAhead: owner.received(.waitsForGoAhead)
            case .failed(let failure): return fail(failure)
            case .broken(let error):
                // The server may have sent a response before it closed the connection; the response counts,
                // not this error.
                sendFailure = error
            case .sent:
                times?.endRequest()
            }
            channel.wantsWrite = false
            return
        }
    }

    func serve(continuesBody: Bool) {
        if case .upgraded(let upgrade) = phase { return upgrade.serve() }
        guard continuesBody else { return }
        // The body is sent, though no go-ahead may have come in time (rule UC-42).
        sender?.goAhead()
        guard isRunning, !channel.wantsWrite else { return }
        send()
    }

    // MARK: - Receiving

    private func receive() {
        guard isRunning else { return }
        let hasNew = input.fill(from: channel, noting: times)
        // A byte of a head completes no event yet, and is a sign of life all the same (rule UC-58).
        if !parse(), hasNew, isRunning { owner.received(.progress) }
    }

    /// Parses the received bytes, an event at a time: after each event the exchange may have stopped reading,
    /// or have ended.
    ///
    /// - Returns: False if the bytes made up no event: the caller then reports progress.
    @discardableResult
    private func parse() -> Bool {
        defer { if input.isEmpty { input.giveBack() } }
        var hasEvent = false
        while isRunning, channel.wantsRead {
            do throws(HTTP1Error) {
                let event = try connection.codec.nextEvent(from: input.bytes, consumed: &input.consumed)
                guard handle(consume event) else { break }
                hasEvent = true
            } catch {
                if let sendFailure, case .peer(.closedBeforeResponse) = error {
                    fail(.channel(sendFailure))
                } else {
                    fail(.http(HTTPFailure(error)))
                }
            }
        }
        return hasEvent
    }

    /// - Returns: Whether there may be another event.
    private func handle(_ event: consuming HTTP1Event) -> Bool {
        switch consume event {
        case .informational(let head):
            hasInformational = true
            tell(Self.step(for: head))
            guard isRunning else { break }
            if head.status == 100 {
                owner.received(.mayGoAhead)
                if sender?.goAhead() ?? false { send() }
            } else {
                owner.received(.informational(head))
            }
        case .response(let head, let bodyLength):
            return handle(connection.share(head), bodyLength: bodyLength)
        case .body(let range):
            bodyReceived += Int64(range.count)
            owner.received(.body(input.data(range)))
        case .trailers:
            break
        case .needMoreData:
            return takeEndOfInput()
        case .switchedProtocol: switchProtocol()
        case .end:
            // The codec was told of the connection's end, and took it for the end of the body (RFC 9112
            // §9.8). If that end may be forged, the body may have been cut short.
            if case .told(isForgeable: true) = input.end {
                fail(.http(HTTPFailure(.peer(.truncatedBody(expected: nil, received: bodyReceived)))))
            } else {
                end(by: .end)
            }
            return false
        case .paused, .closed:
            end(by: .failed(.http(HTTPFailure(.peer(.closedBeforeResponse)))))
            return false
        }
        return true
    }

    /// Handles the head of the final response.
    ///
    /// - Returns: Whether there may be another event.
    private func handle(_ head: ResponseHead, bodyLength: Int64?) -> Bool {
        status = head.status
        // A 408 need not belong to this request, nor the next response to the next request.
        if head.status == 408 { connection.noteDesynchronized() }
        if reportsSteps { tell(Self.step(for: head)) }
        guard isRunning else { return false }
        owner.received(.head(head, bodyLength: bodyLength, isVerified: channel.isPeerVerified))
        return true
    }

    /// Takes the end of what the server sends, if it has come: everything before it was parsed. Tells the
    /// codec, or fails.
    ///
    /// - Returns: Whether there may be another event.
    private func takeEndOfInput() -> Bool {
        switch input.end {
        case .none, .told: return false
        case .failed(let error):
            // An error of TLS names the cause, for example that the server wants a certificate; a failed
            // write does not.
            fail(.channel(error.isFailureOfTLS ? error : sendFailure ?? error))
            return false
        case .seen(let isForgeable):
            connection.codec.receiveEnd()
            input.noteTold(isForgeable: isForgeable)
            return true
        }
    }

    private func end(by event: ExchangeEvent) {
        times?.endResponse()
        abandon()
        owner.received(event)
    }

    /// Makes the connection ready for another request, if it can serve one.
    ///
    /// - Returns: Whether it can.
    private func startNextCycle() -> Bool {
        guard !connection.isPrivate, !connection.isDesynchronized, isSent, sendFailure == nil,
            case .none = input.end, input.isEmpty, !channel.hasBufferedBytes
        else { return false }
        return connection.startNextCycle()
    }

    private static func step(for head: ResponseHead) -> ExchangeStep {
        var text = "\(head.version) \(head.status) \(head.reason)\r\n"
        for (name, value) in head.fields { text += "\(name): \(value)\r\n" }
        return .responseHead(text, fields: head.fields)
    }
}

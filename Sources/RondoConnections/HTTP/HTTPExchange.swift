internal import RondoCore
internal import RondoHTTP
internal import RondoStreams
internal import Synchronization

/// One request and its response, by one codec over one channel.
///
/// `@unchecked Sendable`: used inside the gate of the load that owns it, where `enter` goes first.
final class HTTPExchange: ChannelGate, @unchecked Sendable {
    enum Event {
        case diagnostic(URLConnection.Diagnostic)
        /// Something has come of which there is nothing else to say.
        case progress
        /// Bytes of the request's body went out: now, so far, in all.
        case sent(Int, total: Int, expected: Int)
        /// The body's stream has nothing to send yet: `bodyIsReady()` is wanted when it has.
        case waitsForBody
        /// The head is out, and the body waits for the server's go-ahead: `goAhead()` ends the wait.
        case waitsForGoAhead
        /// The server has said go ahead.
        case mayGoAhead
        case head(ResponseHead, bodyLength: Int64?)
        case body(Data)
        /// The response is complete.
        case end
        case failed(LoadFailure)
    }

    private enum Phase {
        case opening
        case open
        /// Over: no event comes any more.
        case closed
    }

    let link: HTTPLink
    private let request: OutgoingRequest
    /// It lets go of its exchange when that is over.
    private let owner: Loader
    /// Somebody wants heads as text, which takes longer than all else about a small one.
    private let tellsHeads: Bool
    /// Somebody wants to know when what happened: a look at the clock each time.
    private let isTimed: Bool
    @exclusivity(unchecked) private var phase: Phase

    /// What is to be sent; nil before the start.
    @exclusivity(unchecked) private var sender: RequestSender?
    @exclusivity(unchecked) private var sendFailure: ChannelError?

    // What was received and not read yet.
    /// Held only while there is something unread.
    @exclusivity(unchecked) private var buffer: ReceiveBuffer?
    @exclusivity(unchecked) private var filled = 0
    @exclusivity(unchecked) private var consumed = 0
    @exclusivity(unchecked) private var sawEnd = false
    @exclusivity(unchecked) private var receiveFailure: ChannelError?
    /// The end came without TLS's close_notify: somebody in between could have made it.
    @exclusivity(unchecked) private var endIsForgeable = false
    @exclusivity(unchecked) private(set) var bodyReceived: Int64 = 0
    /// For the metrics.
    @exclusivity(unchecked) private(set) var times = ExchangeTimes()
    /// Of the final response, once it is there.
    @exclusivity(unchecked) private(set) var status: Int?
    private var hasInformational = false

    /// While true nothing is read, so that the kernel's buffer fills and TCP holds the server back.
    @exclusivity(unchecked) private(set) var isPaused = false

    init(
        _ request: consuming OutgoingRequest, over link: HTTPLink, of owner: Loader, tellsHeads: Bool,
        isTimed: Bool
    ) {
        self.tellsHeads = tellsHeads
        self.isTimed = isTimed
        self.request = request
        self.link = link
        self.owner = owner
        phase = link.channel.isOpen ? .open : .opening
    }

    deinit { giveBackBuffer() }

    /// Whether the server cannot have acted on the request: the kept connection was dead when it was used, or
    /// at least gave no sign of life, and the request does no harm if it arrives twice.
    var mayBeSentAgain: Bool {
        if link.codec.hasReceivedAnyByteOfResponse { return false }
        // Without the body that it waits for, a server can have done nothing (rule UC-42).
        if isWaitingForGoAhead { return true }
        return doesNoHarmTwice
    }

    /// Whether the server has ended a kept connection for its idleness, and said so by a 408, which has crossed with the
    /// request (RFC 9110 §15.5.9): the same as if it had broken it.
    var hasServerTimedOut: Bool { status == 408 && !hasInformational && doesNoHarmTwice }

    private var doesNoHarmTwice: Bool {
        link.isReused && (request.isIdempotent || sender?.nothingWasSent ?? true)
    }

    var headBytesSent: Int { sender?.headSent ?? 0 }
    var bodyBytesSent: Int { sender?.bodySent ?? 0 }

    private var isSent: Bool { sender?.isSent ?? false }

    /// The body is held back until the server says go ahead.
    var isWaitingForGoAhead: Bool { sender?.isWaitingForGoAhead ?? false }

    /// The way to the link's channel, while this is the load's exchange.
    func enter(_ body: (SocketChannel) -> Void) { owner.enter(for: self, body) }

    // MARK: - Running

    /// Starts sending, now or once the channel is open.
    func begin() {
        // Until `abandon()`.
        link.channel.handler = { [self] in handle($0) }
        do throws(HTTP1Error) {
            sender = try RequestSender(request, codec: &link.codec)
        } catch {
            return fail(.http(error))
        }
        switch phase {
        case .opening: link.channel.open()
        case .open: didOpen()
        case .closed: break
        }
    }

    /// Ends the exchange without a further event. Whoever calls disposes of the link.
    func abandon() {
        phase = .closed
        link.channel.handler = nil
    }

    /// The rest of a response that nobody wants: if it is here already, the link can still serve another
    /// request; it is not waited for.
    func discardRest() {
        guard case .open = phase else { return abandon() }
        abandon()
        while true {
            let input = unread
            do throws(HTTP1Error) {
                switch try link.codec.nextEvent(from: input, consumed: &consumed) {
                case .informational, .response, .body, .bodyRange, .trailers: continue
                case .end, .needMoreData, .paused, .closed, .switchedProtocol: return
                }
            } catch {
                // A codec that has failed cannot be reused, and that is all that matters here.
                return
            }
        }
    }

    /// Something has come that was not read yet: the server is not to blame for the time that passes.
    var hasUnreadInput: Bool {
        guard case .open = phase else { return false }
        return consumed < filled || link.channel.hasUnreadBytes
    }

    func pause() {
        isPaused = true
        link.channel.wantsRead = false
    }

    func resume() {
        guard isPaused, case .open = phase else { return }
        isPaused = false
        link.channel.wantsRead = true
        parse()
    }

    private func handle(_ event: SocketChannel.Event) {
        switch event {
        case .resolving(let host):
            times.lookUpStart = LoopClock.now
            owner.received(tellsHeads ? .diagnostic(.resolving(host: host)) : .progress)
        case .connecting(let address):
            if times.connectStart == nil {
                times.connectStart = LoopClock.now
                if times.lookUpStart != nil { times.lookUpEnd = times.connectStart }
            }
            owner.received(tellsHeads ? .diagnostic(.connecting(address: address.description)) : .progress)
        case .connected(let address):
            times.connectEnd = LoopClock.now
            owner.received(tellsHeads ? .diagnostic(.connected(address: address.description)) : .progress)
        case .secured(let version, let cipher, let subject):
            times.secureEnd = LoopClock.now
            times.tls = (version, cipher)
            if isTimed { times.isTLSResumed = link.channel.isTLSResumed }
            owner.received(.diagnostic(.secured(version: version, cipher: cipher, subject: subject)))
        case .open: didOpen()
        case .readable: receive()
        case .writable: send()
        case .failed(let error): fail(.channel(error))
        }
    }

    private func didOpen() {
        phase = .open
        if isTimed { times.requestStart = LoopClock.now }
        owner.received(tellsHeads ? .diagnostic(.requestHead(sender?.headText ?? "")) : .progress)
        guard case .open = phase else { return }
        link.channel.wantsRead = true
        send()
    }

    private func fail(_ failure: LoadFailure) {
        guard phase != .closed else { return }
        abandon()
        owner.received(.failed(failure))
    }

    // MARK: - Sending

    private func send() {
        guard case .open = phase, sendFailure == nil, sender != nil else { return }
        let outcome = sender?.send(over: link) { now, total, expected in
            owner.received(.sent(now, total: total, expected: expected))
            if case .open = phase { return true }
            return false
        }
        guard case .open = phase else { return }
        switch outcome {
        case .blocked:
            link.channel.wantsWrite = true
            return
        case .waitsForBody: owner.received(.waitsForBody)
        case .waitsForGoAhead: owner.received(.waitsForGoAhead)
        case .failed(let failure): return fail(failure)
        case .broken(let error):
            // The server may have answered before it closed: what it said is worth more than our error.
            sendFailure = error
        case .sent, nil:
            if isTimed, times.requestEnd == nil { times.requestEnd = LoopClock.now }
        }
        link.channel.wantsWrite = false
    }

    /// The body's stream may have bytes.
    func bodyIsReady() {
        guard case .open = phase, !link.channel.wantsWrite else { return }
        send()
    }

    /// The body need not wait for the server any longer (rule UC-42).
    func goAhead() {
        if sender?.goAhead() ?? false { send() }
    }

    // MARK: - Receiving

    private func receive() {
        guard case .open = phase, !isPaused else { return }
        let buffer = buffer ?? ReceiveBuffer.take()
        self.buffer = buffer
        let before = filled
        do throws(ChannelError) {
            // TLS gives a record at a time; a pass is worth more than that.
            fill: while filled < ReceiveBuffer.capacity {
                let room = UnsafeMutableRawBufferPointer(rebasing: buffer.memory[filled...])
                switch try link.channel.read(into: room) {
                case .bytes(let count):
                    filled += count
                    times.bytesReceived += Int64(count)
                    if isTimed, times.responseStart == nil { times.responseStart = LoopClock.now }
                    if !link.channel.hasBufferedBytes && count < room.count { break fill }
                case .wouldBlock:
                    break fill
                case .end:
                    sawEnd = true
                    break fill
                case .truncated:
                    sawEnd = true
                    endIsForgeable = true
                    break fill
                }
            }
        } catch {
            // After what has come before it, which the delegate may not want yet.
            receiveFailure = error
        }
        // Be it a byte of a head, which says nothing yet (rule UC-58).
        if filled > before { owner.hasProgressed = true }
        parse()
    }

    /// From `consumed` on nobody has looked at it.
    private var unread: UnsafeRawBufferPointer {
        guard let buffer else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(rebasing: buffer.memory[..<filled])
    }

    private func giveBackBuffer() {
        guard let buffer else { return }
        self.buffer = nil
        (consumed, filled) = (0, 0)
        ReceiveBuffer.give(back: buffer)
    }

    /// Takes what can be told from the received bytes, an event at a time: each may pause or end the
    /// exchange.
    private func parse() {
        defer { if consumed == filled { giveBackBuffer() } }
        while case .open = phase, !isPaused {
            let event: HTTP1Event
            do throws(HTTP1Error) {
                event = try link.codec.nextEvent(from: unread, consumed: &consumed)
            } catch {
                if let sendFailure, case .peer(.closedBeforeResponse) = error {
                    return fail(.channel(sendFailure))
                }
                return fail(.http(error))
            }
            switch event {
            case .informational(let head):
                hasInformational = true
                owner.received(tellsHeads ? .diagnostic(.responseHead(Self.text(of: head))) : .progress)
                if head.status == 100, case .open = phase {
                    owner.received(.mayGoAhead)
                    goAhead()
                }
            case .response(let head, let bodyLength):
                status = head.status
                // It need not be the answer to this request, and what follows not the one to the next.
                if head.status == 408 { link.isOutOfStep = true }
                if tellsHeads { owner.received(.diagnostic(.responseHead(Self.text(of: head)))) }
                guard case .open = phase else { return }
                owner.received(.head(head, bodyLength: bodyLength))
            case .bodyRange(let range):
                bodyReceived += Int64(range.count)
                owner.received(.body(buffer?.data(range) ?? Data()))
            case .trailers, .body:
                break
            case .needMoreData:
                if let receiveFailure { return fail(.channel(sendFailure ?? receiveFailure)) }
                guard sawEnd else { return }
                link.codec.receiveEnd()
                sawEnd = false
            case .end where endIsForgeable && !sawEnd:
                // Nothing but the end of the connection has ended the body (RFC 9112 §9.8).
                return fail(.http(.peer(.truncatedBody(expected: nil, received: bodyReceived))))
            case .end, .paused, .closed, .switchedProtocol:
                let isWhole = if case .end = event { true } else { false }
                if isTimed { times.responseEnd = LoopClock.now }
                abandon()
                return owner.received(
                    isWhole ? .end : .failed(.http(.peer(.closedBeforeResponse))))
            }
        }
    }

    /// Makes the link ready for another request, if it can serve one.
    ///
    /// - Returns: Whether it is.
    func startNextCycle() -> Bool {
        guard !link.isPrivate, !link.isOutOfStep, isSent, sendFailure == nil, receiveFailure == nil, !sawEnd,
            consumed == filled,
            !link.channel.hasBufferedBytes, link.codec.startNextCycle()
        else { return false }
        link.isReused = true
        return true
    }

    private static func text(of head: ResponseHead) -> String {
        var text = "\(head.version) \(head.status) \(head.reason)\r\n"
        for (name, value) in head.fields { text += "\(name): \(value)\r\n" }
        return text
    }
}

/// A channel and the codec that speaks over it; both live as long as the connection to the server.
///
/// Whoever takes it out of the pool has it alone; until then the pool's lock guards it, but for `stay`.
final class HTTPLink: DeferredWork {
    let channel: SocketChannel
    let key: PoolKey
    @exclusivity(unchecked) var codec = HTTP1Connection()
    /// It has served a request before.
    @exclusivity(unchecked) var isReused = false
    /// A delegate has let the server through, or shown an identity: no other load may use it.
    var isPrivate = false
    /// An answer came that may be to no request: what follows may belong to another one.
    var isOutOfStep = false
    /// The courier where it is scheduled still, while it is kept; 0: none. As long as it is there its channel retains that.
    private let stay = Atomic<UInt>(0)

    init(_ channel: SocketChannel, key: PoolKey) {
        self.channel = channel
        self.key = key
    }

    /// What was parked is ready for use again.
    convenience init(resuming socket: ParkedSocket, for key: PoolKey) {
        self.init(SocketChannel(resuming: socket, .init(host: key.host, port: key.port)), key: key)
        isReused = true
    }

    // MARK: Between two requests

    var isStaying: Bool { stay.load(ordering: .relaxed) != 0 }

    func noteStay(at courier: SharedQueue) {
        stay.store(UInt(bitPattern: ObjectIdentifier(courier)), ordering: .relaxed)
    }

    /// - Returns: Whether it has stayed until now: it is scheduled there.
    func endStay() -> Bool { stay.exchange(0, ordering: .relaxed) != 0 }

    /// - Parameter courier: If it stays there, it goes on doing so.
    func leaveLoops(except courier: SharedQueue?) {
        guard isStaying else { return }
        if let courier,
            stay.load(ordering: .relaxed) == UInt(bitPattern: ObjectIdentifier(courier))
        {
            return
        }
        if endStay() { channel.removeFromAllLoops() }
    }

    func leave() { if isStaying { Pool.shared.endStay(of: self) } }

    func performDeferredWork() -> Bool {
        leave()
        return false
    }
}

import Rondo

/// One client of the server. It answers each request before it reads the next.
///
/// `@unchecked Sendable`: `start(in:)` schedules its streams and timers in one loop, on whose thread their
/// events come and their blocks run; `FileServer`, which makes and ends it, is called on that thread alone.
final class ServedConnection: NSObject, StreamDelegate, @unchecked Sendable {
    /// The settings that all connections of a server share.
    struct Settings {
        let responder: Responder
        /// Bytes a second; nil means no limit.
        let rate: Int?
        let log: RequestLog?
        /// See `ServerLimits.yieldTime`.
        var yieldTime = ServerLimits.yieldTime
    }

    private enum Phase {
        /// Waits for a request, or for the rest of one.
        case reading
        case sending(OutgoingResponse)
        /// Everything was sent. The client can read the last response to its end, because closing with unread
        /// bytes would reset the connection.
        case lingering(discarded: Int)
        case ended
    }

    private let input: InputStream
    private let output: OutputStream
    private let peer: String
    private let settings: Settings
    private let refusal: ServedRequest.Refusal?
    private let onEnd: (ServedConnection) -> Void
    private var reader = RequestReader()
    private var phase = Phase.reading
    private var hasOpened = false
    private var inputHasEnded = false
    private var deadline: Timer?
    private var pause: Timer?
    private var buffer = [UInt8](repeating: 0, count: 8_192)
    /// The time at which the connection became idle; nil while a request is read or answered.
    private(set) var idleSince: ContinuousClock.Instant? = .now

    /// The seconds for which the client has taken nothing of a response, if they are more than `limit` and
    /// the response waits for the client.
    func secondsStalled(beyond limit: Double) -> Double? {
        guard case .sending = phase, let deadline else { return nil }
        // The deadline is set anew with each piece that the socket accepts, and it accepts one when the
        // client has taken what was unsent before (`limitUnsentBytes()`).
        let seconds = ServerLimits.stallTime - deadline.fireDate.timeIntervalSinceNow
        return seconds > limit && !output.hasSpaceAvailable ? seconds : nil
    }

    /// - Parameters:
    ///   - refusal: The response to the first request, whatever it is; nil to answer it normally.
    ///   - onEnd: Called once, when the connection has ended.
    init(
        _ connection: StreamListener.Connection, _ settings: Settings, refusal: ServedRequest.Refusal? = nil,
        onEnd: @escaping (ServedConnection) -> Void
    ) {
        input = connection.input
        output = connection.output
        peer = connection.remoteHost
        self.settings = settings
        self.refusal = refusal
        self.onEnd = onEnd
    }

    func start(in loop: RunLoop) {
        limitUnsentBytes()
        if settings.rate != nil { limitSendBuffer() }
        deadline = timer(in: loop, label: "limit of a connection") { $0.passDeadline() }
        if settings.rate != nil { pause = timer(in: loop, label: "pace") { $0.turn() } }
        input.delegate = self
        output.delegate = self
        input.schedule(in: loop, forMode: .default)
        output.schedule(in: loop, forMode: .default)
        setDeadline(ServerLimits.idleTime)
        input.open()
        output.open()
    }

    private func timer(
        in loop: RunLoop, label: String, _ body: @escaping @Sendable (ServedConnection) -> Void
    ) -> Timer {
        let timer = Timer(fire: .distantFuture, interval: 1e9, repeats: true) { [weak self] _ in
            if let self { body(self) }
        }
        timer.label = label
        loop.add(timer, forMode: .default)
        return timer
    }

    /// Makes the socket accept the next piece whenever the client has taken about as much. Otherwise it
    /// accepts one only when a third of its buffer is free, up to 4 MB: a slow client would seem to take
    /// nothing for a minute.
    private func limitUnsentBytes() {
        set(Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, ServerLimits.unsentBytes)
    }

    /// A small buffer only makes the rate smoother.
    private func limitSendBuffer() { set(SOL_SOCKET, SO_SNDBUF, ServerLimits.throttledSendBuffer) }

    /// Sets an option of the socket. A failure is ignored: the options only make the server's limits more
    /// exact.
    private func set(_ level: Int32, _ option: Int32, _ value: Int32) {
        guard let handle = input.property(forKey: .socketNativeHandleKey) as? Data,
            handle.count == MemoryLayout<Int32>.size
        else { return }
        let descriptor = handle.withUnsafeBytes { $0.loadUnaligned(as: Int32.self) }
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    // MARK: - Events

    func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
        switch eventCode {
        case .openCompleted: hasOpened = true
        case .errorOccurred: fail(aStream.streamError)
        case .endEncountered where aStream === input:
            inputHasEnded = true
            turn()
        case .hasBytesAvailable, .hasSpaceAvailable: turn()
        default: break
        }
    }

    /// Does everything that can be done without waiting.
    private func turn() {
        while true {
            switch phase {
            case .reading: guard read() else { return }
            case .sending(let response): guard send(response) else { return }
            case .lingering(let discarded): guard discard(discarded) else { return }
            case .ended: return
            }
        }
    }

    private func setDeadline(_ seconds: Double) {
        deadline?.fireDate = Date(timeIntervalSinceNow: seconds)
    }

    private func passDeadline() {
        if case .reading = phase, !reader.isEmpty {
            refuse(.requestTimeout)
            turn()
        } else {
            end()
        }
    }

    private func fail(_ error: (any Error)?) {
        // A client that closes an idle connection is not logged; a failed TLS handshake is.
        if !hasOpened, let error { log(request: error.localizedDescription) }
        end()
    }

    // MARK: - Reading

    /// Returns false if it waits for more bytes, or the connection has ended.
    private func read() -> Bool {
        if let refusal {
            refuse(refusal)
            return true
        }
        do throws(ServedRequest.Refusal) {
            if let request = try reader.next() {
                respond(settings.responder.respond(to: request))
                return true
            }
        } catch {
            refuse(error)
            return true
        }
        if inputHasEnded {
            end()
            return false
        }
        guard input.hasBytesAvailable else { return false }
        let wasEmpty = reader.isEmpty
        let count = input.read(&buffer, maxLength: buffer.count)
        guard count > 0 else {
            inputHasEnded = true
            return true
        }
        reader.receive(buffer.prefix(count))
        if wasEmpty, !reader.isEmpty {
            idleSince = nil
            setDeadline(ServerLimits.headTime)
        }
        return true
    }

    private func beginReading() {
        phase = .reading
        idleSince = reader.isEmpty ? .now : nil
        setDeadline(reader.isEmpty ? ServerLimits.idleTime : ServerLimits.headTime)
    }

    // MARK: - Answering

    private func refuse(_ refusal: ServedRequest.Refusal) {
        var response = ServedResponse(refusal)
        // No response to a HEAD has a body (RFC 9110, section 9.3.2), nor one to what may become a HEAD.
        if zip(reader.requestLine, "HEAD ").allSatisfy({ $0 == $1 }) { response.body = ServedBody([]) }
        respond(response)
    }

    private func respond(_ response: ServedResponse) {
        idleSince = nil
        phase = .sending(OutgoingResponse(response, request: reader.requestLine, rate: settings.rate))
        setDeadline(ServerLimits.stallTime)
    }

    /// Sends one piece, so that other connections are served before the next. Returns false if it waits, or
    /// the connection has ended.
    private func send(_ response: OutgoingResponse) -> Bool {
        switch response.next() {
        case .done:
            log(response, isCut: false)
            guard response.keepsConnection else {
                linger()
                return true
            }
            beginReading()
            // Requests that have already come wait until other connections were served: the output reports
            // again that it has space.
            return false
        case .broken:
            end()
            return false
        case .pause(let seconds):
            pause?.fireDate = Date(timeIntervalSinceNow: seconds)
            return false
        case .send: break
        }
        guard output.hasSpaceAvailable else { return false }
        let isTaken = response.send { piece in
            piece.baseAddress.map { output.write($0, maxLength: piece.count) } ?? 0
        }
        guard isTaken else {
            end()
            return false
        }
        setDeadline(ServerLimits.stallTime)
        return !response.isUnfinished
    }

    private func log(_ response: OutgoingResponse, isCut: Bool) {
        settings.log?.write(
            RequestLog.Entry(
                peer: peer, request: response.request, status: response.status, sent: response.sentOfBody,
                isCut: isCut, seconds: response.seconds))
    }

    private func log(request: String) {
        settings.log?.write(
            RequestLog.Entry(peer: peer, request: request, status: nil, sent: 0, isCut: false, seconds: 0))
    }

    // MARK: - Ending

    private func linger() {
        phase = .lingering(discarded: 0)
        setDeadline(ServerLimits.lingerTime)
        // The input remains open; the client learns that no more bytes will come.
        output.close()
    }

    /// Returns false if it waits, or the connection has ended.
    private func discard(_ discarded: Int) -> Bool {
        guard !inputHasEnded, discarded < ServerLimits.lingerSize else {
            end()
            return false
        }
        guard input.hasBytesAvailable else { return false }
        let count = input.read(&buffer, maxLength: buffer.count)
        if count > 0 { phase = .lingering(discarded: discarded + count) } else { inputHasEnded = true }
        return true
    }

    /// Closes the connection in any phase.
    func end() {
        if case .ended = phase { return }
        if case .sending(let response) = phase { log(response, isCut: true) }
        phase = .ended
        idleSince = nil
        deadline?.invalidate()
        pause?.invalidate()
        input.delegate = nil
        output.delegate = nil
        input.close()
        output.close()
        onEnd(self)
    }
}

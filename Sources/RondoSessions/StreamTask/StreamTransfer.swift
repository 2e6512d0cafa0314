internal import FoundationNetworking
internal import Glibc
internal import RondoConnections
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// The load of a stream task, as `StreamTransfer` and `StreamTaskState` see it.
protocol StreamOwner: AnyObject, Sendable {
    /// Calls `StreamTransfer.serve()` in a pass of a scheduled mode. Any thread.
    func wakeUp()

    /// Makes `call` on the delegate queue or the session's run loop, in order with the task's other calls. On
    /// the loop's thread.
    ///
    /// - Parameter name: The name in traces.
    func call(_ name: String, _ call: @escaping @Sendable () -> Void)

    /// Passes a challenge to the delegate. On the loop's thread.
    func show(_ challenge: URLAuthenticationChallenge)

    /// Notes that the task continues after the challenge. On the loop's thread.
    func challengeWasDecided()

    /// Makes a timer that fires in the modes of the task.
    func timer(after seconds: Double, _ fire: @escaping @Sendable () -> Void) -> ScheduleTimer

    /// Ends the stream; `failure` is nil if all operations succeeded. On the loop's thread.
    func end(_ failure: LoadFailure?)
}

/// Performs the operations of a stream task on its connection: reads, writes, the start of TLS, and the
/// hand-over to the program. On the thread of its load's loop.
final class StreamTransfer {
    private enum Phase {
        case closed
        case open
        /// TLS has begun; no operation is performed until its handshake ends.
        case securing
        case ended
    }

    private enum ReadingSide {
        case open
        /// The server has closed it. Bytes that came before may still be in the inbox.
        case ended
        /// The delegate was told that it is closed. The inbox is empty, and stays so.
        case closed
    }

    /// The state of the writing side. Its error is the error of all later writes.
    private enum WritingSide {
        case open
        case failed(any Error)
        /// The program has closed it.
        case closed(any Error)

        var failure: (any Error)? {
            switch self {
            case .open: nil
            case .failed(let error), .closed(let error): error
            }
        }
    }

    /// Limits for one pass: bytes of one read call, of all reads, and about as many of all writes. They leave
    /// time for other tasks.
    private static let bytesAtOnce = 64 * 1024, readAtOnce = 512 * 1024, writtenAtOnce = 1024 * 1024

    private let shared: StreamTaskState
    private let tls: TLSSettings
    private var channel: SocketChannel?
    private var phase = Phase.closed
    private var isSuspended = false

    /// Bytes that were read and not delivered: a read waits until its minimum is there.
    private var inbox = ByteQueue()
    private var readingSide = ReadingSide.open
    private var writingSide = WritingSide.open
    /// The loss of the connection that a write has met. The kernel reports it once, and a read then finds an
    /// orderly end.
    private var loss: ChannelError?
    /// Bytes of the current write that were sent.
    private var written = 0
    private var timeouts: OperationTimeouts
    private var inquiry: TLSInquiry?

    init(_ shared: StreamTaskState, tls: TLSSettings) {
        self.shared = shared
        self.tls = tls
        timeouts = OperationTimeouts(of: shared)
    }

    deinit { timeouts.removeAll() }

    private var load: (any StreamOwner)? { shared.state.withLock { $0.load } }
    private var isOpen: Bool { if case .open = phase { true } else { false } }

    private func withQueues<Result: Sendable>(_ body: (inout StreamQueues) -> Result) -> Result {
        shared.state.withLock { body(&$0.queues) }
    }

    // MARK: - Calls of the load

    /// Begins to serve an open connection.
    ///
    /// - Parameter received: Bytes that were read from the connection already.
    func begin(_ channel: SocketChannel, received: [UInt8] = []) {
        self.channel = channel
        inbox.append(received)
        phase = .open
        serve()
    }

    /// Performs what is possible. Also called before the connection is open, because timeouts may expire.
    func serve() {
        if case .ended = phase { return }
        guard !isSuspended else { return }
        timeouts.update()
        if let inquiry {
            do throws(LoadFailure) {
                if try inquiry.continueHandshake() {
                    self.inquiry = nil
                    load?.challengeWasDecided()
                }
            } catch {
                return end(error)
            }
        }
        performOperations()
        // Operations that can be performed when their timeout is noticed succeed. Afterwards those that
        // waited behind expired ones go on.
        if takeExpired() { performOperations() }
    }

    func becameReadable() { performOperations() }
    func becameWritable() { performOperations() }
    func failed(_ error: ChannelError) { end(.channel(error)) }

    func secured() {
        guard case .securing = phase else { return }
        phase = .open
        performOperations()
    }

    func suspend() {
        isSuspended = true
        channel?.wantsRead = false
        channel?.wantsWrite = false
        timeouts.suspend()
    }

    func resume() {
        guard isSuspended else { return }
        isSuspended = false
        timeouts.resume()
        performOperations()
    }

    private func performOperations() {
        while isOpen, !isSuspended {
            writeOn()
            readOn()
            guard isOpen, let change = withQueues({ $0.takeChange() }) else { break }
            switch change {
            case .secure: secure()
            case .capture: return capture()
            }
        }
        guard isOpen else { return }
        if case .closed = writingSide, isAtEnd, withQueues({ $0.isEmpty }) { end(nil) }
    }

    // MARK: - Reading

    private var canFill: Bool { if case .open = readingSide { true } else { false } }
    /// True if no read will get any more bytes.
    private var isAtEnd: Bool { !canFill && inbox.isEmpty }

    private func readOn() {
        var budget = Self.readAtOnce
        while isOpen, !isSuspended, let next = withQueues({ $0.nextRead }) {
            switch next {
            case .close:
                guard withQueues({ $0.take(next) }) else { continue }
                inbox = ByteQueue()
                closeRead()
            case .read(let read):
                if inbox.count >= read.minimum || !canFill {
                    if withQueues({ $0.take(next) }) { give(read) }
                } else if budget <= 0 || !fill(read, &budget) {
                    if isOpen { channel?.wantsRead = true }
                    return
                }
            }
        }
        if isOpen { channel?.wantsRead = false }
    }

    private func give(_ read: StreamQueues.Read) {
        timeouts.remove(read.number)
        let data = Data(inbox.unread.prefix(read.maximum))
        inbox.consume(data.count)
        let isAtEnd = isAtEnd
        load?.call("readData") { read.handler(data, isAtEnd, nil) }
        if isAtEnd { closeRead() }
    }

    /// - Returns: False if there is nothing to read now.
    private func fill(_ read: StreamQueues.Read, _ budget: inout Int) -> Bool {
        guard let channel else { return false }
        let wanted = min(read.maximum - inbox.count, Self.bytesAtOnce)
        let before = inbox.count
        do throws(ChannelError) {
            var result = SocketChannel.ReadResult.wouldBlock
            try withUnsafeTemporaryAllocation(byteCount: wanted, alignment: 16) {
                (buffer) throws(ChannelError) in
                result = try channel.read(into: buffer)
                if case .bytes(let count) = result {
                    inbox.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                }
            }
            switch result {
            case .bytes: break
            case .wouldBlock: return false
            case .end:
                if let loss {
                    end(.channel(loss))
                    return false
                }
                readingSide = .ended
            case .truncated: return lose()
            }
        } catch {
            end(.channel(error))
            return false
        }
        budget -= inbox.count - before
        shared.state.withLock { $0.received += Int64(inbox.count - before) }
        return true
    }

    /// Without close_notify, another machine on the way may have ended the connection.
    private func lose() -> Bool {
        end(
            .upgrade(
                .networkConnectionLost,
                sentence: "The connection ended without TLS's close_notify."))
        return false
    }

    /// Closes the reading side, which the server or the program has ended, and tells the delegate once.
    private func closeRead() {
        if case .closed = readingSide { return }
        readingSide = .closed
        tell("readClosed") { $0.tellReadClosed() }
    }

    // MARK: - Writing

    private func writeOn() {
        var budget = Self.writtenAtOnce
        while isOpen, !isSuspended, let channel {
            guard let write = withQueues({ $0.current }) else {
                guard let next = withQueues({ $0.takeWriting() }) else { break }
                if case .close = next { closeWrite() } else { written = 0 }
                continue
            }
            if let failure = writingSide.failure {
                endWrite(failure)
            } else if written == write.data.count {
                endWrite(nil)
            } else if budget <= 0 || withQueues({ $0.isHalted }) || !writePart(of: write.data, &budget) {
                if isOpen, case .open = writingSide {
                    channel.wantsWrite = true
                    return
                }
            }
        }
        if isOpen { channel?.wantsWrite = false }
    }

    /// - Returns: False if the kernel takes no bytes now.
    private func writePart(of data: Data, _ budget: inout Int) -> Bool {
        guard let channel else { return false }
        do throws(ChannelError) {
            let offset = written
            let result = data.withUnsafeBytes { bytes in
                Result { () throws(ChannelError) in
                    try channel.write(UnsafeRawBufferPointer(rebasing: bytes[offset...]))
                }
            }
            let count = try result.get()
            written += count
            budget -= count
            shared.state.withLock { $0.sent += Int64(count) }
            return count > 0
        } catch {
            // Bytes that the server sent before it closed may still be read. Where it had ended its side in
            // order, the error is EPIPE.
            if case .broken(_, _, let cause) = error, cause.code != EPIPE { loss = error }
            writingSide = .failed(URLErrors.error(.channel(error), url: shared.url))
            return false
        }
    }

    private func endWrite(_ error: (any Error)?) {
        guard let write = withQueues({ $0.endWrite() }) else { return }
        timeouts.remove(write.number)
        load?.call("write") { write.handler(error) }
    }

    private func closeWrite() {
        if case .closed = writingSide { return }
        writingSide = .closed(
            writingSide.failure
                ?? URLErrors.error(
                    .networkConnectionLost, "The stream's writing side is closed.", url: shared.url))
        channel?.endWriting()
        tell("writeClosed") { $0.tellWriteClosed() }
    }

    // MARK: - Time

    /// Fails operations whose timeout has expired.
    ///
    /// Bytes that have arrived for a read remain for the next one. A write that was sent in part has cut a
    /// message in two, so nothing is written after it.
    ///
    /// - Returns: True if any timeout had expired.
    private func takeExpired() -> Bool {
        if case .ended = phase { return false }
        let expired = shared.state.withLock { state in
            defer { state.expired = [] }
            return state.expired
        }
        var isAny = false
        for number in expired {
            guard let seconds = timeouts.remove(number) else { continue }
            isAny = true
            let error = URLErrors.error(
                .timedOut, "The stream's operation was not done within \(seconds.formatted()) s.",
                url: shared.url)
            if let read = withQueues({ $0.removeRead(number) }) {
                load?.call("readData") { read.handler(nil, false, error) }
            } else if let write = withQueues({ $0.removeWrite(number) }) {
                load?.call("write") { write.handler(error) }
            } else if withQueues({ $0.current?.number == number }) {
                if written > 0 { writingSide = .failed(error) }
                endWrite(error)
            }
        }
        return isAny
    }

    // MARK: - TLS

    private func secure() {
        guard let channel else { return }
        if case .closed = writingSide, !channel.isSecuredToHost {
            return end(
                .upgrade(
                    .secureConnectionFailed,
                    sentence:
                        "The connection cannot be secured: its writing side was closed."))
        }
        let (host, port) = (shared.host, shared.port)
        let wakeUp: @Sendable () -> Void = { [shared] in shared.state.withLock { $0.load }?.wakeUp() }
        if tls.trustHandler == nil {
            channel.handlers.onTrust = { [weak self] trust in
                self?.ask(TLSInquiry(trust, host: host, port: port, wakeUp: wakeUp))
            }
        }
        if tls.identityHandler == nil, tls.identity == nil {
            channel.handlers.onIdentityRequest = { [weak self] request in
                self?.ask(TLSInquiry(request, host: host, port: port, wakeUp: wakeUp))
            }
        }
        // Bytes that were read already belong to TLS.
        guard channel.secure(tls, received: Array(inbox.unread)) else {
            Log.sessions.warning("A stream task that is secured already cannot be secured again.")
            return
        }
        inbox = ByteQueue()
        phase = .securing
    }

    private func ask(_ inquiry: TLSInquiry) {
        guard let challenge = inquiry.takeChallenge() else { return }
        self.inquiry = inquiry
        load?.show(challenge)
    }

    // MARK: - The end

    /// Hands the connection to the program, by the last call of the task.
    private func capture() {
        guard let channel, let connection = channel.moveConnection() else { return }
        let (input, output) = Foundation.Stream.makeStreams(
            over: connection, received: Array(inbox.unread))
        shared.state.withLock { $0.isCaptured = true }
        let streams = CapturedStreams(input: input, output: output)
        tell("didBecome inputStream") { $0.tellCaptured(streams) }
        end(nil)
    }

    private func tell(_ name: String, _ call: @escaping @Sendable (any StreamClient) -> Void) {
        load?.call(name) { [shared] in
            // After its cancellation a task reports only its end (rule US-32).
            let client = shared.state.withLock { $0.isActive ? $0.client : nil }
            client.map(call)
        }
    }

    /// - Parameter failure: Nil if all operations succeeded.
    private func end(_ failure: LoadFailure?) {
        if case .ended = phase { return }
        stopAll()
        load?.end(failure)
    }

    /// Ends without reporting to the load, which has decided so.
    func close() {
        stopAll()
        channel = nil
    }

    private func stopAll() {
        phase = .ended
        timeouts.removeAll()
        (inbox, inquiry) = (ByteQueue(), nil)
    }
}

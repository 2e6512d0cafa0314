internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// Writes the frames of an open WebSocket to its channel: the messages, pings and close frame of the queues,
/// and the pongs and the close frame that the protocol owes.
///
/// Used only inside the gate of the load. It calls handlers of the program, none of which can reach this
/// value.
struct WebSocketSender {
    /// About the most bytes that one pass writes. The limit leaves time for other tasks.
    private static let writtenAtOnce = 1024 * 1024
    /// The most memory that the buffer keeps when it is empty.
    private static let keptCapacity = 64 * 1024
    /// The number of buffered bytes at which pongs are written before more is read.
    private static let pongsAtOnce = 4096

    /// A frame of a message.
    private struct MessageFrame {
        let isFirst: Bool
        let isLast: Bool
    }

    private enum Phase {
        case open
        /// The close frame was written. Only pongs can follow it.
        case closeWritten
        /// The connection takes no more bytes, or the closing timeout has expired.
        case ended
    }

    private let shared: WebSocketTaskState
    private var phase = Phase.open
    private var unsent: [UInt8] = []
    private var written = 0
    /// The frame in the buffer, which then has nothing else; nil if the buffer is empty, or has pings, pongs
    /// or a close frame.
    private var frame: MessageFrame?
    /// Bytes up to the end of the close frame were written since `takeProgress()` was called last.
    private var hasProgress = false

    init(_ shared: WebSocketTaskState) { self.shared = shared }

    private var load: (any UpgradeOwner)? { shared.state.withLock { $0.load } }

    var hasEnded: Bool { if case .ended = phase { true } else { false } }

    // MARK: - Writing

    /// Puts the pong that is owed into the buffer.
    ///
    /// - Returns: True if the buffer has so many bytes that they should be written before more is read.
    mutating func bufferPong(of connection: inout WebSocketConnection) -> Bool {
        connection.sendAnswers(into: &unsent)
        return unsent.count >= Self.pongsAtOnce
    }

    /// Writes as much as the channel and the limit of one pass allow.
    ///
    /// - Returns: False if a write showed that the connection takes no more bytes.
    mutating func flush(_ connection: inout WebSocketConnection, to channel: SocketChannel) -> Bool {
        var budget = Self.writtenAtOnce
        while !hasEnded {
            // The task may have been suspended in a call that was made meanwhile: then no further message is
            // taken.
            guard budget > 0, load?.maySend ?? true else {
                channel.wantsWrite = true
                return true
            }
            dropWithdrawn(from: &connection)
            if unsent.isEmpty, !writeNext(of: &connection) { break }
            guard write(to: channel, &budget) else { return !hasEnded }
            if !connection.isOpen, !connection.hasAnswers { phase = .closeWritten }
            if frame.take()?.isLast ?? false { endCurrent() }
            unsent.removeAll(keepingCapacity: unsent.capacity <= Self.keptCapacity)
            written = 0
        }
        channel.wantsWrite = false
        return true
    }

    /// - Returns: True if all bytes were written.
    private mutating func write(to channel: SocketChannel, _ budget: inout Int) -> Bool {
        while written < unsent.count {
            guard budget > 0 else {
                channel.wantsWrite = true
                return false
            }
            do throws(ChannelError) {
                let offset = written
                let count = try unsent.withUnsafeBufferPointer { (bytes) throws(ChannelError) in
                    try channel.write(
                        UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[offset...]))
                }
                guard count > 0 else {
                    waitForRoom(in: channel)
                    return false
                }
                written += count
                budget -= count
                if case .open = phase { hasProgress = true }
            } catch {
                phase = .ended
                channel.wantsWrite = false
                failCurrent()
                return false
            }
        }
        return true
    }

    /// Whether bytes up to the end of the close frame were written since the last call.
    mutating func takeProgress() -> Bool {
        defer { hasProgress = false }
        return hasProgress
    }

    /// Waits until the connection takes bytes. If it has taken none of the message, the program can withdraw
    /// the message meanwhile (rule WS-26).
    private func waitForRoom(in channel: SocketChannel) {
        channel.wantsWrite = true
        guard frame?.isFirst ?? false, written == 0 else { return }
        let withdrawn = shared.state.withLock { $0.queues.beginWait() }
        withExtendedLifetime(withdrawn) {}
    }

    /// Empties the buffer if it has the beginning of a message that was withdrawn.
    private mutating func dropWithdrawn(from connection: inout WebSocketConnection) {
        guard frame?.isFirst ?? false, written == 0, !shared.state.withLock({ $0.queues.endWait() })
        else { return }
        frame = nil
        unsent.removeAll()
        connection.withdrawMessage()
    }

    /// Puts the next frame into the buffer; returns false if there is none.
    private mutating func writeNext(of connection: inout WebSocketConnection) -> Bool {
        if connection.hasAnswers {
            connection.sendAnswers(into: &unsent)
            return true
        }
        guard connection.isOpen else { return false }
        do throws(WebSocketError) {
            if connection.isSendingMessage {
                frame = MessageFrame(isFirst: false, isLast: try connection.sendNextFrame(into: &unsent))
                return true
            }
            guard let next = shared.state.withLock({ $0.queues.takeOutgoing() }) else {
                guard let close = shared.state.withLock({ $0.queues.close }) else { return false }
                try connection.send(close: close, into: &unsent)
                return true
            }
            switch next.what {
            case .message(let message):
                try connection.startSending(message)
                frame = MessageFrame(isFirst: true, isLast: try connection.sendNextFrame(into: &unsent))
            case .ping:
                let payload = (0..<8).map { UInt8(truncatingIfNeeded: next.identifier >> (56 - 8 * $0)) }
                try connection.send(ping: payload, into: &unsent)
            }
            return true
        } catch {
            failCurrent()
            return false
        }
    }

    // MARK: - The current message

    /// Reports that the kernel has taken all of the message that is being sent.
    private func endCurrent() {
        guard let completion = shared.state.withLock({ $0.queues.endSending() }) else { return }
        load?.call("send", size: 0) { completion(nil) }
    }

    /// Fails the message that is being sent.
    func failCurrent() {
        let failed = shared.state.withLock { state in
            state.queues.endSending().map { ($0, state.closing?.error ?? Self.lost(state.url)) }
        }
        guard let (completion, error) = failed else { return }
        load?.call("send", size: 0) { completion(error) }
    }

    /// Fails the message that is being sent, unless its last bytes may still be written.
    func failUnfinished() { if hasEnded || !(frame?.isLast ?? false) { failCurrent() } }

    /// Writes no more.
    mutating func end() { phase = .ended }

    /// The error of an operation whose connection has ended.
    static func lost(_ url: URL?) -> URLError {
        URLErrors.error(.networkConnectionLost, "The WebSocket's connection has ended.", url: url)
    }
}

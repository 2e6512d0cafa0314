internal import RondoCore

/// The reading side of two streams over one connection: reads a little ahead, and remembers how the bytes
/// end.
///
/// A readable socket has bytes or has met its end, and the delegate must be told which. So a little is read
/// ahead; for small messages this takes no more calls than reading them does, and a client that asks for more
/// gets the rest directly in its own buffer. While bytes are read ahead, no more are read, so that a client
/// that pauses holds the peer back. A socket that the client goes on with afterwards keeps its bytes: it is
/// only asked whether it has any.
///
/// Protected by the pair's lock, like the channel that is passed in.
struct SocketReader {
    private enum Ending {
        case end
        case failed(NSError)
    }

    let core: StreamCore
    /// True while the client's stream is open: from its `open()` to its `close()`.
    private(set) var isOpen = false
    /// The bytes read ahead. The memory is given back as soon as it is used up, because most connections are
    /// idle most of the time.
    private var ahead: ReadAhead?
    /// Bytes were found, and left in the kernel: see `SocketChannel.leavesBytes`.
    private var hasBytesInKernel = false
    /// The memory of bytes that are lent until the next operation.
    private var lent: ReadAhead?
    /// The bytes of the connection that were read before the pair had it; they follow `ahead` and precede the
    /// channel's bytes.
    private var early: ArraySlice<UInt8>
    /// The end or the failure that follows `early`.
    private var ending: Ending?

    init(_ core: StreamCore, early: [UInt8] = []) {
        self.core = core
        self.early = early[...]
    }

    // MARK: - Opening and closing

    mutating func open() { isOpen = true }

    /// - Returns: False if it was not open.
    mutating func close() -> Bool {
        (ahead, lent, early, hasBytesInKernel) = (nil, nil, [], false)
        defer { isOpen = false }
        return isOpen
    }

    /// Whether the socket is to be watched for bytes.
    var wantsBytes: Bool { isOpen && ahead == nil && !hasBytesInKernel && ending == nil }

    /// True if bytes wait for which the socket does not become readable.
    var hasEarlyBytes: Bool { !early.isEmpty }

    /// Records the loss of the connection: the stream fails after its last byte was read (rule ST-38).
    mutating func fail(_ error: NSError) {
        ending = ending ?? .failed(error)
        reportEnding()
    }

    /// Reports the end or the failure once all bytes before it were read.
    private func reportEnding() {
        guard ahead == nil, early.isEmpty, let ending, isOpen else { return }
        switch ending {
        case .end: core.update { $0.ended() }
        case .failed(let error): core.update { $0.failed(error) }
        }
    }

    /// A copy of the bytes read ahead.
    var bytesAhead: [UInt8] { (ahead?.bytes ?? []) + early }

    mutating func dropAhead() { (ahead, early, hasBytesInKernel) = (nil, [], false) }

    // MARK: - Reading

    /// Attempts to read once; nil: the caller must wait.
    mutating func read(
        _ buffer: UnsafeMutableRawBufferPointer, from channel: SocketChannel?, _ writer: inout SocketWriter
    ) -> Int? {
        endLoan()
        switch core.status {
        case .open: break
        case .opening: return nil
        case .atEnd: return 0
        default: return -1
        }
        hasBytesInKernel = false
        var count = ahead?.take(buffer) ?? 0
        if let used = ahead, used.isEmpty {
            ahead = nil
            ReadAhead.give(back: used)
        }
        // Unless the read-ahead was full, the socket was empty after it.
        if count == 0 || count == ReadAhead.capacity {
            count += receive(
                UnsafeMutableRawBufferPointer(rebasing: buffer.dropFirst(count)), channel, &writer)
        }
        reportEnding()
        if count == 0 {
            switch ending {
            case .end: return 0
            case .failed: return -1
            case nil: break
            }
        }
        noteUse(count, channel)
        return count > 0 ? count : nil
    }

    /// Lends at most `limit` bytes of the read-ahead, which is filled first if there is none.
    mutating func lend(
        atMost limit: Int, from channel: SocketChannel?, _ writer: inout SocketWriter
    ) -> UnsafeMutableBufferPointer<UInt8>? {
        endLoan()
        hasBytesInKernel = false
        if ahead == nil {
            // What is lent counts as read.
            fillAhead(leavesBytes(channel) ? limit : ReadAhead.capacity, channel, &writer)
        }
        guard let found = ahead else { return nil }
        lent = found
        let bytes = found.lend(atMost: limit)
        if found.isEmpty { ahead = nil }
        reportEnding()
        noteUse(bytes.count, channel)
        return bytes
    }

    mutating func lookForBytes(_ channel: SocketChannel?, _ writer: inout SocketWriter) -> Bool {
        endLoan()
        if ahead == nil { lookAhead(channel, &writer) }
        return ahead != nil || hasBytesInKernel
    }

    /// Handles the readiness of the channel.
    ///
    /// - Returns: False if no bytes are wanted.
    mutating func readAhead(from channel: SocketChannel?, _ writer: inout SocketWriter) -> Bool {
        guard wantsBytes else { return false }
        lookAhead(channel, &writer)
        return true
    }

    private func leavesBytes(_ channel: SocketChannel?) -> Bool {
        early.isEmpty && channel?.leavesBytes ?? false
    }

    private mutating func lookAhead(_ channel: SocketChannel?, _ writer: inout SocketWriter) {
        guard leavesBytes(channel) else { return fillAhead(ReadAhead.capacity, channel, &writer) }
        // One byte tells bytes from the end.
        var byte: UInt8 = 0
        let isFound = withUnsafeMutableBytes(of: &byte) { receive($0, channel, &writer, peeks: true) } > 0
        hasBytesInKernel = isFound
        // The client itself may have taken bytes that were found before.
        core.update(deferred: true) { $0.setReady(isFound) }
        reportEnding()
    }

    private mutating func fillAhead(
        _ limit: Int, _ channel: SocketChannel?, _ writer: inout SocketWriter
    ) {
        let found = ReadAhead.take()
        found.fill {
            receive(UnsafeMutableRawBufferPointer(rebasing: $0.prefix(limit)), channel, &writer)
        }
        if found.isEmpty {
            ReadAhead.give(back: found)
        } else {
            ahead = found
            // The delegates of several streams are called in a row.
            core.update(deferred: true) { $0.setReady(true) }
        }
        reportEnding()
    }

    /// Reads from the channel, and remembers the end or a failure.
    ///
    /// - Parameter peeks: Only copies the bytes, of a channel that leaves them.
    private mutating func receive(
        _ buffer: UnsafeMutableRawBufferPointer, _ channel: SocketChannel?, _ writer: inout SocketWriter,
        peeks: Bool = false
    ) -> Int {
        if !early.isEmpty, !buffer.isEmpty {
            let taken = early.prefix(buffer.count)
            buffer.copyBytes(from: taken)
            early = early.dropFirst(taken.count)
            return taken.count
        }
        guard !buffer.isEmpty, ending == nil, let channel, channel.isOpen else { return 0 }
        do throws(ChannelError) {
            switch try channel.read(into: buffer, peeks: peeks) {
            case .bytes(let count): return count
            case .wouldBlock: return 0
            // If a write has failed because the connection was lost, the end that follows is not an orderly
            // one.
            case .end: ending = writer.failure.map { .failed($0) } ?? .end
            case .truncated: lose(.truncated(host: channel.configuration.host), channel, &writer)
            }
        } catch {
            lose(error.streamError, channel, &writer)
        }
        return 0
    }

    private mutating func lose(_ error: NSError, _ channel: SocketChannel, _ writer: inout SocketWriter) {
        writer.fail(error)
        fail(error)
        (channel.wantsRead, channel.wantsWrite) = (false, false)
    }

    /// Takes back the lent memory, whose bytes the client has finished with.
    private mutating func endLoan() {
        guard let ended = lent.take(), ended !== ahead else { return }
        ReadAhead.give(back: ended)
    }

    /// Arms the stream for its next event, and the channel for more bytes.
    private func noteUse(_ count: Int, _ channel: SocketChannel?) {
        if let channel, channel.isOpen {
            channel.wantsRead = ahead == nil && ending == nil
            // The rest of a TLS record that this read has begun makes no event of the socket.
            channel.askForPassIfPlaintextIsPending()
        }
        guard count > 0 else { return }
        // (Asked for inside the closure, it would cost a copy of the whole reader.)
        let isReady = ahead != nil || hasEarlyBytes
        core.update { $0.used(isReady: isReady) }
    }
}

internal import RondoCore

/// The reading side of two streams over one connection: reads a little ahead, and remembers how the bytes end.
///
/// A socket that is readable has bytes or has met its end, and the delegate is told these apart. So a little is read
/// ahead, which costs small messages no call more than reading them does; a client that asks for more gets the rest
/// straight into its own buffer. As long as those bytes lie here no more is read, so that a client that pauses holds the
/// peer back.
///
/// Behind the pair's lock, as the channel that is handed in.
struct SocketReader {
    private enum Ending {
        case end
        case failed(NSError)
    }

    let core: StreamCore
    /// The client has opened the stream, and not closed it.
    private(set) var isOpen = false
    /// Given back when it is used up, not kept for later: most connections are idle most of the time.
    private var ahead: ReadAhead?
    /// What was lent of it, until the next operation.
    private var lent: ReadAhead?
    /// What was read of the connection before it was the pair's; comes behind `ahead`, and before all that the channel has.
    private var early: ArraySlice<UInt8>
    /// What comes behind `early`.
    private var ending: Ending?

    init(_ core: StreamCore, early: [UInt8] = []) {
        self.core = core
        self.early = early[...]
    }

    // MARK: - Opening and closing

    mutating func open() { isOpen = true }

    /// - Returns: False: it was not open.
    mutating func close() -> Bool {
        (ahead, lent, early) = (nil, nil, [])
        defer { isOpen = false }
        return isOpen
    }

    /// Whether the socket is to be watched for bytes.
    var wantsBytes: Bool { isOpen && ahead == nil && ending == nil }

    /// There are bytes that no socket announces.
    var hasEarlyBytes: Bool { !early.isEmpty }

    /// The connection is lost: the stream fails when its last byte was read (rule ST-38).
    mutating func fail(_ error: NSError) {
        ending = ending ?? .failed(error)
        settle()
    }

    /// When the bytes read ahead are used up, what comes behind them takes effect.
    private func settle() {
        guard ahead == nil, early.isEmpty, let ending, isOpen else { return }
        switch ending {
        case .end: core.update { $0.ended() }
        case .failed(let error): core.update { $0.failed(error) }
        }
    }

    /// A copy of what was read ahead.
    var bytesAhead: [UInt8] { (ahead?.bytes ?? []) + early }

    mutating func dropAhead() { (ahead, early) = (nil, []) }

    // MARK: - Reading

    /// One attempt to read; nil: wait.
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
        var count = ahead?.take(buffer) ?? 0
        if let used = ahead, used.isEmpty {
            ahead = nil
            ReadAhead.give(back: used)
        }
        // A read-ahead that was not full has emptied the socket.
        if count == 0 || count == ReadAhead.capacity {
            count += receive(
                UnsafeMutableRawBufferPointer(rebasing: buffer.dropFirst(count)), channel, &writer)
        }
        settle()
        switch ending {
        case .end where count == 0: return 0
        case .failed where count == 0: return -1
        default: break
        }
        return wasUsed(count, channel) ? count : nil
    }

    /// Gives bytes in place, at most `limit`, out of the read-ahead, which is made for it.
    mutating func lend(
        atMost limit: Int, from channel: SocketChannel?, _ writer: inout SocketWriter
    ) -> UnsafeMutableBufferPointer<UInt8>? {
        endLoan()
        if ahead == nil { lookAhead(channel, &writer) }
        guard let found = ahead else { return nil }
        lent = found
        let bytes = found.lend(atMost: limit)
        if found.isEmpty { ahead = nil }
        settle()
        _ = wasUsed(bytes.count, channel)
        return bytes
    }

    mutating func hasBytes(_ channel: SocketChannel?, _ writer: inout SocketWriter) -> Bool {
        endLoan()
        if ahead == nil { lookAhead(channel, &writer) }
        return ahead != nil
    }

    /// The channel is readable.
    ///
    /// - Returns: False: nothing is wanted of it.
    mutating func isReadable(_ channel: SocketChannel?, _ writer: inout SocketWriter) -> Bool {
        guard wantsBytes else { return false }
        lookAhead(channel, &writer)
        return true
    }

    private mutating func lookAhead(_ channel: SocketChannel?, _ writer: inout SocketWriter) {
        let found = ReadAhead.take()
        found.fill { receive($0, channel, &writer) }
        if found.isEmpty {
            ReadAhead.give(back: found)
        } else {
            ahead = found
            core.update { $0.setReady(true) }
        }
        settle()
    }

    /// Reads from the channel and remembers how it ended.
    private mutating func receive(
        _ buffer: UnsafeMutableRawBufferPointer, _ channel: SocketChannel?, _ writer: inout SocketWriter
    ) -> Int {
        if !early.isEmpty, !buffer.isEmpty {
            let taken = early.prefix(buffer.count)
            buffer.copyBytes(from: taken)
            early = early.dropFirst(taken.count)
            return taken.count
        }
        guard !buffer.isEmpty, ending == nil, let channel, channel.isOpen else { return 0 }
        do throws(ChannelError) {
            switch try channel.read(into: buffer) {
            case .bytes(let count): return count
            case .wouldBlock: return 0
            // A connection lost while something was written looks like an orderly end afterwards.
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

    /// What was lent is no longer read.
    private mutating func endLoan() {
        guard let ended = lent.take(), ended !== ahead else { return }
        ReadAhead.give(back: ended)
    }

    private func wasUsed(_ count: Int, _ channel: SocketChannel?) -> Bool {
        if let channel, channel.isOpen { channel.wantsRead = ahead == nil && ending == nil }
        guard count > 0 else { return false }
        core.update { $0.used(isReady: ahead != nil || hasEarlyBytes) }
        return true
    }
}

internal import RondoCore

/// The waits of TLS on an open connection that go beyond what the owner wants.
struct TLSWaits {
    // TLS may have to write before it can continue reading, and the reverse.
    private(set) var readNeedsWrite = false
    private var writeNeedsRead = false
    /// True if close_notify must be sent once the bytes written before it are gone.
    private(set) var owesEnd = false

    // MARK: - Calls of the owner

    mutating func read(
        into buffer: UnsafeMutableRawBufferPointer, by engine: TLSEngine
    ) throws(TLSError) -> ChannelReadResult {
        let result = try engine.read(into: buffer)
        readNeedsWrite = result == .wantsWrite
        return switch result {
        case .bytes(let count): .bytes(count)
        case .wantsRead, .wantsWrite: .wouldBlock
        case .end: .end
        case .truncated: .truncated
        }
    }

    /// - Returns: How many bytes were accepted.
    mutating func write(_ bytes: UnsafeRawBufferPointer, by engine: TLSEngine) throws(TLSError) -> Int {
        let result = try engine.write(bytes)
        writeNeedsRead = result == .wantsRead
        return if case .bytes(let count) = result { count } else { 0 }
    }

    mutating func endWriting(_ engine: TLSEngine) { owesEnd = engine.shutdown() != .done }

    // MARK: - Readiness

    func canRead(_ ready: RunLoop.Source.Interest) -> Bool {
        ready.contains(.read) || (readNeedsWrite && ready.contains(.write))
    }

    func canWrite(_ ready: RunLoop.Source.Interest) -> Bool {
        ready.contains(.write) || (writeNeedsRead && ready.contains(.read))
    }

    /// Whether something must be sent before the owner can write.
    func hasToFlush(_ engine: TLSEngine) -> Bool { engine.hasUnsentBytes || owesEnd }

    /// Sends the rest of earlier writes, and close_notify if that is owed.
    ///
    /// - Returns: Whether the owner can write now.
    mutating func flush(_ engine: TLSEngine) -> Bool {
        do throws(TLSError) {
            guard try engine.flush() == .done else { return false }
            if owesEnd { endWriting(engine) }
        } catch {
            // The next write throws this error again; until then the owner can still read.
            owesEnd = false
        }
        return true
    }

    /// What the socket is to be watched for.
    func interest(of engine: TLSEngine?, wantsRead: Bool, wantsWrite: Bool) -> RunLoop.Source.Interest {
        var wanted: RunLoop.Source.Interest = []
        if wantsRead || writeNeedsRead { wanted.insert(.read) }
        let hasUnsentBytes = engine?.hasUnsentBytes ?? false
        if wantsWrite || owesEnd || hasUnsentBytes || (wantsRead && readNeedsWrite) { wanted.insert(.write) }
        return wanted
    }
}

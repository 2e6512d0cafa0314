internal import RondoCore

// Reading and writing. Each attempt is made under the lock and repeated until it has a result.
extension SocketPair {
    // MARK: - Reading

    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        wait { reader.read(buffer, from: channel, &writer) }
    }

    /// Lends bytes of the read-ahead, which is filled first if it is empty.
    func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8>? {
        lock.withLock { _ in reader.lend(atMost: limit, from: channel, &writer) }
    }

    var hasBytesAvailable: Bool {
        advance()
        return lock.withLock { _ in reader.lookForBytes(channel, &writer) }
    }

    // MARK: - Writing

    func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        let count = wait {
            writer.write(bytes.count, to: channel) { channel throws(ChannelError) in try channel.write(bytes)
            }
        }
        checkSpace()
        return count
    }

    func write(_ pieces: [UnsafeRawBufferPointer]) -> Int {
        let total = pieces.reduce(0) { $0 + $1.count }
        let count = wait {
            writer.write(total, to: channel) { channel throws(ChannelError) in
                try channel.write(gathering: pieces)
            }
        }
        checkSpace()
        return count
    }

    var hasSpaceAvailable: Bool {
        if output.isReady { return true }
        advance()
        return lock.withLock { _ in writer.hasSpace(channel) }
    }

    // MARK: - Space

    /// Checks after a write whether there is space for another one. In a pass that serves many streams, one
    /// system call checks all of them.
    private func checkSpace() {
        guard lock.withLock({ _ in writer.scheduleCheck() }) else { return }
        if let loop = output.onlyLoopHere, SpaceCheck.of(loop).add(self) { return }
        lock.withLock { _ in checkSpaceAtOnce() }
    }

    /// Checks the space without delay; the lock must be held. Also called for a pair in a `SpaceCheck` when
    /// its stream is scheduled elsewhere: the handler that has written may wait for the delegate there.
    func checkSpaceAtOnce() {
        if writer.beginCheck() { writer.endCheck(found: channel?.hasSpace ?? false, channel) }
    }

    /// - Returns: The descriptor to check; negative: none.
    func beginSpaceCheck() -> Int32 {
        lock.withLock { _ in writer.beginCheck() ? channel?.spaceDescriptor ?? -1 : -1 }
    }

    func endSpaceCheck(found: Bool) { lock.withLock { _ in writer.endCheck(found: found, channel) } }
}

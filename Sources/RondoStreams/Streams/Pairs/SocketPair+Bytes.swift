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
        write(bytes.count) { channel throws(ChannelError) in try channel.write(bytes) }
    }

    func write(_ pieces: [UnsafeRawBufferPointer]) -> Int {
        write(pieces.reduce(0) { $0 + $1.count }) { channel throws(ChannelError) in
            try channel.write(gathering: pieces)
        }
    }

    private func write(_ total: Int, by write: (SocketChannel) throws(ChannelError) -> Int) -> Int {
        var mustCheck = false
        let count = wait {
            let count = writer.write(total, to: channel, by: write)
            mustCheck = writer.scheduleCheck()
            return count
        }
        if mustCheck { checkSpace() }
        return count
    }

    var hasSpaceAvailable: Bool {
        if output.isReady { return true }
        advance()
        return lock.withLock { _ in writer.hasSpace(channel) }
    }

    // MARK: - Space

    /// Checks after a write whether there is space for another one, which was scheduled under the write's
    /// lock. In a pass that serves many streams, one system call checks all of them.
    private func checkSpace() {
        if let loop = output.onlyLoopHere, SpaceCheck.of(loop).add(self, on: loop) { return }
        lock.withLock { _ in checkSpaceAtOnce() }
    }

    /// Called when the pair's modes change, with the lock held: does the check of a pair in a `SpaceCheck`,
    /// if the output is scheduled elsewhere now. The handler that has written may wait for the delegate
    /// there.
    func checkSpaceUnlessItCanWait() {
        if output.status != .closed, output.onlyLoopHere == nil { checkSpaceAtOnce() }
    }

    /// Checks the space without delay; the lock must be held.
    private func checkSpaceAtOnce() {
        if writer.beginCheck() { writer.endCheck(found: channel?.hasSpace ?? false, channel) }
    }

    /// - Returns: The descriptor to check; negative: none.
    func beginSpaceCheck() -> Int32 {
        lock.withLock { _ in writer.beginCheck() ? channel?.spaceDescriptor ?? -1 : -1 }
    }

    func endSpaceCheck(found: Bool) { lock.withLock { _ in writer.endCheck(found: found, channel) } }
}

internal import RondoCore

// Reading and writing: each is tried under the lock until it has an answer.
extension SocketPair {
    // MARK: - Reading

    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        wait { reader.read(buffer, from: channel, &writer) }
    }

    /// What lies in the read-ahead, which is looked for first.
    func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8>? {
        lock.withLock { _ in reader.lend(atMost: limit, from: channel, &writer) }
    }

    var hasBytesAvailable: Bool {
        advance()
        return lock.withLock { _ in reader.hasBytes(channel, &writer) }
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

    /// After a write: whether there is space for another one. In a pass that serves many streams it is asked for all of
    /// them at once.
    private func checkSpace() {
        guard lock.withLock({ _ in writer.scheduleCheck() }) else { return }
        if let loop = output.onlyLoopHere, SpaceCheck.of(loop).add(self) { return }
        lock.withLock { _ in checkSpaceAtOnce() }
    }

    /// The lock is held. Also where a `SpaceCheck` has the pair, if the stream is told elsewhere than in that one's loop: the
    /// handler that has written may wait for what the delegate does there.
    func checkSpaceAtOnce() {
        if writer.beginCheck() { writer.endCheck(found: channel?.hasSpace ?? false, channel) }
    }

    /// - Returns: The descriptor to be looked at; negative: none.
    func beginSpaceCheck() -> Int32 {
        lock.withLock { _ in writer.beginCheck() ? channel?.spaceDescriptor ?? -1 : -1 }
    }

    func endSpaceCheck(found: Bool) { lock.withLock { _ in writer.endCheck(found: found, channel) } }
}

internal import RondoCore

// Reading and writing, one attempt each; `+Waiting` makes as many as it takes.
extension SocketPair {
    // MARK: - Reading

    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        wait { take(buffer) }
    }

    /// One attempt to read; nil: wait.
    private func take(_ buffer: UnsafeMutableRawBufferPointer) -> Int? {
        endLoan()
        switch input.status {
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
            count += receive(UnsafeMutableRawBufferPointer(rebasing: buffer.dropFirst(count)))
        }
        settleInput()
        switch inputEnding {
        case .end where count == 0: return 0
        case .failed where count == 0: return -1
        default: break
        }
        return wasUsed(count) ? count : nil
    }

    /// What was lent is no longer read.
    private func endLoan() {
        guard let ended = lent.take(), ended !== ahead else { return }
        ReadAhead.give(back: ended)
    }

    /// What lies in the read-ahead, which is looked for first.
    func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8>? {
        lock.withLock { _ in
            endLoan()
            if ahead == nil { lookAhead() }
            guard let found = ahead else { return nil }
            lent = found
            let bytes = found.lend(atMost: limit)
            if found.isEmpty { ahead = nil }
            settleInput()
            _ = wasUsed(bytes.count)
            return bytes
        }
    }

    private func wasUsed(_ count: Int) -> Bool {
        if let channel, channel.isOpen { channel.wantsRead = ahead == nil && inputEnding == nil }
        guard count > 0 else { return false }
        input.update { $0.used(isReady: ahead != nil) }
        return true
    }

    /// Reads from the channel and remembers how it ended.
    private func receive(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard !buffer.isEmpty, inputEnding == nil, let channel, channel.isOpen else { return 0 }
        do throws(ChannelError) {
            switch try channel.read(into: buffer) {
            case .bytes(let count): return count
            case .wouldBlock: return 0
            // A connection lost while something was written looks like an orderly end afterwards.
            case .end: inputEnding = outputFailure.map { .failed($0) } ?? .end
            case .truncated: breakDown(.truncated(host: remoteHost))
            }
        } catch {
            breakDown(error.streamError)
        }
        return 0
    }

    func lookAhead() {
        let found = ReadAhead.take()
        found.fill { receive($0) }
        if found.isEmpty {
            ReadAhead.give(back: found)
        } else {
            ahead = found
            input.update { $0.setReady(true) }
        }
        settleInput()
    }

    var hasBytesAvailable: Bool {
        advance()
        return lock.withLock { _ in
            endLoan()
            if ahead == nil { lookAhead() }
            return ahead != nil
        }
    }

    // MARK: - Writing

    func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        let count = wait { give(bytes.count) { channel throws(ChannelError) in try channel.write(bytes) } }
        lookForSpace()
        return count
    }

    func write(_ pieces: [UnsafeRawBufferPointer]) -> Int {
        let total = pieces.reduce(0) { $0 + $1.count }
        let count = wait {
            give(total) { channel throws(ChannelError) in try channel.write(gathering: pieces) }
        }
        lookForSpace()
        return count
    }

    /// One attempt to write; nil: wait.
    private func give(_ total: Int, _ write: (SocketChannel) throws(ChannelError) -> Int) -> Int? {
        guard outputFailure == nil, output.mayTransfer else { return -1 }
        guard let channel, channel.isOpen else { return nil }
        do throws(ChannelError) {
            let count = try write(channel)
            output.update { $0.used(isReady: false) }
            // What was taken in full may have filled the socket, or be here still in part: told of space, the
            // client would be made to wait for the peer, and everybody else in its loop.
            if count < total {
                channel.wantsWrite = true
                if look == .underWay { look = .done }
            } else if look != .noted {
                look = .wanted
            }
            return count > 0 ? count : nil
        } catch {
            // What the peer has sent before is still read; then the input fails, too.
            let error = error.streamError
            outputFailure = error
            output.update { $0.failed(error) }
            channel.wantsWrite = false
            return -1
        }
    }

    /// After a write: whether there is space for another one. In a turn that serves many streams it is asked for all of
    /// them at once.
    private func lookForSpace() {
        let isWanted = lock.withLock { _ in
            guard look == .wanted else { return false }
            look = .noted
            return true
        }
        guard isWanted else { return }
        if let loop = output.onlyLoopHere, let spaceLook = SpaceLook.of(loop), spaceLook.add(self) { return }
        lock.withLock { _ in lookAtOnce() }
    }

    /// The lock is held. Also where a `SpaceLook` has noted it, if the stream is told elsewhere than in that one's loop: the
    /// handler that has written may wait for who is told.
    func lookAtOnce() {
        guard look == .noted else { return }
        look = .underWay
        hasLooked(found: channel?.hasSpace ?? false)
    }

    /// - Returns: The descriptor to be looked at; negative: none.
    func beginLookForSpace() -> Int32 {
        lock.withLock { _ in
            guard look == .noted else { return -1 }
            look = .underWay
            return channel?.spaceDescriptor ?? -1
        }
    }

    func endLookForSpace(found: Bool) { lock.withLock { _ in hasLooked(found: found) } }

    /// The lock is held.
    private func hasLooked(found: Bool) {
        // Somebody may have written since it began, and then sees to it himself.
        guard look == .underWay else { return }
        look = .done
        // A descriptor that was closed meanwhile may be somebody else's: then the channel is not open any more, and there is
        // never another one.
        guard let channel, channel.isOpen, opened.contains(.output), outputFailure == nil else { return }
        if found { output.update { $0.setReady(true) } } else { channel.wantsWrite = true }
    }

    var hasSpaceAvailable: Bool {
        if output.isReady { return true }
        advance()
        return lock.withLock { _ in
            guard outputFailure == nil, channel?.hasSpace ?? false else { return false }
            output.update { $0.setReady(true) }
            return true
        }
    }
}

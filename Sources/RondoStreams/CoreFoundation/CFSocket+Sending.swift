internal import Glibc
package import RondoCore
internal import RondoMutex

// What programs do with a socket themselves. Any thread.
extension CFSocket {
    package var address: Data? {
        state.withLock { $0.isValid ? handle.address : nil }
    }
    package var peerAddress: Data? {
        state.withLock { $0.isValid ? handle.peerAddress : nil }
    }

    /// Binds, and listens if it is a stream socket (rule CS-15).
    package func setAddress(_ address: Data) -> CFSocketError {
        state.withLock { state in
            guard state.isValid, handle.bindAndListen(at: address) else { return .error }
            state.callBacks.phase = .ready
            state.apply()
            return .success
        }
    }

    // MARK: - Connecting

    /// Connects: in the background where `timeout` is negative, and else blocks for so many seconds at most, while no loop
    /// runs (rule CS-9). Of 0 seconds the kernel's own limit is the end, as on Apple's systems.
    package func connect(to address: Data, timeout: TimeInterval) -> CFSocketError {
        let waits = timeout >= 0
        let end = timeout > 0 ? LoopClock.machineNow.advanced(bySeconds: timeout) : .never
        while true {
            switch beginConnecting(to: address, waits: waits) {
            case .ended(let result): return result
            case .isUnderWay: return waitForConnection(until: end)
            case .queueIsFull:
                guard end > LoopClock.machineNow else { return .timeout }
                _ = poll(nil, 0, Self.pause)
            }
        }
    }

    /// Milliseconds between two attempts to reach a Unix socket whose queue of connections is full: nothing tells of room there.
    private static let pause: Int32 = 5

    private enum Beginning {
        case ended(CFSocketError)
        case isUnderWay
        case queueIsFull
    }

    private func beginConnecting(to address: Data, waits: Bool) -> Beginning {
        state.withLock { state in
            guard state.isValid else { return .ended(.error) }
            defer { state.apply() }
            switch handle.connect(to: address) {
            case 0:
                state.callBacks.connected(0, inBackground: !waits)
                return .ended(.success)
            case EINPROGRESS, EINTR:
                state.callBacks.phase = .connecting(threadWaits: waits)
                if waits { state.waitingThreads += 1 }
                return waits ? .isUnderWay : .ended(.success)
            // connect(2): Unix sockets alone. One that may block would wait there.
            case EAGAIN where waits: return .queueIsFull
            default: return .ended(.error)
            }
        }
    }

    private func waitForConnection(until end: LoopInstant) -> CFSocketError {
        let isThere = waitUntilWritable(until: end)
        return state.withLock { state in
            guard state.isValid else { return .error }
            defer { state.apply() }
            guard isThere, let code = handle.outcomeOfConnecting(leavesErrors: state.callBacks.leavesErrors)
            else {
                // It goes on in the background, and its end is called back.
                state.callBacks.phase = .connecting(threadWaits: false)
                return .timeout
            }
            state.callBacks.connected(code, inBackground: false)
            return code == 0 ? .success : .error
        }
    }

    /// Blocks the thread, which was counted under the lock.
    private func waitUntilWritable(until end: LoopInstant) -> Bool {
        let isThere = SocketCalls.wait(handle.descriptor, for: POLLOUT, until: end)
        let closes = state.withLock { state in
            state.waitingThreads -= 1
            return state.isClosedLater && state.waitingThreads == 0
        }
        if closes { handle.close() }
        return isThere
    }

    // MARK: - Sending

    /// Sends all of `data` or fails (rule CS-10).
    ///
    /// - Parameters:
    ///   - address: For datagrams, where to; nil or empty: where the socket is connected.
    ///   - timeout: Seconds that the thread may be blocked; 0 and less: no limit.
    package func send(_ data: Data, to address: Data?, timeout: TimeInterval) -> CFSocketError {
        let end = timeout > 0 ? LoopClock.machineNow.advanced(bySeconds: timeout) : .never
        guard takeTurn(timeout) else { return .timeout }
        defer { sending.signal() }
        var rest = data[...]
        while true {
            let outcome = state.withLock { state -> SocketCalls.Outcome in
                guard state.isValid else { return .failed(EBADF) }
                let outcome = handle.send(rest, to: address)
                if case .wouldBlock = outcome { state.waitingThreads += 1 }
                return outcome
            }
            switch outcome {
            case .failed: return .error
            case .wouldBlock:
                if !waitUntilWritable(until: end) { return .timeout }
            case .bytes(let count):
                if count >= rest.count { return .success }
                // A datagram is sent whole, or not at all.
                guard handle.kind == Int32(SOCK_STREAM.rawValue), count > 0 else { return .error }
                rest = rest.dropFirst(count)
            }
        }
    }

    /// - Returns: Whether the thread may send: no other one does.
    private func takeTurn(_ timeout: TimeInterval) -> Bool {
        guard timeout > 0, timeout < 1e9 else {
            sending.wait()
            return true
        }
        return sending.wait(timeout: .now() + timeout) == .success
    }
}

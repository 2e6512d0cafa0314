internal import CRondoSystem
internal import Glibc
package import RondoCore
internal import RondoMutex

// Calls that programs make on a socket directly. Any thread.
extension CFSocket {
    package var address: Data? { state.withLock { $0.isValid ? handle.address : nil } }
    package var peerAddress: Data? { state.withLock { $0.isValid ? handle.peerAddress : nil } }

    /// Binds the socket, and makes a stream socket listen (rule CS-15).
    package func setAddress(_ address: Data) -> CFSocketError {
        state.withLock { state in
            guard state.isValid, handle.bindAndListen(at: address) else { return .error }
            state.callBacks.phase = .ready
            state.apply()
            return .success
        }
    }

    // MARK: - Connecting

    /// Connects in the background if `timeout` is negative; otherwise blocks for at most that many seconds,
    /// and no loop runs meanwhile (rule CS-9). 0 seconds mean the kernel's own limit, as on Apple's systems.
    package func connect(to address: Data, timeout: TimeInterval) -> CFSocketError {
        let waits = timeout >= 0
        let end = timeout > 0 ? LoopClock.systemNow.advanced(bySeconds: timeout) : .never
        while true {
            switch beginConnecting(to: address, waits: waits) {
            case .ended(let result): return result
            case .isInProgress: return waitForConnection(until: end)
            case .queueIsFull:
                guard SocketCalls.pause(until: end) else { return .timeout }
            }
        }
    }

    private enum Beginning {
        case ended(CFSocketError)
        case isInProgress
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
                if waits { state.beginWaiting() }
                return waits ? .isInProgress : .ended(.success)
            // connect(2): EAGAIN comes from Unix sockets only. A blocking one would wait there.
            case EAGAIN where waits: return .queueIsFull
            default: return .ended(.error)
            }
        }
    }

    private func waitForConnection(until end: LoopInstant) -> CFSocketError {
        let isThere = waitUntilWritable(until: end)
        endWaiting()
        return state.withLock { state in
            guard state.isValid else { return .error }
            defer { state.apply() }
            guard isThere, let code = handle.outcomeOfConnecting(leavesErrors: state.callBacks.leavesErrors)
            else {
                // The attempt continues in the background, and a callback reports its end.
                state.callBacks.phase = .connecting(threadWaits: false)
                return .timeout
            }
            state.callBacks.connected(code, inBackground: false)
            return code == 0 ? .success : .error
        }
    }

    /// Blocks the thread, which the caller has counted under the lock (`beginWaiting()`), until the socket is
    /// writable or was invalidated.
    ///
    /// - Returns: False if `end` has passed.
    private func waitUntilWritable(until end: LoopInstant) -> Bool {
        while let (wakeUp, limit) = state.withLock({ $0.nextWait() }) {
            let isFound = SocketCalls.wait(
                handle.descriptor, for: POLLOUT, until: min(end, limit), orBytesOf: wakeUp)
            if isFound || end <= limit { return isFound }
        }
        return true
    }

    private func endWaiting() { if state.withLock({ $0.endWaiting() }) { handle.close() } }

    // MARK: - Sending

    /// The bytes that one system call sends over a stream. Between two calls the time is looked at: while the
    /// receiver takes bytes as fast as they come, one call goes on until it has sent all of them.
    private static var pieceSize: Int { 1 << 20 }

    /// Sends all of `data` or fails (rule CS-10).
    ///
    /// - Parameters:
    ///   - address: The destination of a datagram; nil or empty: the address that the socket is connected to.
    ///   - timeout: The most seconds that the thread may be blocked; 0 or less: no limit.
    package func send(_ data: Data, to address: Data?, timeout: TimeInterval) -> CFSocketError {
        let end = timeout > 0 ? LoopClock.systemNow.advanced(bySeconds: timeout) : .never
        let turn = timeout > 0 && timeout < 1e9 ? DispatchTime.now() + timeout : DispatchTime.distantFuture
        guard sending.wait(timeout: turn) == .success else { return .timeout }
        // Once it has waited, the thread counts until it returns: each wait would otherwise make a pipe of
        // its own.
        var isCounted = false
        defer {
            if isCounted { endWaiting() }
            sending.signal()
        }
        let isStream = handle.kind == Int32(SOCK_STREAM.rawValue)
        var rest = data[...]
        var hasWaited = false
        while true {
            let outcome = state.withLock { state -> SocketCalls.Outcome in
                guard state.isValid else { return .failed(EBADF) }
                let outcome = handle.send(isStream ? rest.prefix(Self.pieceSize) : rest, to: address)
                if case .wouldBlock = outcome, !isCounted { state.beginWaiting() }
                return outcome
            }
            switch outcome {
            case .failed: return .error
            case .wouldBlock:
                isCounted = true
                // For a Unix socket that is not connected the kernel always reports room, also while the
                // receiver's queue is full.
                guard waitUntilWritable(until: end), end > LoopClock.systemNow,
                    !hasWaited || SocketCalls.pause(until: end)
                else { return .timeout }
                hasWaited = true
            case .bytes(let count):
                hasWaited = false
                if count >= rest.count { return .success }
                // A datagram is sent as a whole, or not at all.
                guard isStream, count > 0 else { return .error }
                rest = rest.dropFirst(count)
                // A receiver that takes them as fast never lets the thread wait.
                guard end > LoopClock.systemNow else { return .timeout }
            }
        }
    }
}

// The threads that wait, under the lock.
extension CFSocket.State {
    /// Counts a thread whose call is about to wait until the socket is writable, and makes the pipe, if there
    /// is none.
    ///
    /// - Parameter again: Whether the thread is counted already: no descriptor may have been left for the
    ///   pipe then.
    mutating func beginWaiting(again: Bool = false) {
        if !again { waitingThreads += 1 }
        guard wakeUp.reading < 0 else { return }
        var ends: [Int32] = [-1, -1]
        if rondo_pipe(&ends) == 0 { wakeUp = (ends[0], ends[1]) }
    }

    /// What a counted thread polls besides the socket, -1 for nothing, and when it must ask again; nil once
    /// the socket is invalid.
    mutating func nextWait() -> (wakeUp: Int32, limit: LoopInstant)? {
        guard isValid else { return nil }
        beginWaiting(again: true)
        guard wakeUp.reading < 0 else { return (wakeUp.reading, .never) }
        return (-1, LoopClock.systemNow.advanced(bySeconds: Self.longestWaitWithoutPipe))
    }

    /// The most seconds for which a thread waits at a time while no descriptor is left for the pipe that
    /// would wake it.
    private static let longestWaitWithoutPipe = 1.0

    /// Undoes `beginWaiting()`, before the thread's call returns.
    ///
    /// - Returns: Whether the thread was the last, and must close the socket's descriptor.
    mutating func endWaiting() -> Bool {
        waitingThreads -= 1
        guard waitingThreads == 0 else { return false }
        if wakeUp.reading >= 0 {
            _ = Glibc.close(wakeUp.reading)
            _ = Glibc.close(wakeUp.writing)
        }
        wakeUp = (-1, -1)
        return isClosedLater
    }

    /// Called once, so there is room in the pipe. The byte stays there, for all of the threads.
    func wakeWaitingThreads() {
        var byte: UInt8 = 0
        if wakeUp.writing >= 0 { _ = Glibc.write(wakeUp.writing, &byte, 1) }
    }
}

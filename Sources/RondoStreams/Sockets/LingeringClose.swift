// The end of a TLS connection that this side has closed, while its peer may still be sending.
//
// When bytes arrive at a closed socket, the kernel answers with a reset and discards the bytes that it has
// not sent yet. Over TLS this happens to well-behaved programs: a client that writes and closes at once
// receives the session tickets that the server sends unasked, and its own last bytes are lost. Therefore the
// last record and close_notify are sent, the connection is half closed (FIN), and arriving bytes are
// discarded until the peer has closed as well: for a limited time and a limited number of bytes, as HTTP
// servers do (RFC 9112, section 9.6).
//
// The streams have left their loops by then (rule ST-5), so the loader's loop does this.

internal import RondoCore
internal import RondoMutex

/// The orderly end of one TLS connection: waits for the peer's end before it closes the socket.
///
/// `@unchecked Sendable`: `lock` guards its variables, and the use of its socket and engine, until it is
/// over; then only `end()` uses them.
package final class LingeringClose: @unchecked Sendable {
    /// The seconds to wait for the peer's end: longer than a round trip, after which the peer has received
    /// ours. nginx waits 5 seconds for the next byte, and 30 in all.
    static let seconds = 2.0
    /// The most bytes that are discarded.
    static let byteLimit = Socket.discardLimit
    /// The most connections that linger at a time. A further one ends the one that has waited longest, first
    /// among those that have sent everything: silent peers could otherwise cut off the last bytes of all
    /// others. With the connections that the loader has in use and keeps idle, 512 and 256 unless a program
    /// sets its limits, they are fewer than the 1,024 descriptors that a process usually may open.
    static let connectionLimit = 192

    private static let connections = Mutex(LingeringConnections<LingeringClose>(limit: connectionLimit))

    /// The number of connections that linger now.
    package static var count: Int { connections.withLock { $0.count } }

    /// Taken before the locks of sources, of loops and of `connections`.
    private let lock = Mutex(())
    private let socket: Socket
    /// Nil once this side has sent everything.
    private var engine: TLSEngine?
    private var received: Int
    private var source: RunLoop.Source?
    private var timer: Timer?
    private var isOver = false

    private init(_ socket: Socket, _ engine: TLSEngine?, received: Int) {
        self.socket = socket
        self.engine = engine
        self.received = received
    }

    /// Takes over the socket and the engine, which the caller must not use any more, and closes the socket in
    /// the end.
    ///
    /// - Parameter seconds: The limit of the wait; another one only for tests.
    /// - Returns: False, with nothing taken over, if there is nothing to wait for, or no thread to do so.
    static func begin(_ socket: Socket, _ engine: TLSEngine, seconds: Double = LingeringClose.seconds) -> Bool
    {
        let hasSentCloseNotify = engine.shutdownAll() == .done
        guard !hasSentCloseNotify || engine.peerMaySpeak else { return false }
        var received = 0
        if hasSentCloseNotify {
            engine.detach()
            socket.shutdownWriting()
            guard case .more = socket.discardArrived(upTo: byteLimit, &received) else { return false }
        }
        // Without the loader's thread the connection is closed at once.
        guard let loader = try? RunLoop.startedLoader() else { return false }
        let close = LingeringClose(socket, hasSentCloseNotify ? nil : engine, received: received)
        let removed = connections.withLock { $0.insert(close, hasSentAll: hasSentCloseNotify) }
        removed?.end()
        close.start(on: loader, seconds: seconds)
        return true
    }

    /// Closes all connections that linger, whose descriptors are needed. Any thread.
    static func endAll() {
        for close in connections.withLock({ $0.all }) { close.end() }
    }

    private func start(on loader: RunLoop, seconds: Double) {
        let members = lock.withLock { _ -> (RunLoop.Source, Timer)? in
            // Another thread may have ended it already.
            guard !isOver else { return nil }
            let (source, timer) = (makeSource(), makeTimer(seconds))
            (self.source, self.timer) = (source, timer)
            return (source, timer)
        }
        guard let (source, timer) = members else { return }
        loader.add(source, forMode: .default)
        loader.add(timer, forMode: .default)
    }

    private func makeSource() -> RunLoop.Source {
        let source = RunLoop.Source(
            fileDescriptor: socket.descriptor, keepsFile: true, interest: engine == nil ? .read : .write
        ) { [self] source, _ in if source.isValid { turn() } else { end() } }
        source.label = "closing"
        return source
    }

    private func makeTimer(_ seconds: Double) -> Timer {
        // By the machine's clock, like the loader's: the calling thread's loop may have a test's clock.
        let limit = LoopClock.systemDate(inSeconds: seconds)
        return Timer(fire: limit, interval: 0, repeats: false) { [self] _ in end() }
    }

    private func turn() {
        if lock.withLock({ _ in advance() }) { end() }
    }

    /// Sends and discards what it can, under the lock.
    ///
    /// - Returns: Whether there is nothing more to wait for.
    private func advance() -> Bool {
        guard !isOver else { return false }
        if let engine {
            guard engine.shutdownAll() == .done else { return false }
            engine.detach()
            self.engine = nil
            Self.connections.withLock { $0.noteSentAll(self) }
            socket.shutdownWriting()
            source?.interest = .read
        }
        if case .more = socket.discardArrived(upTo: Self.byteLimit, &received) { return false }
        return true
    }

    /// Any thread.
    private func end() {
        let isFirst = lock.withLock { _ in
            defer { isOver = true }
            return !isOver
        }
        guard isFirst else { return }
        timer?.invalidate()
        // Before the descriptor is closed, whose number another file may get at once (rule SRC-27).
        source?.invalidate()
        source = nil
        engine?.detach()
        socket.close()
        Self.connections.withLock { $0.remove(self) }
    }
}

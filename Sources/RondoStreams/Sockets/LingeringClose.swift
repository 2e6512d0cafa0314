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
/// `@unchecked Sendable`: from `begin` on only the loader's thread uses it with its socket and engine. Values
/// set before are visible there because of the lock under which the loop adds its members.
package final class LingeringClose: @unchecked Sendable {
    /// The seconds to wait for the peer's end: longer than a round trip, after which the peer has received
    /// ours. nginx waits 5 seconds for the next byte, and 30 in all.
    static let seconds = 2.0
    /// The most bytes that are discarded.
    static let byteLimit = Socket.discardLimit
    /// The most connections that linger at a time; further ones are closed at once.
    static let connectionLimit = 1_024

    private static let connections = Mutex(0)

    /// The number of connections that linger now.
    package static var count: Int { connections.withLock { $0 } }

    private let socket: Socket
    /// Nil once this side has sent everything.
    private var engine: TLSEngine?
    private var received: Int
    private var source: RunLoop.Source?
    private var timer: Timer?

    private init(_ socket: Socket, _ engine: TLSEngine?, received: Int) {
        self.socket = socket
        self.engine = engine
        self.received = received
    }

    /// Takes over the socket and the engine, which the caller must not use any more, and closes the socket in
    /// the end.
    ///
    /// - Returns: False, with nothing taken over, if there is nothing to wait for, or no thread or room to do
    ///   so.
    static func begin(_ socket: Socket, _ engine: TLSEngine) -> Bool {
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
        let isFull = connections.withLock { count in
            guard count < connectionLimit else { return true }
            count += 1
            return false
        }
        guard !isFull else { return false }
        LingeringClose(socket, hasSentCloseNotify ? nil : engine, received: received).start(on: loader)
        return true
    }

    private func start(on loader: RunLoop) {
        let source = RunLoop.Source(
            fileDescriptor: socket.descriptor, keepsFile: true, interest: engine == nil ? .read : .write
        ) { [self] source, _ in if source.isValid { turn() } else { end() } }
        source.label = "closing"
        // By the machine's clock, like the loader's: the calling thread's loop may have a test's clock.
        let limit = LoopClock.systemDate(inSeconds: Self.seconds)
        let timer = Timer(fire: limit, interval: 0, repeats: false) { [self] _ in end() }
        (self.source, self.timer) = (source, timer)
        loader.add(source, forMode: .default)
        loader.add(timer, forMode: .default)
    }

    private func turn() {
        if let engine {
            guard engine.shutdownAll() == .done else { return }
            engine.detach()
            self.engine = nil
            socket.shutdownWriting()
            source?.interest = .read
        }
        guard case .more = socket.discardArrived(upTo: Self.byteLimit, &received) else { return end() }
    }

    private func end() {
        guard let source else { return }
        self.source = nil
        timer?.invalidate()
        // Before the descriptor is closed, whose number another file may get at once (rule SRC-27).
        source.invalidate()
        engine?.detach()
        socket.close()
        Self.connections.withLock { $0 -= 1 }
    }
}

// A connection over TLS that this side has closed, and whose peer may be speaking still.
//
// A socket that is closed while bytes are on their way to it answers them with a reset, and forgets what it
// had yet to send itself. Over TLS that happens to well-behaved programs: a client that writes and closes at
// once meets the session tickets that the server sends unasked, and its last bytes are lost. So the last record
// and close_notify are sent, the connection is half closed (FIN), and what comes is thrown away until the
// peer has closed as well: for a bounded time and a bounded number of bytes, as HTTP servers do (RFC 9112,
// section 9.6).
//
// The streams have left their loops by then (rule ST-5), so it is done by the loader's.

internal import RondoCore
internal import RondoMutex

/// The orderly end of one connection over TLS: waits for the peer's end before it closes the socket.
///
/// `@unchecked Sendable`: from `begin` on it is used by the loader's thread alone, its socket and engine as
/// well; values set before are seen there because of the lock that the loop's members are behind.
package final class LingeringClose: @unchecked Sendable {
    /// How long it waits for the peer's end, in seconds: longer than a round trip, since then the peer has
    /// heard. nginx waits 5 seconds for the next byte, and 30 in all.
    static let seconds = 2.0
    /// How many bytes it throws away.
    static let byteLimit = Socket.discardLimit
    /// How many connections do so at a time; beyond that they are closed at once.
    static let connectionLimit = 1_024

    private static let connections = Mutex(0)

    /// How many connections do so now.
    package static var count: Int { connections.withLock { $0 } }

    private let socket: Socket
    /// Nil once this side has said all.
    private var engine: TLSEngine?
    private var received: Int
    private var source: RunLoop.Source?
    private var timer: Timer?

    private init(_ socket: Socket, _ engine: TLSEngine?, received: Int) {
        self.socket = socket
        self.engine = engine
        self.received = received
    }

    /// Takes over the socket and the engine, which the caller must not use any more, and closes the socket in the end.
    ///
    /// - Returns: False: there is nothing to wait for, and nothing was taken over.
    static func begin(_ socket: Socket, _ engine: TLSEngine) -> Bool {
        let hasSaidAll = engine.shutdownAll() == .done
        guard !hasSaidAll || engine.peerMaySpeak else { return false }
        var received = 0
        if hasSaidAll {
            engine.detach()
            socket.shutdownWriting()
            guard case .more = socket.discardArrived(upTo: byteLimit, &received) else { return false }
        }
        // Without a thread for it, the connection is closed at once.
        guard let loader = try? RunLoop.startedLoader() else { return false }
        let isFull = connections.withLock { count in
            guard count < connectionLimit else { return true }
            count += 1
            return false
        }
        guard !isFull else { return false }
        LingeringClose(socket, hasSaidAll ? nil : engine, received: received).start(on: loader)
        return true
    }

    private func start(on loader: RunLoop) {
        let source = RunLoop.Source(
            fileDescriptor: socket.descriptor, keepsFile: true, interest: engine == nil ? .read : .write
        ) { [self] source, _ in if source.isValid { turn() } else { end() } }
        source.label = "closing"
        // By the machine's clock, as the loader's are: that of the calling thread's loop may be a test's.
        let limit = LoopClock.machineDate(inSeconds: Self.seconds)
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
        // Before the descriptor is closed: its number may be another one's at once (rule SRC-27).
        source.invalidate()
        engine?.detach()
        socket.close()
        Self.connections.withLock { $0 -= 1 }
    }
}

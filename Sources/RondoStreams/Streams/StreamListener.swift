// Accepts connections on a run loop and hands out stream pairs.
//
// A descriptor source in the listener's modes accepts connections and passes each to the program, only a few
// in a row, so that other sources are served in between. When descriptors run out, the connection stays in
// the kernel's queue, and the listening descriptor would be ready again at once, over and over. The source
// therefore watches nothing for a while (`pauseSeconds`), and a timer in the same modes makes it watch again.
//
// Threads: the listener belongs to the thread of its loop, like a stream; there is no lock.

public import RondoCore

/// Accepts TCP or Unix-domain connections on a run loop, in the modes it is scheduled in, and makes a pair of
/// streams for each.
///
/// It listens from its `init` on: peers can connect, and wait in the kernel's queue until the loop runs in a
/// scheduled mode. Each connection is passed to `onConnection`; its streams are neither opened nor scheduled.
/// (Apple has no public class of this kind; `NetService` hands out its connections in the same way.)
///
/// To accept on several threads, make several listeners on one port (`Configuration.sharesPort`), one for
/// each thread's loop.
/// - Note: Not Sendable. It is used on the thread of its loop only.
public final class StreamListener {
    /// The settings of a listener and of the connections that it accepts.
    public struct Configuration: Sendable {
        /// The most connections that the kernel holds until they are accepted, up to its own limit
        /// (`net.core.somaxconn`, usually 4,096). Further peers wait, or are refused.
        public var backlog = 4_096
        /// Whether a port can be used while its former connections are still closing (`SO_REUSEADDR`).
        public var reusesAddress = true
        /// Whether other listeners of this user may use the same port, if they set this too; the kernel
        /// distributes connections among them (`SO_REUSEPORT`).
        public var sharesPort = false
        /// Whether a listener on an IPv6 address accepts IPv4 as well, where the address is "::".
        public var acceptsIPv4 = true
        /// Whether the file of a Unix socket on which no process listens any more is replaced. A socket in
        /// use, and a file that is no socket, is never touched.
        public var replacesStaleSocket = true
        /// The permissions of a Unix socket's file, such as 0o600; nil: those that the process's umask
        /// leaves.
        public var permissions: UInt32?
        /// The TLS settings of the connections; nil: plain text. This side is the server, whatever `role`
        /// says.
        public var tls: TLSSettings?
        /// The options of the connections' sockets. Their connect timeout limits the TLS handshake, if it is
        /// shorter than `handshakeTimeout`.
        public var socketOptions = SocketOptions()
        /// The most seconds that a peer may take for the TLS handshake; then the streams fail (`ETIMEDOUT`).
        /// 30 by default; nil: no limit. The time that a trust handler takes does not count.
        public var handshakeTimeout: TimeInterval? = 30
        /// The most handshakes that may be unfinished at a time, 1,024 by default. With each one beyond, the
        /// oldest is dropped and its streams fail (`ECONNABORTED`). An unfinished handshake takes about 50
        /// KB. New peers are not made to wait instead, because then as many silent peers as the limit would
        /// keep all others out.
        public var maximumUnfinishedHandshakes = 1_024

        public init() {}
    }

    /// A connection that was accepted: two streams, neither opened nor scheduled.
    ///
    /// It can be passed to another thread, or to a task, as a whole; from then on the program must use it
    /// there alone.
    ///
    /// `@unchecked Sendable`: the listener keeps no reference to the streams, no loop has them yet, and their
    /// shared state has a lock (SocketPair).
    public struct Connection: @unchecked Sendable {
        public let input: InputStream
        public let output: OutputStream
        /// Nil for a Unix socket, and if the kernel has named no address of a family that Rondo knows.
        fileprivate let peer: SocketAddress?

        /// The peer's address, such as "192.0.2.7"; empty for a Unix socket, which usually has no name.
        public var remoteHost: String { peer?.host ?? "" }
        /// The peer's port; 0 for a Unix socket.
        public var remotePort: Int { Int(peer?.port ?? 0) }
    }

    /// The seconds for which nothing is accepted after descriptors or memory have run out: long enough to
    /// cost no CPU, and short compared with the time that a client waits.
    static let pauseSeconds: TimeInterval = 0.1
    /// The most connections that are accepted for one readiness of the socket; the others wait for the next
    /// one, so that other sources are served in between.
    static let connectionsPerReadiness = 16

    /// Called for each connection, on the loop's thread, in a scheduled mode. A connection whose streams are
    /// released is closed. Nil: each connection is closed as soon as it is accepted.
    public var onConnection: ((sending Connection) -> Void)?
    /// Called when accepting pauses because descriptors or memory have run out, and when the listener has
    /// failed and closed itself, which `isListening` tells. On the loop's thread.
    public var onTrouble: ((any Error) -> Void)?

    private let configuration: Configuration
    private let socket: ListeningSocket
    private let settings: SocketSettings
    private var source: RunLoop.Source?
    private var pause: Timer?
    private var loop: RunLoop?
    private var modes: [RunLoop.Mode] = []

    // MARK: - Making

    /// Listens on a TCP port.
    ///
    /// - Parameters:
    ///   - port: 0 to 65,535; 0 takes a free port, which the property `port` returns.
    ///   - host: The local address to listen on, numeric ("127.0.0.1", "::1") or "localhost", which stands
    ///     for 127.0.0.1. Nil: all addresses, of IPv6 and, unless the configuration says no, of IPv4.
    /// - Throws: An `NSError` of `NSPOSIXErrorDomain` with a description: `EADDRINUSE`, `EACCES`,
    ///   `EADDRNOTAVAIL` and so on; `EINVAL` for a number that is no port, or a text that is no address.
    public convenience init(
        port: Int, host: String? = nil, configuration: Configuration = Configuration()
    ) throws {
        guard let number = UInt16(exactly: port) else {
            throw Self.error(EINVAL, "\(port) is not a port; ports are numbers from 0 to 65535")
        }
        let addresses: [SocketAddress]
        switch host {
        // A machine may have no IPv6.
        case nil: addresses = [.ipv6(high: 0, low: 0, port: number, scope: 0), .ipv4(0, port: number)]
        case "localhost": addresses = [.loopback(port: number)]
        case let host?:
            let name = Resolver.withoutBrackets(host)
            guard let address = Resolver.numeric(host: name, port: number) else {
                throw Self.error(
                    EINVAL,
                    "“\(host)” is not an address to listen on: give a numeric one, or “localhost”")
            }
            addresses = [address]
        }
        try self.init(on: addresses, configuration)
    }

    /// Listens on a Unix-domain socket. Its file is made here, and removed when the listener is closed.
    ///
    /// - Parameter path: At most 107 bytes. A path that begins with a NUL is a name in Linux's abstract
    ///   namespace, and makes no file.
    /// - Throws: An `NSError` of `NSPOSIXErrorDomain` with a description: `EADDRINUSE` if a process listens
    ///   there or a file is in the way, `ENOENT`, `EACCES`, `ENAMETOOLONG` and so on.
    public convenience init(unixPath path: String, configuration: Configuration = Configuration()) throws {
        try self.init(on: [.unix(path: path)], configuration)
    }

    /// Listens on the first address of a family that this machine has.
    private init(on addresses: [SocketAddress], _ configuration: Configuration) throws {
        self.configuration = configuration
        settings =
            SocketSettings.standard.changed {
                $0.tls = configuration.tls
                $0.tls?.role = .server
                $0.options = configuration.socketOptions
                $0.handshakes = UnfinishedHandshakes(
                    limit: configuration.maximumUnfinishedHandshakes, seconds: configuration.handshakeTimeout)
            }
        var found: ListeningSocket?
        for (index, address) in addresses.enumerated() where found == nil {
            do throws(SocketError) {
                found = try ListeningSocket(address, configuration)
            } catch {
                let isMissing = error.code == EAFNOSUPPORT || error.code == EADDRNOTAVAIL
                guard isMissing, index < addresses.count - 1 else {
                    throw Self.error(error.code, error.description)
                }
            }
        }
        guard let found else { throw Self.error(EINVAL, "there is no address to listen on") }
        socket = found
        makeSource(interest: .read)
    }

    private static func error(_ code: Int32, _ description: String) -> any Error {
        NSError.posix(code, description)
    }

    private func makeSource(interest: RunLoop.Source.Interest) {
        let reference = WeakListener(listener: self)
        let source = RunLoop.Source(
            fileDescriptor: socket.descriptor, keepsFile: true, interest: interest
        ) { source, _ in
            if let code = source.refusalCode {
                reference.listener?.replaceRefusedSource(code)
                return
            }
            // The listener is not kept from one connection to the next: a callback may have released it.
            for _ in 0..<StreamListener.connectionsPerReadiness {
                guard reference.listener?.accept() ?? false else { return }
            }
        }
        source.label = "listener on \(socket.address)"
        self.source = source
    }

    /// A weak reference from the loop's callbacks to the listener.
    ///
    /// `@unchecked Sendable`: used on the loop's thread only, as the listener is.
    private struct WeakListener: @unchecked Sendable {
        weak var listener: StreamListener?
    }

    deinit { close() }

    // MARK: - State

    /// The port that the listener listens on; 0 for a Unix socket.
    public var port: Int { Int(socket.address.port ?? 0) }

    /// The address that the listener listens on: "127.0.0.1:8080", "[::]:8080", "unix:/run/app.sock".
    public var address: String { socket.address.description }

    /// False once the listener was closed, or has failed.
    public var isListening: Bool { socket.descriptor >= 0 }

    /// Whether the listener waits for descriptors or memory to become free.
    public var isPaused: Bool { pause != nil }

    /// Why no connection was handed out, in a sentence and as a reason (see `DeliveryObstacle`). The thread
    /// of the listener's loop may ask.
    public var whyNotDelivering: DeliveryObstacle {
        guard let source else { return DeliveryObstacle.invalid }
        let obstacle = source.whyNotDelivering
        // While accepting pauses, the interest of the source is empty.
        guard isPaused, obstacle.reason == .waitsForNothing || obstacle.reason == .busy else {
            return obstacle
        }
        return .pausedAccepting
    }

    // MARK: - Schedule

    /// Accepts connections on the thread of `aRunLoop` while it runs in `mode`; several modes, or `.common`,
    /// are allowed. All must be modes of one loop: a second loop traps, unless the first one's thread has
    /// ended.
    public func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        guard let source else { return }
        // The thread's end has taken the source out of the modes.
        if let loop, !loop.isAlive { (self.loop, modes) = (nil, []) }
        if let loop, loop !== aRunLoop {
            // Not a precondition: in release builds its message would be lost.
            fatalError(
                "A StreamListener accepts on one run loop. For connections on several threads make several "
                    + "listeners whose configuration says sharesPort.")
        }
        guard !modes.contains(mode) else { return }
        loop = aRunLoop
        modes.append(mode)
        aRunLoop.add(source, forMode: mode)
        if let pause { aRunLoop.add(pause, forMode: mode) }
    }

    /// Undoes `schedule(in:forMode:)`; peers wait meanwhile.
    public func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        guard let source, let index = modes.firstIndex(of: mode), loop === aRunLoop else { return }
        modes.remove(at: index)
        aRunLoop.remove(source, forMode: mode, keeping: modes.map { LoopMode(loop: aRunLoop, mode: $0) })
        if let pause {
            aRunLoop.remove(pause, forMode: mode)
            // A mode that another name stands for too takes it back.
            for remaining in modes { aRunLoop.add(pause, forMode: remaining) }
        }
        if modes.isEmpty { loop = nil }
    }

    /// Ends listening: peers are refused from now on, those not yet accepted are disconnected, and a Unix
    /// socket's file is removed. Connections that were handed out stay open.
    public func close() {
        pause?.invalidate()
        pause = nil
        // Before the descriptor is closed, whose number another file may get at once (rule SRC-27).
        source?.invalidate()
        source = nil
        loop = nil
        modes = []
        socket.close()
    }

    // MARK: - Accepting

    /// Accepts one connection.
    ///
    /// - Returns: Whether another one may be accepted for the same readiness.
    private func accept() -> Bool {
        switch socket.accept() {
        case .connection(let accepted, let peer):
            hand(accepted, from: peer)
            // The callback may have closed the listener, or taken it out of the mode.
            return isInRunningMode
        case .none: return false
        case .lost: return true
        case .exhausted(let code):
            startPause(code)
            return false
        case .failed(let code):
            let error = Self.error(
                code, SocketError(code: code, operation: .accept, address: socket.address).description)
            close()
            onTrouble?(error)
            return false
        }
    }

    private var isInRunningMode: Bool {
        let loop = RunLoop.currentLoop()
        guard let source, let mode = loop.currentMode else { return false }
        return source.isIn(loop, mode)
    }

    private func hand(_ accepted: Socket, from peer: SocketAddress?) {
        guard let onConnection else { return }
        let pair = SocketPair(.socket(accepted))
        pair.settings = settings
        onConnection(
            Connection(
                input: InputStream(pair), output: OutputStream(pair),
                peer: peer?.port == nil ? nil : peer?.unmapped))
    }

    /// Makes a new source after the kernel has refused to watch the socket, for example for lack of memory;
    /// it is watched after a pause.
    private func replaceRefusedSource(_ code: Int32) {
        makeSource(interest: [])
        guard let source else { return }
        for mode in modes { loop?.add(source, forMode: mode) }
        startPause(code)
    }

    private func startPause(_ code: Int32) {
        source?.interest = []
        let reference = WeakListener(listener: self)
        let timer = Timer(timeInterval: Self.pauseSeconds, repeats: false) { _ in
            reference.listener?.endPause()
        }
        pause = timer
        for mode in modes { loop?.add(timer, forMode: mode) }
        onTrouble?(
            Self.error(code, SocketError(code: code, operation: .accept, address: socket.address).description)
        )
    }

    private func endPause() {
        pause = nil
        source?.interest = .read
    }
}

@available(*, unavailable)
extension StreamListener: Sendable {}

extension DeliveryObstacle {
    static let pausedAccepting = DeliveryObstacle(
        reason: .waits,
        description: "it waits for descriptors or memory, which have run out, and soon tries again")
}

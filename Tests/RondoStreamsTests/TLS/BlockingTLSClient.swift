import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// The longest that a test waits for a peer, in milliseconds; only a failure gets there.
let patience: Int32 = 30_000

struct PeerIsSilent: Error {}

/// For `socket` and `socketpair`: programs that another test starts must not inherit the descriptor, or it
/// would not be closed when this test closes it.
let closeOnExec = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)

func wait(_ descriptor: Int32, for events: Int32) throws {
    var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    while true {
        let count = poll(&entry, 1, patience)
        if count > 0 { return }
        guard count < 0, errno == EINTR else { throw PeerIsSilent() }
    }
}

func waitUntilWritable(_ socket: Socket) throws { try wait(socket.descriptor, for: POLLOUT) }

/// A listening socket on loopback from which nothing is accepted: the kernel completes the connections.
final class TestListener: Sendable {
    let descriptor: Int32
    let address: SocketAddress

    /// - Parameter backlog: How many connections wait; 0 is one, and the next client is not answered.
    init(backlog: Int32 = 8) throws {
        let descriptor = socket(AF_INET, closeOnExec, 0)
        self.descriptor = descriptor
        let bound = SocketAddress.loopback(port: 0).withSockaddr { bytes in
            let address = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress
            return bind(descriptor, address, socklen_t(bytes.count))
        }
        guard bound == 0, listen(descriptor, backlog) == 0 else { throw PeerIsSilent() }
        var storage = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(descriptor, $0, &size) }
        }
        guard let address = withUnsafeBytes(of: storage, { SocketAddress(sockaddr: $0) }) else {
            throw PeerIsSilent()
        }
        self.address = address
    }

    deinit { close(descriptor) }

    var port: UInt16 { address.port! }

    /// Waits for a connection; the descriptor is the caller's.
    func accept() -> Int32 {
        let peer = Foundation.accept(descriptor, nil, nil)
        _ = fcntl(peer, F_SETFD, FD_CLOEXEC)
        return peer
    }

    /// Whether a client has connected and was not accepted yet.
    var hasConnection: Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) > 0
    }
}

/// A listening socket whose queue is full: the next client is neither accepted nor refused.
final class SilentListener: Sendable {
    private let listener: TestListener
    /// The clients that fill the queue.
    private let filling: [Int32]

    init() throws {
        let listener = try TestListener(backlog: 0)
        self.listener = listener
        filling = try (0..<2).map { _ in try PlainSocket.connecting(to: Int(listener.port)) }
    }

    deinit { for descriptor in filling { close(descriptor) } }

    var port: UInt16 { listener.port }
    var address: SocketAddress { listener.address }
}

/// Drives an engine with poll(2), on the thread that asks.
final class BlockingTLSClient {
    let socket: Socket
    let engine: TLSEngine
    /// The server, which ends with the client.
    private let process: TestServerProcess?

    init(
        port: UInt16, settings: TLSSettings = .test, host: String = "localhost",
        keeping process: TestServerProcess? = nil, sessions: TLSSessionCache = .shared,
        context: TLSContext? = nil
    ) throws {
        self.process = process
        socket = try Socket.connecting(to: .loopback(port: port))
        try waitUntilWritable(socket)
        try #require(try socket.finishConnecting())
        engine = try TLSEngine(
            context: try context ?? TLSContext.shared(for: settings), descriptor: socket.descriptor,
            hostName: host,
            port: Int(port), sessions: sessions)
    }

    /// A client of `openssl s_server` with such a certificate, which has finished the handshake and exchanged a line.
    /// The server has ended.
    @discardableResult
    static func connected(
        to kind: TestCertificates.Kind = .good, _ settings: TLSSettings = .test, options: [String] = [],
        host: String = "localhost"
    ) throws -> BlockingTLSClient {
        let (server, port) = try OpenSSLServer.start(kind, options)
        defer { server.terminate() }
        let client = try BlockingTLSClient(port: port, settings: settings, host: host)
        try client.handshake()
        try client.exchangeLine()
        return client
    }

    /// The server's side of a connection that was accepted.
    init(accepted descriptor: Int32, settings: TLSSettings) throws {
        process = nil
        socket = try Socket(adopting: descriptor)
        engine = try TLSEngine(
            context: try TLSContext.shared(for: settings), descriptor: socket.descriptor,
            hostName: "the client")
    }

    /// - Parameter answer: Called with the questions that come up; it answers at once.
    func handshake(_ answer: ((TLSEngine.Question) -> Void)? = nil) throws {
        while true {
            switch try engine.handshake() {
            case .done: return
            case .waits:
                guard let answer, let question = engine.takeQuestion(whenDecided: {}) else {
                    throw PeerIsSilent()
                }
                answer(question)
            case .wantsRead: try wait(socket.descriptor, for: POLLIN)
            case .wantsWrite: try wait(socket.descriptor, for: POLLOUT)
            }
        }
    }

    func write(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            switch try rest.withUnsafeBytes({ try engine.write($0) }) {
            case .bytes(let count): rest = rest.dropFirst(count)
            case .wantsRead: try wait(socket.descriptor, for: POLLIN)
            case .wantsWrite: try wait(socket.descriptor, for: POLLOUT)
            }
        }
        try flush()
    }

    /// Sends a line to `openssl s_server`, which sends it back reversed.
    ///
    /// The answer shows that the server has accepted the client, which it may refuse in TLS 1.3 after the client has
    /// finished the handshake, and brings the tickets of TLS 1.3.
    func exchangeLine() throws {
        try write(Array("ab\n".utf8))
        let answer = try read(exactly: 3)
        #expect(answer == Array("ba\n".utf8))
    }

    func flush() throws {
        while true {
            switch try engine.flush() {
            case .done: return
            case .wantsRead: try wait(socket.descriptor, for: POLLIN)
            case .wantsWrite: try wait(socket.descriptor, for: POLLOUT)
            }
        }
    }

    /// Reads until there is something, or the end.
    func read(_ capacity: Int = 65_536) throws -> (TLSEngine.ReadResult, [UInt8]) {
        var buffer = [UInt8](repeating: 0, count: capacity)
        while true {
            let result = try buffer.withUnsafeMutableBytes { try engine.read(into: $0) }
            switch result {
            case .bytes(let count): return (result, Array(buffer.prefix(count)))
            case .wantsRead: try wait(socket.descriptor, for: POLLIN)
            case .wantsWrite: try wait(socket.descriptor, for: POLLOUT)
            case .end, .truncated: return (result, [])
            }
        }
    }

    /// Reads exactly so many bytes, in pieces of at most `capacity`.
    func read(exactly count: Int, capacity: Int = 65_536) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let (result, piece) = try read(min(capacity, count - bytes.count))
            guard case .bytes = result else { break }
            bytes += piece
        }
        return bytes
    }

    /// Reads to the end; which of the two ends it was, and the bytes before.
    func readToEnd(capacity: Int = 65_536) throws -> (TLSEngine.ReadResult, [UInt8]) {
        var bytes: [UInt8] = []
        while true {
            let (result, piece) = try read(capacity)
            guard case .bytes = result else { return (result, bytes) }
            bytes += piece
        }
    }
}

extension TLSSettings {
    /// Trusts the tests' own authority.
    static var test: TLSSettings {
        var settings = TLSSettings()
        settings.certificateAuthorities = [.file(TestCertificates.shared.authorityPath)]
        return settings
    }

    static func test(_ change: (inout TLSSettings) -> Void) -> TLSSettings {
        var settings = test
        change(&settings)
        return settings
    }
}

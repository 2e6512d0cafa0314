import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// CFSocket: what blocks the calling thread.
@Suite(.timeLimit(.minutes(2)), .leavesNothing) struct SocketSendingTests {
    private static func tcp(_ types: CFSocketCallBackType = [], _ callout: CFSocketCallBack? = nil)
        -> CFSocket
    {
        CFSocketCreate(nil, PF_INET, SOCK_STREAM, IPPROTO_TCP, types.rawValue, callout, nil)
    }

    /// A port of 127.0.0.1 where the kernel's queue of connections is full: it answers no one.
    private final class SilentPort {
        let port: UInt16
        private let descriptors: [Int32]

        init() {
            let listener = Rondo.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            let address = loopbackAddress()
            var size = socklen_t(address.length)
            _ = bind(listener, address.bytes.assumingMemoryBound(to: sockaddr.self), size)
            _ = listen(listener, 0)
            var own = sockaddr_in()
            withUnsafeMutablePointer(to: &own) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(listener, $0, &size) }
            }
            port = UInt16(bigEndian: own.sin_port)
            let to = loopbackAddress(port)
            // Not waited for: the second or third is not answered.
            descriptors =
                [listener]
                + (0..<3).map { _ in
                    let client = Rondo.socket(
                        AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
                    _ = connect(client, to.bytes.assumingMemoryBound(to: sockaddr.self), socklen_t(to.length))
                    return client
                }
        }

        deinit { for descriptor in descriptors { close(descriptor) } }
    }

    @Test func `CS-9 connecting with a timeout blocks, and runs no callback`() throws {
        let refused = try RefusedPort()
        let log = EventLog()
        try onLoopThread { _ in
            guard let stranger = try? SocketStranger.start(.server),
                let theirs = try? stranger.port(after: "PORT ")
            else { return }
            let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0, 0, 0) { _ in
                log.note("timer")
            }
            CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, .commonModes)
            let good = Self.tcp(.connectCallBack) { _, _, _, _, _ in log.note("connect") }
            schedule(good)
            #expect(CFSocketConnectToAddress(good, loopbackAddress(theirs), 10) == .success)
            // It is connected.
            #expect(CFSocketConnectToAddress(good, loopbackAddress(theirs), 10) == .error)
            let bad = Self.tcp()
            #expect(CFSocketConnectToAddress(bad, loopbackAddress(refused.port), 10) == .error)
            #expect(CFSocketConnectToAddress(bad, NSData(), 10) == .error)
            let silent = SilentPort()
            let late = Self.tcp()
            #expect(CFSocketConnectToAddress(late, loopbackAddress(silent.port), 0.05) == .timeout)
            #expect(log.entries.isEmpty)
            passes(2)
            #expect(log.entries == ["timer"])
            // 0 is no time limit.
            let patient = Self.tcp()
            #expect(CFSocketConnectToAddress(patient, loopbackAddress(refused.port), 0) == .error)
            for socket in [good, bad, late, patient] { CFSocketInvalidate(socket) }
        }
        #expect(log.entries == ["timer"])
    }

    /// A name for a Unix socket in the abstract space.
    private static func abstractAddress() -> NSData {
        var bytes = Data([UInt8(AF_UNIX), 0, 0])
        bytes.append(Data("rondo \(getpid()) \(UInt64.random(in: 0 ... .max))".utf8))
        return NSData(data: bytes)
    }

    /// A Unix socket, in the abstract space, where as many wait to be accepted as may.
    private final class BusyUnixSocket: @unchecked Sendable {
        // `@unchecked Sendable`: nothing of it changes, the address' bytes neither.
        let address: NSData
        private let listener: Int32
        private let waiting: [Int32]

        init() throws {
            address = SocketSendingTests.abstractAddress()
            let start = address.bytes.assumingMemoryBound(to: sockaddr.self)
            let size = socklen_t(address.length)
            listener = Rondo.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            try #require(bind(listener, start, size) == 0 && listen(listener, 0) == 0)
            var waiting: [Int32] = []
            while true {
                let client = Rondo.socket(
                    AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
                guard connect(client, start, size) == 0 else {
                    close(client)
                    break
                }
                waiting.append(client)
            }
            self.waiting = waiting
            try #require(!waiting.isEmpty)
        }

        func acceptAll() { for _ in waiting { close(accept(listener, nil, nil)) } }

        deinit { for descriptor in waiting + [listener] { close(descriptor) } }
    }

    @Test func `CS-9 connecting waits for room in the queue of a Unix socket`() throws {
        let server = try BusyUnixSocket()
        let socket: CFSocket = CFSocketCreate(nil, PF_UNIX, SOCK_STREAM, 0, 0, nil, nil)
        #expect(CFSocketConnectToAddress(socket, server.address, 0.05) == .timeout)
        #expect(CFSocketConnectToAddress(socket, server.address, -1) == .error)
        let waiting = LoopThread { _ in CFSocketConnectToAddress(socket, server.address, 20) }
        server.acceptAll()
        #expect(try waiting.value() == .success)
        CFSocketInvalidate(socket)
        // Nor is an invalid socket waited for.
        let full = try BusyUnixSocket()
        let other: CFSocket = CFSocketCreate(nil, PF_UNIX, SOCK_STREAM, 0, 0, nil, nil)
        let isIn = Latch()
        let ended = LoopThread { _ in
            isIn.open()
            return CFSocketConnectToAddress(other, full.address, 0)
        }
        try isIn.wait()
        CFSocketInvalidate(other)
        #expect(try ended.value() == .error)
    }

    @Test func `CS-9 connecting with a negative timeout returns at once`() throws {
        let silent = SilentPort()
        let socket = Self.tcp()
        #expect(CFSocketConnectToAddress(socket, loopbackAddress(silent.port), -1) == .success)
        #expect(CFSocketCopyPeerAddress(socket) == nil)
        CFSocketInvalidate(socket)
        #expect(CFSocketConnectToAddress(socket, loopbackAddress(silent.port), -1) == .error)
    }

    /// Takes away the flag that closes the descriptor with the socket.
    private static func keepOpen(_ socket: CFSocket) {
        CFSocketSetSocketFlags(socket, CFSocketGetSocketFlags(socket) & ~kCFSocketCloseOnInvalidate)
    }

    @Test(arguments: [true, false])
    func `CS-9 a thread that waits for a connection goes on when the socket is invalidated`(closes: Bool)
        throws
    {
        let silent = SilentPort()
        let port = silent.port
        let socket = Self.tcp()
        if !closes { Self.keepOpen(socket) }
        let native = CFSocketGetNative(socket)
        let waiting = LoopThread { _ in CFSocketConnectToAddress(socket, loopbackAddress(port), 0) }
        // SYN_SENT: the thread is inside.
        try waitFor("the attempt to connect") {
            var state: UInt8 = 0
            var size = socklen_t(1)
            getsockopt(native, Int32(IPPROTO_TCP), TCP_INFO, &state, &size)
            return state == 2 ? () : nil
        }
        CFSocketInvalidate(socket)
        #expect(try waiting.value() == .error)
        #expect(isOpen(native) != closes)
        if !closes { close(native) }
    }

    /// Waits until the kernel has no room for more bytes.
    private static func waitUntilFull(_ descriptor: Int32) throws {
        try waitFor("a buffer that is full") {
            var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            return poll(&request, 1, 0) == 0 ? () : nil
        }
    }

    @Test func `CS-10 all bytes are sent, and those of two threads do not mix`() throws {
        let stranger = try SocketStranger.start(.server)
        let theirs = try stranger.port(after: "PORT ")
        let socket = Self.tcp()
        // The kernel holds less than one of them has to send.
        var room: Int32 = 65_536
        let native = CFSocketGetNative(socket)
        setsockopt(native, SOL_SOCKET, SO_SNDBUF, &room, 4)
        #expect(CFSocketConnectToAddress(socket, loopbackAddress(theirs), 10) == .success)
        let length = 4_000_000
        let numbers = Mutex<[pid_t]>([])
        let threads = [UInt8(ascii: "A"), UInt8(ascii: "B")].map { letter in
            LoopThread { _ in
                let data = Data(repeating: letter, count: length) as CFData
                numbers.withLock { $0.append(threadNumber()) }
                return CFSocketSendData(socket, nil, data, 20)
            }
        }
        try Self.waitUntilFull(native)
        // One waits for room, and the other one, which has begun as well, for it.
        try waitFor("both threads to wait") {
            numbers.withLock { $0.count == 2 && $0.allSatisfy { isAsleep(thread: $0) } } ? () : nil
        }
        stranger.tell("drain")
        for thread in threads { #expect(try thread.value() == .success) }
        #expect(CFSocketSendData(socket, nil, NSData(), 0) == .success)
        CFSocketInvalidate(socket)
        let runs = try stranger.line(after: "RUNS ").split(separator: " ").sorted()
        #expect(runs == ["A\(length)", "B\(length)"])
        #expect(CFSocketSendData(socket, nil, NSData(), 0) == .error)
    }

    @Test func `CS-10 sending fails when its time is up`() throws {
        let (near, far) = try socketPair()
        let socket = noted(near, [], ContextNotes())
        let data = Data(count: 10_000_000) as CFData
        #expect(CFSocketSendData(socket, nil, data, 0.05) == .timeout)
        // Another thread has no end of its own, until the socket is invalidated, or the peer has gone.
        let waiting = LoopThread { _ in CFSocketSendData(socket, nil, Data(count: 10_000_000) as CFData, 0) }
        let second = LoopThread { _ in CFSocketSendData(socket, nil, Data(count: 1) as CFData, 0) }
        // What comes is a thread's that has begun, and cannot end.
        var count = 0
        try waitFor("bytes of a thread that waits") {
            count += take(from: far).utf8.count
            return count > 1_000_000 ? () : nil
        }
        CFSocketInvalidate(socket)
        #expect(try waiting.value() == .error)
        #expect(try second.value() != .timeout)
        close(far)
        #expect(!isOpen(near))
    }

    @Test func `CS-10 CS-12 a thread that sends goes on when the socket is invalidated but not closed`()
        throws
    {
        let (near, far) = try socketPair()
        let socket = noted(near, [], ContextNotes())
        Self.keepOpen(socket)
        let number = Mutex<pid_t?>(nil)
        let sending = LoopThread { _ in
            number.withLock { $0 = threadNumber() }
            return CFSocketSendData(socket, nil, Data(count: 10_000_000) as CFData, 0)
        }
        try Self.waitUntilFull(near)
        try waitUntilAsleep(thread: try waitFor("the thread") { number.withLock { $0 } })
        CFSocketInvalidate(socket)
        // The peer has read nothing.
        #expect(try sending.value() == .error)
        #expect(isOpen(near))
        close(near)
        close(far)
    }

    /// The peer takes some bytes whenever there is no room, so that no single wait is long, and all of them would take many times
    /// as long.
    @Test func `CS-10 the timeout is for the whole send, and includes the wait for another thread's send`()
        throws
    {
        let (near, far) = try socketPair()
        let socket = noted(near, [], ContextNotes())
        let isOver = Latch()
        let taking = LoopThread { _ in
            while !isOver.isOpen {
                var request = pollfd(fd: near, events: Int16(POLLOUT), revents: 0)
                if poll(&request, 1, 0) == 0 { _ = take(from: far) } else { sched_yield() }
            }
        }
        #expect(CFSocketSendData(socket, nil, Data(count: 1 << 27) as CFData, 0.005) == .timeout)
        // A thread that sends for as long as it takes keeps out another one.
        let numbers = Mutex<[pid_t]>([])
        let sending = LoopThread { _ in
            numbers.withLock { $0.append(threadNumber()) }
            return CFSocketSendData(socket, nil, Data(count: 1 << 27) as CFData, 0)
        }
        isOver.open()
        try taking.value()
        let number = try waitFor("the thread") { numbers.withLock { $0.first } }
        try waitUntilAsleep(thread: number)
        let second = LoopThread { _ in CFSocketSendData(socket, nil, Data([1]) as CFData, 0.05) }
        #expect(try second.value() == .timeout)
        CFSocketInvalidate(socket)
        #expect(try sending.value() == .error)
        close(far)
    }

    @Test func `CS-10 sending to a peer that has gone fails, and ends nothing`() throws {
        let (near, far) = try socketPair()
        let socket = noted(near, [], ContextNotes())
        close(far)
        #expect(CFSocketSendData(socket, nil, Data("x".utf8) as CFData, 1) == .error)
        CFSocketInvalidate(socket)
    }

    @Test func `CS-10 a datagram is sent to an address`() throws {
        let stranger = try SocketStranger.start(.datagrams)
        let theirs = try stranger.port(after: "PORT ")
        let socket: CFSocket = CFSocketCreate(nil, PF_INET, SOCK_DGRAM, IPPROTO_UDP, 0, nil, nil)
        #expect(CFSocketSetAddress(socket, loopbackAddress()) == .success)
        #expect(
            CFSocketSendData(socket, loopbackAddress(theirs), Data("hello".utf8) as CFData, 1) == .success)
        stranger.tell("receive")
        let own = port(of: CFSocketCopyAddress(socket))
        #expect(try stranger.line(after: "GOT ") == "hello FROM \(own)")
        // Longer than any datagram.
        #expect(CFSocketSendData(socket, loopbackAddress(theirs), Data(count: 70_000) as CFData, 1) == .error)
        CFSocketInvalidate(socket)
    }

    /// A Unix socket for datagrams, in the abstract space, that takes one only when it is told to.
    ///
    /// `@unchecked Sendable`: nothing of it changes, the address' bytes neither.
    private final class DatagramReceiver: @unchecked Sendable {
        let address: NSData
        private let descriptor: Int32

        init() throws {
            address = SocketSendingTests.abstractAddress()
            descriptor = Rondo.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
            let start = address.bytes.assumingMemoryBound(to: sockaddr.self)
            try #require(bind(descriptor, start, socklen_t(address.length)) == 0)
        }

        func takeOne() -> String { take(from: descriptor) }

        deinit { close(descriptor) }
    }

    /// The kernel always reports room on a socket that is not connected.
    @Test func `CS-10 a datagram waits for room in the queue of a Unix socket, until its time is up`() throws
    {
        let receiver = try DatagramReceiver()
        let socket: CFSocket = CFSocketCreate(nil, PF_UNIX, SOCK_DGRAM, 0, 0, nil, nil)
        // Ends the threads below if one of them does not end by itself.
        defer { CFSocketInvalidate(socket) }
        let filling = LoopThread { _ in
            var result = CFSocketError.success
            while result == .success {
                result = CFSocketSendData(socket, receiver.address, Data("x".utf8) as CFData, 0.02)
            }
            return result
        }
        #expect(try filling.value() == .timeout)
        /// A thread without a limit that waits for room.
        func waitingThread() throws -> LoopThread<CFSocketError> {
            let number = Mutex<pid_t?>(nil)
            let thread = LoopThread { _ in
                number.withLock { $0 = threadNumber() }
                return CFSocketSendData(socket, receiver.address, Data("x".utf8) as CFData, 0)
            }
            try waitUntilAsleep(thread: try waitFor("the thread") { number.withLock { $0 } })
            return thread
        }
        let waiting = try waitingThread()
        #expect(receiver.takeOne() == "x")
        #expect(try waiting.value() == .success)
        // Goes on when the socket is invalidated.
        let last = try waitingThread()
        CFSocketInvalidate(socket)
        #expect(try last.value() == .error)
    }
}

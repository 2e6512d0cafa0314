import Rondo
import RondoMutex
import RondoProbeSupport
import RondoStreams

private let both = CFSocketCallBackType([.dataCallBack, .writeCallBack]).rawValue

/// Two ends of a connection, each with a socket that reads; all threads write.
final class SocketRound: Round {
    private let loops: Loops
    private let happenings: Happenings
    private let ends: [CFSocket]

    init(_ loops: Loops, _ random: inout Random) throws {
        self.loops = loops
        let happenings = Happenings(&random)
        self.happenings = happenings
        var pair: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair) == 0 else {
            throw POSIXError(.EMFILE)
        }
        ends = pair.map { descriptor in
            var context = retaining(happenings)
            return CFSocketCreateWithNative(nil, descriptor, both, Self.called, &context)
        }
    }

    private static let called: CFSocketCallBack = { socket, type, _, data, info in
        guard let socket, let info else { return }
        let happenings = object(info, Happenings.self)
        if type == .dataCallBack, let data {
            // Makes an object that outlives the call.
            let text = String(
                decoding: Unmanaged<NSData>.fromOpaque(data).takeUnretainedValue() as Data, as: UTF8.self)
            for record in text.split(separator: ";") {
                if record.first != "<" || record.last != ">" { happenings.fail("\(record) was cut") }
                happenings.once(String(record))
            }
        }
        switch happenings.chance(30) {
        case 0: CFSocketInvalidate(socket)
        case 1:
            CFRunLoopRemoveSource(
                CFRunLoopGetCurrent(), CFSocketCreateRunLoopSource(nil, socket, 0), .defaultMode)
        case 2: CFSocketDisableCallBacks(socket, both)
        case 3...6: CFSocketEnableCallBacks(socket, both)
        default: happenings.runNested()
        }
        if !CFSocketIsValid(socket), CFSocketGetNative(socket) >= 0 { happenings.fail("it has a descriptor") }
    }

    func step(_ random: inout Random, thread: Int, number: Int) {
        let end = random.number(below: 2)
        let socket = ends[end]
        let (loop, mode) = loops.place(&random)
        switch random.number(below: 60) {
        case 0: CFSocketInvalidate(socket)
        case 1...12:
            if let source = CFSocketCreateRunLoopSource(nil, socket, 0) { loop.add(source, forMode: mode) }
        case 13...18:
            if let source = CFSocketCreateRunLoopSource(nil, socket, 0) { loop.remove(source, forMode: mode) }
        case 19...22: CFSocketDisableCallBacks(socket, both)
        case 23...28: CFSocketEnableCallBacks(socket, both)
        case 29:
            CFSocketSetSocketFlags(
                socket, CFSocketGetSocketFlags(socket) ^ kCFSocketAutomaticallyReenableDataCallBack)
        case 30:
            _ = CFSocketCopyPeerAddress(socket)
            _ = CFSocketCopyAddress(socket)
            _ = socket.whyNotDelivering
        case 31:
            // Only the existing socket may be found for its descriptor.
            let native = CFSocketGetNative(socket)
            if native >= 0, let found = CFSocket.existing(native), found !== socket {
                happenings.fail("another socket")
            }
        default:
            let record = "<\(end) \(thread) \(number)>;"
            _ = CFSocketSendData(socket, nil, Data(record.utf8) as CFData, 0.02)
        }
    }

    func finish() -> [String] {
        for socket in ends { CFSocketInvalidate(socket) }
        for socket in ends where CFSocketIsValid(socket) { happenings.fail("it is valid") }
        return happenings.failures
    }
}

/// A listening socket, clients that connect, and their connections.
final class ListenerRound: Round {
    private let loops: Loops
    private let happenings: Happenings
    private let listener: CFSocket
    private let address: Mutex<Data>
    private let clients = Mutex<[CFSocket]>([])

    init(_ loops: Loops, _ random: inout Random) throws {
        self.loops = loops
        let happenings = Happenings(&random)
        self.happenings = happenings
        var any = sockaddr_in()
        any.sin_family = sa_family_t(AF_INET)
        any.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var context = retaining(happenings)
        let made: CFSocket? = CFSocketCreate(
            nil, PF_INET, SOCK_STREAM, IPPROTO_TCP, CFSocketCallBackType.acceptCallBack.rawValue,
            { socket, _, _, data, info in
                guard let socket, let info, let native = data?.load(as: Int32.self) else { return }
                let happenings = object(info, Happenings.self)
                switch happenings.chance(20) {
                case 0: CFSocketInvalidate(socket)
                case 1: CFSocketDisableCallBacks(socket, CFSocketCallBackType.acceptCallBack.rawValue)
                default: happenings.runNested()
                }
                close(native)
            }, &context)
        let data = withUnsafeBytes(of: &any) { Data($0) }
        guard let made, CFSocketSetAddress(made, data as CFData) == .success,
            let bound = CFSocketCopyAddress(made)
        else { throw POSIXError(.EADDRNOTAVAIL) }
        listener = made
        address = Mutex(bound as Data)
        let (loop, mode) = loops.place(&random)
        loop.add(CFSocketCreateRunLoopSource(nil, made, 0), forMode: mode)
    }

    func step(_ random: inout Random, thread: Int, number: Int) {
        let (loop, mode) = loops.place(&random)
        switch random.number(below: 40) {
        case 0: CFSocketInvalidate(listener)
        case 1...4:
            if let source = CFSocketCreateRunLoopSource(nil, listener, 0) { loop.add(source, forMode: mode) }
        case 5: CFSocketEnableCallBacks(listener, CFSocketCallBackType.acceptCallBack.rawValue)
        case 6...15:
            let known = clients.withLock { $0 }
            if !known.isEmpty { CFSocketInvalidate(known[random.number(below: known.count)]) }
        case 16...20:
            let known = clients.withLock { $0 }
            guard !known.isEmpty else { return }
            let text = Data("hello".utf8) as CFData
            _ = CFSocketSendData(known[random.number(below: known.count)], nil, text, 0.01)
        default: connect(loop, mode, timeout: random.isOne(in: 3) ? 0.05 : -1)
        }
    }

    private func connect(_ loop: RunLoop, _ mode: RunLoop.Mode, timeout: TimeInterval) {
        let client = Client(happenings)
        var context = retaining(client)
        let types = CFSocketCallBackType([.connectCallBack, .dataCallBack])
        let made: CFSocket? = CFSocketCreate(
            nil, PF_INET, SOCK_STREAM, IPPROTO_TCP, types.rawValue,
            { socket, type, _, _, info in
                guard let info else { return }
                object(info, Client.self).called(socket, type)
            }, &context)
        guard let made else { return happenings.fail("no client") }
        loop.add(CFSocketCreateRunLoopSource(nil, made, 0), forMode: mode)
        clients.withLock { $0.append(made) }
        let address = address.withLock { $0 }
        _ = CFSocketConnectToAddress(made, address as CFData, timeout)
    }

    func finish() -> [String] {
        CFSocketInvalidate(listener)
        for client in clients.withLock({ $0 }) { CFSocketInvalidate(client) }
        return happenings.failures
    }

    private final class Client: Sendable {
        private let happenings: Happenings
        private let isTold = Mutex(false)

        init(_ happenings: Happenings) { self.happenings = happenings }

        func called(_ socket: CFSocket?, _ type: CFSocketCallBackType) {
            if type == .connectCallBack,
                isTold.withLock({ told in
                    defer { told = true }; return told
                })
            {
                happenings.fail("connected twice")
            }
            if happenings.chance(6) == 0 { CFSocketInvalidate(socket) }
            happenings.runNested()
        }
    }
}

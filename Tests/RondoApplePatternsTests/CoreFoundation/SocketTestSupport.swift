import Rondo
import RondoTestSupport
import Testing

extension CFSocketCallBackType {
    var word: String {
        switch self {
        case .readCallBack: "read"
        case .acceptCallBack: "accept"
        case .dataCallBack: "data"
        case .connectCallBack: "connect"
        case .writeCallBack: "write"
        default: "\(rawValue)"
        }
    }
}

/// Notes each callback's type, and the data, in the `ContextNotes` of `info`.
let noteAll: CFSocketCallBack = { _, type, _, data, info in
    guard let notes = ContextNotes.of(info) else { return }
    notes.log.note(type.word)
    if type == .dataCallBack, let data {
        notes.append(Unmanaged<CFData>.fromOpaque(data).takeUnretainedValue() as Data)
    }
}

/// Reads the socket's pending error, which the kernel gives once.
func takeError(of socket: CFSocket?) -> Int32 {
    var code: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(CFSocketGetNative(socket), SOL_SOCKET, SO_ERROR, &code, &size)
    return code
}

/// A CFSocket whose callbacks `callout` gets with `notes`.
func noted(
    _ native: CFSocketNativeHandle, _ types: CFSocketCallBackType, _ notes: ContextNotes,
    _ callout: @escaping CFSocketCallBack = noteAll
) -> CFSocket {
    var context = CFSocketContext(
        version: 0, info: notes.info, retain: nil, release: nil, copyDescription: nil)
    return CFSocketCreateWithNative(kCFAllocatorDefault, native, types.rawValue, callout, &context)
}

func schedule(_ socket: CFSocket?, _ mode: CFRunLoopMode = .defaultMode) {
    CFRunLoopAddSource(
        CFRunLoopGetCurrent(), CFSocketCreateRunLoopSource(kCFAllocatorDefault, socket, 0), mode)
}

/// Runs the current loop until `isDone`, or for longer than a test waits.
func runLoop(_ mode: CFRunLoopMode = .defaultMode, until isDone: () -> Bool) {
    let end = CFAbsoluteTimeGetCurrent() + testPatience + 5
    while !isDone() {
        let result = CFRunLoopRunInMode(mode, end - CFAbsoluteTimeGetCurrent(), true)
        if result == .finished || result == .timedOut { return }
    }
}

/// Runs the loop as often, without waiting: what is ready now is served.
func passes(_ count: Int, _ mode: CFRunLoopMode = .defaultMode) {
    for _ in 0..<count { CFRunLoopRunInMode(mode, 0, false) }
}

func socketPair(_ type: __socket_type = SOCK_STREAM) throws -> (near: Int32, far: Int32) {
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(type.rawValue), 0, &ends) == 0)
    return (ends[0], ends[1])
}

func put(_ text: String, into descriptor: Int32) {
    // Its peer may have gone.
    _ = send(descriptor, text, text.utf8.count, Int32(MSG_NOSIGNAL))
}

/// Reads the bytes that are there, without waiting.
func take(from descriptor: Int32) -> String {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
    return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
}

func isOpen(_ descriptor: Int32) -> Bool { fcntl(descriptor, F_GETFD) >= 0 }

/// As programs for Apple's systems write an address.
func loopbackAddress(_ port: UInt16 = 0) -> CFData {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    return NSData(bytes: &address, length: MemoryLayout<sockaddr_in>.size) as CFData
}

func port(of address: CFData?) -> UInt16 {
    guard let address, CFDataGetLength(address) >= MemoryLayout<sockaddr_in>.size else { return 0 }
    return CFDataGetBytePtr(address).withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        UInt16(bigEndian: $0.pointee.sin_port)
    }
}

/// A listener on a free port of 127.0.0.1.
func listener(
    _ types: CFSocketCallBackType, _ notes: ContextNotes, _ callout: @escaping CFSocketCallBack
) -> (socket: CFSocket, port: UInt16) {
    var context = CFSocketContext(info: notes.info)
    let socket: CFSocket = CFSocketCreate(
        kCFAllocatorDefault, PF_INET, SOCK_STREAM, IPPROTO_TCP, types.rawValue, callout, &context)
    #expect(CFSocketSetAddress(socket, loopbackAddress()) == .success)
    return (socket, port(of: CFSocketCopyAddress(socket)))
}

import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// Programs as they stand for Apple's systems, but for the fields of `sockaddr_in` that only those have.
@Suite(.timeLimit(.minutes(2)), .leavesNothing) struct SocketSampleTests {
    /// Does what every echo server does with its listening socket, by streams.
    private final class EchoServer: NSObject, StreamDelegate {
        private var socket: CFSocket?
        private var streams: [(InputStream, OutputStream)] = []

        func start() -> UInt16 {
            var context = CFSocketContext(
                version: 0, info: Unmanaged.passUnretained(self).toOpaque(), retain: nil, release: nil,
                copyDescription: nil)
            socket = CFSocketCreate(
                kCFAllocatorDefault, PF_INET, SOCK_STREAM, IPPROTO_TCP,
                CFSocketCallBackType.acceptCallBack.rawValue,
                { (socket, type, address, data, info) in
                    guard type == .acceptCallBack, let info, let data else { return }
                    let server = Unmanaged<EchoServer>.fromOpaque(info).takeUnretainedValue()
                    server.accept(data.assumingMemoryBound(to: CFSocketNativeHandle.self).pointee)
                }, &context)
            var reuse: Int32 = 1
            setsockopt(
                CFSocketGetNative(socket), SOL_SOCKET, SO_REUSEADDR, &reuse,
                socklen_t(MemoryLayout.size(ofValue: reuse)))
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(0).bigEndian
            address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
            let data = Data(bytes: &address, count: MemoryLayout<sockaddr_in>.size)
            guard CFSocketSetAddress(socket, data as CFData) == .success else { return 0 }
            let source = CFSocketCreateRunLoopSource(kCFAllocatorDefault, socket, 0)
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source, CFRunLoopMode.commonModes)
            return port(of: CFSocketCopyAddress(socket))
        }

        private func accept(_ handle: CFSocketNativeHandle) {
            var readStream: Unmanaged<CFReadStream>?
            var writeStream: Unmanaged<CFWriteStream>?
            CFStreamCreatePairWithSocket(kCFAllocatorDefault, handle, &readStream, &writeStream)
            let input: InputStream = readStream!.takeRetainedValue()
            let output: OutputStream = writeStream!.takeRetainedValue()
            CFReadStreamSetProperty(input, kCFStreamPropertyShouldCloseNativeSocket, true as NSNumber)
            CFWriteStreamSetProperty(output, kCFStreamPropertyShouldCloseNativeSocket, true as NSNumber)
            input.delegate = self
            input.schedule(in: .current, forMode: .default)
            output.schedule(in: .current, forMode: .default)
            input.open()
            output.open()
            streams.append((input, output))
        }

        func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
            guard let (input, output) = streams.first(where: { $0.0 === aStream }) else { return }
            switch eventCode {
            case .hasBytesAvailable:
                var buffer = [UInt8](repeating: 0, count: 1_024)
                let count = input.read(&buffer, maxLength: buffer.count)
                if count > 0 { _ = output.write(buffer, maxLength: count) }
            case .endEncountered, .errorOccurred:
                for stream in [input, output] as [Stream] {
                    stream.close()
                    stream.remove(from: .current, forMode: .default)
                }
                CFSocketInvalidate(socket)
            default: break
            }
        }
    }

    @Test func `CS-4 CS-15 the listener of Apple's samples serves a stranger by streams`() throws {
        let port = Mutex(UInt16(0))
        let thread = LoopThread { _ in
            let server = EchoServer()
            port.withLock { $0 = server.start() }
            // Until the listener is invalidated and the streams are gone.
            CFRunLoopRun()
            withExtendedLifetime(server) {}
        }
        let listening = try waitFor("a listener") { port.withLock { $0 > 0 ? $0 : nil } }
        let text = "hello by way of socat"
        #expect(
            try TestServerProcess.run([
                "sh", "-c", "echo '\(text)' | socat -t 30 - TCP:127.0.0.1:\(listening)",
            ]) == text)
        try thread.value()
    }

    /// A client as it is taught: connect in the background, then send and receive.
    @Test func `CS-5 CS-6 an echo client connects, sends and receives`() throws {
        let notes = ContextNotes()
        let socat = try TestServerProcess([
            "socat", "-d", "-d", "TCP-LISTEN:0,bind=127.0.0.1", "EXEC:cat",
        ])
        // "… N listening on AF=2 127.0.0.1:4711"
        var line = ""
        while !line.contains("listening on") { line = try socat.line(after: "") }
        let theirs = try #require(UInt16(line.split(separator: ":").last ?? ""))
        try onLoopThread { _ in
            var context = CFSocketContext()
            context.info = notes.info
            let types =
                CFSocketCallBackType.connectCallBack.rawValue | CFSocketCallBackType.dataCallBack.rawValue
            let socket = CFSocketCreate(
                kCFAllocatorDefault, PF_INET, SOCK_STREAM, IPPROTO_TCP, types,
                {
                    (
                        socket: CFSocket?, type: CFSocketCallBackType, address: CFData?,
                        data: UnsafeRawPointer?,
                        info: UnsafeMutableRawPointer?
                    ) in
                    let notes = Unmanaged<ContextNotes>.fromOpaque(info!).takeUnretainedValue()
                    switch type {
                    case .connectCallBack:
                        notes.log.note(data == nil ? "connected" : "failed")
                        CFSocketSendData(socket, nil, Data("ping".utf8) as CFData, 5)
                    case .dataCallBack:
                        let bytes = Unmanaged<CFData>.fromOpaque(data!).takeUnretainedValue() as Data
                        notes.append(bytes)
                        if notes.text == "ping" {
                            CFSocketInvalidate(socket)
                            CFRunLoopStop(CFRunLoopGetCurrent())
                        }
                    default: notes.log.note("?")
                    }
                }, &context)
            let source = CFSocketCreateRunLoopSource(kCFAllocatorDefault, socket, 0)
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source, .defaultMode)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = theirs.bigEndian
            inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
            let data = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: UInt8.self, capacity: MemoryLayout<sockaddr_in>.size) {
                    CFDataCreate(kCFAllocatorDefault, $0, MemoryLayout<sockaddr_in>.size)
                }
            }
            CFSocketConnectToAddress(socket, data, -1)
            CFRunLoopRun()
        }
        #expect(notes.log.entries == ["connected"] && notes.text == "ping")
    }

    @Test func `CS-5 a CFSocket that has joined a group receives its multicast datagrams`() throws {
        let notes = ContextNotes()
        try onLoopThread { _ in
            var context = CFSocketContext(
                version: 0, info: notes.info, retain: nil, release: nil, copyDescription: nil)
            let socket: CFSocket = CFSocketCreate(
                kCFAllocatorDefault, PF_INET, SOCK_DGRAM, IPPROTO_UDP,
                CFSocketCallBackType.dataCallBack.rawValue, noteAll, &context)
            let descriptor = CFSocketGetNative(socket)
            var yes: Int32 = 1
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = INADDR_ANY
            #expect(
                CFSocketSetAddress(
                    socket, NSData(bytes: &address, length: MemoryLayout<sockaddr_in>.size) as CFData)
                    == .success)
            var membership = ip_mreq(
                imr_multiaddr: in_addr(s_addr: inet_addr("239.255.77.77")),
                imr_interface: in_addr(s_addr: inet_addr("127.0.0.1")))
            #expect(
                setsockopt(
                    descriptor, Int32(IPPROTO_IP), IP_ADD_MEMBERSHIP, &membership,
                    socklen_t(MemoryLayout<ip_mreq>.size)) == 0)
            let source = CFSocketCreateRunLoopSource(kCFAllocatorDefault, socket, 0)
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source, .defaultMode)
            guard let stranger = try? SocketStranger.start(.datagrams) else { return }
            let own = port(of: CFSocketCopyAddress(socket))
            stranger.tell("multicast 239.255.77.77 \(own) hello, group")
            runLoop { !notes.log.entries.isEmpty }
            CFSocketInvalidate(socket)
        }
        #expect(notes.text == "hello, group")
    }

    @Test func `CS-16 standard input of a child, as programs for Apple's systems watch it`() throws {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        let log = EventLog()
        let (reading, writing) = (ends[0], ends[1])
        try onLoopThread { _ in
            let callback: CFFileDescriptorCallBack = { (fdref, callBackTypes, info) in
                var buffer = [UInt8](repeating: 0, count: 64)
                let count = read(CFFileDescriptorGetNativeDescriptor(fdref), &buffer, buffer.count)
                let log = Unmanaged<EventLog>.fromOpaque(info!).takeUnretainedValue()
                log.note(String(decoding: buffer.prefix(max(0, count)), as: UTF8.self))
                if count > 0 {
                    CFFileDescriptorEnableCallBacks(fdref, kCFFileDescriptorReadCallBack)
                } else {
                    CFFileDescriptorInvalidate(fdref)
                }
            }
            var context = CFFileDescriptorContext(
                version: 0, info: Unmanaged.passUnretained(log).toOpaque(), retain: nil, release: nil,
                copyDescription: nil)
            let fdref = CFFileDescriptorCreate(kCFAllocatorDefault, reading, true, callback, &context)
            CFFileDescriptorEnableCallBacks(fdref, kCFFileDescriptorReadCallBack)
            let source = CFFileDescriptorCreateRunLoopSource(kCFAllocatorDefault, fdref, 0)
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source, .defaultMode)
            _ = write(writing, "line", 4)
            runLoop { log.entries == ["line"] }
            close(writing)
            // Until it is invalidated.
            CFRunLoopRun()
        }
        #expect(log.entries == ["line", ""])
    }
}

import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// CFSocket: the object, its handle, and their end.
@Suite(.timeLimit(.minutes(2)), .leavesNothing) struct SocketLifeTests {
    @Test func `CS-11 a handle that a valid socket has gives that socket`() throws {
        let (near, far) = try socketPair()
        defer { close(far) }
        let (first, second) = (ContextNotes(), ContextNotes())
        var context = CFSocketContext(
            version: 0, info: second.info, retain: ContextNotes.retain, release: ContextNotes.release,
            copyDescription: nil)
        // Nothing but the table of sockets holds it.
        weak let socket = noted(near, .dataCallBack, first)
        let again: CFSocket = CFSocketCreateWithNative(
            nil, near, CFSocketCallBackType.readCallBack.rawValue, noteAll, &context)
        #expect(again === socket)
        #expect(second.retains == 0)
        CFSocketInvalidate(again)
        #expect(CFSocketCreateWithNative(nil, near, 0, nil, nil) == nil)
        #expect(CFSocketCreateWithNative(nil, -1, 0, nil, nil) == nil)
    }

    @Test func `CS-11 SRC-27 a handle that was closed and given out again gives another socket`() throws {
        let (near, far) = try socketPair()
        let notes = ContextNotes()
        let stale = noted(near, .dataCallBack, notes)
        close(near)
        let (other, otherFar) = try socketPair()
        #expect(other == near || dup2(other, near) == near)
        let fresh = noted(near, .dataCallBack, notes)
        #expect(fresh !== stale && !CFSocketIsValid(stale) && isOpen(near))
        CFSocketInvalidate(fresh)
        #expect(!isOpen(near))
        for descriptor in Set([far, other, otherFar]) where isOpen(descriptor) { close(descriptor) }
    }

    @Test func `CS-12 invalidation removes the source everywhere, and closes the handle`() throws {
        let (near, far) = try socketPair()
        defer { close(far) }
        let notes = ContextNotes()
        try onLoopThread { _ in
            let modes = [CFRunLoopMode.defaultMode, CFRunLoopMode("mine")]
            let socket = noted(near, [.readCallBack, .writeCallBack], notes) { socket, type, _, _, info in
                let native = CFSocketGetNative(socket)
                CFSocketInvalidate(socket)
                ContextNotes.of(info)?.log.note("is open: \(isOpen(native))")
            }
            let source = CFSocketCreateRunLoopSource(nil, socket, 0)
            for mode in modes { CFRunLoopAddSource(CFRunLoopGetCurrent(), source, mode) }
            put("x", into: far)
            // Both can be called; the first call ends it.
            passes(3)
            #expect(notes.log.entries == ["is open: false"])
            for mode in modes {
                #expect(!CFRunLoopContainsSource(CFRunLoopGetCurrent(), source, mode))
                #expect(CFRunLoopRunInMode(mode, 0, false) == .finished)
            }
            #expect(!CFSocketIsValid(socket) && !CFRunLoopSourceIsValid(source))
            #expect(CFSocketGetNative(socket) == -1 && CFSocketCopyAddress(socket) == nil)
            #expect(CFSocketCreateRunLoopSource(nil, socket, 0) == nil)
            #expect(CFSocketSetAddress(socket, loopbackAddress()) == .error)
            CFSocketInvalidate(socket)
        }
    }

    @Test func `CS-12 an invalidated socket without the close flag leaves its handle open`() throws {
        let (near, far) = try socketPair()
        let (socket, port) = listener(.acceptCallBack, ContextNotes(), noteAll)
        for kept in [noted(near, .readCallBack, ContextNotes()), socket] {
            let native = CFSocketGetNative(kept)
            CFSocketSetSocketFlags(kept, CFSocketGetSocketFlags(kept) & ~kCFSocketCloseOnInvalidate)
            CFSocketInvalidate(kept)
            #expect(isOpen(native) && !CFSocketIsValid(kept))
            // As it was before: the program goes on with it.
            #expect(fcntl(native, F_GETFL) & O_NONBLOCK == 0)
            // It can have another one.
            let next = noted(native, [], ContextNotes())
            #expect(next !== kept)
            CFSocketInvalidate(next)
            #expect(!isOpen(native))
        }
        #expect(port > 0)
        close(far)
    }

    @Test
    func `CS-12 SRC-27 a socket whose handle was closed becomes invalid, and leaves its successor alone`()
        throws
    {
        let (near, far) = try socketPair()
        let notes = ContextNotes()
        try onLoopThread { _ in
            let socket = noted(near, .dataCallBack, notes)
            schedule(socket)
            passes(1)
            close(near)
            guard let (other, otherFar) = try? socketPair() else { return }
            if other != near { dup2(other, near) }
            put("not for the socket", into: otherFar)
            // Has the loop look at the descriptor.
            CFSocketDisableCallBacks(socket, CFSocketCallBackType.dataCallBack.rawValue)
            passes(1)
            CFSocketEnableCallBacks(socket, CFSocketCallBackType.dataCallBack.rawValue)
            runLoop { !CFSocketIsValid(socket) }
            CFSocketInvalidate(socket)
            #expect(take(from: near) == "not for the socket")
            for descriptor in Set([near, other, otherFar]) { close(descriptor) }
            // One that is not there at all any more.
            guard let (gone, goneFar) = try? socketPair() else { return }
            let lost = noted(gone, .dataCallBack, notes)
            close(gone)
            schedule(lost)
            runLoop { !CFSocketIsValid(lost) }
            close(goneFar)
        }
        #expect(notes.log.entries.isEmpty)
        close(far)
    }

    @Test func `CS-12 other threads may send, change and invalidate a socket at any moment`() throws {
        for _ in 0..<50 {
            let (near, far) = try socketPair()
            let notes = ContextNotes()
            let socket = noted(near, [.dataCallBack, .writeCallBack], notes)
            let loops = (0..<2).map { _ in
                LoopThread { _ in
                    schedule(socket)
                    CFRunLoopRun()
                }
            }
            let others = (0..<2).map { number in
                LoopThread { _ in
                    let types = CFSocketCallBackType([.dataCallBack, .writeCallBack]).rawValue
                    for _ in 0..<20 {
                        put("x", into: far)
                        CFSocketDisableCallBacks(socket, types)
                        CFSocketSendData(socket, nil, Data("y".utf8) as CFData, 1)
                        CFSocketEnableCallBacks(socket, types)
                        _ = CFSocketCopyPeerAddress(socket)
                    }
                    if number == 0 { CFSocketInvalidate(socket) }
                }
            }
            for thread in others + loops { try thread.value() }
            // As much as was written, or less, in order.
            #expect(notes.text == String(repeating: "x", count: notes.text.count) && notes.text.count <= 40)
            #expect(!CFSocketIsValid(socket))
            close(far)
        }
    }

    @Test(arguments: [true, false])
    func `CS-13 the flag leaves the socket's error to be read`(_ leaves: Bool) throws {
        let refused = try RefusedPort()
        let notes = ContextNotes()
        try onLoopThread { _ in
            var context = CFSocketContext(info: notes.info)
            let types: CFSocketCallBackType = [.connectCallBack, .writeCallBack]
            let socket: CFSocket = CFSocketCreate(
                nil, PF_INET, SOCK_STREAM, IPPROTO_TCP, types.rawValue,
                { socket, type, _, data, info in
                    let code = takeError(of: socket)
                    ContextNotes.of(info)?.log.note("\(type.word) \(data?.load(as: Int32.self) ?? 0) \(code)")
                }, &context)
            if leaves {
                CFSocketSetSocketFlags(socket, CFSocketGetSocketFlags(socket) | kCFSocketLeaveErrors)
            }
            schedule(socket)
            #expect(CFSocketConnectToAddress(socket, loopbackAddress(refused.port), -1) == .success)
            runLoop { !notes.log.entries.isEmpty }
            CFSocketInvalidate(socket)
        }
        // The kernel's reason is there once: in the callback's data, or for the program.
        let told = leaves ? "connect \(ENOTCONN) \(ECONNREFUSED)" : "connect \(ECONNREFUSED) 0"
        #expect(notes.log.entries == [told])
    }

    @Test(arguments: [false, true])
    func `CS-13 the flag leaves the error to be read where there is room to write, too`(_ leaves: Bool) throws
    {
        // A socket that takes datagrams of another peer alone: those of this one are refused.
        let other = Rondo.socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        defer { close(other) }
        let (own, elsewhere) = (loopbackAddress(), loopbackAddress(9))
        var size = socklen_t(own.length)
        #expect(bind(other, own.bytes.assumingMemoryBound(to: sockaddr.self), size) == 0)
        var bound = sockaddr_in()
        withUnsafeMutablePointer(to: &bound) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(other, $0, &size) }
        }
        #expect(connect(other, elsewhere.bytes.assumingMemoryBound(to: sockaddr.self), size) == 0)
        let port = UInt16(bigEndian: bound.sin_port)
        let notes = ContextNotes()
        try onLoopThread { _ in
            var context = CFSocketContext(info: notes.info)
            let socket: CFSocket = CFSocketCreate(
                nil, PF_INET, SOCK_DGRAM, IPPROTO_UDP, CFSocketCallBackType.writeCallBack.rawValue,
                { socket, type, _, _, info in
                    ContextNotes.of(info)?.log.note("\(type.word) \(takeError(of: socket))")
                }, &context)
            if leaves {
                CFSocketSetSocketFlags(socket, CFSocketGetSocketFlags(socket) | kCFSocketLeaveErrors)
            }
            #expect(CFSocketConnectToAddress(socket, loopbackAddress(port), 1) == .success)
            #expect(send(CFSocketGetNative(socket), "x", 1, 0) == 1)
            var request = pollfd(fd: CFSocketGetNative(socket), events: 0, revents: 0)
            #expect(poll(&request, 1, Int32(testPatience * 1_000)) == 1)
            schedule(socket)
            runLoop { !notes.log.entries.isEmpty }
            CFSocketInvalidate(socket)
        }
        #expect(notes.log.entries == ["write \(leaves ? ECONNREFUSED : 0)"])
    }

    @Test func `CS-14 the context's info is retained until the socket is invalidated`() throws {
        let (near, far) = try socketPair()
        defer { close(far) }
        weak var weakNotes: ContextNotes?
        let entries = try {
            let notes = ContextNotes()
            weakNotes = notes
            try onLoopThread { _ in
                var context = CFSocketContext(
                    version: 0, info: notes.info, retain: ContextNotes.retain, release: ContextNotes.release,
                    copyDescription: ContextNotes.describe)
                let socket = CFSocketCreateWithNative(
                    nil, near, CFSocketCallBackType.readCallBack.rawValue,
                    { socket, _, _, _, info in
                        CFSocketInvalidate(socket)
                        // Its own call still has it.
                        ContextNotes.of(info)?.log.note("\(ContextNotes.of(info)?.releases ?? -1)")
                    }, &context)
                schedule(socket)
                #expect(CFSocketCreateRunLoopSource(nil, socket, 0).label == "notes")
                var copy = CFSocketContext()
                CFSocketGetContext(socket, &copy)
                #expect(copy.info == notes.info && notes.retains == 1 && notes.releases == 0)
                put("x", into: far)
                passes(2)
                var none = CFSocketContext(version: 99)
                CFSocketGetContext(socket, &none)
                #expect(none.version == 99)
            }
            #expect(notes.retains == 1 && notes.releases == 1)
            return notes.log.entries
        }()
        #expect(entries == ["0"])
        #expect(weakNotes == nil)
    }

    @Test func `CS-14 the info outlives a callback that is under way when another thread invalidates`() throws
    {
        let (near, far) = try socketPair()
        defer { close(far) }
        let notes = ContextNotes()
        let (isInside, mayReturn) = (Latch(), Latch())
        var context = CFSocketContext(
            version: 0, info: notes.info, retain: ContextNotes.retain, release: ContextNotes.release,
            copyDescription: nil)
        let socket: CFSocket = CFSocketCreateWithNative(
            nil, near, CFSocketCallBackType.readCallBack.rawValue,
            { _, _, _, _, info in
                isInside.open()
                mayReturn.waitOrRecord()
                ContextNotes.of(info)?.log.note("\(ContextNotes.of(info)?.releases ?? -1)")
            }, &context)
        let thread = LoopThread { _ in
            schedule(socket)
            CFRunLoopRun()
        }
        put("x", into: far)
        try isInside.wait()
        CFSocketInvalidate(socket)
        #expect(notes.releases == 0)
        mayReturn.open()
        try thread.value()
        #expect(notes.log.entries == ["0"] && notes.releases == 1)
    }

    @Test func `CS-15 setting the address binds, and has a stream socket listen`() throws {
        let (socket, port) = listener([], ContextNotes(), noteAll)
        #expect(port > 0)
        let stranger = try SocketStranger.start(.client, port)
        _ = try stranger.line(after: "PORT ")
        // Another one cannot have it.
        var signature = CFSocketSignature(
            protocolFamily: PF_INET, socketType: SOCK_STREAM, protocol: IPPROTO_TCP,
            address: Unmanaged.passRetained(loopbackAddress(port)))
        #expect(CFSocketCreateWithSocketSignature(nil, &signature, 0, nil, nil) == nil)
        let connected = CFSocketCreateConnectedToSocketSignature(nil, &signature, 0, nil, nil, 10)
        #expect(port == Self.peerPort(of: connected))
        signature.address.release()
        #expect(CFSocketSetAddress(socket, NSData()) == .error)
        #expect(CFSocketSetAddress(socket, Data(count: 1_000) as CFData) == .error)
        // A datagram socket does not listen.
        let datagrams = CFSocketCreate(nil, PF_INET, SOCK_DGRAM, IPPROTO_UDP, 0, nil, nil)
        #expect(CFSocketSetAddress(datagrams, loopbackAddress()) == .success)
        for each in [socket, connected, datagrams] { CFSocketInvalidate(each) }
    }

    private static func peerPort(of socket: CFSocket?) -> UInt16 { port(of: CFSocketCopyPeerAddress(socket)) }

    @Test func `CS-15 a program may listen by itself before the source is added`() throws {
        let notes = ContextNotes()
        try onLoopThread { _ in
            let native = Rondo.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            let socket = noted(native, .acceptCallBack, notes) { socket, type, address, data, info in
                close(data!.load(as: CFSocketNativeHandle.self))
                noteAll(socket, type, address, data, info)
            }
            let source = CFSocketCreateRunLoopSource(nil, socket, 0)
            let address = loopbackAddress()
            _ = bind(native, address.bytes.assumingMemoryBound(to: sockaddr.self), socklen_t(address.length))
            _ = listen(native, 8)
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source, .defaultMode)
            let stranger = try? SocketStranger.start(.many, port(of: CFSocketCopyAddress(socket)), 1)
            runLoop { !notes.log.entries.isEmpty }
            _ = try? stranger?.line(after: "DONE")
            CFSocketInvalidate(socket)
        }
        #expect(notes.log.entries == ["accept"])
    }
}

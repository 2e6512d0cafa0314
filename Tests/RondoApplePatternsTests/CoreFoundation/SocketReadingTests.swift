import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// CFSocket: what is read, accepted and handed over.
@Suite(.timeLimit(.minutes(2)), .leavesNothing) struct SocketReadingTests {
    static let kinds: [(CFSocketCallBackType, Set<String>)] = [
        ([], []), (.readCallBack, ["read"]), (.dataCallBack, ["data"]), (.writeCallBack, ["write"]),
        ([.readCallBack, .writeCallBack], ["read", "write"]),
        ([.dataCallBack, .connectCallBack, .writeCallBack], ["connect", "data", "write"]),
    ]

    @Test(arguments: kinds)
    func `CS-1 connect and write may be added to one of read, accept and data`(
        _ types: CFSocketCallBackType, _ expected: Set<String>
    ) throws {
        let raw: [CFSocketCallBackType] = [
            .readCallBack, .acceptCallBack, .dataCallBack, .connectCallBack, .writeCallBack,
        ]
        #expect(raw.map(\.rawValue) == [1, 2, 3, 4, 8])
        let (near, far) = try socketPair()
        defer { close(far) }
        let notes = ContextNotes()
        try onLoopThread { _ in
            let socket = noted(near, types, notes)
            schedule(socket)
            put("x", into: far)
            passes(6)
            CFSocketInvalidate(socket)
        }
        #expect(Set(notes.log.entries) == expected)
    }

    @Test func `CS-2 a socket has one source, and calls back in a mode that holds it`() throws {
        let (near, far) = try socketPair()
        defer { close(far) }
        let notes = ContextNotes()
        try onLoopThread { loop in
            let mine = CFRunLoopMode("mine")
            let socket = noted(near, .readCallBack, notes) { socket, _, _, _, info in
                let mode = CFRunLoopCopyCurrentMode(CFRunLoopGetCurrent()).rawValue
                ContextNotes.of(info)?.log.note("\(take(from: CFSocketGetNative(socket))) in \(mode)")
            }
            let source = CFSocketCreateRunLoopSource(kCFAllocatorDefault, socket, 7)
            #expect(CFSocketCreateRunLoopSource(kCFAllocatorDefault, socket, 1) === source)
            #expect(CFRunLoopSourceGetOrder(source) == 0)
            #expect(socket.whyNotDelivering.reason == .notScheduled)
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source, mine)
            put("one", into: far)
            #expect(CFRunLoopRunInMode(.defaultMode, 0, false) == .finished)
            runLoop(mine) { !notes.log.entries.isEmpty }
            put("two", into: far)
            CFRunLoopRemoveSource(CFRunLoopGetCurrent(), source, mine)
            #expect(CFRunLoopRunInMode(mine, 0, false) == .finished)
            #expect(notes.log.entries == ["one in mine"])
            CFSocketInvalidate(socket)
        }
    }

    @Test func `CS-2 a callback that takes the source out of its mode is the last one there`() throws {
        let (near, far) = try socketPair()
        defer { close(far) }
        let notes = ContextNotes()
        try onLoopThread { _ in
            let socket = noted(near, [.readCallBack, .writeCallBack], notes) { socket, _, _, _, info in
                ContextNotes.of(info)?.log.note("called")
                let source = CFSocketCreateRunLoopSource(nil, socket, 0)
                CFRunLoopRemoveSource(CFRunLoopGetCurrent(), source, .defaultMode)
            }
            schedule(socket)
            // Both types are ready.
            put("x", into: far)
            passes(3)
            #expect(notes.log.entries == ["called"])
            schedule(socket)
            passes(3)
            CFSocketInvalidate(socket)
        }
        #expect(notes.log.entries == ["called", "called"])
    }

    @Test func `CS-2 of two loops that hold a listener one is called for each connection`() throws {
        let count = 60
        let notes = ContextNotes()
        let (socket, port) = listener(.acceptCallBack, notes) { _, _, _, data, info in
            guard let handle = data?.load(as: CFSocketNativeHandle.self) else { return }
            ContextNotes.of(info)?.log.note("accepted")
            close(handle)
        }
        let threads = (0..<2).map { _ in
            LoopThread { _ in
                schedule(socket)
                CFRunLoopRun()
            }
        }
        let stranger = try SocketStranger.start(.many, port, count)
        _ = try stranger.line(after: "DONE")
        try waitFor("all connections") { notes.log.count(of: "accepted") >= count ? () : nil }
        // Both loops are empty now, and notice it.
        CFSocketInvalidate(socket)
        for thread in threads { try thread.value() }
        #expect(notes.log.count(of: "accepted") == count)
        #expect(socket.whyNotDelivering.reason == .invalid)
    }

    @Test func `CS-7 CS-15 a socket that waits for nothing says what to call`() throws {
        let thread = RunLoopThread(name: "explained")
        let loop = thread.start()
        defer {
            thread.stop()
            thread.join()
        }
        let notes = ContextNotes()
        let (near, far) = try socketPair()
        defer { close(far) }
        let reading = noted(near, .readCallBack, notes)
        CFSocketDisableCallBacks(reading, CFSocketCallBackType.readCallBack.rawValue)
        let listening = noted(socket(PF_INET, Int32(SOCK_STREAM.rawValue), 0), .acceptCallBack, notes)
        let expected = [
            (reading, "no callback is enabled: call CFSocketEnableCallBacks"),
            (listening, "it does not listen: call CFSocketSetAddress"),
        ]
        for (socket, words) in expected {
            let source = CFSocketCreateRunLoopSource(kCFAllocatorDefault, socket, 0)
            CFRunLoopAddSource(loop, source, .defaultMode)
            let obstacle = try waitFor("a loop that sleeps beside the socket") {
                let found = socket.whyNotDelivering
                return found.reason == .waitsForNothing ? found : nil
            }
            #expect(obstacle.description == words)
            CFSocketInvalidate(socket)
        }
    }

    @Test func `CS-3 read tells of bytes and of a connection, and takes neither`() throws {
        let notes = ContextNotes()
        try onLoopThread { _ in
            let (listening, port) = listener(.readCallBack, notes) { socket, _, address, data, info in
                #expect(address == nil && data == nil)
                let handle = accept(CFSocketGetNative(socket), nil, nil)
                #expect(handle >= 0)
                let connection = noted(handle, .readCallBack, ContextNotes.of(info)!) {
                    socket, _, _, _, info in
                    let text = take(from: CFSocketGetNative(socket))
                    ContextNotes.of(info)?.log.note(text)
                    if text.isEmpty { CFSocketInvalidate(socket) }
                }
                schedule(connection)
            }
            schedule(listening)
            guard let stranger = try? SocketStranger.start(.client, port) else { return }
            stranger.tell("send hello")
            runLoop { notes.log.entries == ["hello"] }
            // The end: there is nothing to read.
            stranger.tell("end")
            runLoop { notes.log.entries == ["hello", ""] }
            CFSocketInvalidate(listening)
        }
        #expect(notes.log.entries == ["hello", ""])
    }

    @Test func `CS-4 connections are handed over one a call, with the peer's address`() throws {
        let notes = ContextNotes()
        try onLoopThread { _ in
            let (listening, listeningPort) = listener(.acceptCallBack, notes) {
                _, type, address, data, info in
                let handle = data!.assumingMemoryBound(to: CFSocketNativeHandle.self).pointee
                #expect(type == .acceptCallBack)
                ContextNotes.of(info)?.log.note("\(port(of: address))")
                // As accept gives it, and not inherited by children.
                #expect(fcntl(handle, F_GETFL) & O_NONBLOCK == 0)
                #expect(fcntl(handle, F_GETFD) & FD_CLOEXEC != 0)
                put("hi", into: handle)
                close(handle)
            }
            guard let strangers = try? (0..<3).map({ _ in try SocketStranger.start(.client, listeningPort) })
            else { return }
            // They are connected, and wait in the kernel's queue.
            let ports = strangers.compactMap { try? $0.line(after: "PORT ") }
            schedule(listening)
            for count in 1...3 {
                CFRunLoopRunInMode(.defaultMode, 0, false)
                #expect(notes.log.entries.count == count)
            }
            #expect(Set(notes.log.entries) == Set(ports))
            for stranger in strangers {
                stranger.tell("read 2")
                #expect((try? stranger.line(after: "GOT ")) == "hi")
            }
            CFSocketInvalidate(listening)
        }
        #expect(notes.log.entries.count == 3)
    }

    @Test func `CS-4 without a callback connections are closed`() throws {
        try onLoopThread { _ in
            let socket: CFSocket = CFSocketCreate(
                nil, PF_INET, SOCK_STREAM, IPPROTO_TCP, CFSocketCallBackType.acceptCallBack.rawValue, nil, nil
            )
            #expect(CFSocketSetAddress(socket, loopbackAddress()) == .success)
            schedule(socket)
            guard let stranger = try? SocketStranger.start(.client, port(of: CFSocketCopyAddress(socket))),
                (try? stranger.line(after: "PORT ")) != nil
            else { return }
            passes(2)
            stranger.tell("read 1")
            // The end has come.
            #expect((try? stranger.line(after: "GOT ")) == "")
            CFSocketInvalidate(socket)
        }
    }

    @Test(arguments: ["end", "reset"])
    func `CS-5 data is read and handed over, and the end once as no bytes`(_ end: String) throws {
        let notes = ContextNotes()
        try onLoopThread { _ in
            guard let stranger = try? SocketStranger.start(.server),
                let theirs = try? stranger.port(after: "PORT ")
            else { return }
            var context = CFSocketContext(info: notes.info)
            let socket: CFSocket = CFSocketCreate(
                nil, PF_INET, SOCK_STREAM, IPPROTO_TCP, CFSocketCallBackType.dataCallBack.rawValue,
                { socket, type, address, data, info in
                    let bytes = Unmanaged<CFData>.fromOpaque(data!).takeUnretainedValue()
                    noteAll(socket, type, address, data, info)
                    ContextNotes.of(info)?.log.note("\(CFDataGetLength(bytes) == 0) \(port(of: address))")
                }, &context)
            #expect(CFSocketConnectToAddress(socket, loopbackAddress(theirs), 10) == .success)
            let native = CFSocketGetNative(socket)
            schedule(socket)
            stranger.tell("send hello")
            runLoop { notes.text == "hello" }
            stranger.tell(end)
            runLoop { notes.log.entries.last?.hasPrefix("true") ?? false }
            // The end was the last callback: the socket is invalid, and closed.
            #expect(CFRunLoopRunInMode(.defaultMode, 0, false) == .finished)
            #expect(!CFSocketIsValid(socket) && CFSocketGetNative(socket) == -1 && !isOpen(native))
            #expect(notes.log.entries.count { $0.hasPrefix("true") } == 1)
            #expect(end == "reset" || notes.log.entries.contains("false \(theirs)"))
        }
        #expect(notes.text == "hello")
    }

    @Test func `CS-5 the end is handed over, too, where the peer has reset the connection before`() throws {
        let (listening, port) = listener([], ContextNotes(), noteAll)
        defer { CFSocketInvalidate(listening) }
        let stranger = try SocketStranger.start(.client, port)
        _ = try stranger.line(after: "PORT ")
        let native = accept(CFSocketGetNative(listening), nil, nil)
        stranger.tell("reset")
        var request = pollfd(fd: native, events: Int16(POLLIN), revents: 0)
        #expect(poll(&request, 1, Int32(testPatience * 1_000)) == 1)
        let notes = ContextNotes()
        try onLoopThread { _ in
            let socket = noted(native, .dataCallBack, notes)
            schedule(socket)
            runLoop { !CFSocketIsValid(socket) }
            #expect(!isOpen(native))
        }
        #expect(notes.log.entries == ["data"] && notes.data.isEmpty)
    }

    @Test func `CS-5 each datagram is a call, with the sender's address`() throws {
        let notes = ContextNotes()
        try onLoopThread { _ in
            var context = CFSocketContext(info: notes.info)
            let socket: CFSocket = CFSocketCreate(
                nil, PF_INET, SOCK_DGRAM, IPPROTO_UDP, CFSocketCallBackType.dataCallBack.rawValue,
                { _, _, address, data, info in
                    let bytes = Unmanaged<CFData>.fromOpaque(data!).takeUnretainedValue() as Data
                    ContextNotes.of(info)?.log.note(
                        "\(String(decoding: bytes, as: UTF8.self)) \(port(of: address))")
                }, &context)
            #expect(CFSocketSetAddress(socket, loopbackAddress()) == .success)
            schedule(socket)
            guard let stranger = try? SocketStranger.start(.datagrams),
                let theirs = try? stranger.port(after: "PORT ")
            else { return }
            let own = port(of: CFSocketCopyAddress(socket))
            for text in ["one", "", "three"] { stranger.tell("sendto \(own) \(text)") }
            runLoop { notes.log.entries.count == 3 }
            #expect(notes.log.entries == ["one \(theirs)", " \(theirs)", "three \(theirs)"])
            #expect(CFSocketIsValid(socket))
            CFSocketInvalidate(socket)
        }
        #expect(notes.log.entries.count == 3)
    }

    @Test(arguments: [SOCK_DGRAM, SOCK_SEQPACKET])
    func `CS-5 a message of a Unix socket is handed over whole, however long`(_ type: __socket_type) throws {
        let (near, far) = try socketPair(type)
        defer { close(far) }
        let notes = ContextNotes()
        let length = 150_000
        try onLoopThread { _ in
            let socket = noted(near, .dataCallBack, notes)
            schedule(socket)
            let bytes = [UInt8](repeating: 7, count: length)
            #expect(send(far, bytes, length, 0) == length)
            runLoop { !notes.log.entries.isEmpty }
            CFSocketInvalidate(socket)
        }
        #expect(notes.data == Data(repeating: 7, count: length) && notes.log.entries == ["data"])
    }
}

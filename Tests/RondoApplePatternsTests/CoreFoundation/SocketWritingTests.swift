import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// CFSocket: connecting, writing, and which callbacks are enabled.
@Suite(.timeLimit(.minutes(2)), .leavesNothing) struct SocketWritingTests {
    private static func socket(_ types: CFSocketCallBackType, _ notes: ContextNotes) -> CFSocket {
        var context = CFSocketContext(info: notes.info)
        return CFSocketCreate(
            nil, PF_INET, SOCK_STREAM, IPPROTO_TCP, types.rawValue,
            { socket, type, _, data, info in
                let code = type == .connectCallBack ? data?.load(as: Int32.self) : nil
                ContextNotes.of(info)?.log.note(code.map { "\(type.word) \($0)" } ?? type.word)
            }, &context)
    }

    /// Writes until the kernel takes no more.
    private static func fill(_ descriptor: Int32) {
        let bytes = [UInt8](repeating: 65, count: 65_536)
        while send(descriptor, bytes, bytes.count, Int32(MSG_DONTWAIT)) > 0 {}
    }

    @Test func `CS-6 write is called when there is room`() throws {
        let (near, far) = try socketPair()
        let notes = ContextNotes()
        try onLoopThread { _ in
            Self.fill(near)
            let socket = noted(near, .writeCallBack, notes)
            schedule(socket)
            passes(3)
            #expect(notes.log.entries.isEmpty)
            while !take(from: far).isEmpty {}
            runLoop { !notes.log.entries.isEmpty }
            #expect(notes.log.entries == ["write"])
            CFSocketInvalidate(socket)
        }
        close(far)
    }

    @Test func `CS-6 connect is called once, with nil where it has succeeded`() throws {
        let notes = ContextNotes()
        try onLoopThread { _ in
            guard let stranger = try? SocketStranger.start(.server),
                let theirs = try? stranger.port(after: "PORT ")
            else { return }
            let socket = Self.socket([.dataCallBack, .connectCallBack, .writeCallBack], notes)
            schedule(socket)
            // Not connected yet: it has nothing to tell.
            passes(3)
            #expect(notes.log.entries.isEmpty)
            #expect(CFSocketConnectToAddress(socket, loopbackAddress(theirs), -1) == .success)
            runLoop { notes.log.entries.count == 2 }
            #expect(notes.log.entries == ["connect", "write"])
            #expect(port(of: CFSocketCopyPeerAddress(socket)) == theirs)
            CFSocketEnableCallBacks(socket, CFSocketCallBackType.connectCallBack.rawValue)
            passes(3)
            #expect(notes.log.entries == ["connect", "write"])
            CFSocketInvalidate(socket)
        }
        #expect(notes.log.entries.count == 2)
    }

    @Test func `CS-6 connect is called with the error where it has failed`() throws {
        let refused = try RefusedPort()
        let notes = ContextNotes()
        try onLoopThread { _ in
            let socket = Self.socket([.dataCallBack, .connectCallBack, .writeCallBack], notes)
            schedule(socket)
            #expect(CFSocketConnectToAddress(socket, loopbackAddress(refused.port), -1) == .success)
            runLoop { !notes.log.entries.isEmpty }
            passes(3)
            CFSocketInvalidate(socket)
        }
        #expect(notes.log.entries == ["connect \(ECONNREFUSED)"])
    }

    @Test func `CS-6 a failure to connect is an end for a socket without the callback`() throws {
        let refused = try RefusedPort()
        let notes = ContextNotes()
        try onLoopThread { _ in
            let socket = Self.socket(.dataCallBack, notes)
            schedule(socket)
            #expect(CFSocketConnectToAddress(socket, loopbackAddress(refused.port), -1) == .success)
            runLoop { !notes.log.entries.isEmpty }
            #expect(!CFSocketIsValid(socket))
        }
        #expect(notes.log.entries == ["data"])
    }

    @Test func `CS-6 connect tells of a connection that the program has begun by itself`() throws {
        let notes = ContextNotes()
        try onLoopThread { _ in
            guard let stranger = try? SocketStranger.start(.server),
                let theirs = try? stranger.port(after: "PORT ")
            else { return }
            let native = Rondo.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            let to = loopbackAddress(theirs)
            _ = connect(native, to.bytes.assumingMemoryBound(to: sockaddr.self), socklen_t(to.length))
            let socket = noted(native, [.dataCallBack, .connectCallBack], notes)
            schedule(socket)
            runLoop { !notes.log.entries.isEmpty }
            CFSocketInvalidate(socket)
        }
        #expect(notes.log.entries == ["connect"])
    }

    @Test func `CS-6 connect tells of an attempt of the program's own that has failed before`() throws {
        let refused = try RefusedPort()
        let notes = ContextNotes()
        let native = Rondo.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
        let to = loopbackAddress(refused.port)
        _ = connect(native, to.bytes.assumingMemoryBound(to: sockaddr.self), socklen_t(to.length))
        var request = pollfd(fd: native, events: Int16(POLLIN), revents: 0)
        #expect(poll(&request, 1, Int32(testPatience * 1_000)) == 1)
        try onLoopThread { _ in
            let socket = noted(native, [.dataCallBack, .connectCallBack], notes) { _, type, _, data, info in
                ContextNotes.of(info)?.log.note("\(type.word) \(data?.load(as: Int32.self) ?? 0)")
            }
            schedule(socket)
            runLoop { !notes.log.entries.isEmpty }
            passes(3)
            CFSocketInvalidate(socket)
        }
        #expect(notes.log.entries == ["connect \(ECONNREFUSED)"])
    }

    /// A callback type, the flag that enables it anew, and whether that is set.
    static let flags: [(CFSocketCallBackType, CFOptionFlags, Bool)] = [
        (.readCallBack, kCFSocketAutomaticallyReenableReadCallBack, true),
        (.readCallBack, kCFSocketAutomaticallyReenableReadCallBack, false),
        (.acceptCallBack, kCFSocketAutomaticallyReenableAcceptCallBack, true),
        (.acceptCallBack, kCFSocketAutomaticallyReenableAcceptCallBack, false),
        (.dataCallBack, kCFSocketAutomaticallyReenableDataCallBack, true),
        (.dataCallBack, kCFSocketAutomaticallyReenableDataCallBack, false),
        (.writeCallBack, kCFSocketAutomaticallyReenableWriteCallBack, true),
        (.writeCallBack, kCFSocketAutomaticallyReenableWriteCallBack, false),
    ]

    @Test(arguments: flags)
    func `CS-7 flags say which callbacks are enabled anew, and enabling acts once`(
        _ type: CFSocketCallBackType, _ flag: CFOptionFlags, _ isSet: Bool
    ) throws {
        let notes = ContextNotes()
        try onLoopThread { _ in
            guard let (socket, makeReady) = Self.everReady(type, notes) else { return }
            let initial = type == .writeCallBack ? 0 : flag
            #expect(CFSocketGetSocketFlags(socket) == kCFSocketCloseOnInvalidate | initial)
            let flags = kCFSocketCloseOnInvalidate | (isSet ? flag : 0)
            CFSocketSetSocketFlags(socket, flags)
            schedule(socket)
            func count() -> Int { notes.log.count(of: type.word) }
            for _ in 0..<4 {
                makeReady()
                passes(1)
            }
            #expect(count() == (isSet ? 4 : 1))
            CFSocketEnableCallBacks(socket, type.rawValue)
            for _ in 0..<2 {
                makeReady()
                passes(1)
            }
            #expect(count() == (isSet ? 6 : 2))
            CFSocketEnableCallBacks(socket, type.rawValue)
            CFSocketDisableCallBacks(socket, type.rawValue)
            makeReady()
            passes(2)
            #expect(count() == (isSet ? 6 : 2))
            CFSocketEnableCallBacks(socket, type.rawValue)
            passes(1)
            #expect(count() == (isSet ? 7 : 3))
            #expect(CFSocketGetSocketFlags(socket) == flags)
            CFSocketInvalidate(socket)
            makeReady()
        }
        #expect(notes.log.entries.count == (isSet ? 7 : 3))
    }

    /// A socket of a type, and a function that makes its condition hold.
    private static func everReady(
        _ type: CFSocketCallBackType, _ notes: ContextNotes
    ) -> (CFSocket, () -> Void)? {
        if type == .acceptCallBack {
            let (socket, port) = listener(type, notes) { socket, type, address, data, info in
                close(data!.load(as: CFSocketNativeHandle.self))
                noteAll(socket, type, address, data, info)
            }
            return (
                socket,
                {
                    let client = Rondo.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                    let address = loopbackAddress(port)
                    _ = connect(
                        client, address.bytes.assumingMemoryBound(to: sockaddr.self),
                        socklen_t(address.length))
                    close(client)
                }
            )
        }
        guard let (near, far) = try? socketPair() else { return nil }
        let socket = noted(near, type, notes)
        return (
            socket,
            {
                if CFSocketIsValid(socket) { put("x", into: far) } else { close(far) }
            }
        )
    }

    @Test func `CS-7 a callback that was disabled in its own call is not enabled anew`() throws {
        let (near, far) = try socketPair()
        defer { close(far) }
        let notes = ContextNotes()
        try onLoopThread { _ in
            let socket = noted(near, .readCallBack, notes) { socket, type, _, _, info in
                ContextNotes.of(info)?.log.note(type.word)
                CFSocketDisableCallBacks(socket, type.rawValue)
            }
            schedule(socket)
            put("x", into: far)
            passes(3)
            CFSocketInvalidate(socket)
        }
        #expect(notes.log.entries == ["read"])
    }

    @Test func `CS-8 a callback that is enabled is made again while its condition holds, and else once`()
        throws
    {
        let (near, far) = try socketPair()
        defer { close(far) }
        let notes = ContextNotes()
        try onLoopThread { _ in
            let socket = noted(near, [.readCallBack, .writeCallBack], notes)
            schedule(socket)
            put("x", into: far)
            passes(5)
            // Nothing was read; there is room.
            #expect(notes.log.count(of: "read") == 4 && notes.log.count(of: "write") == 1)
            _ = take(from: near)
            passes(3)
            #expect(notes.log.entries.count == 5)
            CFSocketInvalidate(socket)
        }
    }

    @Test func `CS-8 reading and writing take turns`() throws {
        let (near, far) = try socketPair()
        defer { close(far) }
        let notes = ContextNotes()
        try onLoopThread { _ in
            let socket = noted(near, [.readCallBack, .writeCallBack], notes)
            CFSocketSetSocketFlags(
                socket, CFSocketGetSocketFlags(socket) | kCFSocketAutomaticallyReenableWriteCallBack)
            schedule(socket)
            put("x", into: far)
            passes(6)
            CFSocketInvalidate(socket)
        }
        #expect(notes.log.entries == ["read", "write", "read", "write", "read", "write"])
    }
}

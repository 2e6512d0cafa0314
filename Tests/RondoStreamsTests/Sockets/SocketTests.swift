import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

@Suite(.leavesNothing) struct SocketTests {
    /// A connected pair: ours, and a plain descriptor for the other end.
    private func pair() throws -> (Socket, Int32) {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, closeOnExec, 0, &ends) == 0)
        return (try Socket(adopting: ends[0]), ends[1])
    }

    private func read(_ socket: Socket, _ count: Int = 100) throws -> (Socket.ReadResult, [UInt8]) {
        var buffer = [UInt8](repeating: 0, count: count)
        let result = try buffer.withUnsafeMutableBytes { try socket.read(into: $0) }
        guard case .bytes(let count) = result else { return (result, []) }
        return (result, Array(buffer.prefix(count)))
    }

    @Test func `a socket writes and reads bytes, and reports the end as often as it is asked`() throws {
        let (socket, other) = try pair()
        defer { close(other) }
        #expect(try read(socket).0 == .wantsRead)
        #expect(try [1, 2, 3].withUnsafeBytes { try socket.write($0) } == .bytes(3 * 8))
        var bytes = [UInt8](repeating: 0, count: 24)
        #expect(recv(other, &bytes, 24, 0) == 24)
        #expect(send(other, "hello", 5, 0) == 5)
        #expect(try read(socket, 2).1 == Array("he".utf8))
        #expect(try read(socket).1 == Array("llo".utf8))
        #expect(try read(socket, 0).0 == .bytes(0))
        shutdown(other, Int32(SHUT_WR))
        #expect(try read(socket).0 == .end)
        #expect(try read(socket).0 == .end)
    }

    @Test func `a full socket wants to be writable and a gone peer is an error without a signal`() throws {
        let (socket, other) = try pair()
        let bytes = [UInt8](repeating: 7, count: 1 << 20)
        var result = Socket.WriteResult.bytes(0)
        while result != .wantsWrite { result = try bytes.withUnsafeBytes { try socket.write($0) } }
        close(other)
        // A program that another test starts has the other end, too, from its fork to its exec.
        let error = try waitFor("the error") { () -> SocketError? in
            do throws(SocketError) {
                _ = try bytes.withUnsafeBytes { bytes in
                    Result { () throws(SocketError) in try socket.write(bytes) }
                }.get()
                return nil
            } catch {
                return error
            }
        }
        #expect(error == SocketError(code: EPIPE, operation: .write))
        #expect(error.description == "could not write: Broken pipe (EPIPE)")
    }

    @Test func `closing is idempotent and ends everything`() throws {
        let (socket, other) = try pair()
        let number = socket.descriptor
        socket.close()
        socket.close()
        #expect(socket.descriptor == -1)
        #expect(number >= 0)
        var byte: UInt8 = 0
        #expect(recv(other, &byte, 1, 0) == 0)
        #expect(throws: SocketError(code: EBADF, operation: .read)) { try read(socket) }
        #expect(!socket.isQuiet())
        #expect(!socket.isReadable())
        close(other)
    }

    @Test func `a socket that is dropped is closed`() throws {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, closeOnExec, 0, &ends) == 0)
        _ = try Socket(adopting: ends[0])
        var byte: UInt8 = 0
        #expect(recv(ends[1], &byte, 1, 0) == 0)
        close(ends[1])
    }

    @Test func `an idle connection is quiet until the peer speaks or closes`() throws {
        let (socket, other) = try pair()
        #expect(socket.isQuiet())
        #expect(send(other, "x", 1, 0) == 1)
        #expect(!socket.isQuiet())
        _ = try read(socket)
        #expect(socket.isQuiet())
        close(other)
        #expect(!socket.isQuiet())
    }

    @Test func `a connected socket has both addresses, does not block, and closes on exec`() throws {
        let listener = try TestListener()
        let socket = try Socket.connecting(to: listener.address)
        try waitUntilWritable(socket)
        #expect(try socket.finishConnecting(to: listener.address))
        #expect(socket.peerAddress == listener.address)
        #expect(socket.localAddress?.host == "127.0.0.1")
        #expect(fcntl(socket.descriptor, F_GETFD) & FD_CLOEXEC != 0)
        #expect(fcntl(socket.descriptor, F_GETFL) & O_NONBLOCK != 0)
        var on: Int32 = 0
        var size = socklen_t(4)
        getsockopt(socket.descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, &size)
        #expect(on != 0)
    }

    @Test func `ST-38 a refused connection says what was tried`() throws {
        // A port that was just free.
        let address = try TestListener().address
        let error = #expect(throws: SocketError.self) {
            let socket = try Socket.connecting(to: address)
            try waitUntilWritable(socket)
            _ = try socket.finishConnecting(to: address)
        }
        #expect(error == SocketError(code: ECONNREFUSED, operation: .connect, address: address))
        #expect(error?.description == "could not connect to \(address): Connection refused (ECONNREFUSED)")
        #expect(error?.posixError.domain == NSPOSIXErrorDomain)
        #expect(error?.posixError.localizedDescription == error?.description)
    }

    @Test func `connecting to a Unix path that is too long or missing throws`() {
        let long = SocketAddress.unix(path: String(repeating: "x", count: 200))
        #expect(throws: SocketError(code: ENAMETOOLONG, operation: .connect, address: long)) {
            try Socket.connecting(to: long)
        }
        let missing = SocketAddress.unix(path: "/nonexistent/socket")
        #expect(throws: SocketError(code: ENOENT, operation: .connect, address: missing)) {
            try Socket.connecting(to: missing)
        }
    }

    @Test func `an invalid descriptor cannot be adopted`() {
        #expect(throws: SocketError(code: EBADF, operation: .open)) { try Socket(adopting: -1) }
    }
}

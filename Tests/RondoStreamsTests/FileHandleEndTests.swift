import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

/// Tests how the end of what a handle has open is told to a handler that a loop calls.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct FileHandleEndTests {
    @Test(arguments: [true, false])
    func `FH-14 the end of a terminal that has hung up, and of the null device, is told once`(
        isTerminal: Bool
    ) throws {
        let findings = try onStreamThread { loop in
            let handle: FileHandle
            if isTerminal {
                let (reading, peer) = try HandleKind.terminal.make()
                peer.end()
                handle = reading
            } else {
                handle = try #require(FileHandle(forReadingAtPath: "/dev/null"))
            }
            let log = EventLog()
            try handle.schedule(in: loop, forMode: .default)
            handle.scheduledReadabilityHandler = { log.note("\($0.availableData.count)") }
            loop.pass()
            return log.entries + ["\(handle.scheduledReadabilityHandler == nil)"]
        }
        #expect(findings == ["0", "true"])
    }

    @Test(arguments: [HandleKind.pipe, .fifo])
    func `FH-14 FH-10 a pipe that another reader has emptied is at its end only without a writer`(
        kind: HandleKind
    ) throws {
        let (handle, peer) = try kind.make()
        let descriptor = handle.fileDescriptor
        peer.write("x")
        let found = SocketCalls.poll(descriptor, for: POLLIN)
        #expect(FileHandleHandlers.content(of: descriptor, found: found) == .bytes)
        // The other reader is first.
        #expect(handle.availableData.count == 1)
        #expect(FileHandleHandlers.content(of: descriptor, found: found) == .nothing)
        peer.write("y")
        peer.end()
        let foundAtEnd = SocketCalls.poll(descriptor, for: POLLIN)
        #expect(FileHandleHandlers.content(of: descriptor, found: foundAtEnd) == .bytes)
        #expect(handle.availableData.count == 1)
        #expect(FileHandleHandlers.content(of: descriptor, found: foundAtEnd) == .end)
    }

    @Test(arguments: [HandleKind.unixSocket, .tcpSocket])
    func `FH-14 FH-10 a socket that another reader has emptied gives nothing to read`(kind: HandleKind) throws
    {
        let (handle, peer) = try kind.make()
        let descriptor = handle.fileDescriptor
        peer.write("x")
        try waitFor("the byte") { handle.waitingBytes == 1 ? () : nil }
        let found = SocketCalls.poll(descriptor, for: POLLIN)
        #expect(FileHandleHandlers.content(of: descriptor, found: found) == .bytes)
        // The other reader is first.
        #expect(handle.availableData.count == 1)
        #expect(FileHandleHandlers.content(of: descriptor, found: found) == .nothing)
        peer.end()
        try waitFor("the end") { FileHandleHandlers.content(of: descriptor, found: found) == .end ? () : nil }
    }

    @Test func `FH-14 FH-10 a datagram that another reader has taken is not there, and an empty one is`()
        throws
    {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        let (ours, theirs) = (ends[0], ends[1])
        defer {
            close(ours)
            close(theirs)
        }
        var byte: UInt8 = 0
        let sent = send(theirs, &byte, 0, 0)
        #expect(sent == 0)
        let found = SocketCalls.poll(ours, for: POLLIN)
        #expect(FileHandleHandlers.content(of: ours, found: found) == .bytes)
        let received = recv(ours, &byte, 1, 0)
        #expect(received == 0)
        #expect(FileHandleHandlers.content(of: ours, found: found) == .nothing)
        // A read does not wait then.
        #expect(shutdown(ours, Int32(SHUT_RD)) == 0)
        #expect(FileHandleHandlers.content(of: ours, found: found) == .bytes)
    }
}

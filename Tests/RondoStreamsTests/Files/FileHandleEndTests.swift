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

    @Test func `FH-14 a datagram socket with IP_RECVERR is ready until its queue of errors is empty`() throws
    {
        let kind = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        let (ours, theirs) = (socket(AF_INET, kind, 0), socket(AF_INET, kind, 0))
        defer { close(ours) }
        var isOn: Int32 = 1
        let isSet = setsockopt(
            ours, Int32(IPPROTO_IP), IP_RECVERR, &isOn, socklen_t(MemoryLayout<Int32>.size))
        #expect(isSet == 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isConnected = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(theirs, $0, size) == 0 && getsockname(theirs, $0, &size) == 0
                    && connect(ours, $0, size) == 0
            }
        }
        try #require(isConnected)
        // No socket has the port any more.
        close(theirs)
        var byte: UInt8 = 0
        let sent = send(ours, &byte, 1, 0)
        #expect(sent == 1)
        let found = try waitFor("the error") {
            let events = SocketCalls.poll(ours, for: POLLIN)
            return events == 0 ? nil : events
        }
        // The error itself, which this call consumes.
        #expect(FileHandleHandlers.content(of: ours, found: found) == .nothing)
        #expect(FileHandleHandlers.content(of: ours, found: found) == .bytes)
        var message = msghdr()
        let received = recvmsg(ours, &message, Int32(MSG_ERRQUEUE))
        #expect(received == 0)
        #expect(FileHandleHandlers.content(of: ours, found: found) == .nothing)
    }
}

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
}

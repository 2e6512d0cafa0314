import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

/// Streams of pipes to other processes.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct PipeEndTests {
    /// A stream that its own closure refers to.
    ///
    /// `@unchecked Sendable`: used on one thread.
    private final class Held: @unchecked Sendable {
        weak var stream: InputStream?
    }

    /// Opens a stream of a pipe, writes and ends, and closes the stream where its end is reported.
    ///
    /// - Parameter reads: The program finds the end by a read, and not by an event.
    /// - Returns: The status at the end and afterwards, once for each report.
    private static func statesAtEnd(reads: Bool) throws -> [String] {
        try onStreamThread { loop in
            let (handle, peer) = try HandleKind.pipe.make()
            let reading = fcntl(handle.fileDescriptor, F_DUPFD_CLOEXEC, 0)
            _ = fcntl(reading, F_SETFL, O_NONBLOCK)
            let (held, log) = (Held(), EventLog())
            let stream = InputStream(pipe: reading, name: "test") {
                guard let stream = held.stream else { return log.note("gone") }
                let before = stream.streamStatus
                stream.close()
                log.note("\(before == .atEnd) \(stream.streamStatus == .closed)")
            }
            held.stream = stream
            if !reads { stream.schedule(in: loop, forMode: .default) }
            stream.open()
            peer.end()
            if reads {
                log.note(stream.text())
            } else {
                try loop.run { !log.entries.isEmpty }
            }
            return log.entries
        }
    }

    /// In a process of their own, since a lock that is taken twice ends it.
    @Test func `CH-11 the end is reported while no lock is held, so that the stream can be closed there`()
        async
    {
        await #expect(processExitsWith: .success) {
            let byEvent = try Self.statesAtEnd(reads: false)
            precondition(byEvent == ["true true"], "\(byEvent)")
            let byRead = try Self.statesAtEnd(reads: true)
            precondition(byRead == ["true true", "0"], "\(byRead)")
        }
    }
}

import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// A Unix socket where as many wait to be accepted as may.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct BusyUnixSocketTests {
    /// A listening socket whose queue is full.
    private final class FullServer {
        let path = temporaryPath()
        private let listener: Int32
        private var waiting: [Int32] = []

        init() throws {
            listener = try PlainSocket.listening(atPath: path)
            // Fewer than before: what waits already stays.
            listen(listener, 0)
            while let descriptor = try? PlainSocket.connected(toPath: path, waits: false) {
                waiting.append(descriptor)
            }
            try #require(!waiting.isEmpty)
        }

        /// Makes room, and answers how many had waited.
        func acceptAll() -> Int {
            for _ in waiting { close(accept(listener, nil, nil)) }
            return waiting.count
        }

        func acceptOne() -> Int32 { accept(listener, nil, nil) }

        deinit {
            for descriptor in waiting { close(descriptor) }
            close(listener)
            unlink(path)
        }
    }

    @Test func `ST-38 a stream waits for room in the queue, and does not spin meanwhile`() throws {
        let findings = try onStreamThread { loop in
            let server = try FullServer()
            let (input, output) = streamsToUnixSocket(server.path)
            let notes = StreamNotes()
            output.delegate = notes
            let waits = EventLog()
            let observer = RunLoop.Observer(activities: .beforeWaiting, repeats: true) { _, _ in
                waits.note("wait")
            }
            loop.add(observer, forMode: .default)
            output.schedule(in: loop, forMode: .default)
            output.open()
            // Ten attempts and more if it went by their number: a machine that is slow makes fewer.
            _ = loop.run(in: .default, for: 0.5, returnAfterSourceHandled: false)
            let meanwhile = notes.events
            let calm = waits.entries.count < 20
            _ = server.acceptAll()
            try loop.run { notes.events.contains("space") }
            #expect(output.writeAll([7]))
            let peer = server.acceptOne()
            var byte: UInt8 = 0
            let count = recv(peer, &byte, 1, 0)
            close(peer)
            output.close()
            observer.invalidate()
            withExtendedLifetime(input) {}
            return ["\(meanwhile) \(calm) \(notes.events) \(count) \(byte)"]
        }
        #expect(findings == [#"[] true ["open", "space"] 1 7"#])
    }

    @Test func `the time to connect limits the wait for room in a Unix socket's queue`() throws {
        let findings = try onStreamThread { loop in
            let server = try FullServer()
            let (input, output) = streamsToUnixSocket(server.path)
            var options = SocketOptions()
            options.connectTimeout = 0.1
            #expect(output.setProperty(options as AnyObject, forKey: .socketOptionsKey))
            output.open()
            let count = output.write([1], maxLength: 1)
            let error = output.streamError as NSError?
            output.close()
            withExtendedLifetime((server, input)) {}
            return ["\(count) \(error?.domain ?? "") \(error?.code == Int(ETIMEDOUT))"]
        }
        #expect(findings == ["-1 NSPOSIXErrorDomain true"])
    }

    @Test func `a stream that is closed while it waits leaves nothing`() throws {
        _ = try onStreamThread { loop in
            let server = try FullServer()
            let (_, output) = streamsToUnixSocket(server.path)
            output.schedule(in: loop, forMode: .default)
            output.open()
            _ = loop.run(in: .default, for: 0.03, returnAfterSourceHandled: false)
            output.close()
            withExtendedLifetime(server) {}
            return []
        }
    }

    @Test func `a writer that is closed while its stream waits does not wait with it`() async throws {
        let server = try FullServer()
        let thread = RunLoopThread(name: "busy")
        let loop = thread.start()
        defer { thread.stop() }
        nonisolated(unsafe) let output = streamsToUnixSocket(server.path).1
        let writer = StreamWriter(output, in: loop)
        let log = EventLog()
        Task {
            await writer.close()
            log.note("closed")
        }
        let limit = Date(timeIntervalSinceNow: 30)
        while log.entries.isEmpty, Date() < limit { await Task.yield() }
        #expect(log.entries == ["closed"])
        withExtendedLifetime(server) {}
    }
}

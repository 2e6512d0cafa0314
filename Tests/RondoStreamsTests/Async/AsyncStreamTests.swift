import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

/// Streams for tasks. Each test has a loop of its own, on a thread that runs until the test ends.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct AsyncStreamTests {
    private func withLoop(
        mode: RunLoop.Mode = .default, _ body: (RunLoop) async throws -> Void
    ) async throws {
        let thread = RunLoopThread(name: "async", mode: mode)
        let loop = thread.start()
        defer { thread.stop() }
        try await body(loop)
    }

    private func all(_ chunks: StreamChunks) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        for try await chunk in chunks {
            #expect(!chunk.isEmpty)
            bytes += chunk
        }
        return bytes
    }

    @Test(arguments: [0, 1, 300, 200_000])
    func `the chunks of every kind of stream are the whole content`(count: Int) async throws {
        let content = pattern(count)
        try await withLoop { loop in
            for kind in [StreamKind.memory, .file, .bound, .socket, .secured, .unix, .adopted] {
                let (stream, keep) = try kind.makeInput(content)
                nonisolated(unsafe) let handed = stream
                #expect(try await all(StreamChunks(handed, in: loop)) == content, "\(kind)")
                withExtendedLifetime(keep) {}
            }
        }
    }

    @Test func `a chunk is no longer than asked for`() async throws {
        try await withLoop { loop in
            var lengths: [Int] = []
            for try await chunk in StreamChunks(
                InputStream(data: Data(pattern(10))), in: loop, maximumLength: 4)
            {
                lengths.append(chunk.count)
            }
            #expect(lengths == [4, 4, 2])
        }
    }

    @Test func `a chunk of any length has at most a mebibyte, and the memory of its bytes`() async throws {
        try await withLoop { loop in
            var received: [UInt8] = []
            let content = pattern((1 << 20) + 10)
            for try await chunk in StreamChunks(
                InputStream(data: Data(content)), in: loop, maximumLength: .max)
            {
                #expect(chunk.count <= 1 << 20)
                #expect(chunk.capacity < 2 * chunk.count + 1_000)
                received += chunk
            }
            #expect(received == content)
        }
    }

    @Test func `writes wait until all is taken, and arrive in order`() async throws {
        try await withLoop { loop in
            let sink = Sink()
            let server = try UnixServer { sink.take($0) }
            nonisolated(unsafe) let output = streamsToUnixSocket(server.path).1
            let writer = StreamWriter(output, in: loop)
            for index in 0..<50 { try await writer.write([UInt8](repeating: UInt8(index), count: 20_000)) }
            try await writer.write([])
            try await writer.write(Data([1, 2]))
            try await writer.write([9, 3, 9][1...1])
            await writer.close()
            await writer.close()
            var expected = (0..<50).flatMap { [UInt8](repeating: UInt8($0), count: 20_000) }
            expected += [1, 2, 3]
            #expect(sink.received() == expected)
            await #expect(throws: NSError.self) { try await writer.write([1]) }
        }
    }

    @Test func `a pair reads and writes at the same time, to the end of both directions`() async throws {
        let (server, port) = try PythonServer.start(.plainEcho)
        defer { server.terminate() }
        try await withLoop { loop in
            nonisolated(unsafe) let streams = streamsToHost(port)
            let pair = AsyncStreamPair(StreamPair(input: streams.0, output: streams.1), in: loop)
            let content = pattern(1_000_000)
            async let sent: Void = {
                try await pair.writer.write(content)
                await pair.writer.close()
            }()
            // The end comes because the other side was told that no more will come.
            #expect(try await all(pair.chunks) == content)
            try await sent
        }
    }

    @Test func `a reader that takes its time holds the writer back`() async throws {
        try await withLoop { loop in
            nonisolated(unsafe) let (input, output) = boundStreams(10)
            let chunks = StreamChunks(input, in: loop)
            let writer = StreamWriter(output, in: loop)
            let written = Mutex(0)
            let writing = Task {
                for _ in 0..<10 {
                    try await writer.write(pattern(10))
                    written.withLock { $0 += 1 }
                }
                await writer.close()
            }
            var iterator = chunks.makeAsyncIterator()
            var counts: [Int] = []
            var received = 0
            while let chunk = try await iterator.next() {
                received += chunk.count
                // What is written and not read is never more than the pair holds.
                counts.append(written.withLock { $0 } * 10 - received)
            }
            try await writing.value
            #expect(received == 100)
            #expect(counts.allSatisfy { $0 <= 10 })
        }
    }

    @Test func `chunks of a stream are not read while the loop runs another mode`() async throws {
        let mode = RunLoop.Mode("its own")
        try await withLoop(mode: mode) { loop in
            nonisolated(unsafe) let stream = InputStream(data: Data([1]))
            let chunks = StreamChunks(stream, in: loop, forMode: .default)
            let reading = Task { try await all(chunks) }
            // The loop runs in its mode, and serves what comes behind.
            await withCheckedContinuation { done in loop.perform(inModes: [mode]) { done.resume() } }
            reading.cancel()
            await #expect(throws: CancellationError.self) { try await reading.value }
        }
    }

    @Test func `a cancelled task stops waiting and no byte is lost`() async throws {
        try await withLoop { loop in
            let (ours, theirs) = try PlainSocket.pair()
            defer { close(theirs) }
            nonisolated(unsafe) let input = ownedStreamsOnSocket(ours).0
            let chunks = StreamChunks(input, in: loop)
            for _ in 0..<20 {
                let waiting = Task { () -> [UInt8]? in
                    var iterator = chunks.makeAsyncIterator()
                    return try await iterator.next()
                }
                await Task.yield()
                waiting.cancel()
                await #expect(throws: CancellationError.self) { try await waiting.value }
            }
            PlainSocket.send([1, 2, 3], on: theirs)
            var iterator = chunks.makeAsyncIterator()
            var received: [UInt8] = []
            while received.count < 3, let chunk = try await iterator.next() { received += chunk }
            #expect(received == [1, 2, 3])
        }
    }

    /// Two chunks of a line each, which have come already, and the end.
    private func waitingChunks(in loop: RunLoop) throws -> StreamChunks {
        let (ours, theirs) = try PlainSocket.pair()
        PlainSocket.send(Array("one\ntwo\n".utf8), on: theirs)
        close(theirs)
        nonisolated(unsafe) let input = ownedStreamsOnSocket(ours).0
        return StreamChunks(input, in: loop, maximumLength: 4)
    }

    @Test func `two chunks, or lines, that have come before the first is asked for come in order`()
        async throws
    {
        try await withLoop { loop in
            var chunks: [[UInt8]] = []
            for try await chunk in try waitingChunks(in: loop) { chunks.append(chunk) }
            #expect(chunks == [Array("one\n".utf8), Array("two\n".utf8)])
            var lines: [String] = []
            for try await line in try waitingChunks(in: loop).lines { lines.append(line) }
            #expect(lines == ["one", "two"])
        }
    }

    /// The elements that the calling task gets, which is cancelled when it has the first one.
    private func takeUntilCancelled<Elements: AsyncSequence>(
        _ elements: Elements
    ) async throws -> [Elements.Element] {
        var taken: [Elements.Element] = []
        do {
            for try await element in elements {
                taken.append(element)
                withUnsafeCurrentTask { $0?.cancel() }
            }
        } catch is CancellationError {}
        return taken
    }

    @Test func `a task that is cancelled between two chunks, or lines, leaves the second to another task`()
        async throws
    {
        try await withLoop { loop in
            let chunks = try waitingChunks(in: loop)
            let taken = try await Task { try await takeUntilCancelled(chunks) }.value
            #expect(taken.first == Array("one\n".utf8))
            let rest = try await all(chunks)
            #expect(Array(taken.joined()) + rest == Array("one\ntwo\n".utf8))
            let others = try waitingChunks(in: loop)
            var lines = try await Task { try await takeUntilCancelled(others.lines) }.value
            #expect(lines.first == "one")
            for try await line in others.lines { lines.append(line) }
            #expect(lines == ["one", "two"])
        }
    }

    @Test func `a cancelled write is given up and closing is not`() async throws {
        try await withLoop { loop in
            nonisolated(unsafe) let (input, output) = boundStreams(4)
            input.open()
            let writer = StreamWriter(output, in: loop)
            try await writer.write([1, 2, 3, 4])
            let waiting = Task { try await writer.write([5]) }
            await Task.yield()
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            let closing = Task { await writer.close() }
            closing.cancel()
            await closing.value
            #expect(input.allBytes() == (0, [1, 2, 3, 4]))
        }
    }

    /// Waits until something is the case; only a failure takes long.
    private func wait(until isDone: () -> Bool) async {
        let limit = Date(timeIntervalSinceNow: 30)
        while !isDone(), Date() < limit { await Task.yield() }
        #expect(isDone())
    }

    /// A stream whose opening never ends. It notes each question for its status.
    private final class OpeningStream: OutputStream {
        let log = EventLog()

        override var streamStatus: Foundation.Stream.Status {
            log.note("status")
            return .opening
        }
    }

    @Test func `a close behind a write that is cancelled does not wait for the connection`() async throws {
        try await withLoop { loop in
            nonisolated(unsafe) let output = OpeningStream(toMemory: ())
            let log = output.log
            let writer = StreamWriter(output, in: loop)
            let writing = Task { try await writer.write([1]) }
            // The first question is that of the start.
            await wait { log.entries.count >= 2 }
            Task { await writer.close() }
            // The loop has served the close: it waits for the write.
            await wait { log.entries.count >= 3 }
            writing.cancel()
            await #expect(throws: CancellationError.self) { try await writing.value }
            // A close that waits for ever is ended with the loop's thread.
            await wait { writer.waitingCount == 0 }
        }
    }

    @Test func `the stream's error is thrown to all waiting tasks, and again`() async throws {
        let refused = try RefusedPort()
        try await withLoop { loop in
            nonisolated(unsafe) let streams = streamsToHost(refused.port)
            let pair = AsyncStreamPair(StreamPair(input: streams.0, output: streams.1), in: loop)
            for _ in 0..<2 {
                let error = await #expect(throws: NSError.self) { try await all(pair.chunks) }
                #expect(error?.code == Int(ECONNREFUSED))
                await #expect(throws: NSError.self) { try await pair.writer.write([1]) }
            }
            await pair.writer.close()
        }
    }

    @Test func `a fixed buffer that is full is an error`() async throws {
        try await withLoop { loop in
            let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: 3)
            defer { memory.deallocate() }
            nonisolated(unsafe) let output = OutputStream(toBuffer: memory, capacity: 3)
            let writer = StreamWriter(output, in: loop)
            let error = await #expect(throws: NSError.self) { try await writer.write([1, 2, 3, 4]) }
            #expect(error?.code == Int(ENOSPC))
            await writer.close()
        }
    }

    @Test func `a close that waits behind a write which fails closes the stream`() async throws {
        try await withLoop { loop in
            let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: 3)
            defer { memory.deallocate() }
            let mode = RunLoop.Mode("held")
            // Unsafe: until the writer is closed it alone uses the stream, on the loop's thread; the test looks afterwards.
            nonisolated(unsafe) let output = OutputStream(toBuffer: memory, capacity: 3)
            let writer = StreamWriter(output, in: loop, forMode: mode)
            let writing = Task { try await writer.write([1, 2, 3, 4]) }
            await wait { writer.waitingCount == 1 }
            Task { await writer.close() }
            await wait { writer.waitingCount == 2 }
            loop.perform { loop.run(mode: mode, before: .distantPast) }
            let error = await #expect(throws: NSError.self) { try await writing.value }
            #expect(error?.code == Int(ENOSPC))
            await wait { writer.waitingCount == 0 }
            #expect(output.streamStatus == .closed)
        }
    }

    @Test func `writes that are cancelled while they wait leave the others in their order`() async throws {
        try await withLoop { loop in
            let mode = RunLoop.Mode("held")
            // Unsafe: until all writes are done the writer alone uses the stream, on the loop's thread; the test looks afterwards.
            nonisolated(unsafe) let output = OutputStream(toMemory: ())
            let writer = StreamWriter(output, in: loop, forMode: mode)
            var writes: [Task<Void, any Error>] = []
            for number in 0..<100 as Range<UInt8> {
                writes.append(Task { try await writer.write([number]) })
                await wait { writer.waitingCount == Int(number) + 1 }
            }
            for (number, writing) in writes.enumerated() where number % 10 != 9 {
                writing.cancel()
                await #expect(throws: CancellationError.self) { try await writing.value }
            }
            #expect(writer.waitingCount == 10)
            loop.perform {
                while writer.waitingCount > 0 { loop.run(mode: mode, before: .distantPast) }
            }
            for (number, writing) in writes.enumerated() where number % 10 == 9 { try await writing.value }
            let written = output.property(forKey: .dataWrittenToMemoryStreamKey) as? Data
            #expect(written.map(Array.init) == stride(from: 9, to: 100, by: 10).map { UInt8($0) })
        }
    }

    @Test func `a loop whose thread ends keeps no task waiting`() async throws {
        let thread = RunLoopThread(name: "ending")
        let loop = thread.start()
        nonisolated(unsafe) let (input, output) = boundStreams(4)
        let chunks = StreamChunks(input, in: loop)
        let writer = StreamWriter(output, in: loop)
        try await writer.write([1, 2, 3, 4])
        let writing = Task { try await writer.write([5]) }
        var iterator = chunks.makeAsyncIterator()
        _ = try await iterator.next()
        try await writing.value
        _ = try await iterator.next()
        let reading = Task { try await all(chunks) }
        await Task.yield()
        thread.stop()
        let error = await #expect(throws: NSError.self) { try await reading.value }
        #expect(error?.code == Int(ESRCH))
        await #expect(throws: NSError.self) { try await writer.write([6]) }
    }

    /// No `nonisolated(unsafe)` here: the compiler has to take it as a program writes it.
    @Test func `a pair of streams goes to a task as a whole, and connects by itself`() async throws {
        // Each serves one connection.
        let servers = try [
            PythonServer.start(.plainEcho), PythonServer.start(.plainEcho), PythonServer.start(.echo),
        ]
        defer { for server in servers { server.0.terminate() } }
        let ports = servers.map { Int($0.1) }
        try await withLoop { loop in
            var input: InputStream?
            var output: OutputStream?
            Foundation.Stream.getStreamsToHost(
                withName: "127.0.0.1", port: ports[0], inputStream: &input, outputStream: &output)
            let made = AsyncStreamPair(StreamPair(input: input!, output: output!), in: loop)
            let connected = AsyncStreamPair(StreamPair(toHost: "127.0.0.1", port: ports[1]), in: loop)
            let secured = AsyncStreamPair(
                StreamPair(toHost: "localhost", port: ports[2], tls: .test), in: loop)
            for pair in [made, connected, secured] {
                try await pair.writer.write([1, 2, 3])
                var iterator = pair.chunks.makeAsyncIterator()
                #expect(try await iterator.next() == [1, 2, 3])
                await pair.writer.close()
            }
            let sink = Sink()
            let server = try UnixServer { sink.take($0) }
            let local = AsyncStreamPair(StreamPair(toUnixSocket: server.path), in: loop)
            try await local.writer.write([4])
            await local.writer.close()
        }
    }

    @Test func `US-85 the lines of a stream, with and without the empty ones`() async throws {
        let text = "one\r\n\ntwo\u{2028}zwölf\rlast"
        try await withLoop { loop in
            for length in [1, 2, 7, 100] {
                var lines: [String] = []
                let some = StreamChunks(InputStream(data: Data(text.utf8)), in: loop, maximumLength: length)
                for try await line in some.lines { lines.append(line) }
                #expect(lines == ["one", "two", "zwölf", "last"])
                lines = []
                let all = StreamChunks(InputStream(data: Data(text.utf8)), in: loop, maximumLength: length)
                for try await line in all.lines(keepingEmpty: true) { lines.append(line) }
                #expect(lines == ["one", "", "two\u{2028}zwölf", "last"])
            }
        }
    }

    @Test func `US-85 a line of a stream that never ends is an error, again and again`() async throws {
        try await withLoop { loop in
            let content = Data(repeating: 65, count: StreamChunks.Lines.maximumLength + 1)
            var iterator = StreamChunks(InputStream(data: content), in: loop).lines.makeAsyncIterator()
            for _ in 0..<2 {
                do {
                    _ = try await iterator.next()
                    Issue.record("a line")
                } catch { #expect((error as NSError).code == Int(EMSGSIZE)) }
            }
        }
    }

    @Test func `a sequence that is dropped closes its stream`() async throws {
        try await withLoop { loop in
            let (ours, theirs) = try PlainSocket.pair()
            defer { close(theirs) }
            do {
                nonisolated(unsafe) let (input, output) = ownedStreamsOnSocket(ours)
                let pair = AsyncStreamPair(StreamPair(input: input, output: output), in: loop)
                try await pair.writer.write([7])
            }
            #expect(PlainSocket.receiveAll(theirs) == [7])
        }
    }
}

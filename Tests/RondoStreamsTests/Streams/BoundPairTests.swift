import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct BoundPairTests {
    @Test func `ST-34 no more than the buffer size is unread`() {
        let (input, output) = boundStreams(4)
        input.open()
        output.open()
        #expect(output.hasSpaceAvailable)
        #expect(!input.hasBytesAvailable)
        #expect(output.write([1, 2, 3, 4, 5, 6], maxLength: 6) == 4)
        #expect(!output.hasSpaceAvailable)
        #expect(input.bytes(3).1 == [1, 2, 3])
        #expect(output.hasSpaceAvailable)
        // Over the edge of the ring.
        #expect(output.write([5, 6, 7, 8], maxLength: 4) == 3)
        #expect(input.bytes().1 == [4, 5, 6, 7])
    }

    @Test(arguments: [Int.min, 0, Int.max])
    func `ST-34 a size that no buffer can have counts as the nearest one`(size: Int) {
        let (input, output) = boundStreams(size)
        input.open()
        output.open()
        #expect(output.write([7], maxLength: 1) == 1)
        var byte: UInt8 = 0
        #expect(input.read(&byte, maxLength: 1) == 1)
        #expect(byte == 7)
        input.close()
        output.close()
    }

    @Test func `ST-35 closing the writing end lets the reader drain the rest`() {
        let (input, output) = boundStreams(10)
        output.open()
        _ = output.writeAll([1, 2])
        output.close()
        input.open()
        #expect(input.bytes(1).1 == [1])
        #expect(input.streamStatus == .open)
        #expect(input.bytes(1).1 == [2])
        #expect(input.streamStatus == .atEnd)
        #expect(input.bytes().0 == 0)
    }

    @Test func `ST-35 closing the reading end makes writes fail`() throws {
        let findings = try onStreamThread { loop in
            let (input, output) = boundStreams(2)
            let notes = StreamNotes()
            output.delegate = notes
            output.schedule(in: loop, forMode: .default)
            output.open()
            input.open()
            _ = output.writeAll([1, 2])
            input.close()
            try loop.run { notes.events.contains("error") }
            return notes.events + [
                "\(output.write([1], maxLength: 1))",
                "\((output.streamError as NSError?)?.code == Int(EPIPE))",
            ]
        }
        #expect(findings == ["open", "error", "-1", "true"])
    }

    @Test func `ST-35 a writer that waits fails when the reader closes`() throws {
        let (input, output) = boundStreams(2)
        let ends = Ends(input: input, output: output)
        input.open()
        let found = try whatWaits {
            ends.output.open()
            return ["\(ends.output.writeAll([1, 2]))", "\(ends.output.write([3], maxLength: 1))"]
        } until: {
            ends.input.close()
        }
        #expect(found == ["true", "-1"])
        #expect((output.streamError as NSError?)?.code == Int(EPIPE))
    }

    @Test func `ST-35 a reader that waits meets the end when the writer closes`() throws {
        let (input, output) = boundStreams(2)
        let ends = Ends(input: input, output: output)
        output.open()
        let found = try whatWaits {
            ends.input.open()
            return ["\(ends.input.bytes().0)", "\(ends.input.streamStatus == .atEnd)"]
        } until: {
            ends.output.close()
        }
        #expect(found == ["0", "true"])
    }

    @Test(arguments: [1, 4, 4_096])
    func `ST-13 ST-27 a pair whose reader only borrows goes on after its buffer was full`(size: Int) throws {
        let content = pattern(size * 5)
        let findings = try onStreamThread { loop in
            let (input, output) = boundStreams(size)
            var rest = content[...]
            let writing = StreamNotes { _, event in
                guard event == .hasSpaceAvailable else { return }
                if rest.isEmpty { return output.close() }
                output.writePart(of: &rest)
            }
            var received: [UInt8] = []
            let reading = StreamNotes { _, event in
                guard event == .hasBytesAvailable else { return }
                var start: UnsafeMutablePointer<UInt8>?
                var count = 0
                guard input.getBuffer(&start, length: &count) else { return }
                received += UnsafeBufferPointer(start: start, count: count)
            }
            output.delegate = writing
            input.delegate = reading
            output.schedule(in: loop, forMode: .default)
            input.schedule(in: loop, forMode: .default)
            output.open()
            input.open()
            try loop.run { reading.events.contains("end") }
            return ["\(received == content)", writing.events.last ?? "none"]
        }
        #expect(findings == ["true", "space"])
    }

    /// A pair whose reader has borrowed bytes, and which is full all the same.
    private func pairWithLoan() throws -> Ends {
        let (input, output) = boundStreams(1)
        input.open()
        output.open()
        let ends = Ends(input: input, output: output)
        #expect(output.write([1], maxLength: 1) == 1)
        #expect(ends.borrow())
        // Lent bytes count as read, so there is room for one more.
        #expect(output.write([2], maxLength: 1) == 1)
        #expect(!output.hasSpaceAvailable)
        return ends
    }

    @Test(arguments: [true, false])
    func `ST-27 a reader that borrows again, or reads after a loan, wakes the writer that waits`(
        borrows: Bool
    ) throws {
        let ends = try pairWithLoan()
        let written = try whatWaits {
            ["\(ends.output.write([3], maxLength: 1))"]
        } until: {
            #expect(borrows ? ends.borrow() : ends.input.bytes(1).1 == [2])
        }
        #expect(written == ["1"])
    }

    @Test(arguments: [true, false])
    func `ST-27 a writer in a loop is told when a reader borrows again, or reads after a loan`(
        borrows: Bool
    ) throws {
        let findings = try onStreamThread { loop in
            let ends = try pairWithLoan()
            let notes = StreamNotes()
            ends.output.delegate = notes
            ends.output.schedule(in: loop, forMode: .default)
            loop.pass()
            let before = notes.events
            let hasMore = borrows ? ends.borrow() : ends.input.bytes(1).1 == [2]
            try loop.run { notes.events.contains("space") }
            return before + ["\(hasMore)"] + notes.events
        }
        #expect(findings == ["true", "space"])
    }

    /// Runs `body` on a thread, calls `change` when that thread waits, and returns the findings of `body`.
    private func whatWaits(
        _ body: @escaping @Sendable () -> Findings, until change: () -> Void
    ) throws -> Findings {
        let thread = Mutex<pid_t>(0)
        let waiting = LoopThread<Findings> { _ in
            thread.withLock { $0 = threadNumber() }
            return body()
        }
        try waitUntilAsleep(
            thread: try waitFor("the thread") { thread.withLock { $0 == 0 ? nil : $0 } })
        change()
        return try waiting.value()
    }

    @Test func `ST-35 a reader in a loop is told of the end that comes later`() throws {
        let findings = try onStreamThread { loop in
            let (input, output) = boundStreams(2)
            let notes = StreamNotes { stream, event in
                // The cast: this is the delegate of one stream alone, and that is an input.
                if event == .hasBytesAvailable { _ = (stream as! InputStream).bytes() }
            }
            input.delegate = notes
            input.schedule(in: loop, forMode: .default)
            input.open()
            output.open()
            _ = output.writeAll([1])
            try loop.run { notes.events.contains("bytes") }
            loop.pass()
            let before = notes.events
            output.close()
            try loop.run { notes.events.contains("end") }
            return ["\(before)"] + notes.events
        }
        #expect(findings == [#"["open", "bytes"]"#, "open", "bytes", "end"])
    }

    @Test func `a reader that is released is one that is closed`() {
        let output: OutputStream
        do {
            let (input, other) = boundStreams(2)
            output = other
            input.open()
            output.open()
        }
        #expect(output.write([1], maxLength: 1) == -1)
    }

    @Test func `a writer that is released is one that is closed`() {
        let input: InputStream
        do {
            let (other, output) = boundStreams(2)
            input = other
            output.open()
            _ = output.writeAll([1])
        }
        input.open()
        #expect(input.allBytes() == (0, [1]))
    }

    @Test(arguments: [1, 7, 4_096])
    func `ST-36 both ends scheduled on different threads`(size: Int) throws {
        let content = pattern(size == 4_096 ? 100_000 : size * 2_000)
        let (input, output) = boundStreams(size)
        let ends = Ends(input: input, output: output)
        let writer = LoopThread<Findings> { loop in
            var rest = content[...]
            let notes = StreamNotes { stream, event in
                guard event == .hasSpaceAvailable else { return }
                if rest.isEmpty { return stream.close() }
                ends.output.writePart(of: &rest)
            }
            ends.output.delegate = notes
            ends.output.schedule(in: loop, forMode: .default)
            ends.output.open()
            do { try loop.run { ends.output.streamStatus == .closed } } catch { return ["threw \(error)"] }
            return []
        }
        let findings = try onStreamThread { loop in
            var received: [UInt8] = []
            let notes = StreamNotes { _, event in
                if event == .hasBytesAvailable { received += ends.input.bytes(1_000).1 }
            }
            ends.input.delegate = notes
            ends.input.schedule(in: loop, forMode: .default)
            ends.input.open()
            try loop.run { notes.events.contains("end") }
            return ["\(received == content)", notes.events.first ?? "none", notes.events.last ?? "none"]
        }
        #expect(findings == ["true", "open", "end"])
        #expect(try writer.value() == [])
    }

    @Test(arguments: [1, 7, 4_096])
    func `ST-34 ST-24 a full pair makes the writer wait and an empty one the reader`(size: Int) throws {
        let content = pattern(size == 1 ? 2_000 : 50_000)
        let (input, output) = boundStreams(size)
        let ends = Ends(input: input, output: output)
        let writer = LoopThread<Bool> { _ in
            ends.output.open()
            defer { ends.output.close() }
            return ends.output.writeAll(content)
        }
        let (last, bytes) = try onLoopThread { _ in
            ends.input.open()
            return ends.input.allBytes(999)
        }
        #expect(try writer.value())
        #expect(last == 0)
        #expect(bytes == content)
    }

    @Test func `ST-25 a thread that waits calls no delegate`() throws {
        let (input, output) = boundStreams(10)
        let ends = Ends(input: input, output: output)
        let waits = DispatchSemaphore(value: 0)
        let thread = Mutex<pid_t>(0)
        let reader = LoopThread<Findings> { loop in
            var findings: Findings = []
            ends.input.open()
            loop.perform(inModes: [.default, .common]) { waits.signal() }
            thread.withLock { $0 = threadNumber() }
            waits.signal()
            findings.append("\(ends.input.bytes().1)")
            return findings
        }
        waits.wait()
        try waitUntilAsleep(thread: thread.withLock { $0 })
        output.open()
        _ = output.writeAll([1])
        #expect(try reader.value() == ["[1]"])
        #expect(waits.wait(timeout: .now()) == .timedOut)
    }

    /// `@unchecked Sendable`: each end is used by one thread, which is what is tested.
    private struct Ends: @unchecked Sendable {
        let input: InputStream
        let output: OutputStream

        /// Has the input lend what it has, and gives nothing back.
        func borrow() -> Bool {
            var start: UnsafeMutablePointer<UInt8>?
            var count = 0
            return input.getBuffer(&start, length: &count)
        }
    }
}

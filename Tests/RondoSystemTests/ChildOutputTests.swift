import Rondo
import RondoMutex
import RondoTestSupport
import RondoTesting
import Testing

/// The pipes of a child (section CH of the rules).
@Suite(.timeLimit(.minutes(5)), .serialized, .leavesNoChild) struct ChildOutputTests {
    private static let other = RunLoop.Mode("other")

    /// Reads an input to its end, and notes what comes.
    private final class Reader: NSObject, StreamDelegate {
        var data = Data()
        var events: [String] = []
        var ended: (() -> Void)?

        func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
            switch eventCode {
            case .openCompleted: events.append("open")
            case .hasBytesAvailable:
                if events.last != "bytes" { events.append("bytes") }
                guard let input = aStream as? InputStream else { return }
                var buffer = [UInt8](repeating: 0, count: 4_096)
                let count = input.read(&buffer, maxLength: buffer.count)
                if count > 0 { data.append(contentsOf: buffer.prefix(count)) }
            case .endEncountered, .errorOccurred:
                events.append(eventCode == .endEncountered ? "end" : "error")
                aStream.close()
                ended?()
            default: break
            }
        }
    }

    /// Writes data into an output in pieces, and closes it.
    private final class Writer: NSObject, StreamDelegate {
        private var rest: Data
        var error: NSError?

        init(_ data: Data) { rest = data }

        func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
            guard let output = aStream as? OutputStream else { return }
            switch eventCode {
            case .hasSpaceAvailable:
                let count = rest.withUnsafeBytes {
                    output.write($0.bindMemory(to: UInt8.self).baseAddress!, maxLength: $0.count)
                }
                if count > 0 { rest = rest.dropFirst(count) }
                if rest.isEmpty { output.close() }
            case .errorOccurred:
                error = output.streamError as NSError?
                output.close()
            default: break
            }
        }
    }

    @Test func `CH-11 streams carry what the child reads and writes, on the loop that they are scheduled on`()
        throws
    {
        let sent = Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let (received, events) = try onLoopThread { loop -> (Data, [String]) in
            let (reader, writer) = (Reader(), Writer(sent))
            do {
                let child = try Child.spawn("cat", standardInput: .stream, standardOutput: .stream)
                let (input, output) = (try #require(child.input), try #require(child.output))
                output.delegate = reader
                input.delegate = writer
                reader.ended = { loop.stop() }
                output.schedule(in: .current, forMode: .default)
                input.schedule(in: .current, forMode: .default)
                output.open()
                input.open()
                loop.runUntilStopped()
            } catch {
                Issue.record(error)
            }
            return (reader.data, reader.events)
        }
        #expect(received == sent)
        #expect(events == ["open", "bytes", "end"])
    }

    @Test func `CH-11 a stream that is scheduled nowhere can be read and written, and waits`() throws {
        let child = try Child.spawn("cat", standardInput: .stream, standardOutput: .stream)
        let (input, output) = (try #require(child.input), try #require(child.output))
        input.open()
        output.open()
        var buffer = [UInt8](repeating: 0, count: 100)
        #expect(!output.hasBytesAvailable)
        #expect(input.hasSpaceAvailable)
        #expect(input.write(Array("words".utf8), maxLength: 5) == 5)
        #expect(output.read(&buffer, maxLength: 100) == 5)
        #expect(buffer.prefix(5) == Array("words".utf8)[...])
        input.close()
        #expect(output.read(&buffer, maxLength: 100) == 0)
        #expect(output.streamStatus == .atEnd)
        #expect(output.read(&buffer, maxLength: 100) == 0)
        output.close()
        try waitUntilGone(child.processIdentifier)
    }

    @Test func `CH-12 completion comes when the process and its outputs have ended, in either order`() throws
    {
        for script in ["exec >&-; exec cat", "cat"] {
            let log = try onLoopThread { loop -> [String] in
                let log = EventLog()
                do {
                    let child = try Child.spawn(
                        "/bin/sh", ["-c", script], standardInput: .stream, standardOutput: .stream)
                    let output = try #require(child.output)
                    let reader = Reader()
                    output.delegate = reader
                    reader.ended = {
                        log.note("output")
                        child.input?.open()
                        child.input?.close()
                    }
                    child.onEnd = { _, _ in log.note("end") }
                    child.onCompletion = { _, _ in
                        log.note("completion")
                        loop.stop()
                    }
                    child.schedule(in: loop, forMode: .default)
                    output.schedule(in: loop, forMode: .default)
                    output.open()
                    if script == "cat" {
                        child.input?.open()
                        child.input?.close()
                    }
                    loop.runUntilStopped()
                } catch {
                    Issue.record(error)
                }
                return log.entries
            }
            #expect(log.last == "completion")
            #expect(Set(log) == ["output", "end", "completion"])
            #expect(log.count == 3)
        }
    }

    /// - Parameter ahead: The seconds by which a clock of the loop is ahead of the machine's; nil: it has none. The
    ///   grace time counts by the machine's.
    @Test(arguments: [nil, 3600] as [TimeInterval?])
    func `CH-12 where a grandchild keeps the output open completion comes after the grace time`(
        ahead: TimeInterval?
    ) throws {
        let log = try onLoopThread { loop -> [String] in
            let log = EventLog()
            if let ahead {
                let clock = ManualClock(advancesAutomatically: false)
                clock.attach(to: loop)
                clock.advance(by: ahead)
            }
            do {
                var configuration = Child.Configuration(
                    "/bin/sh", ["-c", "echo said; exec 3<&0; cat <&3 & exit 0"])
                configuration.standardInput = .stream
                configuration.standardOutput = .collected(limit: 100)
                // What the child has written is there, in the pipe or in memory.
                configuration.outputGrace = 0
                let child = try Child.spawn(configuration)
                child.onEnd = { _, _ in log.note("end") }
                child.onCompletion = { child, _ in
                    log.note(String(decoding: child.collectedOutput, as: UTF8.self))
                    loop.stop()
                }
                child.schedule(in: loop, forMode: .default)
                loop.runUntilStopped()
                child.input?.open()
                child.input?.close()
            } catch {
                Issue.record(error)
            }
            return log.entries
        }
        #expect(log == ["end", "said\n"])
    }

    @Test func `CH-12 of a pipe that the child has enlarged all is collected after the grace time`() throws {
        let script = """
            import fcntl, os
            fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20)
            os.write(1, b'x' * 1000000)
            if os.fork() == 0: os.read(0, 1)
            """
        let size = try onLoopThread { loop -> Int in
            let size = Mutex(0)
            do {
                var configuration = Child.Configuration("/usr/bin/python3", ["-c", script])
                configuration.standardInput = .stream
                configuration.standardOutput = .collected(limit: 2_000_000)
                configuration.outputGrace = 0
                let child = try Child.spawn(configuration)
                child.onCompletion = { child, _ in
                    size.withLock { $0 = child.collectedOutput.count }
                    loop.stop()
                }
                child.schedule(in: loop, forMode: .default)
                // Its whole output waits in the pipe when the loop begins to run.
                var information = siginfo_t()
                waitid(P_PID, id_t(child.processIdentifier), &information, WEXITED | WNOWAIT)
                loop.runUntilStopped()
                child.input?.open()
                child.input?.close()
            } catch {
                Issue.record(error)
            }
            return size.withLock { $0 }
        }
        #expect(size == 1_000_000)
    }

    /// - Parameter inside: The mode that the callback runs its loop in; nil if it does not.
    @Test(arguments: [nil, .default, .tracking] as [RunLoop.Mode?])
    func `CH-12 CH-23 two loops tell one after the other, and the one that tells goes on`(
        inside: RunLoop.Mode?
    ) throws {
        var configuration = Child.Configuration("/bin/sh", ["-c", "exec 3<&0; cat <&3 & exit 0"])
        configuration.standardInput = .stream
        configuration.standardOutput = .stream
        configuration.outputGrace = testPatience + 5
        let child = try Child.spawn(configuration)
        let log = EventLog()
        let outputHasEnded = Latch()
        let reading = LoopThread { loop in
            guard let output = child.output else { return }
            let reader = Reader()
            reader.ended = { outputHasEnded.open() }
            output.delegate = reader
            output.schedule(in: loop, forMode: .default)
            output.open()
            loop.add(Port(), forMode: .default)
            loop.runUntilStopped()
        }
        let other = try reading.loop
        child.onEnd = { child, _ in
            log.note("end")
            // Now the other loop has the child as well, and learns that its output has ended.
            child.schedule(in: other, forMode: .default)
            child.input?.open()
            child.input?.close()
            outputHasEnded.waitOrRecord()
            // Its source has been signalled by then.
            try? other.waitUntilServed()
            // Run inside the callback, the loop that tells gets what the other one has found.
            if let inside {
                let own = RunLoop.current
                // What the other loop has left waits in the mode in which this one had the child.
                if inside != .default {
                    child.unschedule(from: own, forMode: .default)
                    child.schedule(in: own, forMode: inside)
                }
                _ = own.run(in: inside, for: testPatience + 5, returnAfterSourceHandled: true)
            }
            log.note("end was told")
        }
        let telling = LoopThread { loop in
            child.onCompletion = { _, _ in
                log.note("completion on \(RunLoop.current === loop ? "the same" : "the other") loop")
                loop.stop()
            }
            child.schedule(in: loop, forMode: .default)
            loop.runUntilStopped()
        }
        try telling.value()
        other.stop()
        try reading.value()
        let (told, completed) = ("end was told", "completion on the same loop")
        #expect(log.entries == ["end"] + (inside != nil ? [completed, told] : [told, completed]))
    }

    @Test func `CH-13 while the modes of an output do not run nothing is read, and the child waits`() throws {
        let child = try Child.spawn("yes", standardOutput: .stream)
        try onLoopThread { loop in
            guard let output = child.output else { return }
            let reader = Reader()
            output.delegate = reader
            output.schedule(in: loop, forMode: Self.other)
            output.open()
            loop.add(Port(), forMode: .default)
            // It sleeps in a write, since its pipe is full.
            _ = try? waitFor("the child to be held back") { () -> Void? in
                _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
                return stateOf(child.processIdentifier) == "S" ? () : nil
            }
            #expect(reader.data.isEmpty)
            _ = loop.run(in: Self.other, for: testPatience + 5, returnAfterSourceHandled: true)
            _ = loop.run(in: Self.other, for: 0, returnAfterSourceHandled: false)
            #expect(!reader.data.isEmpty)
            output.close()
        }
        // A write without a reader ends it.
        try waitUntilGone(child.processIdentifier)
    }

    @Test func `CH-14 an output beyond its limit stops the child, and is an error`() async throws {
        for limit in [0, 1_000] {
            await #expect {
                try await Child.run("yes", output: .string(limit: limit))
            } throws: { ($0 as? ChildError)?.code == .outputLimit }
        }
        let exact = try await Child.run("printf", ["12345"], output: .string(limit: 5))
        #expect(exact.output == "12345")
        #expect(exact.status == .exited(0))
        await #expect {
            try await Child.run("printf", ["\\377"], output: .string(limit: 5))
        } throws: { ($0 as? ChildError)?.code == .encoding }
        let bytes = try await Child.run("printf", ["\\377"], output: .data(limit: 5))
        #expect(bytes.output == Data([255]))
    }

    @Test func `CH-15 to write to a child that reads no more is an error, and no signal`() throws {
        let child = try Child.spawn("true", standardInput: .stream)
        try waitUntilGone(child.processIdentifier)
        let input = try #require(child.input)
        input.open()
        let handler = signal(SIGPIPE, SIG_DFL)
        defer { signal(SIGPIPE, handler) }
        #expect(input.write([1], maxLength: 1) == -1)
        let error = input.streamError as NSError?
        #expect(error?.domain == NSPOSIXErrorDomain && error?.code == Int(EPIPE))
        input.close()
        // Scheduled, it is told without a write.
        let other = try Child.spawn("true", standardInput: .stream)
        try waitUntilGone(other.processIdentifier)
        let code = try onLoopThread { loop -> Int? in
            let writer = Writer(Data([1]))
            guard let input = other.input else { return nil }
            input.delegate = writer
            input.schedule(in: loop, forMode: .default)
            input.open()
            _ = try? waitFor("the error") { () -> Void? in
                _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
                return writer.error == nil ? nil : ()
            }
            return writer.error?.code
        }
        #expect(code == Int(EPIPE))
    }
}

import RondoTestSupport
import Testing

@testable import RondoCore
@testable import RondoStreams

/// Streams that write while others of their loop are ready: whether there is space for more is asked for all at once.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct SpaceCheckTests {
    /// Stands still, so that nothing is done because it has waited for a millisecond.
    private final class StillClock: LoopTimeSource {
        var now: LoopInstant { LoopInstant(nanoseconds: 1_000_000_000) }

        func loopIsIdle(until instant: LoopInstant) -> Bool { false }
    }

    /// One end is a pair of streams in the default mode, the other one has written a byte.
    private final class Line {
        let name: String
        let input: InputStream
        let output: OutputStream
        let peer: Int32
        let notes = StreamNotes()

        init(_ name: String, on loop: RunLoop, _ log: StreamNotes, _ written: [UInt8] = [1]) throws {
            self.name = name
            var ends: [Int32] = [-1, -1]
            guard socketpair(AF_UNIX, closeOnExec, 0, &ends) == 0 else { throw PeerIsSilent() }
            // So that what is written in full below leaves no space, where it is much.
            var size: Int32 = 4_608
            setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
            peer = ends[1]
            (input, output) = ownedStreamsOnSocket(ends[0])
            notes.handler = { [unowned self, unowned log] stream, event in
                log.note("\(name) \(event.word)")
                if event == .hasBytesAvailable, input.bytes().0 > 0 {
                    _ = output.write(written, maxLength: written.count)
                }
                log.handler?(stream, event)
            }
            scheduleAndOpen(input, output, in: loop, telling: notes)
            try loop.run { notes.count(of: "open") == 2 && notes.count(of: "space") == 1 }
        }

        func say() { _ = Foundation.write(peer, [1], 1) }

        func hear() {
            var bytes = [UInt8](repeating: 0, count: 65_536)
            _ = Foundation.read(peer, &bytes, bytes.count)
        }

        func close() {
            notes.handler = nil
            input.close()
            output.close()
            _ = Foundation.close(peer)
        }
    }

    /// Three lines whose peers speak at once.
    ///
    /// - Parameters:
    ///   - written: What each answers.
    ///   - count: Of so many events, after which the run is over.
    ///   - wrote: Called when one of them has answered, which is that number of all.
    private static func run(
        _ loop: RunLoop, _ written: [[UInt8]] = [[1], [1], [1]], events count: Int,
        names: [String] = ["a", "b", "c"],
        wrote: @escaping (StreamNotes, [Line], Int) -> Void = { _, _, _ in },
        afterwards: (StreamNotes, [Line]) throws -> Void = { _, _ in }
    ) throws -> Findings {
        loop.setTimeSource(StillClock())
        let log = StreamNotes()
        let lines = try zip(names, written).map { try Line($0, on: loop, log, $1) }
        let begun = log.events.count
        var answers = 0
        log.handler = { [unowned log] _, event in
            if event == .hasBytesAvailable {
                answers += 1
                wrote(log, lines, answers)
            }
            if log.events.count >= begun + count { loop.stop() }
        }
        defer {
            log.handler = nil
            for line in lines { line.close() }
        }
        for line in lines { line.say() }
        _ = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
        try afterwards(log, lines)
        return Array(log.events.dropFirst(begun))
    }

    /// The names of those that note `word`, in order.
    private func names(_ findings: Findings, _ word: String) -> [String] {
        findings.filter { $0.hasSuffix(" " + word) }.map { String($0.prefix(1)) }
    }

    @Test func `ST-14 streams that have all written are told of space in the order of their writes`() throws {
        let findings = try onStreamThread { loop in try Self.run(loop, events: 6) }
        #expect(findings.prefix(3).allSatisfy { $0.hasSuffix(" bytes") })
        #expect(Set(names(findings, "bytes")) == ["a", "b", "c"])
        #expect(names(findings, "space") == names(findings, "bytes"))
    }

    @Test func `ST-14 a stream that filled its socket is told when there is space again, the others at once`()
        throws
    {
        let findings = try onStreamThread { loop in
            try Self.run(
                loop, [[1], pattern(2_000), [1]], events: 5,
                afterwards: { log, lines in
                    loop.pass()
                    log.note("heard")
                    lines[1].hear()
                    try loop.run { log.events.last == "b space" }
                })
        }
        #expect(Set(findings.prefix(5)) == ["a bytes", "b bytes", "c bytes", "a space", "c space"])
        #expect(findings.dropFirst(5) == ["heard", "b space"])
    }

    @Test func `ST-19 a run inside of a handler tells those that have written before`() throws {
        let findings = try onStreamThread { loop in
            try Self.run(loop, events: 8) { log, _, number in
                guard number == 2 else { return }
                log.note("in")
                _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
                log.note("out")
            }
        }
        let inside = findings.drop { $0 != "in" }.prefix { $0 != "out" }
        #expect(inside.contains((names(findings, "bytes").first ?? "") + " space"))
        #expect(Set(names(findings, "space")) == ["a", "b", "c"])
    }

    @Test func `ST-5 a stream that is closed before its space is known is told nothing`() throws {
        let findings = try onStreamThread { loop in
            try Self.run(loop, events: 5) { log, lines, number in
                guard number == 2 else { return }
                // The one that has written first.
                let first = log.events.first { $0.hasSuffix(" bytes") } ?? ""
                let line = lines[["a bytes", "b bytes", "c bytes"].firstIndex(of: first) ?? 0]
                line.input.close()
                line.output.close()
            }
        }
        let told = names(findings, "bytes")
        #expect(Set(told) == ["a", "b", "c"])
        #expect(names(findings, "space") == Array(told.dropFirst()))
    }

    @Test func `ST-14 more streams than one check for space takes are all told of space`() throws {
        let count = SpaceCheck.maximumPairs + 2
        let numbers = (0..<count).map(String.init)
        let findings = try onStreamThread { loop in
            try Self.run(
                loop, Array(repeating: [], count: count), events: 2 * count, names: numbers,
                wrote: { _, lines, number in
                    guard number == 1 else { return }
                    for line in lines { _ = line.output.write([1], maxLength: 1) }
                })
        }
        #expect(Set(findings) == Set(numbers.flatMap { ["\($0) bytes", "\($0) space"] }))
        #expect(findings.count == 2 * count)
    }

    /// Told on another thread than that which has written.
    private final class Told: NSObject, StreamDelegate, Sendable {
        let latch = Latch()

        func stream(_ stream: Foundation.Stream, handle event: Foundation.Stream.Event) {
            if event == .hasSpaceAvailable { latch.open() }
        }
    }

    @Test func `ST-17 a stream that moves before its space is known is told in its new mode`() throws {
        let told = Told()
        let elsewhere = RunLoopThread(name: "elsewhere")
        let other = elsewhere.start()
        let outcome = Result {
            try onStreamThread { loop in
                try Self.run(loop, events: 5) { log, lines, number in
                    guard number == 1,
                        let line = lines.first(where: { log.events.last == "\($0.name) bytes" })
                    else { return }
                    line.output.remove(from: loop, forMode: .default)
                    line.output.delegate = told
                    line.output.schedule(in: other, forMode: .default)
                    do { try told.latch.wait() } catch { log.note("\(error)") }
                }
            }
        }
        elsewhere.stop()
        elsewhere.join()
        let findings = try outcome.get()
        let bytes = names(findings, "bytes")
        #expect(Set(bytes) == ["a", "b", "c"])
        #expect(names(findings, "space") == Array(bytes.dropFirst()))
        // It was not waited for in vain.
        #expect(findings.count == 5)
    }

    @Test func `ST-14 the event for a write of an exit observer is not deferred`() throws {
        let findings = try onStreamThread { loop -> Findings in
            loop.setTimeSource(StillClock())
            // `nonisolated(unsafe)`, both: the observer, which is said to be Sendable, is called on this thread alone.
            nonisolated(unsafe) let log = StreamNotes()
            nonisolated(unsafe) let lines = try ["a", "b", "c"].map { try Line($0, on: loop, log, []) }
            defer { for line in lines { line.close() } }
            log.handler = { [unowned log] _, _ in
                guard log.events.last?.hasSuffix(" bytes") ?? false else { return }
                loop.stop()
            }
            let observer = RunLoop.Observer(activities: .exit) { _, _ in
                for line in lines { _ = line.output.write([1], maxLength: 1) }
                log.note("exit")
                for line in lines { log.note(line.output.hasToBeLookedAt ? "put off" : "known") }
            }
            loop.add(observer, forMode: .default)
            let begun = log.events.count
            for line in lines { line.say() }
            _ = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
            log.handler = nil
            observer.invalidate()
            return Array(log.events.dropFirst(begun))
        }
        #expect(names(findings, "bytes").count == 1)
        #expect(findings.drop { $0 != "exit" } == ["exit", "known", "known", "known"])
    }

    @Test func `RL-52 no wait is announced before a stream that was written to is told of space`() throws {
        let findings = try onStreamThread { loop -> Findings in
            loop.setTimeSource(StillClock())
            // `nonisolated(unsafe)`: the observer and the sources are called on this thread alone.
            nonisolated(unsafe) let log = StreamNotes()
            let line = try Line("a", on: loop, log)
            defer { line.close() }
            // On both sides of it, in whichever order they are found ready.
            let pipes = (0..<2).map { _ in Pipe() }
            let sources = pipes.map { pipe in
                RunLoop.Source(
                    fileDescriptor: pipe.fileHandleForReading.fileDescriptor, interest: .read
                ) { source, _ in
                    log.note("pipe")
                    source.invalidate()
                }
            }
            for source in sources { loop.add(source, forMode: .default) }
            loop.pass()
            let observer = RunLoop.Observer(activities: .beforeWaiting, repeats: true) { _, _ in
                log.note("waits")
            }
            loop.add(observer, forMode: .default)
            let begun = log.events.count
            log.handler = { _, event in if event == .hasSpaceAvailable { loop.stop() } }
            pipes[0].fileHandleForWriting.write(Data([1]))
            line.say()
            pipes[1].fileHandleForWriting.write(Data([1]))
            _ = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
            log.handler = nil
            observer.invalidate()
            return Array(log.events.dropFirst(begun))
        }
        #expect(findings.filter { $0 != "waits" }.sorted() == ["a bytes", "a space", "pipe", "pipe"])
        let between = findings.drop { $0 != "a bytes" }.prefix { $0 != "a space" }
        #expect(Array(between) == ["a bytes", "pipe"])
    }
}

extension OutputStream {
    fileprivate var hasToBeLookedAt: Bool { (backend as? SocketPair)?.writer.awaitsCheck ?? true }
}

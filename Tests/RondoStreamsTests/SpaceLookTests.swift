import RondoTestSupport
import Testing

@testable import RondoCore
@testable import RondoStreams

/// Streams that write while others of their loop are ready: whether there is space for more is asked for all at once.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct SpaceLookTests {
    /// Stands still, so that nothing is done because it has waited for a millisecond.
    private final class StillClock: LoopTimeSource {
        var now: LoopInstant { LoopInstant(nanoseconds: 1_000_000_000) }

        func loopIsIdle(until instant: LoopInstant) -> Bool { false }
    }

    /// One end is a pair of streams in the default mode, the other one has written a byte.
    private final class Line {
        let input: InputStream
        let output: OutputStream
        let peer: Int32
        let notes = StreamNotes()

        init(_ name: String, on loop: RunLoop, _ log: StreamNotes, _ written: [UInt8] = [1]) throws {
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
            input.delegate = notes
            output.delegate = notes
            input.schedule(in: loop, forMode: .default)
            output.schedule(in: loop, forMode: .default)
            input.open()
            output.open()
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
        wrote: @escaping (StreamNotes, [Line], Int) -> Void = { _, _, _ in },
        afterwards: (StreamNotes, [Line]) throws -> Void = { _, _ in }
    ) throws -> Findings {
        loop.setTimeSource(StillClock())
        let log = StreamNotes()
        let lines = try zip(["a", "b", "c"], written).map { try Line($0, on: loop, log, $1) }
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

    @Test func `ST-14 each is told of space in the order in which they have written, when all have`() throws {
        let findings = try onStreamThread { loop in try Self.run(loop, events: 6) }
        #expect(findings.prefix(3).allSatisfy { $0.hasSuffix(" bytes") })
        #expect(Set(names(findings, "bytes")) == ["a", "b", "c"])
        #expect(names(findings, "space") == names(findings, "bytes"))
    }

    @Test func `ST-14 who has filled his socket is told when there is space again, and the others at once`()
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

    @Test func `ST-5 who is closed before it is known whether there is space is told nothing`() throws {
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
}

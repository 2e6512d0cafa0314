import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// The contract: what a stream does, whatever is behind it. One suite over all kinds; its parts: inputs here,
/// `+Outputs`, `+Pairs` (two streams and a peer), `+Events` (events, queues and bytes in place), `+Places` (loops and
/// modes), `+Life` (opening and closing).
@Suite(.timeLimit(.minutes(10)), .leavesNothing) struct StreamContractTests {
    private static let content = pattern(300)

    @Test(arguments: StreamKind.inputs)
    func `ST-15 ST-10 a client that reads one byte an event gets everything and then the end`(
        kind: StreamKind
    ) throws {
        let findings = try kind.onInput(Self.content.count) { loop, stream, notes in
            var received: [UInt8] = []
            let afterOpen = notes.events.count
            notes.handler = { _, event in
                if event == .hasBytesAvailable { received += stream.bytes(1).1 }
            }
            try loop.run { notes.events.contains("end") || notes.events.contains("error") }
            loop.pass()
            return [
                "\(afterOpen) in open()", notes.events.first ?? "", notes.events.last ?? "",
                "\(notes.count(of: "open"))", "\(notes.count(of: "end"))", "\(received == Self.content)",
                "\(stream.streamStatus == .atEnd)", "\(stream.bytes().0)",
                "\(notes.count(of: "bytes") - received.count <= 1)",
            ]
        }
        #expect(findings == ["0 in open()", "open", "end", "1", "1", "true", "true", "0", "true"])
    }

    @Test(arguments: StreamEnd.all)
    func `ST-13 ST-14 a stream reports bytes or space once until a read or write`(end: StreamEnd) throws {
        let findings = try end.onStream(100) { loop, stream, notes in
            try loop.run { notes.events.contains(end.event) }
            loop.pass()
            let before = notes.events
            stream.use()
            // The rest of the bytes is there, so that one pass tells of it; space may come later.
            if !end.isInput { try loop.run { notes.count(of: end.event) == 2 } }
            loop.pass()
            return [before.joined(separator: " "), notes.events.joined(separator: " ")]
        }
        #expect(findings == ["open \(end.event)", "open \(end.event) \(end.event)"])
    }

    @Test(arguments: StreamEnd.all)
    func `ST-8 ST-17 nothing comes in another mode and it is delivered later`(end: StreamEnd) throws {
        let findings = try end.onStream(100) { loop, stream, notes in
            let other = RunLoop.Mode("other")
            loop.add(Port(), forMode: other)
            loop.pass(inMode: other)
            let before = notes.events.count
            try loop.run { notes.events.contains(end.event) }
            let inDefault = notes.events
            // The event that is owed while the schedule changes is not lost.
            stream.use()
            stream.remove(from: loop, forMode: .default)
            loop.add(Port(), forMode: .default)
            loop.pass()
            let unscheduled = notes.count(of: end.event)
            stream.schedule(in: loop, forMode: other)
            try loop.run(inMode: other) { notes.count(of: end.event) == 2 }
            return ["\(before)"] + inDefault + ["\(unscheduled)"]
        }
        #expect(findings == ["0", "open", end.event, "1"])
    }

    @Test(arguments: StreamKind.inputs)
    func `ST-18 a stream in the common modes is served in each of them`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.makeInput(Self.content)
            let notes = StreamNotes()
            stream.delegate = notes
            stream.schedule(in: loop, forMode: .common)
            stream.open()
            try loop.run(inMode: .tracking) { notes.events.contains("bytes") }
            _ = stream.bytes(1)
            try loop.run(inMode: .default) { notes.count(of: "bytes") == 2 }
            withExtendedLifetime(keep) {}
            return notes.events
        }
        #expect(findings == ["open", "bytes", "bytes"])
    }

    @Test(arguments: StreamKind.inputs)
    func `ST-19 ST-5 no event follows a close made in a handler`(kind: StreamKind) throws {
        let findings = try kind.onInput(Self.content.count) { loop, stream, notes in
            notes.handler = { stream, event in if event == .hasBytesAvailable { stream.close() } }
            try loop.run { notes.events.contains("bytes") }
            loop.add(Port(), forMode: .default)
            loop.pass()
            return notes.events + [
                "\(stream.streamStatus == .closed)", "\(stream.bytes().0)", "\(stream.hasBytesAvailable)",
            ]
        }
        #expect(findings == ["open", "bytes", "true", "-1", "false"])
    }

    @Test(arguments: StreamKind.inputs)
    func `ST-19 a handler may release its stream`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let (made, keep) = try kind.makeInput(Self.content)
            var stream: InputStream? = made
            let notes = StreamNotes { _, event in if event == .openCompleted { stream = nil } }
            weak let gone = stream
            stream?.delegate = notes
            stream?.schedule(in: loop, forMode: .default)
            stream?.open()
            return try Self.release(made, { stream == nil }, notes, loop) + [
                "\(gone == nil || keep != nil)"
            ]
        }
        #expect(findings.first == "open")
    }

    private static func release(
        _ made: consuming InputStream, _ isReleased: () -> Bool, _ notes: StreamNotes, _ loop: RunLoop
    ) throws -> Findings {
        try loop.run(until: isReleased)
        return notes.events
    }

    @Test(arguments: StreamKind.inputs)
    func `ST-24 polling without any schedule reads everything`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            var findings: Findings = []
            for (count, capacity) in [(0, 100), (1, 1), (300, 7), (100_000, 65_536)] {
                let content = pattern(count)
                let (stream, keep) = try kind.makeInput(content)
                stream.open()
                let (last, bytes) = stream.allBytes(capacity)
                findings.append("\(last) \(bytes == content) \(stream.streamStatus == .atEnd)")
                stream.close()
                withExtendedLifetime(keep) {}
            }
            return findings
        }
        #expect(findings == Array(repeating: "0 true true", count: 4))
    }

    @Test(arguments: StreamKind.inputs)
    func `ST-7 ST-2 ST-5 a stream that is not open gives nothing`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.makeInput(Self.content)
            var findings = ["\(stream.bytes().0) \(stream.hasBytesAvailable) \(stream.streamStatus.rawValue)"]
            stream.close()
            findings.append("\(stream.streamStatus.rawValue)")
            stream.open()
            findings.append("\(stream.streamStatus == (kind.opensAtOnce ? .open : .opening))")
            stream.close()
            stream.open()
            findings.append("\(stream.bytes().0) \(stream.hasBytesAvailable) \(stream.streamStatus.rawValue)")
            findings.append("\(stream.streamError == nil)")
            withExtendedLifetime(keep) {}
            return findings
        }
        #expect(findings == ["-1 false 0", "0", "true", "-1 false 6", "true"])
    }

    @Test(arguments: [StreamKind.memory, .file, .bound])
    func `ST-12 a stream opened unscheduled loses openCompleted`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.makeInput(Self.content)
            let notes = StreamNotes()
            stream.delegate = notes
            stream.open()
            stream.schedule(in: loop, forMode: .default)
            try loop.run { !notes.events.isEmpty }
            withExtendedLifetime(keep) {}
            return notes.events
        }
        #expect(findings == ["bytes"])
    }

    @Test(arguments: StreamKind.inputs)
    func `ST-20 a stream moves to another loop`(kind: StreamKind) throws {
        let findings = try kind.onInput(Self.content.count) { loop, stream, notes in
            try loop.run { notes.events.contains("bytes") }
            _ = stream.bytes(1)
            stream.remove(from: loop, forMode: .default)
            let moved = Moved(stream: stream, notes: notes)
            return try onStreamThread { other in
                moved.stream.schedule(in: other, forMode: .default)
                try other.run { moved.notes.count(of: "bytes") == 2 }
                moved.stream.close()
                return moved.notes.events
            }
        }
        #expect(findings == ["open", "bytes", "bytes"])
    }

    /// `@unchecked Sendable`: used by one thread after the other, which is what is tested.
    private struct Moved: @unchecked Sendable {
        let stream: InputStream
        let notes: StreamNotes
    }

    @Test(arguments: StreamKind.inputs)
    func `a value typed Stream and Foundation's own loop mean the same`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.makeInput(Self.content)
            let notes = StreamNotes()
            stream.delegate = notes
            let plain: Foundation.Stream = stream
            plain.schedule(in: Foundation.RunLoop.current, forMode: .default)
            plain.open()
            try loop.run { notes.events.contains("bytes") }
            plain.remove(from: Foundation.RunLoop.current, forMode: .default)
            loop.add(Port(), forMode: .default)
            _ = stream.bytes(1)
            loop.pass()
            // The usual way to write it.
            stream.schedule(in: .current, forMode: .default)
            try loop.run { notes.count(of: "bytes") == 2 }
            withExtendedLifetime(keep) {}
            return notes.events
        }
        #expect(findings == ["open", "bytes", "bytes"])
    }
}

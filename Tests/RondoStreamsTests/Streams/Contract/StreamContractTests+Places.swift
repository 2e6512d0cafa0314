import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

// Where events come: which of several loops, and which after a move.
extension StreamContractTests {
    /// A thread whose loop runs until it is stopped. Its value is whether it was.
    private static func runningLoop() -> LoopThread<Bool> {
        LoopThread { loop in
            loop.add(Port(), forMode: .default)
            return loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped
        }
    }

    @Test(arguments: StreamKind.inputs)
    func `ST-18 of two loops the one that runs is told, whichever was scheduled first`(kind: StreamKind)
        throws
    {
        let content = pattern(300)
        for isFirst in [true, false] {
            let second = Self.runningLoop()
            let other = try second.loop
            let findings = try onStreamThread { loop in
                defer { other.stop() }
                let (stream, keep) = try kind.makeInput(content)
                let notes = ReadingNotes()
                stream.delegate = notes
                // This thread does not use it once it is open (rule ST-20).
                for place in isFirst ? [other, loop] : [loop, other] {
                    stream.schedule(in: place, forMode: .default)
                }
                stream.open()
                // This thread's loop does not run.
                try waitFor("the end") { notes.hasEnded ? () : nil }
                other.stop()
                let isStopped = try second.value()
                stream.close()
                withExtendedLifetime(keep) {}
                return ["\(isStopped)"] + notes.found(content)
            }
            #expect(findings == ["true", "open", "end", "1", "true"])
        }
    }

    @Test func `ST-18 a run nested in the delegate's call gets an event that another loop has found`() throws
    {
        let second = Self.runningLoop()
        let other = try second.loop
        let findings = try onStreamThread { loop in
            defer { other.stop() }
            let (input, output) = boundStreams(10)
            let notes = StreamNotes()
            defer { notes.handler = nil }
            notes.handler = { stream, event in
                guard event == .hasBytesAvailable, let stream = stream as? InputStream else { return }
                _ = stream.bytes(1)
                guard notes.count(of: "bytes") == 1 else { return }
                stream.schedule(in: other, forMode: .default)
                _ = output.writeAll([2])
                // The other loop takes the stream from its queue.
                try? other.waitUntilServed()
                try? loop.run { notes.count(of: "bytes") == 2 }
                notes.note("back")
            }
            input.delegate = notes
            input.schedule(in: loop, forMode: .default)
            input.open()
            output.open()
            _ = output.writeAll([1])
            try loop.run { notes.events.contains("back") }
            input.close()
            output.close()
            return notes.events
        }
        #expect(try second.value())
        #expect(findings == ["open", "bytes", "bytes", "back"])
    }

    /// Reads what comes, on whichever thread.
    private final class ReadingNotes: StreamDelegate, Sendable {
        private let state = Mutex((events: [String](), bytes: [UInt8]()))

        func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
            let bytes = eventCode == .hasBytesAvailable ? (aStream as! InputStream).bytes(100).1 : []
            state.withLock {
                $0.events.append(eventCode.word)
                $0.bytes += bytes
            }
        }

        var hasEnded: Bool { state.withLock { ["end", "error"].contains($0.events.last) } }

        func found(_ content: [UInt8]) -> Findings {
            state.withLock { state in
                [
                    state.events.first ?? "none", state.events.last ?? "none",
                    "\(state.events.count { $0 == "open" })",
                    "\(state.bytes == content)",
                ]
            }
        }
    }

    @Test(arguments: StreamEnd.all)
    func `ST-8 a stream that is scheduled nowhere tells no delegate`(end: StreamEnd) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try end.make(300)
            defer { withExtendedLifetime(keep) {} }
            let notes = StreamNotes()
            stream.delegate = notes
            loop.add(Port(), forMode: .default)
            stream.open()
            let isWhole = stream.transfersPattern(300)
            loop.pass()
            stream.close()
            return ["\(isWhole)"] + notes.events
        }
        #expect(findings == ["true"])
    }

    @Test(arguments: StreamEnd.all)
    func `ST-20 a stream that was unscheduled leaves nothing in its mode`(end: StreamEnd) throws {
        let findings = try end.onStream(10) { loop, stream, notes in
            try loop.run { notes.events.contains(end.event) }
            stream.remove(from: loop, forMode: .default)
            var findings = ["\(loop.run(mode: .default, before: .distantPast))"]
            // It comes back as often as it is scheduled.
            stream.use()
            for mode in [RunLoop.Mode("a"), RunLoop.Mode("b"), .default] {
                stream.schedule(in: loop, forMode: mode)
                let before = notes.count(of: end.event)
                try loop.run(inMode: mode) { notes.count(of: end.event) > before }
                stream.use()
                stream.remove(from: loop, forMode: mode)
                findings.append("\(loop.run(mode: mode, before: .distantPast))")
            }
            return findings + ["\(notes.count(of: "open"))"]
        }
        #expect(findings == ["false", "false", "false", "false", "1"])
    }

    /// Inputs over descriptors that a source of the loop watches, and their other ends.
    private static func watchedInputs() throws -> [(InputStream, HandlePeer)] {
        let (socket, other) = try PlainSocket.pair()
        let (handle, writer) = try HandleKind.pipe.make()
        let (pipe, child) = try HandleKind.pipe.make()
        let reading = fcntl(pipe.fileDescriptor, F_DUPFD_CLOEXEC, 0)
        _ = fcntl(reading, F_SETFL, O_NONBLOCK)
        return [
            (ownedStreamsOnSocket(socket).0, HandlePeer(other)), (InputStream(handle), writer),
            (InputStream(pipe: reading, name: "test") {}, child),
        ]
    }

    @Test(
        arguments: [[RunLoop.Mode.default, .common], [.common, .default]], [RunLoop.Mode.default, .common])
    func `ST-8 ST-18 in a mode and in the common modes, a stream stays served when one schedule ends`(
        scheduled: [RunLoop.Mode], removed: RunLoop.Mode
    ) throws {
        let findings = try onStreamThread { loop in
            var findings: Findings = []
            for (stream, peer) in try Self.watchedInputs() {
                let notes = StreamNotes()
                stream.delegate = notes
                for mode in scheduled { stream.schedule(in: loop, forMode: mode) }
                stream.open()
                try loop.run { notes.events.contains("open") }
                stream.remove(from: loop, forMode: removed)
                peer.write("a")
                try loop.run { notes.events.contains("bytes") }
                // The other common modes are left with the common name.
                let isInTracking = loop.run(mode: .tracking, before: .distantPast)
                findings.append("\(isInTracking == (removed == .default))")
                stream.close()
                let modes: [RunLoop.Mode] = [.default, .tracking]
                findings += modes.map { "\(loop.run(mode: $0, before: .distantPast))" }
            }
            return findings
        }
        #expect(findings == Array(repeating: ["true", "false", "false"], count: 3).flatMap(\.self))
    }

    @Test func `ST-8 ST-18 an input in the common modes stays served where its output has left`() throws {
        let findings = try onStreamThread { loop in
            let (ours, theirs) = try PlainSocket.pair()
            let (peer, notes) = (HandlePeer(theirs), StreamNotes())
            let (input, output) = ownedStreamsOnSocket(ours)
            input.delegate = notes
            input.schedule(in: loop, forMode: .common)
            output.schedule(in: loop, forMode: .default)
            input.open()
            output.open()
            try loop.run { notes.events.contains("open") && output.streamStatus == .open }
            output.close()
            peer.write("a")
            try loop.run { notes.events.contains("bytes") }
            input.close()
            return notes.events
        }
        #expect(findings == ["open", "bytes"])
    }

    @Test(arguments: StreamKind.inputs)
    func `ST-17 the end that is owed is not lost by unscheduling`(kind: StreamKind) throws {
        let findings = try kind.onInput(10) { loop, stream, notes in
            try loop.run { notes.events.contains("bytes") }
            // The end is met here, and no delegate is told.
            let last = stream.allBytes().0
            stream.remove(from: loop, forMode: .default)
            loop.add(Port(), forMode: .default)
            loop.pass()
            let unscheduled = notes.count(of: "end")
            stream.schedule(in: loop, forMode: RunLoop.Mode("other"))
            try loop.run(inMode: RunLoop.Mode("other")) { notes.events.contains("end") }
            return ["\(last)", "\(unscheduled)"]
        }
        #expect(findings == ["0", "0"])
    }

    @Test(arguments: [StreamKind.memory, .file, .bound])
    func `ST-17 openCompleted that is owed is not lost by unscheduling`(kind: StreamKind) throws {
        let findings = try kind.onInput(10) { loop, stream, notes in
            stream.remove(from: loop, forMode: .default)
            loop.add(Port(), forMode: .default)
            loop.pass()
            let unscheduled = notes.events.count
            stream.schedule(in: loop, forMode: .default)
            try loop.run { notes.events.contains("bytes") }
            return ["\(unscheduled)"] + notes.events
        }
        #expect(findings == ["0", "open", "bytes"])
    }

    @Test func `ST-17 an error that is owed is not lost by unscheduling`() throws {
        let findings = try onStreamThread { loop in
            let stream = InputStream(fileAtPath: "/nonexistent/file")!
            let notes = StreamNotes()
            stream.delegate = notes
            stream.schedule(in: loop, forMode: .default)
            stream.open()
            stream.remove(from: loop, forMode: .default)
            stream.schedule(in: loop, forMode: .tracking)
            try loop.run(inMode: .tracking) { !notes.events.isEmpty }
            return notes.events
        }
        #expect(findings == ["error"])
    }

    @Test(arguments: [StreamKind.memory, .file, .bound])
    func `ST-19 a handler that unschedules in the first of two events does not get the second`(
        kind: StreamKind
    ) throws {
        let findings = try kind.onInput(10) { loop, stream, notes in
            notes.handler = { stream, event in
                guard event == .openCompleted else { return }
                (stream as? InputStream)?.remove(from: loop, forMode: .default)
            }
            loop.add(Port(), forMode: .default)
            loop.pass()
            let before = notes.events
            // It is owed still.
            stream.schedule(in: loop, forMode: .default)
            try loop.run { notes.events.contains("bytes") }
            return before + ["scheduled"] + notes.events
        }
        #expect(findings == ["open", "scheduled", "open", "bytes"])
    }

    @Test(arguments: [StreamKind.memory, .file, .bound])
    func `ST-19 what a handler does in the first of two events counts for the second`(kind: StreamKind) throws
    {
        // Both are owed in one delivery (rule ST-11).
        let closed = try kind.onInput(10) { loop, stream, notes in
            notes.handler = { stream, event in if event == .openCompleted { stream.close() } }
            loop.add(Port(), forMode: .default)
            loop.pass()
            return notes.events
        }
        #expect(closed == ["open"])
        let moved = try kind.onInput(10) { loop, stream, notes in
            notes.handler = { _, event in
                guard event == .openCompleted else { return }
                stream.remove(from: loop, forMode: .default)
                stream.schedule(in: loop, forMode: .tracking)
            }
            loop.add(Port(), forMode: .default)
            loop.pass()
            let before = notes.events
            try loop.run(inMode: .tracking) { notes.events.contains("bytes") }
            return before + ["moved"] + notes.events
        }
        #expect(moved == ["open", "moved", "open", "bytes"])
    }
}

import Rondo
import RondoTestSupport
import RondoTrace
import Testing

@Suite(.serialized) struct RecorderTests {
    /// Returns the events of one loop: other tests run other loops meanwhile.
    private func words(_ recording: Recording, loop name: String, passes: Bool = false) -> [String] {
        guard let loop = recording.tables.loops.firstIndex(where: { $0.name == name }) else { return [] }
        return recording.records.filter { $0.loop == loop && (passes || $0.kind != .pass) }.map { record in
            let label = record.kind.isRequest ? recording.name(record) : recording.label(record)
            return [recording.modeName(record), "\(record.depth)", record.kind.word, label]
                .filter { !$0.isEmpty }.joined(separator: " ")
        }
    }

    @Test func `call-outs are placed where they began, around the nested run that they made`() throws {
        let found = try recording { _ in
            let thread = RunLoopThread(name: "nesting", mode: .work)
            let done = Latch()
            thread.start().add(
                labelled(
                    "outer",
                    Timer(timeInterval: 0, repeats: false) { _ in
                        let loop = RunLoop.currentLoop()
                        loop.performWithoutWaking(inModes: [.inner]) {}
                        _ = loop.run(in: .inner, for: 0, returnAfterSourceHandled: false)
                        done.open()
                    }), forMode: .work)
            try done.wait()
            thread.stop()
            thread.join()
        }
        let seen = words(found, loop: "nesting").filter { !$0.hasSuffix("wait") }
        let expected = [
            "work 1 timer outer", "inner 1 perform", "inner 2 entry", "inner 2 block", "inner 2 exit",
        ]
        #expect(seen.contains("work 0 add outer") || seen.contains("work 1 add outer"))
        // The thread that adds tells of it afterwards, when the timer may have fired.
        let called = seen.filter { !$0.hasSuffix("add outer") }
        let start = try #require(called.firstIndex(of: expected[0]))
        #expect(Array(called[start...].prefix(expected.count)) == expected)
        let activations = found.activations.filter { found.loopName($0.loop) == "nesting" }
        try #require(activations.map(\.depth) == [1, 2])
        #expect(activations.map(\.result) == [.stopped, .timedOut])
        #expect(activations[0].began <= activations[1].began && activations[1].ended <= activations[0].ended)
    }

    @Test func `an object that is ready in a mode that does not run is held back until that mode runs`()
        throws
    {
        let found = try recording { recorder in
            let thread = LoopThread { loop -> Bool in
                let timer = Timer(timeInterval: 0.001, repeats: false) { _ in }
                timer.label = "patient"
                loop.add(timer, forMode: .work)
                let isHeld = {
                    recorder.soFar().records.contains {
                        recorder.soFar().label($0) == "patient" && $0.kind == .heldBack
                    }
                }
                // The timer becomes due in here, where it cannot fire.
                loop.add(Port(), forMode: .inner)
                while !isHeld() { loop.run(mode: .inner, before: Date(timeIntervalSinceNow: 0.002)) }
                return loop.run(in: .work, for: 10, returnAfterSourceHandled: false) == .finished
            }
            let hasEnded = try thread.value()
            #expect(hasEnded)
        }
        let held = try #require(found.records.first { $0.kind == .heldBack && found.label($0) == "patient" })
        let call = try #require(found.records.first { $0.kind == .timer && found.label($0) == "patient" })
        let entry = try #require(
            found.records.first { $0.kind == .entry && found.modeName($0) == "work" && $0.loop == held.loop })
        #expect(found.modeName(held) == "work")
        #expect(held.ended <= entry.began && entry.began <= call.began)
        #expect(held.detail == TraceRecord.Kind.timer.rawValue)
    }

    @Test func `streams are told apart, by label or by number and peer`() throws {
        let found = try recording { _ in
            let thread = LoopThread { loop -> Bool in
                for label in [nil, nil, "mine"] {
                    var input: InputStream?, output: OutputStream?
                    Stream.getBoundStreams(withBufferSize: 10, inputStream: &input, outputStream: &output)
                    guard let input, let output else { return false }
                    input.label = label
                    guard input.label == label else { return false }
                    input.schedule(in: loop, forMode: .work)
                    input.open()
                    output.open()
                    _ = output.write([1], maxLength: 1)
                    _ = loop.run(in: .work, for: 0, returnAfterSourceHandled: false)
                    input.close()
                    output.close()
                }
                return true
            }
            let haveBeenMade = try thread.value()
            #expect(haveBeenMade)
        }
        let calls = found.records.filter { $0.kind == .delegate && found.modeName($0) == "work" }
        let labels = calls.map { found.label($0) }.reduce(into: [String]()) {
            if $0.last != $1 { $0.append($1) }
        }
        #expect(labels.count == 3 && labels.last == "mine")
        #expect(
            labels.dropLast().allSatisfy { $0.hasPrefix("input stream ") && $0.hasSuffix(", bound pair") })
    }

    @Test func `the newest events are kept, in order, and the others counted`() {
        let found = recording(capacity: 10) { recorder in
            for number in 0..<25 { recorder.mark("m", value: Int64(number)) }
        }
        let marks = found.records.filter { $0.kind == .mark && found.name($0) == "m" }.map(\.duration)
        #expect(marks == Array(15..<25).suffix(marks.count).map(Int64.init))
        #expect(found.records.count == 10 && found.dropped >= 15)
    }

    @Test func `after finish nothing is recorded, and finish returns the same recording each time`() {
        InstrumentTurn.take {
            let recorder = Recorder(lookInterval: 0.001)
            recorder.start()
            recorder.mark("first")
            let end = recorder.finish()
            recorder.mark("second")
            #expect(recorder.finish() == end)
            #expect(end.records.map { end.name($0) }.contains("first"))
            #expect(RunLoop.instrument == nil)
        }
    }

    @Test func `an instrument that the program sets meanwhile has the events beside the recorder`() throws {
        let (mode, log) = (RunLoop.Mode("watched twice"), EventLog())
        let found = try recording { _ in
            RunLoop.instrument = Watching(mode: mode, log: log)
            defer { RunLoop.instrument = nil }
            try onLoopThread { loop in
                loop.perform(inModes: [mode]) {}
                _ = loop.run(in: mode, for: 0, returnAfterSourceHandled: false)
            }
        }
        let blocks = found.records.filter { $0.kind == .block && found.modeName($0) == mode.rawValue }
        #expect(blocks.count == 1)
        #expect(log.entries == ["block"])
    }

    @Test func `the length of names and labels is limited`() {
        let long = String(repeating: "ö", count: 1000)
        let found = recording { recorder in
            recorder.mark(long)
            for number in 0..<(TraceTables.Limits.names + 10) { recorder.mark("name \(number)") }
        }
        #expect(found.tables.names.count == TraceTables.Limits.names)
        #expect(found.tables.names[1].utf8.count <= TraceTables.Limits.nameLength + 2)
        // The last entry stands for all that have no room.
        let last = found.records.last { $0.kind == .mark }
        #expect(last.map { found.name($0) } == "others, beyond the limit")
    }
}

private func labelled(_ label: String, _ timer: Rondo.Timer) -> Rondo.Timer {
    timer.label = label
    return timer
}

/// Notes the blocks that are called in a mode.
private struct Watching: RunLoop.Instrument {
    let mode: RunLoop.Mode
    let log: EventLog

    func runLoop(_ loop: RunLoop, did event: RunLoopEvent) {
        if event.kind == .block, event.mode == mode { log.note("block") }
    }
}

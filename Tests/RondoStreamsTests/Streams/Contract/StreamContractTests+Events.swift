import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

extension StreamContractTests {
    @Test(arguments: StreamEnd.all)
    func `ST-3 a stream is open, or opening, when open returns, and its delegate is not called inside it`(
        end: StreamEnd
    ) throws {
        let findings = try end.onStream(10) { loop, stream, notes in
            let status = stream.streamStatus
            let inside = notes.events.count
            try loop.run { notes.events.contains("open") }
            return ["\(status == (end.kind.opensAtOnce ? .open : .opening))", "\(inside)"]
        }
        #expect(findings == ["true", "0"])
    }

    @Test(arguments: [StreamKind.memory, .file, .bound])
    func `ST-11 events that are pending together come in one delivery`(kind: StreamKind) throws {
        let findings = try kind.onInput(10) { loop, _, notes in
            _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: true)
            return notes.events
        }
        #expect(findings == ["open", "bytes"])
    }

    @Test(arguments: StreamEnd.all)
    func `ST-9 ST-13 ST-14 a delegate that is set where there is none is told of bytes or space`(
        end: StreamEnd
    ) throws {
        let findings = try end.onStream(10) { loop, stream, _ in
            stream.delegate = nil
            let ignored = "its event for \(end.event) was ignored: it has no delegate"
            try loop.run { stream.whyNotDelivering.description.hasPrefix(ignored) }
            let later = StreamNotes()
            stream.delegate = later
            #expect(stream.whyNotDelivering.reason == .loopNotRunning)
            try loop.run { !later.events.isEmpty }
            return later.events
        }
        #expect(findings == [end.event])
    }

    @Test(arguments: StreamEnd.all, [true, false])
    func `ST-9 ST-13 ST-14 a delegate that comes after another was told is told after a read or write`(
        end: StreamEnd, isRemovedFirst: Bool
    ) throws {
        let findings = try end.onStream(10) { loop, stream, notes in
            try loop.run { notes.events.contains(end.event) }
            if isRemovedFirst { stream.delegate = nil }
            let later = StreamNotes()
            stream.delegate = later
            loop.pass()
            let before = later.events
            stream.use()
            try loop.run { !later.events.isEmpty }
            return before + ["used"] + later.events
        }
        #expect(findings == ["used", end.event])
    }

    @Test(arguments: StreamEnd.all)
    func `ST-13 ST-14 a stream whose bytes or space are not used says that it waits for that`(end: StreamEnd)
        throws
    {
        let findings = try end.onStream(10) { loop, stream, notes in
            try loop.run { notes.events.contains(end.event) }
            let told = stream.whyNotDelivering.description
            stream.use()
            return [told, "\(stream.whyNotDelivering.description == told)"]
        }
        let missing = end.isInput ? "read" : "written"
        #expect(findings == ["it has told of \(end.event), and nothing was \(missing) since", "false"])
    }

    @Test(arguments: StreamKind.inputs)
    func `ST-21 a dispatch queue takes a stream off its loops`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.makeInput(pattern(300))
            let queue = DispatchQueue(label: "streams")
            let key = DispatchSpecificKey<Int>()
            queue.setSpecific(key: key, value: 1)
            let box = QueueNotes(key: key)
            stream.delegate = box
            stream.schedule(in: loop, forMode: .default)
            stream.dispatchQueue = queue
            let isTaken = stream.dispatchQueue === queue
            queue.sync { box.open(stream) }
            // The loop is run and has nothing to say.
            loop.add(Port(), forMode: .default)
            try waitFor("the end") {
                loop.pass()
                return box.hasEnded ? () : nil
            }
            let (events, bytes, isElsewhere) = box.found
            queue.sync { stream.close() }
            withExtendedLifetime(keep) {}
            return [
                "\(isTaken)", events.first ?? "none", events.last ?? "none",
                "\(events.count { $0 == "open" })",
                "\(bytes == pattern(300))", "\(isElsewhere)",
            ]
        }
        #expect(findings == ["true", "open", "end", "1", "true", "false"])
    }

    @Test(arguments: StreamKind.inputs)
    func `ST-21 a stream whose event waits for its dispatch queue names the queue`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.makeInput(pattern(10))
            let (queue, notes) = (DispatchQueue(label: "streams"), StreamNotes())
            queue.suspend()
            defer { queue.resume() }
            stream.delegate = notes
            stream.dispatchQueue = queue
            stream.open()
            loop.add(Port(), forMode: .default)
            let sentence = try waitFor("the event that waits") {
                loop.pass()
                let sentence = stream.whyNotDelivering.description
                return sentence.hasPrefix("its call waits") ? sentence : nil
            }
            // The queue runs nothing, so that the stream may be used here.
            stream.close()
            withExtendedLifetime((keep, notes)) {}
            return [sentence] + notes.events
        }
        #expect(
            findings == ["its call waits for the dispatch queue “streams”, which is suspended or busy"])
    }

    @Test(arguments: StreamKind.inputs)
    func `ST-21 scheduling takes a stream off its queue`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.makeInput(pattern(10))
            let queue = DispatchQueue(label: "streams")
            stream.dispatchQueue = queue
            stream.schedule(in: loop, forMode: .default)
            let isOff = stream.dispatchQueue == nil
            let notes = StreamNotes()
            stream.delegate = notes
            stream.open()
            try loop.run { notes.events.contains("bytes") }
            // Nil where there is none leaves the loops as they are.
            stream.dispatchQueue = nil
            _ = stream.bytes(1)
            try loop.run { notes.count(of: "bytes") == 2 }
            queue.sync {}
            withExtendedLifetime(keep) {}
            return ["\(isOff)"] + notes.events
        }
        #expect(findings == ["true", "open", "bytes", "bytes"])
    }

    @Test(arguments: [StreamKind.memory, .file, .bound])
    func `ST-21 a stream that gets another queue is told there, and no more on the old one`(kind: StreamKind)
        throws
    {
        let findings = try onStreamThread { _ in
            let (stream, keep) = try kind.makeInput(pattern(10))
            let queues = QueueEvents.Queues()
            let events = QueueEvents(queues)
            stream.delegate = events
            for queue in queues.both { queue.suspend() }
            stream.dispatchQueue = queues.first
            stream.open()
            // Both have been asked for a turn now.
            stream.dispatchQueue = queues.second
            queues.first.resume()
            queues.first.sync {}
            let before = events.log.entries
            queues.second.resume()
            try waitFor("the events") { events.log.entries.count == 2 ? () : nil }
            queues.second.sync { stream.close() }
            withExtendedLifetime(keep) {}
            return before + ["then"] + events.log.entries
        }
        #expect(findings == ["then", "open on second", "bytes on second"])
    }

    @Test(arguments: [StreamKind.memory, .file, .bound])
    func `ST-19 ST-21 a handler that changes the queue gets the next event there`(kind: StreamKind) throws {
        let findings = try onStreamThread { _ in
            let (stream, keep) = try kind.makeInput(pattern(10))
            let queues = QueueEvents.Queues()
            let events = QueueEvents(queues) { stream, event in
                if event == .openCompleted { (stream as! InputStream).dispatchQueue = queues.second }
            }
            stream.delegate = events
            stream.dispatchQueue = queues.first
            stream.open()
            try waitFor("the events") { events.log.entries.contains { $0.hasPrefix("bytes") } ? () : nil }
            queues.first.sync {}
            queues.second.sync { stream.close() }
            withExtendedLifetime(keep) {}
            return events.log.entries
        }
        #expect(findings == ["open on first", "bytes on second"])
    }

    @Test(arguments: [StreamKind.memory, .file, .bound], [false, true])
    func `RL-37 what was owed to a stream that has left ends no run`(kind: StreamKind, byClosing: Bool) throws
    {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.makeInput(pattern(10))
            // It has nothing to say, and keeps what the two share in the mode.
            let (other, keepToo) = try kind.makeInput(pattern(10))
            let notes = StreamNotes()
            for stream in [stream, other] {
                stream.delegate = notes
                stream.schedule(in: loop, forMode: .default)
            }
            stream.open()
            if byClosing { stream.close() } else { stream.remove(from: loop, forMode: .default) }
            let result = loop.run(in: .default, for: 0, returnAfterSourceHandled: true)
            other.close()
            withExtendedLifetime((keep, keepToo)) {}
            return ["\(result)"] + notes.events
        }
        #expect(findings == ["timedOut"])
    }

    @Test(arguments: StreamKind.inputs)
    func `ST-22 read answers how many, 0 at the end and -1 on failure`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.makeInput(pattern(10))
            var findings = ["\(stream.bytes().0)"]
            stream.open()
            findings.append("\(stream.bytes(0).0)")
            var sizes = 0
            while sizes < 10 {
                let count = stream.bytes(4).0
                guard count > 0, count <= 4 else { break }
                sizes += count
            }
            findings.append("\(sizes)")
            findings.append("\(stream.bytes().0) \(stream.streamStatus == .atEnd)")
            findings.append("\(stream.bytes().0)")
            stream.close()
            findings.append("\(stream.bytes().0)")
            withExtendedLifetime(keep) {}
            return findings
        }
        #expect(findings == ["-1", "0", "10", "0 true", "0", "-1"])
    }

    @Test(arguments: [StreamKind.bound, .socket, .secured, .unix, .adopted, .accepted])
    func `ST-26 asking for bytes or space does not wait`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let (input, output, keep) = try kind.silentPair()
            input.open()
            output.open()
            // The opening is over, and the peer says nothing.
            #expect(output.writeAll([1]))
            let answers = "\(input.hasBytesAvailable)"
            withExtendedLifetime(keep) {}
            return [answers]
        }
        #expect(findings == ["false"])
    }

    @Test(arguments: StreamKind.lenders)
    func `ST-27 buffered bytes are lent in place and count as read`(kind: StreamKind) throws {
        let content = pattern(10_000)
        let findings = try kind.onInput(content.count) { loop, stream, notes in
            var received: [UInt8] = []
            var lent = 0
            notes.handler = { _, event in
                guard event == .hasBytesAvailable else { return }
                var start: UnsafeMutablePointer<UInt8>?
                var count = 0
                if stream.getBuffer(&start, length: &count) {
                    lent += 1
                    received += UnsafeBufferPointer(start: start, count: count)
                } else {
                    received += stream.bytes(100).1
                }
            }
            try loop.run { notes.events.contains("end") }
            return ["\(received == content)", "\(lent > 0)", "\(notes.count(of: "end"))"]
        }
        #expect(findings == ["true", "true", "1"])
    }
}

/// Notes events and the queue that each comes on.
///
/// `@unchecked Sendable`: nothing changes but the log, which has a lock; the handler is called by the one queue that the
/// stream is on.
private final class QueueEvents: StreamDelegate, @unchecked Sendable {
    struct Queues: Sendable {
        let first = DispatchQueue(label: "first")
        let second = DispatchQueue(label: "second")
        fileprivate let key = DispatchSpecificKey<String>()

        init() { for queue in both { queue.setSpecific(key: key, value: queue.label) } }

        var both: [DispatchQueue] { [first, second] }
    }

    let log = EventLog()
    private let queues: Queues
    private let handler: (Foundation.Stream, Foundation.Stream.Event) -> Void

    init(
        _ queues: Queues,
        handler: @escaping (Foundation.Stream, Foundation.Stream.Event) -> Void = { _, _ in }
    ) {
        self.queues = queues
        self.handler = handler
    }

    func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
        log.note("\(eventCode.word) on \(DispatchQueue.getSpecific(key: queues.key) ?? "none")")
        handler(aStream, eventCode)
    }
}

/// Notes events on a queue, and reads what comes.
///
/// `@unchecked Sendable`: changed on the queue, and read when the end has been seen under the lock.
private final class QueueNotes: StreamDelegate, @unchecked Sendable {
    private let key: DispatchSpecificKey<Int>
    private let state = Mutex((events: [String](), bytes: [UInt8](), isElsewhere: false))

    init(key: DispatchSpecificKey<Int>) { self.key = key }

    func open(_ stream: InputStream) { stream.open() }

    func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
        let isThere = DispatchQueue.getSpecific(key: key) == 1
        let bytes = eventCode == .hasBytesAvailable ? (aStream as! InputStream).bytes(100).1 : []
        state.withLock {
            $0.events.append(eventCode.word)
            $0.bytes += bytes
            if !isThere { $0.isElsewhere = true }
        }
    }

    var hasEnded: Bool { state.withLock { $0.events.contains("end") || $0.events.contains("error") } }
    var found: ([String], [UInt8], Bool) { state.withLock { ($0.events, $0.bytes, $0.isElsewhere) } }
}

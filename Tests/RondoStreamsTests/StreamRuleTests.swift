import RondoCore
import RondoStreams
import RondoTestSupport
import Synchronization
import Testing

/// Rules that hold for every kind of stream and that no other suite is about.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct StreamRuleTests {
    // MARK: - Opening

    @Test(arguments: InputKind.allCases)
    func `ST-3 what is open when open returns and no call inside it`(kind: InputKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.make([1, 2, 3])
            let notes = StreamNotes()
            stream.delegate = notes
            stream.schedule(in: loop, forMode: .default)
            stream.open()
            let status = stream.streamStatus
            let inside = notes.events.count
            try loop.run { notes.events.contains("open") }
            withExtendedLifetime(keep) {}
            return ["\(status == (kind.opensAtOnce ? .open : .opening))", "\(inside)"]
        }
        #expect(findings == ["true", "0"])
    }

    @Test(arguments: OutputKind.allCases)
    func `ST-3 the same of outputs`(kind: OutputKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, written) = try kind.make(10)
            let notes = StreamNotes()
            stream.delegate = notes
            stream.schedule(in: loop, forMode: .default)
            stream.open()
            let status = stream.streamStatus
            let inside = notes.events.count
            try loop.run { notes.events.contains("open") }
            withExtendedLifetime(written) {}
            return ["\(status == (kind.opensAtOnce ? .open : .opening))", "\(inside)"]
        }
        #expect(findings == ["true", "0"])
    }

    // MARK: - Events

    @Test(arguments: [InputKind.memory, .file, .bound])
    func `ST-11 events that are pending together come in one delivery`(kind: InputKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.make(pattern(10))
            let notes = StreamNotes()
            stream.delegate = notes
            stream.schedule(in: loop, forMode: .default)
            stream.open()
            _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: true)
            withExtendedLifetime(keep) {}
            return notes.events
        }
        #expect(findings == ["open", "bytes"])
    }

    @Test func `ST-11 the same of a socket whose connection another mode has driven`() throws {
        let server = try ContentServer([1, 2, 3])
        let findings = try onStreamThread { [port = server.port] loop in
            let (input, output) = streamsToHost(port)
            let notes = StreamNotes()
            input.delegate = notes
            input.schedule(in: loop, forMode: .default)
            let mode = RunLoop.Mode("driving")
            output.schedule(in: loop, forMode: mode)
            input.open()
            output.open()
            // The bytes are here, and nobody was told.
            try loop.run(inMode: mode) { input.hasBytesAvailable }
            let before = notes.events.count
            _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: true)
            return ["\(before)"] + notes.events
        }
        #expect(findings == ["0", "open", "bytes"])
    }

    @Test func `ST-11 in one delivery the bits ascend and each is one call`() throws {
        let findings = try onStreamThread { loop in
            // A bound pair whose writer has gone: opened, ended, and nothing was told yet.
            let (input, output) = boundStreams(1)
            output.open()
            output.close()
            let events = Mutex<[UInt]>([])
            let notes = StreamNotes { _, event in events.withLock { $0.append(event.rawValue) } }
            input.delegate = notes
            input.schedule(in: loop, forMode: .default)
            input.open()
            _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: true)
            let (failing, other) = boundStreams(1)
            other.open()
            other.delegate = notes
            other.schedule(in: loop, forMode: .default)
            failing.open()
            failing.close()
            _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: true)
            return events.withLock { $0 }.map { "\($0)" }
        }
        // openCompleted 1 before endEncountered 16; then an error alone, since it was opened unscheduled.
        #expect(findings == ["1", "16", "8"])
    }

    @Test func `RL-37 RL-29 a run that ends after a source serves one stream`() throws {
        let findings = try onStreamThread { loop in
            let notes = (0..<3).map { _ in StreamNotes() }
            let streams = notes.map { note in
                let stream = InputStream(data: Data([1]))
                stream.delegate = note
                stream.schedule(in: loop, forMode: .default)
                stream.open()
                return stream
            }
            func served() -> Int { notes.count { !$0.events.isEmpty } }
            var findings: Findings = []
            for _ in notes {
                _ = loop.run(mode: .default, before: .distantPast)
                findings.append("\(served())")
            }
            for stream in streams { _ = stream.bytes(1) }
            // Without that all are served in one pass, and none is signalled any more.
            let result = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
            findings.append("\(notes.count { $0.events.contains("end") }) \(result)")
            let again = loop.run(in: .default, for: 0, returnAfterSourceHandled: true)
            return findings + ["\(again)"]
        }
        #expect(findings == ["1", "2", "3", "3 timedOut", "timedOut"])
    }

    @Test func `RL-42 a run in a handler serves the streams behind it`() throws {
        let findings = try onStreamThread { loop in
            let order = EventLog()
            let streams = (0..<3).map { index in
                let stream = InputStream(data: Data([1]))
                stream.schedule(in: loop, forMode: .default)
                stream.open()
                return (stream, index)
            }
            let notes = streams.map { stream, index in
                let note = StreamNotes { _, event in
                    guard event == .openCompleted else { return }
                    order.note("begin \(index)")
                    if index == 0 { _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false) }
                    order.note("end \(index)")
                }
                stream.delegate = note
                return note
            }
            _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
            withExtendedLifetime(notes) {}
            return order.entries
        }
        #expect(findings == ["begin 0", "begin 1", "end 1", "begin 2", "end 2", "end 0"])
    }

    // MARK: - Dispatch queues

    @Test(arguments: InputKind.allCases)
    func `ST-21 a dispatch queue takes a stream off its loops`(kind: InputKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.make(pattern(300))
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
                "\(isTaken)", events.first!, events.last!, "\(events.count { $0 == "open" })",
                "\(bytes == pattern(300))", "\(isElsewhere)",
            ]
        }
        #expect(findings == ["true", "open", "end", "1", "true", "false"])
    }

    @Test(arguments: InputKind.allCases)
    func `ST-21 scheduling takes a stream off its queue`(kind: InputKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.make(pattern(10))
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

    @Test func `ST-21 an output stream writes from its queue`() throws {
        let content = pattern(500_000)
        let sink = Sink()
        let server = try UnixServer { sink.take($0) }
        let output = streamsToUnixSocket(server.path).1
        let queue = DispatchQueue(label: "streams")
        let done = DispatchSemaphore(value: 0)
        var rest = content[...]
        let notes = StreamNotes { stream, event in
            guard event == .hasSpaceAvailable else { return }
            if rest.isEmpty {
                stream.close()
                done.signal()
                return
            }
            let output = stream as! OutputStream
            let count = rest.withUnsafeBufferPointer {
                output.write($0.baseAddress!, maxLength: $0.count)
            }
            rest = rest.dropFirst(max(0, count))
        }
        output.delegate = notes
        output.dispatchQueue = queue
        output.open()
        #expect(done.wait(timeout: .now() + 30) == .success)
        #expect(sink.received() == content)
    }

    // MARK: - Bytes

    @Test(arguments: InputKind.allCases)
    func `ST-22 read answers how many, 0 at the end and -1 on failure`(kind: InputKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.make(pattern(10))
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

    @Test(arguments: [InputKind.bound, .socket, .secured, .unix, .adopted, .accepted])
    func `ST-26 asking for bytes or space does not wait`(kind: InputKind) throws {
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

    @Test func `ST-26 what only trying can tell is answered with yes`() throws {
        let path = temporaryPath()
        defer { unlink(path) }
        try Data().write(to: URL(fileURLWithPath: path))
        let file = InputStream(fileAtPath: path)!
        file.open()
        #expect(file.hasBytesAvailable)
        #expect(file.bytes().0 == 0)
        let output = OutputStream(toFileAtPath: path, append: false)!
        output.open()
        #expect(output.hasSpaceAvailable)
    }

    @Test(arguments: InputKind.allCases.filter { $0 != .file })
    func `ST-27 what is at hand is lent in place and counts as read`(kind: InputKind) throws {
        let content = pattern(10_000)
        let findings = try onStreamThread { loop in
            let (stream, keep) = try kind.make(content)
            let notes = StreamNotes()
            stream.delegate = notes
            stream.schedule(in: loop, forMode: .default)
            stream.open()
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
            withExtendedLifetime(keep) {}
            return ["\(received == content)", "\(lent > 0)", "\(notes.count(of: "end"))"]
        }
        #expect(findings == ["true", "true", "1"])
    }

    @Test func `ST-27 a file lends nothing and loses nothing`() throws {
        let (stream, keep) = try InputKind.file.make([1, 2, 3])
        stream.open()
        var start: UnsafeMutablePointer<UInt8>?
        var count = 0
        #expect(!stream.getBuffer(&start, length: &count))
        #expect(stream.bytes().1 == [1, 2, 3])
        withExtendedLifetime(keep) {}
    }

    @Test func `ST-27 what a bound pair has lent is not overwritten`() {
        let (input, output) = boundStreams(4)
        input.open()
        output.open()
        _ = output.writeAll([1, 2, 3, 4])
        var start: UnsafeMutablePointer<UInt8>?
        var count = 0
        #expect(input.getBuffer(&start, length: &count))
        #expect(!output.hasSpaceAvailable)
        #expect(!input.hasBytesAvailable)
        #expect(Array(UnsafeBufferPointer(start: start, count: count)) == [1, 2, 3, 4])
        #expect(!input.getBuffer(&start, length: &count))
        #expect(output.hasSpaceAvailable)
    }

    @Test func `ST-32 the offset of an output file, and its refusal while appending`() throws {
        let path = temporaryPath()
        defer { unlink(path) }
        let stream = OutputStream(toFileAtPath: path, append: false)!
        stream.open()
        #expect(stream.writeAll([1, 2, 3, 4]))
        #expect((stream.property(forKey: .fileCurrentOffsetKey) as? NSNumber)?.intValue == 4)
        #expect(stream.setProperty(1 as NSNumber, forKey: .fileCurrentOffsetKey))
        #expect(stream.writeAll([9]))
        stream.close()
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data([1, 9, 3, 4]))
        let appending = OutputStream(toFileAtPath: path, append: true)!
        appending.open()
        #expect(!appending.setProperty(0 as NSNumber, forKey: .fileCurrentOffsetKey))
        #expect(appending.writeAll([5]))
        appending.close()
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data([1, 9, 3, 4, 5]))
    }

    // MARK: - Securing later

    @Test(arguments: [false, true])
    func `ST-42 a connection is secured from some point on`(isPolled: Bool) throws {
        let (server, port) = try PythonServer.start(.startTLS)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let (input, output) = streamsToHost(port, host: "localhost")
            let notes = StreamNotes()
            input.delegate = notes
            if !isPolled {
                input.schedule(in: loop, forMode: .default)
                output.schedule(in: loop, forMode: .default)
            }
            input.open()
            output.open()
            var findings = [String(decoding: input.line(loop, isPolled), as: UTF8.self)]
            #expect(output.writeAll(Array("STARTTLS\n".utf8)))
            findings.append(String(decoding: input.line(loop, isPolled), as: UTF8.self))
            findings.append("\(output.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey))")
            findings.append("\(output.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey))")
            #expect(output.writeAll(Array("secret\n".utf8)))
            findings.append(String(decoding: input.line(loop, isPolled), as: UTF8.self))
            // The bytes may have been there before the loop came to tell of the opening.
            if !isPolled { try? loop.run { notes.count(of: "open") > 0 } }
            return findings + [isPolled ? "1" : "\(notes.count(of: "open"))"]
        }
        #expect(findings == ["220 ready\n", "220 go ahead\n", "true", "false", "secret\n", "1"])
    }

    @Test func `ST-42 the level that is set while the connection is being made counts`() throws {
        let (server, port) = try OpenSSLServer.start()
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let (input, output) = streamsToHost(port, host: "localhost")
            input.open()
            output.open()
            #expect(output.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey))
            #expect(output.writeAll(Array("abc\n".utf8)))
            return [String(decoding: input.line(loop, true), as: UTF8.self)]
        }
        #expect(findings == ["cba\n"])
    }

    @Test func `ST-42 a certificate that is refused then fails both streams`() throws {
        let (server, port) = try PythonServer.start(.startTLS)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let (input, output) = streamsToHost(port, host: "localhost")
            let notes = [StreamNotes(), StreamNotes()]
            input.delegate = notes[0]
            output.delegate = notes[1]
            input.schedule(in: loop, forMode: .default)
            output.schedule(in: loop, forMode: .default)
            input.open()
            output.open()
            _ = input.line(loop, false)
            #expect(output.writeAll(Array("STARTTLS\n".utf8)))
            _ = input.line(loop, false)
            let level = StreamSocketSecurityLevel.negotiatedSSL.rawValue as NSString
            #expect(input.setProperty(level, forKey: .socketSecurityLevelKey))
            try loop.run { notes.allSatisfy { $0.events.contains("error") } }
            return ["\((input.streamError as NSError?)?.domain ?? "")"]
        }
        #expect(findings == [NSStreamSocketSSLErrorDomain])
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

extension InputKind {
    /// Streams whose peer takes everything and says nothing until they end.
    func silentPair() throws -> (InputStream, OutputStream, keep: AnyObject?) {
        switch self {
        case .memory, .file: fatalError("these have no peer")
        case .bound:
            let (input, _) = boundStreams(10)
            let (reader, output) = boundStreams(10)
            reader.open()
            return (input, output, reader)
        case .socket:
            let server = try SinkServer()
            let (input, output) = streamsToHost(server.port)
            return (input, output, server)
        case .secured:
            let path = temporaryPath()
            let (server, port) = try PythonServer.start(.save, path)
            let (input, output) = streamsToHost(port, host: "localhost")
            _ = input.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey)
            return (
                input, output,
                Deferred { [server] in
                    server.terminate()
                    unlink(path)
                }
            )
        case .unix:
            let server = try UnixServer { _ = PlainSocket.receiveAll($0) }
            let (input, output) = streamsToUnixSocket(server.path)
            return (input, output, server)
        case .adopted:
            let (ours, theirs) = try PlainSocket.pair()
            PlainSocket.serve(theirs) { _ = PlainSocket.receiveAll($0) }
            let (input, output) = ownedStreamsOnSocket(ours)
            return (input, output, nil)
        case .accepted:
            let connection = try acceptedStreams { _ = PlainSocket.receiveAll($0) }
            return (connection.input, connection.output, nil)
        }
    }
}

extension OutputKind {
    var opensAtOnce: Bool {
        switch self {
        case .memory, .buffer, .file, .bound: true
        case .socket, .secured, .unix, .adopted, .accepted: false
        }
    }
}

extension InputStream {
    /// Reads up to the end of a line, waiting as long as that takes.
    fileprivate func line(_ loop: RunLoop, _ isPolled: Bool) -> [UInt8] {
        var line: [UInt8] = []
        while line.last != UInt8(ascii: "\n") {
            if !isPolled { _ = try? loop.run { hasBytesAvailable || streamStatus != .open } }
            let (count, bytes) = bytes(1)
            if count <= 0 { break }
            line += bytes
        }
        return line
    }
}

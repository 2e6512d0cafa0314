import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

/// Rules that need a case of their own beside the contract.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct StreamRuleTests {
    // MARK: - Events

    @Test func `ST-11 a socket that another mode has connected reports open before bytes, one call each`()
        throws
    {
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
            // The bytes are here, and no delegate was told.
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

    @Test func `RL-37 an event that was told in one mode ends no run in another`() throws {
        let findings = try onStreamThread { loop in
            let note = StreamNotes()
            let stream = InputStream(data: Data([1]))
            stream.delegate = note
            let other = RunLoop.Mode("other")
            stream.schedule(in: loop, forMode: .default)
            stream.schedule(in: loop, forMode: other)
            stream.open()
            var findings: Findings = []
            while loop.run(in: .default, for: 0, returnAfterSourceHandled: true) == .handledSource {}
            findings += note.events
            // All is told: neither mode has anything to serve.
            for mode in [other, .default] {
                findings.append("\(loop.run(in: mode, for: 0, returnAfterSourceHandled: true))")
            }
            _ = stream.bytes(1)
            findings.append("\(loop.run(in: other, for: 0, returnAfterSourceHandled: true))")
            findings += note.events.suffix(1)
            findings.append("\(loop.run(in: .default, for: 0, returnAfterSourceHandled: true))")
            return findings
        }
        #expect(
            findings == [
                "open", "bytes", "timedOut", "timedOut", "handledSource", "end", "timedOut",
            ])
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
            output.writePart(of: &rest)
        }
        output.delegate = notes
        output.dispatchQueue = queue
        output.open()
        #expect(done.wait(timeout: .now() + 30) == .success)
        #expect(sink.received() == content)
    }

    // MARK: - Bytes

    @Test func `ST-26 hasBytesAvailable and hasSpaceAvailable are true if only an attempt can tell`() throws {
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

    @Test func `ST-27 a file lends nothing and loses nothing`() throws {
        let (stream, keep) = try StreamKind.file.makeInput([1, 2, 3])
        stream.open()
        var start: UnsafeMutablePointer<UInt8>?
        var count = 0
        #expect(!stream.getBuffer(&start, length: &count))
        #expect(stream.bytes().1 == [1, 2, 3])
        withExtendedLifetime(keep) {}
    }

    @Test func `ST-27 lent bytes of a bound pair are not overwritten`() {
        let (input, output) = boundStreams(4)
        input.open()
        output.open()
        _ = output.writeAll([1, 2, 3, 4])
        var start: UnsafeMutablePointer<UInt8>?
        var count = 0
        #expect(input.getBuffer(&start, length: &count))
        #expect(!input.hasBytesAvailable)
        // While the whole buffer is lent there is room for one byte more.
        #expect(output.write([5, 6], maxLength: 2) == 1)
        #expect(!output.hasSpaceAvailable)
        #expect(Array(UnsafeBufferPointer(start: start, count: count)) == [1, 2, 3, 4])
        #expect(input.getBuffer(&start, length: &count))
        #expect(Array(UnsafeBufferPointer(start: start, count: count)) == [5])
        #expect(!input.getBuffer(&start, length: &count))
        #expect(output.hasSpaceAvailable)
    }

    @Test func `ST-27 bytes written to a bound pair while others are lent come after those`() {
        let (input, output) = boundStreams(4)
        input.open()
        output.open()
        _ = output.writeAll([1, 2])
        var start: UnsafeMutablePointer<UInt8>?
        var count = 0
        #expect(input.getBuffer(&start, length: &count))
        #expect(output.write([3, 4, 5], maxLength: 3) == 2)
        #expect(Array(UnsafeBufferPointer(start: start, count: count)) == [1, 2])
        #expect(input.bytes().1 == [3, 4])
    }

    /// The streams of sockets share a buffer, which the next one that reads uses again.
    @Test func `ST-27 lent bytes of a socket are not overwritten by other reads`() throws {
        let lent = try onStreamThread { _ in
            let sockets = try (0..<3).map { _ in try PlainSocket.pair() }
            defer { for (ours, theirs) in sockets { for end in [ours, theirs] { close(end) } } }
            let streams = sockets.map { streamsOnSocket($0.0) }
            for (input, output) in streams {
                input.open()
                output.open()
            }
            defer {
                for (input, output) in streams {
                    input.close()
                    output.close()
                }
            }
            func receive(_ byte: UInt8, _ number: Int) -> InputStream {
                var bytes = [UInt8](repeating: byte, count: 100)
                #expect(write(sockets[number].1, &bytes, 100) == 100)
                #expect(streams[number].0.hasBytesAvailable)
                return streams[number].0
            }
            return (0..<3 as Range<UInt8>).map { round -> String in
                var start: UnsafeMutablePointer<UInt8>?
                var count = 0
                #expect(receive(10 + round, 0).getBuffer(&start, length: &count))
                for number in 1...2 {
                    #expect(receive(20, number).bytes().1 == [UInt8](repeating: 20, count: 100))
                }
                return "\(Array(UnsafeBufferPointer(start: start, count: count)))"
            }
        }
        #expect(lent == ([10, 11, 12] as [UInt8]).map { "\([UInt8](repeating: $0, count: 100))" })
    }

    @Test func `ST-32 the offset of an output file can be set, but not while appending`() throws {
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
        #expect(findings == ["220 ready\n", "220 go ahead\n", "true", "true", "secret\n", "1"])
    }

    @Test(arguments: [false, true])
    func `ST-42 a stream that is opened while the other one is being secured opens when it is`(
        outputIsLate: Bool
    ) throws {
        let (server, port) = try PythonServer.start(.echo)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let (input, output) = streamsToHost(port, host: "localhost")
            let notes = StreamNotes()
            input.schedule(in: loop, forMode: .default)
            output.schedule(in: loop, forMode: .default)
            let early: Foundation.Stream = outputIsLate ? input : output
            let late: Foundation.Stream = outputIsLate ? output : input
            late.delegate = notes
            early.open()
            try loop.run { early.streamStatus == .open }
            #expect(early.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey))
            late.open()
            try loop.run { !notes.events.isEmpty }
            #expect(output.writeAll(Array("secret\n".utf8)))
            return [notes.events.first ?? "", String(decoding: input.line(loop, false), as: UTF8.self)]
        }
        #expect(findings == ["open", "secret\n"])
    }

    @Test(arguments: [false, true])
    func `ST-42 ST-44 streams of an open connection are secured before a byte is written`(isPolled: Bool)
        throws
    {
        let (server, port) = try PythonServer.start(.echo)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let talk = Conversation(port, host: "localhost")
            talk.open(in: loop)
            try loop.run { talk.channel.isOpen }
            let connection = talk.channel.moveConnection()!
            let (input, output) = Foundation.Stream.makeStreams(over: connection, received: [])
            var options = SocketOptions()
            options.connectTimeout = 30
            var findings = ["\(input.setProperty(options as AnyObject, forKey: .socketOptionsKey))"]
            findings.append("\(input.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey))")
            if !isPolled {
                input.schedule(in: loop, forMode: .default)
                output.schedule(in: loop, forMode: .default)
            }
            input.open()
            output.open()
            let limit = connection.configuration.openingLimit ?? 0
            findings.append("\(output.streamStatus == .opening) \(limit)")
            // It waits for the handshake.
            #expect(output.writeAll(Array("secret\n".utf8)))
            return findings + [String(decoding: input.line(loop, isPolled), as: UTF8.self)]
        }
        #expect(findings == ["true", "true", "true 30.0", "secret\n"])
    }

    @Test func `ST-42 streams of a secured connection refuse to be secured again`() throws {
        let (server, port) = try PythonServer.start(.echo)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let talk = Conversation(port, host: "localhost", tls: .test)
            talk.open(in: loop)
            try loop.run { talk.channel.isOpen }
            let connection = talk.channel.moveConnection()!
            let (input, output) = Foundation.Stream.makeStreams(over: connection, received: [])
            let isSet = output.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey)
            input.open()
            output.open()
            #expect(output.writeAll(Array("secret\n".utf8)))
            return ["\(isSet)", String(decoding: input.line(loop, true), as: UTF8.self)]
        }
        #expect(findings == ["false", "secret\n"])
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

    @Test func `ST-14 ST-42 a client that writes only while there is space goes on when secured`() throws {
        let (server, port) = try PythonServer.start(.startTLS)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let (input, output) = streamsToHost(port, host: "localhost")
            var (received, toWrite) = ("", [UInt8]())
            func flush() {
                while !toWrite.isEmpty, output.hasSpaceAvailable {
                    let count = output.write(toWrite, maxLength: toWrite.count)
                    toWrite.removeFirst(max(0, count))
                }
            }
            let notes = StreamNotes { _, event in
                if event == .hasSpaceAvailable { flush() }
                guard event == .hasBytesAvailable else { return }
                received += String(decoding: input.bytes().1, as: UTF8.self)
            }
            scheduleAndOpen(input, output, in: loop, telling: notes)
            try loop.run { received == "220 ready\n" && notes.count(of: "space") > 0 }
            toWrite = Array("STARTTLS\n".utf8)
            flush()
            // The space after the line is told of, and not used.
            let told = notes.count(of: "space")
            try loop.run { received.hasSuffix("ahead\n") && notes.count(of: "space") > told }
            #expect(input.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey))
            toWrite = Array("in confidence".utf8)
            flush()
            let isWritten = toWrite.isEmpty
            try loop.run { received.hasSuffix("confidence") }
            return ["\(isWritten)", "\(notes.count(of: "open"))"]
        }
        #expect(findings == ["false", "2"])
    }

    @Test func `ST-13 ST-42 an unread event whose bytes belong to TLS is followed by another`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { loop in
            let client = try TestServerProcess([
                "openssl", "s_client", "-connect", "127.0.0.1:\(listener.port)", "-brief", "-quiet",
            ])
            defer { client.terminate() }
            let (input, output) = ownedStreamsOnSocket(listener.accept())
            let notes = StreamNotes()
            scheduleAndOpen(input, output, in: loop, telling: notes)
            try loop.run { notes.count(of: "bytes") == 1 }
            let settings = try TLSServerTests.settings()
            #expect(input.setProperty(settings as AnyObject, forKey: .tlsSettingsKey))
            client.tell("hello")
            try loop.run { notes.count(of: "bytes") == 2 }
            return [String(decoding: input.bytes().1, as: UTF8.self)]
        }
        #expect(findings == ["hello\n"])
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

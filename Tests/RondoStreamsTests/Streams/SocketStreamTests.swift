import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct SocketStreamTests {
    /// Opens both streams and runs until each has an error; what the streams said.
    private func failing(
        _ port: UInt16, host: String = "127.0.0.1",
        _ change: @escaping @Sendable (InputStream) -> Void = { _ in }
    ) throws -> Findings {
        try onStreamThread { loop in
            let (input, output) = streamsToHost(port, host: host)
            let notes = [StreamNotes(), StreamNotes()]
            input.delegate = notes[0]
            output.delegate = notes[1]
            change(input)
            for stream in [input, output] as [Foundation.Stream] {
                stream.schedule(in: Foundation.RunLoop.current, forMode: .default)
                stream.open()
            }
            try loop.run { notes.allSatisfy { $0.events.contains("error") } }
            loop.pass()
            let error = input.streamError as NSError?
            return notes.map { $0.events.joined(separator: " ") } + [
                error?.domain ?? "", "\(error?.code ?? 0)", error?.localizedDescription ?? "",
                "\(input.bytes().0) \(output.write([1], maxLength: 1))",
            ]
        }
    }

    @Test func `ST-37 nothing is connected before one of them is opened`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port] loop in
            let (input, output) = streamsToHost(port)
            input.schedule(in: loop, forMode: .default)
            output.schedule(in: loop, forMode: .default)
            loop.pass()
            return []
        }
        #expect(findings == [])
        #expect(!listener.hasConnection)
        let opened = try onStreamThread { [port = listener.port] loop in
            var input: InputStream?
            Foundation.Stream.getStreamsToHost(
                withName: "127.0.0.1", port: Int(port), inputStream: &input, outputStream: nil)
            let notes = StreamNotes()
            input!.delegate = notes
            input!.schedule(in: loop, forMode: .default)
            input!.open()
            try loop.run { notes.events == ["open"] }
            return notes.events
        }
        #expect(opened == ["open"])
        #expect(listener.hasConnection)
    }

    @Test func `ST-38 a refused connection is an error of both streams that names host and port`() throws {
        let port = try TestListener().port
        let findings = try failing(port)
        #expect(findings.prefix(4) == ["error", "error", NSPOSIXErrorDomain, "\(ECONNREFUSED)"])
        try #require(findings.count == 6)
        #expect(findings[4].contains("127.0.0.1") && findings[4].contains("\(port)"))
        #expect(findings[5] == "-1 -1")
    }

    @Test func `ST-38 an unknown host is an error of CFNetwork's domain that names it`() throws {
        let findings = try failing(80, host: "nonexistent.invalid")
        #expect(findings.prefix(4) == ["error", "error", "kCFErrorDomainCFNetwork", "2"])
        try #require(findings.count == 6)
        #expect(findings[4].contains("nonexistent.invalid"))
    }

    @Test func `ST-38 a stream fails that is opened after the other has failed, and not before`() throws {
        let refused = try RefusedPort()
        let findings = try onStreamThread { [port = refused.port] loop in
            let (input, output) = streamsToHost(port)
            let notes = [StreamNotes(), StreamNotes()]
            input.delegate = notes[0]
            output.delegate = notes[1]
            input.schedule(in: loop, forMode: .default)
            output.schedule(in: loop, forMode: .default)
            input.open()
            try loop.run { notes[0].events == ["error"] }
            loop.pass()
            var findings = ["\(output.streamStatus == .notOpen) \(output.streamError == nil)"]
            output.open()
            try loop.run { !notes[1].events.isEmpty }
            findings += notes[1].events
            return findings + ["\((output.streamError as NSError?)?.code == Int(ECONNREFUSED))"]
        }
        #expect(findings == ["true true", "error", "true"])
    }

    @Test func `ST-38 a connection that the peer resets is an error of both streams`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port, descriptor = listener.descriptor] loop in
            let (input, output) = streamsToHost(port)
            let notes = [StreamNotes(), StreamNotes()]
            input.delegate = notes[0]
            output.delegate = notes[1]
            for stream in [input, output] as [Foundation.Stream] {
                stream.schedule(in: Foundation.RunLoop.current, forMode: .default)
                stream.open()
            }
            try loop.run { notes[1].events.contains("space") }
            let peer = accept(descriptor, nil, nil)
            var hard = linger(l_onoff: 1, l_linger: 0)
            setsockopt(peer, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
            close(peer)
            try loop.run { notes.allSatisfy { $0.events.contains("error") } }
            loop.pass()
            return notes.map { $0.events.joined(separator: " ") }
                + ["\((input.streamError as NSError?)?.code == Int(ECONNRESET))"]
        }
        #expect(findings == ["open error", "open space error", "true"])
    }

    @Test func `ST-38 bytes that the peer sent before a failed write are still read`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port, descriptor = listener.descriptor] loop in
            let (input, output) = streamsToHost(port)
            input.open()
            output.open()
            _ = output.writeAll([1])
            let peer = accept(descriptor, nil, nil)
            #expect(send(peer, "early", 5, 0) == 5)
            // A byte that was not read makes a reset of the close.
            close(peer)
            while output.writeAll([1]) {}
            let (last, bytes) = input.allBytes()
            return [String(decoding: bytes, as: UTF8.self), "\(last)", "\(input.streamStatus == .error)"]
        }
        #expect(findings == ["early", "-1", "true"])
    }

    @Test func `ST-38 the peer's orderly end ends the input alone`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port, descriptor = listener.descriptor] loop in
            let (input, output) = streamsToHost(port)
            let notes = StreamNotes()
            input.delegate = notes
            input.schedule(in: loop, forMode: .default)
            input.open()
            output.open()
            try loop.run { notes.events.contains("open") }
            let peer = accept(descriptor, nil, nil)
            shutdown(peer, Int32(SHUT_WR))
            try loop.run { notes.events.contains("end") }
            // There is no "bytes" event before an end without bytes.
            var findings = notes.events
            findings.append("\(output.streamStatus == .open) \(output.writeAll([1, 2, 3]))")
            var bytes = [UInt8](repeating: 0, count: 10)
            findings.append("\(recv(peer, &bytes, 10, 0))")
            close(peer)
            return findings
        }
        #expect(findings == ["open", "end", "true true", "3"])
    }

    @Test func `ST-39 properties hold for both streams`() {
        let (input, output) = streamsToHost(4_711, host: "example.com")
        let level = StreamSocketSecurityLevel.negotiatedSSL.rawValue
        #expect(
            input.property(forKey: .socketSecurityLevelKey) as? String
                == StreamSocketSecurityLevel.none.rawValue)
        #expect(output.setProperty(level as NSString, forKey: .socketSecurityLevelKey))
        for stream in [input, output] as [Foundation.Stream] {
            #expect(stream.property(forKey: .socketSecurityLevelKey) as? String == level)
            #expect(stream.property(forKey: .socketRemoteHostNameKey) as? String == "example.com")
            #expect((stream.property(forKey: .socketRemotePortNumberKey) as? NSNumber)?.intValue == 4_711)
        }
        var settings = TLSSettings()
        settings.serverName = "elsewhere.example"
        #expect(output.setProperty(settings as AnyObject, forKey: .tlsSettingsKey))
        typealias Key = StreamSOCKSProxyConfiguration
        let proxy: [String: Any] = [Key.hostKey.rawValue: "localhost", Key.portKey.rawValue: 1_080]
        #expect(input.setProperty(proxy as NSDictionary, forKey: .socksProxyConfigurationKey))
        for stream in [input, output] as [Foundation.Stream] {
            #expect(stream.property(forKey: .tlsSettingsKey) as? TLSSettings == settings)
            let found = stream.property(forKey: .socksProxyConfigurationKey) as? [String: Any]
            #expect(found?[Key.hostKey.rawValue] as? String == "localhost")
        }
    }

    @Test func `ST-39 either stream reports what TLS has negotiated`() throws {
        let (server, port) = try OpenSSLServer.start()
        defer { server.terminate() }
        let findings = try onStreamThread { _ in
            let (input, output) = securedStreams(port)
            var findings = ["\(input.property(forKey: .tlsInformationKey) == nil)"]
            input.open()
            output.open()
            #expect(output.writeAll(Array("ab\n".utf8)))
            for stream in [input, output] as [Foundation.Stream] {
                findings.append(
                    (stream.property(forKey: .tlsInformationKey) as? TLSInformation)?.version ?? "")
            }
            return findings
        }
        #expect(findings == ["true", "TLSv1.3", "TLSv1.3"])
    }

    @Test func `ST-41 a security level is set by its name, and SSL 2 and 3 are refused`() {
        let (input, _) = streamsToHost(80)
        for level in [StreamSocketSecurityLevel.negotiatedSSL, .tlSv1, .none] {
            #expect(input.setProperty(level.rawValue as NSString, forKey: .socketSecurityLevelKey))
            #expect(input.property(forKey: .socketSecurityLevelKey) as? String == level.rawValue)
            #expect(input.setProperty(level as AnyObject, forKey: .socketSecurityLevelKey))
        }
        for level in [StreamSocketSecurityLevel.ssLv2, .ssLv3, .init(rawValue: "nonsense")] {
            #expect(!input.setProperty(level.rawValue as NSString, forKey: .socketSecurityLevelKey))
        }
        #expect(!input.setProperty(NSNumber(value: 1), forKey: .tlsSettingsKey))
    }

    @Test(arguments: [(TestCertificates.Kind.expired, -9814), (.untrusted, -9812), (.wrongHost, -9843)])
    func `ST-44 a refused certificate is an error and no byte is sent`(
        kind: TestCertificates.Kind, code: Int
    ) throws {
        let (server, port) = try OpenSSLServer.start(kind)
        defer { server.terminate() }
        let findings = try failing(port, host: "localhost") {
            _ = $0.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey)
        }
        #expect(findings.prefix(4) == ["error", "error", NSStreamSocketSSLErrorDomain, "\(code)"])
    }

    @Test func `ST-44 until the handshake is done there is no space, and nothing readable is sent`() throws {
        let listener = try TestListener()
        let secret = "nobody else reads this"
        let findings = try onStreamThread { [port = listener.port, descriptor = listener.descriptor] loop in
            let (input, output) = streamsToHost(port, host: "localhost")
            let notes = [StreamNotes(), StreamNotes()]
            for (stream, note) in zip([input, output] as [Foundation.Stream], notes) {
                stream.delegate = note
                stream.scheduleInRondo(loop, forMode: .default)
            }
            notes[1].handler = { stream, event in
                guard event == .hasSpaceAvailable else { return }
                // The cast: this is the delegate of one stream alone, and that is an output.
                _ = (stream as! OutputStream).writeAll(Array(secret.utf8))
            }
            #expect(input.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey))
            input.open()
            output.open()
            // The peer hears a greeting, and answers nothing.
            let peer = try acceptedWhile(loop, descriptor)
            var piece = [UInt8](repeating: 0, count: 4_096)
            let count = recv(peer, &piece, piece.count, 0)
            loop.pass()
            var findings = [
                "\(notes.flatMap(\.events))", "\(output.hasSpaceAvailable) \(input.hasBytesAvailable)",
            ]
            shutdown(peer, Int32(SHUT_WR))
            try loop.run { notes.allSatisfy { !$0.events.isEmpty } }
            findings += notes.flatMap(\.events)
            findings.append((output.streamError as NSError?)?.domain ?? "")
            input.close()
            output.close()
            let sent = Array(piece.prefix(max(0, count))) + PlainSocket.receiveAll(peer)
            close(peer)
            // A record of a handshake (RFC 8446, section 5.1), and no record of application data.
            findings.append("\(sent.first ?? 0)")
            findings.append("\(String(decoding: sent, as: UTF8.self).contains(secret))")
            return findings
        }
        #expect(
            findings == [
                "[]", "false false", "error", "error", NSStreamSocketSSLErrorDomain, "22", "false",
            ])
    }

    /// The connection that comes while the loop runs.
    private func acceptedWhile(_ loop: RunLoop, _ descriptor: Int32) throws -> Int32 {
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        return try waitFor("a connection") {
            loop.pass()
            let peer = accept(descriptor, nil, nil)
            return peer >= 0 ? peer : nil
        }
    }

    @Test func `ST-41 a peer that does not speak TLS fails both streams`() throws {
        let (server, port) = try PythonServer.start(.http)
        defer { server.terminate() }
        let findings = try failing(port) {
            _ = $0.setProperty(
                StreamSocketSecurityLevel.negotiatedSSL.rawValue as NSString, forKey: .socketSecurityLevelKey)
        }
        #expect(findings.prefix(4) == ["error", "error", NSStreamSocketSSLErrorDomain, "-9800"])
    }

    @Test func `ST-41 a server of TLS 1.2 that demands a certificate is told of as such`() throws {
        let (server, port) = try OpenSSLServer.start(
            .good, ["-tls1_2", "-Verify", "1", "-verify_return_error"])
        defer { server.terminate() }
        let findings = try failing(port, host: "localhost") {
            _ = $0.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey)
        }
        #expect(findings.dropFirst(2).prefix(2) == [NSStreamSocketSSLErrorDomain, "-9824"])
        #expect(findings.dropFirst(4).first?.contains("asks for a certificate of this side's") == true)
    }

    @Test(arguments: ["settings", "level and settings", "dictionary"])
    func `ST-42 streams are secured after they were opened`(by way: String) throws {
        let (server, port) = try PythonServer.start(.startTLS)
        defer { server.terminate() }
        let findings = try onStreamThread { _ in
            let (input, output) = streamsToHost(port, host: "localhost")
            input.open()
            output.open()
            func line(_ count: Int) -> String { String(decoding: input.bytes(count).1, as: UTF8.self) }
            var findings = [line(100)]
            _ = output.writeAll(Array("STARTTLS\n".utf8))
            findings.append(line(100))
            // The level comes first, and the other options before the next pass.
            let level = StreamSocketSecurityLevel.negotiatedSSL.rawValue as NSString
            let isLevelSet = way == "settings" || output.setProperty(level, forKey: .socketSecurityLevelKey)
            let settings = TLSSettings.test as AnyObject
            let options: [String: Any] = ["kCFStreamSSLValidatesCertificateChain": false]
            let isSet =
                way == "dictionary"
                ? input.setProperty(options as AnyObject, forKey: .sslSettingsKey)
                : input.setProperty(settings, forKey: .tlsSettingsKey)
            // TLS cannot be taken back.
            let isUndone = output.setProperty(nil, forKey: .tlsSettingsKey)
            findings.append("\(isLevelSet) \(isSet) \(isUndone)")
            // It waits for the handshake.
            _ = output.writeAll(Array("in confidence".utf8))
            findings.append(line(13))
            return findings + ["\(output.setProperty(settings, forKey: .tlsSettingsKey))"]
        }
        #expect(findings == ["220 ready\n", "220 go ahead\n", "true true false", "in confidence", "false"])
    }

    @Test func `ST-42 streams in a loop are secured in an event`() throws {
        let (server, port) = try PythonServer.start(.startTLS)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let (input, output) = streamsToHost(port, host: "localhost")
            var received = ""
            let notes = StreamNotes { stream, event in
                guard event == .hasBytesAvailable else { return }
                received += String(decoding: input.bytes().1, as: UTF8.self)
                if received == "220 ready\n" { _ = output.writeAll(Array("STARTTLS\n".utf8)) }
                if received.hasSuffix("ahead\n") {
                    _ = input.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey)
                    // Waits for the handshake.
                    _ = output.writeAll(Array("in confidence".utf8))
                }
            }
            for stream in [input, output] as [Foundation.Stream] { stream.delegate = notes }
            input.schedule(in: loop, forMode: .default)
            output.schedule(in: loop, forMode: .default)
            input.open()
            output.open()
            try loop.run { received.hasSuffix("confidence") }
            return [received, "\(notes.count(of: "open"))"]
        }
        #expect(findings == ["220 ready\n220 go ahead\nin confidence", "2"])
    }

    @Test func `a secured connection that is cut off is an error`() throws {
        let (server, port) = try PythonServer.start(.truncate)
        defer { server.terminate() }
        let findings = try onStreamThread { _ in
            let (input, _) = securedStreams(port)
            input.open()
            let (last, bytes) = input.allBytes()
            return ["\(last) \(bytes.count)", "\((input.streamError as NSError?)?.code ?? 0)"]
        }
        #expect(findings == ["-1 100000", "-9816"])
    }

    @Test(arguments: [false, true])
    func `ST-24 ST-20 one thread reads a socket while another writes to it`(isSecured: Bool) throws {
        let content = pattern(3_000_000)
        let (server, port) = try PythonServer.start(isSecured ? .echo : .plainEcho)
        defer { server.terminate() }
        let (input, output) = streamsToHost(port, host: "localhost")
        if isSecured { _ = input.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey) }
        let ends = Ends(input: input, output: output)
        let writer = LoopThread<Bool> { _ in
            ends.output.open()
            return ends.output.writeAll(content)
        }
        let equal = try onLoopThread { _ in
            ends.input.open()
            var received: [UInt8] = []
            while received.count < content.count {
                let (count, bytes) = ends.input.bytes()
                if count <= 0 { break }
                received += bytes
            }
            return received == content
        }
        #expect(equal)
        #expect(try writer.value())
    }

    /// The socket is quiet after that: OpenSSL has all of the record.
    @Test func `ST-13 ST-15 the rest of a TLS record that other code has begun to read is told of`() throws {
        let content = pattern(16_000)
        let (server, port) = try PythonServer.start(.echo)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let (input, output) = streamsToHost(port, host: "localhost")
            _ = output.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey)
            var received: [UInt8] = []
            let notes = StreamNotes { _, event in
                if event == .hasBytesAvailable { received += input.bytes(100_000).1 }
            }
            scheduleAndOpen(input, output, in: loop, telling: notes)
            try loop.run { notes.count(of: "open") == 2 && output.hasSpaceAvailable }
            _ = output.writeAll(content)
            let descriptor = (input.property(forKey: .socketNativeHandleKey) as? Data)?
                .withUnsafeBytes { $0.loadUnaligned(as: Int32.self) }
            let socket = try #require(descriptor)
            // The loop does not run meanwhile.
            try waitFor("the echo") {
                var count: Int32 = 0
                _ = ioctl(socket, UInt(FIONREAD), &count)
                return Int(count) >= content.count ? () : nil
            }
            received += input.bytes(100).1
            let first = received.count
            try loop.run { received.count >= content.count }
            return ["\(first) \(received == content)"]
        }
        #expect(findings == ["100 true"])
    }

    @Test(arguments: [false, true])
    func `both streams scheduled on one loop echo everything`(isSecured: Bool) throws {
        let content = pattern(2_000_000)
        let (server, port) = try PythonServer.start(isSecured ? .echo : .plainEcho)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let (input, output) = streamsToHost(port, host: "localhost")
            if isSecured { _ = output.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey) }
            var received: [UInt8] = []
            var rest = content[...]
            let notes = StreamNotes { stream, event in
                switch event {
                case .hasBytesAvailable: received += input.bytes(10_000).1
                case .hasSpaceAvailable:
                    guard !rest.isEmpty else { return }
                    output.writePart(of: &rest)
                default: break
                }
            }
            scheduleAndOpen(input, output, in: loop, telling: notes)
            try loop.run { received.count >= content.count || notes.events.contains("error") }
            return ["\(received == content)", "\(notes.count(of: "open"))"]
        }
        #expect(findings == ["true", "2"])
    }

    @Test func `ST-20 the two streams of a socket work on different threads`() throws {
        let content = pattern(500_000)
        let (server, port) = try PythonServer.start(.plainEcho)
        defer { server.terminate() }
        let (input, output) = streamsToHost(port)
        let ends = Ends(input: input, output: output)
        let writer = LoopThread<Findings> { loop in
            var rest = content[...]
            let notes = StreamNotes { _, event in
                guard event == .hasSpaceAvailable, !rest.isEmpty else { return }
                ends.output.writePart(of: &rest)
            }
            ends.output.delegate = notes
            ends.output.schedule(in: loop, forMode: .default)
            ends.output.open()
            do { try loop.run { rest.isEmpty } } catch { return ["threw \(error)"] }
            return [notes.events.first ?? "none"]
        }
        let findings = try onStreamThread { loop in
            var received: [UInt8] = []
            let notes = StreamNotes { _, event in
                if event == .hasBytesAvailable { received += ends.input.bytes().1 }
            }
            ends.input.delegate = notes
            ends.input.schedule(in: loop, forMode: .default)
            ends.input.open()
            try loop.run { received.count >= content.count || notes.events.contains("error") }
            return ["\(received == content)"]
        }
        #expect(findings == ["true"])
        #expect(try writer.value() == ["open"])
    }

    @Test func `a client that does not read holds the peer back`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port, descriptor = listener.descriptor] loop in
            let (input, _) = streamsToHost(port)
            let notes = StreamNotes()
            input.delegate = notes
            input.schedule(in: loop, forMode: .default)
            input.open()
            try loop.run { notes.events.contains("open") }
            let peer = accept(descriptor, nil, nil)
            _ = fcntl(peer, F_SETFL, O_NONBLOCK)
            var sent = 0
            let piece = [UInt8](repeating: 7, count: 65_536)
            func fill() {
                while true {
                    let count = send(peer, piece, piece.count, Int32(MSG_NOSIGNAL))
                    if count < 0 { return }
                    sent += count
                }
            }
            // Until passes of the loop make no more room: the kernel's buffers are full, and the peer does not read.
            var before = -1
            while before != sent {
                before = sent
                fill()
                loop.pass()
            }
            let events = notes.count(of: "bytes")
            shutdown(peer, Int32(SHUT_WR))
            let (last, bytes) = input.allBytes()
            close(peer)
            return ["\(events)", "\(last)", "\(bytes.count == sent)"]
        }
        #expect(findings == ["1", "0", "true"])
    }

    @Test func `ST-25 a thread that waits calls no delegate and a stop is not lost`() throws {
        let listener = try TestListener()
        let waits = DispatchSemaphore(value: 0)
        let reader = LoopThread<Findings> { [port = listener.port] loop in
            let (input, output) = streamsToHost(port)
            let ends = Ends(input: input, output: output)
            let findings = Mutex<Findings>([])
            loop.perform {
                ends.input.open()
                waits.signal()
                let bytes = ends.input.bytes().1
                findings.withLock { $0.append("\(bytes)") }
            }
            loop.add(Port(), forMode: .default)
            let result = loop.run(in: .default, for: 30, returnAfterSourceHandled: false)
            return findings.withLock { $0 } + ["\(result)"]
        }
        waits.wait()
        let peer = listener.accept()
        try reader.loop.perform { waits.signal() }
        try reader.loop.waitUntilAsleep()
        try reader.loop.stop()
        try reader.loop.waitUntilAsleep()
        #expect(waits.wait(timeout: .now()) == .timedOut)
        #expect(send(peer, "x", 1, 0) == 1)
        let findings = try reader.value()
        #expect(findings == ["[120]", "stopped"])
        close(peer)
    }

    @Test func `ST-24 a stop that comes while a client polls an opening is not lost`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [listener] loop in
            let (input, output) = streamsToHost(listener.port)
            let ends = Ends(input: input, output: output)
            let log = EventLog()
            let observer = RunLoop.Observer(activities: .beforeTimers) { _, _ in
                log.note("polled")
                loop.stop()
            }
            loop.add(observer, forMode: RunLoop.Mode("RondoStreamWaiting"))
            loop.perform {
                ends.input.open()
                while ends.input.streamStatus == .opening, log.entries.isEmpty {}
            }
            loop.add(Port(), forMode: .default)
            let result = loop.run(in: .default, for: 30, returnAfterSourceHandled: false)
            return log.entries + ["\(result)"]
        }
        #expect(findings == ["polled", "stopped"])
    }

    @Test func `ST-12 ST-24 a stream that was polled is scheduled later`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port, descriptor = listener.descriptor] loop in
            let (input, output) = streamsToHost(port)
            let notes = StreamNotes()
            input.delegate = notes
            input.open()
            output.open()
            _ = output.writeAll([1])
            let peer = accept(descriptor, nil, nil)
            #expect(send(peer, "ab", 2, 0) == 2)
            _ = input.bytes(1)
            input.schedule(in: loop, forMode: .default)
            try loop.run { notes.events.contains("bytes") }
            let bytes = input.bytes().1
            shutdown(peer, Int32(SHUT_WR))
            try loop.run { notes.events.contains("end") }
            close(peer)
            return notes.events + ["\(bytes)"]
        }
        #expect(findings == ["bytes", "end", "[98]"])
    }

    @Test func `closing both ends the connection and opening again is an error`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port, descriptor = listener.descriptor] loop in
            let (input, output) = streamsToHost(port)
            output.open()
            _ = output.writeAll([1])
            let peer = accept(descriptor, nil, nil)
            output.close()
            var bytes = [UInt8](repeating: 0, count: 10)
            var findings = ["\(recv(peer, &bytes, 10, 0))", "\(recv(peer, &bytes, 10, 0))"]
            close(peer)
            input.open()
            findings.append("\(input.streamStatus == .error) \(input.bytes().0)")
            return findings
        }
        #expect(findings == ["1", "0", "true -1"])
    }

    /// `@unchecked Sendable`: each stream is used by one thread, which is what is tested.
    private struct Ends: @unchecked Sendable {
        let input: InputStream
        let output: OutputStream
    }

    /// A loop, as long as something else keeps it.
    private struct WeakLoop: Sendable {
        weak let loop: RunLoop?
    }

    @Test func `ST-24 a stream lets go of the loop of a thread that has ended when another thread reads`()
        throws
    {
        let (near, far) = try PlainSocket.pair()
        // One thread at a time uses the streams: each thread that reads has ended before the next one begins.
        nonisolated(unsafe) let (input, output) = ownedStreamsOnSocket(near)
        input.open()
        let loops = try (0..<3).map { _ -> WeakLoop in
            let reading = LoopThread { loop -> WeakLoop in
                var byte: UInt8 = 0
                #expect(input.read(&byte, maxLength: 1) == 1)
                return WeakLoop(loop: loop)
            }
            try reading.loop.waitUntilAsleep()
            #expect(send(far, [1], 1, 0) == 1)
            return try reading.value()
        }
        #expect(loops.prefix(2).allSatisfy { $0.loop == nil })
        input.close()
        output.close()
        close(far)
    }

    /// Counts how often the kernel has taken the processor from a thread of this process, or was given it.
    ///
    /// - Returns: Nil if there is no such thread: it has not begun, or has ended.
    private static func switches(of thread: pid_t) -> Int? {
        guard let text = try? String(contentsOfFile: "/proc/self/task/\(thread)/status", encoding: .utf8)
        else { return nil }
        return text.split(separator: "\n").filter { $0.contains("ctxt_switches") }
            .compactMap { $0.split(separator: "\t").last.flatMap { Int($0) } }.reduce(0, +)
    }

    /// A write in part has the socket watched for room, and there is room from then on.
    @Test func `ST-24 a thread that waits for bytes sleeps, after a write that had to wait for room, too`()
        throws
    {
        let (near, far) = try PlainSocket.pair()
        let number = Mutex<pid_t>(0)
        let size = 4 << 20
        let thread = LoopThread { _ -> Int in
            number.withLock { $0 = threadNumber() }
            let (input, output) = ownedStreamsOnSocket(near)
            input.open()
            output.open()
            let bytes = [UInt8](repeating: 1, count: size)
            var sent = 0
            while sent < size {
                let count = bytes[sent...].withUnsafeBufferPointer {
                    output.write($0.baseAddress!, maxLength: $0.count)
                }
                guard count > 0 else { return count }
                sent += count
            }
            var byte: UInt8 = 0
            defer {
                input.close()
                output.close()
            }
            return input.read(&byte, maxLength: 1)
        }
        var (received, buffer) = (0, [UInt8](repeating: 0, count: 1 << 16))
        while received < size {
            let count = recv(far, &buffer, buffer.count, 0)
            try #require(count > 0)
            received += count
        }
        try waitFor("the thread to sleep on") { () -> Void? in
            let id = number.withLock { $0 }
            guard let before = Self.switches(of: id) else { return nil }
            _ = poll(nil, 0, 20)
            return isAsleep(thread: id) && Self.switches(of: id) == before ? () : nil
        }
        #expect(send(far, [1], 1, 0) == 1)
        #expect(try thread.value() == 1)
        close(far)
    }

    /// The kernel resets the connection of a Unix socket that is closed while unread bytes wait in it.
    @Test func `the error of a socket whose peer has no address names none`() throws {
        let findings = try onStreamThread { _ in
            let (ours, theirs) = try PlainSocket.pair()
            try #require(write(ours, "x", 1) == 1)
            let (input, output) = ownedStreamsOnSocket(ours)
            input.open()
            output.open()
            close(theirs)
            let error = input.text() == "-1" ? input.streamError as NSError? : nil
            return ["\(error?.code ?? 0)", error?.localizedDescription ?? ""]
        }
        #expect(
            findings == [
                "\(ECONNRESET)",
                "the connection broke: could not read: Connection reset by peer (ECONNRESET)",
            ])
    }
}

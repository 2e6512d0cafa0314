import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Tests properties of socket streams, and streams on sockets that exist already.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct SocketPropertyTests {
    private func option(_ descriptor: Int32, _ level: Int32, _ name: Int32) -> Int {
        var value: Int32 = -1
        var size = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(descriptor, level, name, &value, &size)
        return Int(value)
    }

    private func handle(_ stream: Foundation.Stream) -> Int32? {
        (stream.property(forKey: .socketNativeHandleKey) as? Data)?
            .withUnsafeBytes { $0.loadUnaligned(as: Int32.self) }
    }

    @Test func `ST-39 ST-33 the native handle, name and port are those of both streams`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port] loop in
            let (input, output) = streamsToHost(port)
            var findings = ["\(handle(input) == nil)"]
            input.open()
            output.open()
            _ = output.writeAll([1])
            let found = handle(input)
            findings.append("\(found != nil && found == handle(output))")
            findings.append("\(fcntl(found!, F_GETFD) >= 0)")
            findings.append("\(input.property(forKey: .shouldCloseNativeSocketKey) as? Bool ?? false)")
            for key in [.socketNativeHandleKey, .socketRemoteHostNameKey] as [Foundation.Stream.PropertyKey] {
                findings.append("\(input.setProperty("x" as NSString, forKey: key))")
            }
            return findings
        }
        #expect(findings == ["true", "true", "true", "true", "false", "false"])
    }

    @Test func `ST-42 ST-33 a connection whose output was closed cannot be secured`() throws {
        let server = try ContentServer([1, 2, 3])
        let findings = try onStreamThread { [port = server.port] _ in
            let (input, output) = streamsToHost(port)
            input.open()
            output.open()
            var findings = ["\(input.bytes(1))"]
            output.close()
            let settings = TLSSettings.test as AnyObject
            for stream in [input, output] as [Foundation.Stream] {
                findings.append("\(stream.setProperty(settings, forKey: .tlsSettingsKey))")
                findings.append("\(stream.property(forKey: .tlsSettingsKey) == nil)")
            }
            return findings + ["\(input.allBytes())", "\(input.streamError == nil)"]
        }
        #expect(findings == ["(1, [1])", "false", "true", "false", "true", "(0, [2, 3])", "true"])
    }

    @Test func `ST-39 options of the socket are set before and after it is opened`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port] loop in
            let (input, output) = streamsToHost(port)
            var options = SocketOptions()
            options.sendsAtOnce = false
            options.keepAlive = .init(idle: 17, interval: 0, probes: 1_000)
            #expect(input.setProperty(options as AnyObject, forKey: .socketOptionsKey))
            #expect(output.property(forKey: .socketOptionsKey) as? SocketOptions == options)
            output.open()
            _ = output.writeAll([1])
            let tcp = Int32(IPPROTO_TCP)
            let descriptor = handle(output)!
            var findings = ["\(option(descriptor, tcp, TCP_NODELAY))"]
            for name in [TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT] {
                findings.append("\(option(descriptor, tcp, name))")
            }
            findings.append("\(option(descriptor, SOL_SOCKET, SO_KEEPALIVE))")
            #expect(output.setProperty(SocketOptions() as AnyObject, forKey: .socketOptionsKey))
            findings.append("\(option(descriptor, tcp, TCP_NODELAY) != 0)")
            findings.append("\(option(descriptor, SOL_SOCKET, SO_KEEPALIVE))")
            // How long to wait is settled by opening.
            options.connectTimeout = 1
            findings.append("\(output.setProperty(options as AnyObject, forKey: .socketOptionsKey))")
            return findings
        }
        #expect(findings == ["0", "17", "1", "127", "1", "true", "0", "false"])
    }

    @Test func `numbers of probes beyond the kernel's limits are replaced by the nearest`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port] loop in
            let (input, output) = streamsToHost(port)
            var keepAlive = SocketOptions.KeepAlive()
            keepAlive.idle = 40_000
            keepAlive.interval = 3_000_000_000
            keepAlive.probes = -1
            var options = SocketOptions()
            options.keepAlive = keepAlive
            #expect(input.setProperty(options as AnyObject, forKey: .socketOptionsKey))
            output.open()
            _ = output.writeAll([1])
            let descriptor = handle(output)!
            return [TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT].map {
                "\(option(descriptor, Int32(IPPROTO_TCP), $0))"
            }
        }
        #expect(findings == ["32767", "32767", "1"])
    }

    @Test func `a channel has the kernel probe its peer if its settings say so`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port] loop in
            var findings: Findings = []
            for keepAlive in [SocketOptions.KeepAlive(idle: 17, interval: 19, probes: 9), nil] {
                var configuration = SocketChannel.Configuration(host: "127.0.0.1", port: Int(port))
                var connect = ConnectSettings()
                connect.keepAlive = keepAlive
                configuration.connect = connect
                let talk = Conversation(SocketChannel(configuration))
                talk.open(in: loop)
                try loop.run { talk.channel.isOpen }
                let descriptor = talk.channel.descriptor!
                var values = [option(descriptor, SOL_SOCKET, SO_KEEPALIVE)]
                if keepAlive != nil {
                    for name in [TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT] {
                        values.append(option(descriptor, Int32(IPPROTO_TCP), name))
                    }
                }
                findings.append("\(values)")
                talk.channel.close()
            }
            return findings
        }
        #expect(findings == ["[1, 17, 19, 9]", "[0]"])
    }

    @Test func `ST-39 accepted sockets have the listener's options, until a stream says otherwise`() throws {
        let findings = try onStreamThread { loop in
            func options(_ connection: StreamListener.Connection) -> String {
                let descriptor = handle(connection.output)!
                let values = [
                    option(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY),
                    option(descriptor, SOL_SOCKET, SO_KEEPALIVE),
                    option(descriptor, Int32(IPPROTO_TCP), TCP_KEEPIDLE),
                ]
                return values.map { "\($0)" }.joined(separator: " ")
            }
            var findings: [String] = []
            var unusual = SocketOptions()
            unusual.sendsAtOnce = false
            unusual.keepAlive = .init(idle: 17)
            for (inListener, inStream) in [(SocketOptions(), unusual), (unusual, SocketOptions())] {
                var configuration = StreamListener.Configuration()
                configuration.socketOptions = inListener
                let listener = try StreamListener(port: 0, host: "127.0.0.1", configuration: configuration)
                var accepted: [StreamListener.Connection] = []
                listener.onConnection = { accepted.append($0) }
                listener.schedule(in: loop, forMode: .default)
                let clients = try (0..<2).map { _ in try PlainSocket.connected(to: listener.port) }
                try loop.run { accepted.count == 2 }
                #expect(accepted[0].input.setProperty(inStream as AnyObject, forKey: .socketOptionsKey))
                for connection in accepted {
                    connection.output.open()
                    _ = connection.output.writeAll([1])
                    findings.append(options(connection))
                    connection.input.close()
                    connection.output.close()
                }
                listener.close()
                for client in clients { close(client) }
            }
            return findings
        }
        let systems = try String(contentsOfFile: "/proc/sys/net/ipv4/tcp_keepalive_time", encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        #expect(findings == ["0 1 17", "1 0 \(systems)", "1 0 17", "0 1 17"])
    }

    /// Streams whose connection may take 50 ms.
    private static func impatientStreams(_ port: UInt16) -> (InputStream, OutputStream) {
        let (input, output) = streamsToHost(port)
        var options = SocketOptions()
        options.connectTimeout = 0.05
        #expect(input.setProperty(options as AnyObject, forKey: .socketOptionsKey))
        return (input, output)
    }

    @Test func `a connection that does not come in time is an error`() throws {
        let silent = try SilentListener()
        let findings = try onStreamThread { loop in
            let (input, output) = Self.impatientStreams(silent.port)
            let notes = StreamNotes()
            input.delegate = notes
            input.schedule(in: loop, forMode: .default)
            input.open()
            try loop.run { !notes.events.isEmpty }
            let error = input.streamError as NSError?
            // Polling waits no longer than that either.
            let (other, _) = Self.impatientStreams(silent.port)
            other.open()
            withExtendedLifetime(output) {}
            return notes.events + ["\(error?.code == Int(ETIMEDOUT))", "\(other.bytes().0)"]
        }
        #expect(findings == ["error", "true", "-1"])
    }

    @Test(arguments: [true, false])
    func `ST-24 TM-13 the time to connect goes with a stream that was polled to another thread`(
        isScheduled: Bool
    ) throws {
        let silent = try SilentListener()
        let findings = try onStreamThread { _ in
            let (input, output) = Self.impatientStreams(silent.port)
            input.open()
            // The poll starts the time in this thread's loop, which is not run from here on.
            var findings = ["\(input.streamStatus == .opening)"]
            nonisolated(unsafe) let polled = input
            findings += try onStreamThread { loop in
                let notes = StreamNotes()
                if isScheduled {
                    polled.delegate = notes
                    polled.schedule(in: loop, forMode: .default)
                    try loop.run { !notes.events.isEmpty }
                } else {
                    // The read waits in a loop of its own thread.
                    notes.note("\(polled.bytes().0)")
                }
                return notes.events + ["\((polled.streamError as NSError?)?.code == Int(ETIMEDOUT))"]
            }
            input.close()
            withExtendedLifetime(output) {}
            return findings
        }
        #expect(findings == ["true", isScheduled ? "error" : "-1", "true"])
    }

    // MARK: - Sockets that exist already

    @Test func `ST-40 a socket that was handed in stays open`() throws {
        let findings = try onStreamThread { loop in
            let (ours, theirs) = try PlainSocket.pair()
            defer {
                close(ours)
                close(theirs)
            }
            let flags = fcntl(ours, F_GETFL)
            let (input, output) = streamsOnSocket(ours)
            var findings = ["\(input.property(forKey: .shouldCloseNativeSocketKey) as? Bool ?? true)"]
            findings.append("\(handle(input) == ours)")
            input.open()
            output.open()
            #expect(output.writeAll([1, 2, 3]))
            PlainSocket.send([4], on: theirs)
            findings.append("\(input.bytes().1)")
            input.close()
            output.close()
            // As it was, and usable.
            findings.append("\(fcntl(ours, F_GETFL) == flags)")
            PlainSocket.send([5], on: ours)
            var bytes = [UInt8](repeating: 0, count: 10)
            findings.append("\(recv(theirs, &bytes, 10, 0))")
            return findings
        }
        #expect(findings == ["false", "true", "[4]", "true", "4"])
    }

    @Test func `ST-40 a socket that stays open keeps the bytes that were not read, and its flags`() throws {
        let findings = try onStreamThread { loop in
            let (ours, theirs) = try PlainSocket.pair()
            defer {
                close(ours)
                close(theirs)
            }
            _ = fcntl(ours, F_SETFD, 0)
            let (input, output) = streamsOnSocket(ours)
            let notes = StreamNotes()
            input.delegate = notes
            input.schedule(in: loop, forMode: .default)
            input.open()
            output.open()
            PlainSocket.send(Array("abc".utf8), on: theirs)
            try loop.run { notes.count(of: "bytes") == 1 }
            loop.pass()
            var findings = [String(decoding: input.bytes(1).1, as: UTF8.self)]
            try loop.run { notes.count(of: "bytes") == 2 }
            findings.append("\(input.hasBytesAvailable)")
            input.close()
            output.close()
            var rest = [UInt8](repeating: 0, count: 10)
            let count = recv(ours, &rest, rest.count, Int32(MSG_DONTWAIT))
            findings.append(String(decoding: rest.prefix(max(0, count)), as: UTF8.self))
            return findings + notes.events + ["\(fcntl(ours, F_GETFD))"]
        }
        #expect(findings == ["a", "true", "bc", "open", "bytes", "bytes", "0"])
    }

    @Test func `ST-40 ST-27 a socket is taken over from open streams without the loss of a byte`() throws {
        let findings = try onStreamThread { loop in
            let (ours, theirs) = try PlainSocket.pair()
            defer {
                close(ours)
                close(theirs)
            }
            let (input, output) = ownedStreamsOnSocket(ours)
            let notes = StreamNotes()
            scheduleAndOpen(input, output, in: loop, telling: notes)
            PlainSocket.send(Array("abc".utf8), on: theirs)
            try loop.run { notes.count(of: "bytes") == 1 }
            #expect(input.setProperty(false as NSNumber, forKey: .shouldCloseNativeSocketKey))
            PlainSocket.send(Array("def".utf8), on: theirs)
            var start: UnsafeMutablePointer<UInt8>?
            var (count, lent) = (0, "")
            while input.getBuffer(&start, length: &count) {
                lent += String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
            }
            input.close()
            output.close()
            PlainSocket.send(Array("ghi".utf8), on: theirs)
            var rest = [UInt8](repeating: 0, count: 10)
            let received = recv(ours, &rest, rest.count, Int32(MSG_DONTWAIT))
            return [lent, String(decoding: rest.prefix(max(0, received)), as: UTF8.self)]
        }
        #expect(findings == ["abcdef", "ghi"])
    }

    @Test(arguments: ["closed", "dropped", "never opened"])
    func `ST-40 a socket that is to be closed with its streams is`(ending: String) throws {
        let findings = try onStreamThread { loop in
            let (ours, theirs) = try PlainSocket.pair()
            do {
                let (input, output) = streamsOnSocket(ours)
                #expect(output.setProperty(true as NSNumber, forKey: .shouldCloseNativeSocketKey))
                #expect(input.property(forKey: .shouldCloseNativeSocketKey) as? Bool == true)
                if ending != "never opened" {
                    input.open()
                    output.open()
                    #expect(output.writeAll([1]))
                }
                if ending == "closed" {
                    input.close()
                    output.close()
                }
            }
            let received = PlainSocket.receiveAll(theirs)
            close(theirs)
            return ["\(received.count)"]
        }
        #expect(findings == [ending == "never opened" ? "0" : "1"])
    }

    @Test func `ST-40 a descriptor that is not a connected socket is an error of the opening`() throws {
        let findings = try onStreamThread { loop in
            var findings: Findings = []
            let unconnected = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(unconnected) }
            for descriptor in [-1, unconnected] {
                let (input, _) = streamsOnSocket(descriptor)
                input.open()
                findings.append("\(input.bytes().0) \(input.streamStatus == .error)")
            }
            return findings
        }
        #expect(findings == ["-1 true", "-1 true"])
    }

    // MARK: - Unix-domain sockets

    @Test func `a Unix socket that is not there is an error that names it`() throws {
        let path = temporaryPath()
        let findings = try onStreamThread { loop in
            let (input, output) = streamsToUnixSocket(path)
            let notes = [StreamNotes(), StreamNotes()]
            for (stream, note) in zip([input, output] as [Foundation.Stream], notes) {
                stream.delegate = note
                stream.scheduleInRondo(loop, forMode: .default)
                stream.open()
            }
            try loop.run { notes.allSatisfy { !$0.events.isEmpty } }
            let error = input.streamError as NSError?
            return notes.flatMap(\.events) + [
                "\(error?.code == Int(ENOENT))", "\(error?.localizedDescription.contains(path) ?? false)",
                "\(input.property(forKey: .socketRemoteHostNameKey) as? String == path)",
            ]
        }
        #expect(findings == ["error", "error", "true", "true", "true"])
    }

    // MARK: - Gathering

    @Test func `gathered pieces arrive as one`() throws {
        let pieces = [pattern(3), [], pattern(70_000), pattern(1)] + (0..<100).map { pattern($0) }
        let whole = pieces.flatMap { $0 }
        for kind in StreamKind.outputs where kind != .buffer {
            let findings = try onStreamThread { loop in
                let (stream, written) = try kind.makeOutput(whole.count)
                stream.open()
                var sent = 0
                while sent < whole.count {
                    let count = stream.writeGathered(pieces, from: sent)
                    if count <= 0 { break }
                    sent += count
                }
                stream.close()
                return ["\(sent)", "\(written() == whole)"]
            }
            #expect(findings == ["\(whole.count)", "true"], "\(kind)")
        }
        let (buffer, written) = try StreamKind.buffer.makeOutput(5)
        buffer.open()
        #expect(buffer.writeGathered([[1, 2, 3], [4, 5, 6]], from: 0) == 5)
        #expect(written() == [1, 2, 3, 4, 5])
        #expect(OutputStream(toMemory: ()).write(gathering: []) == -1)
    }
}

extension OutputStream {
    /// Writes the bytes of the pieces that lie behind `offset`.
    fileprivate func writeGathered(_ pieces: [[UInt8]], from offset: Int) -> Int {
        var skipped = offset
        var buffers: [UnsafeMutableRawBufferPointer] = []
        defer { for buffer in buffers { buffer.deallocate() } }
        for piece in pieces {
            let rest = piece.dropFirst(skipped)
            skipped -= piece.count - rest.count
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: rest.count, alignment: 1)
            buffer.copyBytes(from: rest)
            buffers.append(buffer)
        }
        return write(gathering: buffers.map { UnsafeRawBufferPointer($0) })
    }
}

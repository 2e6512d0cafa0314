import RondoCore
import RondoStreams
import RondoTestSupport
import RondoTesting
import Testing

/// The ways in which a channel can begin: adopted, by an address, through a proxy, secured later, in time.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct ChannelOpeningTests {
    private static func socketPair() throws -> [Int32] {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, closeOnExec, 0, &ends) == 0)
        return ends
    }

    @Test func `an adopted socket is open in the first pass`() throws {
        let findings = try onStreamThread { loop in
            let ends = try Self.socketPair()
            let talk = Conversation(
                SocketChannel(adopting: try Socket(adopting: ends[0]), .init(host: "peer", port: 0)))
            talk.open(in: loop)
            let early = talk.words
            try loop.run { talk.channel.isOpen }
            talk.say("hello")
            var buffer = [UInt8](repeating: 0, count: 100)
            let count = recv(ends[1], &buffer, 100, 0)
            #expect(send(ends[1], buffer, count, 0) == count)
            try loop.run { talk.text == "hello" }
            talk.channel.endWriting()
            let end = recv(ends[1], &buffer, 100, 0)
            talk.channel.close()
            close(ends[1])
            return ["\(early)", talk.words.first ?? "none", "\(end)"]
        }
        #expect(findings == ["[]", "open", "0"])
    }

    @Test(arguments: [true, false])
    func `ST-40 an adopted descriptor is closed or left as it was`(closes: Bool) throws {
        let findings = try onStreamThread { loop in
            let ends = try Self.socketPair()
            defer { for end in ends { close(end) } }
            let descriptor = dup(ends[0])
            let talk = Conversation(
                SocketChannel(adopting: try Socket(adopting: descriptor), .init(host: "peer", port: 0)))
            talk.channel.closesDescriptor = closes
            talk.open(in: loop)
            try loop.run { talk.channel.isOpen }
            let during = fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0
            talk.channel.close()
            let after = fcntl(ends[0], F_GETFL) & O_NONBLOCK != 0
            let isOpen = fcntl(descriptor, F_GETFD) >= 0
            if isOpen { close(descriptor) }
            return ["\(during)", "\(after)", "\(isOpen)"]
        }
        // Closing restores no flags: the other holder of the socket does not get its own back.
        #expect(findings == ["true", "\(closes)", "\(!closes)"])
    }

    @Test(arguments: [true, false])
    func `a channel that was never opened lets go of what it has adopted`(closes: Bool) throws {
        let findings = try onStreamThread { _ in
            let ends = try Self.socketPair()
            defer { close(ends[1]) }
            var channel: SocketChannel? = SocketChannel(
                adopting: try Socket(adopting: ends[0]), .init(host: "peer", port: 0))
            channel?.closesDescriptor = closes
            channel = nil
            let isOpen = fcntl(ends[0], F_GETFD) >= 0
            if isOpen { close(ends[0]) }
            return ["\(isOpen)"]
        }
        #expect(findings == ["\(!closes)"])
    }

    @Test func `a channel to an address looks nothing up`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [address = listener.address] loop in
            let talk = Conversation(SocketChannel(to: address, .init(host: "no.such.invalid", port: 1)))
            talk.open(in: loop)
            try loop.run { talk.channel.isOpen }
            let missing = Conversation(
                SocketChannel(to: .unix(path: "/nonexistent/x"), .init(host: "/nonexistent/x", port: 0)))
            missing.open(in: loop)
            try loop.run { missing.failure != nil }
            return talk.words + [missing.failure?.description ?? "no failure"]
        }
        #expect(
            findings == [
                "connecting", "connected", "open",
                "could not connect to /nonexistent/x: No such file or directory (ENOENT)",
            ])
    }

    // MARK: - STARTTLS

    @Test func `ST-42 an open connection is secured from a moment on`() throws {
        let (server, port) = try PythonServer.start(.startTLS)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let talk = Conversation(port, host: "localhost")
            talk.open(in: loop)
            talk.channel.wantsRead = true
            try loop.run { talk.text == "220 ready\n" }
            talk.say("STARTTLS\n")
            try loop.run { talk.text.hasSuffix("go ahead\n") }
            let began = talk.channel.secure(.test)
            // Rule ST-44: nothing can be written meanwhile.
            let byte: [UInt8] = [1]
            let early = try? byte.withUnsafeBytes { try talk.channel.write($0) }
            let eventsInCall = talk.words.count
            try loop.run { talk.channel.isOpen }
            #expect(talk.words.count > eventsInCall)
            talk.say("in confidence")
            try loop.run { talk.text.hasSuffix("in confidence") }
            let again = talk.channel.secure(.test)
            let words = talk.words.filter { $0 != "readable" && $0 != "writable" }
            talk.channel.close()
            return ["\(began) \(early as Int?) \(again)"] + words
        }
        #expect(
            findings == ["true nil false", "resolving", "connecting", "connected", "open", "secured"])
    }

    @Test func `plain text after STARTTLS is not taken for TLS`() throws {
        let (server, port) = try PythonServer.start(.startTLS, "250 injected\n")
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let talk = Conversation(port, host: "localhost")
            talk.open(in: loop)
            try loop.run { talk.channel.isOpen }
            talk.say("STARTTLS\n")
            try loop.run { talk.text.hasSuffix("injected\n") }
            let rest = Array(talk.received.drop { $0 != UInt8(ascii: "\n") }.dropFirst())
            let early = Array(rest.drop { $0 != UInt8(ascii: "\n") }.dropFirst())
            let began = talk.channel.secure(.test, received: early)
            try loop.run { talk.failure != nil }
            guard case .tls(let error) = talk.failure, case .notTLS = error.reason else { return [] }
            return ["\(began)", String(decoding: early, as: UTF8.self)]
        }
        #expect(findings == ["true", "250 injected\n"])
    }

    @Test func `settings that cannot be used fail in a later pass`() throws {
        let findings = try onStreamThread { loop in
            let ends = try Self.socketPair()
            defer { close(ends[1]) }
            let talk = Conversation(
                SocketChannel(adopting: try Socket(adopting: ends[0]), .init(host: "peer", port: 0)))
            talk.open(in: loop)
            try loop.run { talk.channel.isOpen }
            let began = talk.channel.secure(.test { $0.alpn = [""] })
            let words = talk.words
            try loop.run { talk.failure != nil }
            return ["\(began)", "\(words)", "\(talk.failure?.description.contains("alpn") ?? false)"]
        }
        #expect(findings == ["true", "[\"open\"]", "true"])
    }

    // MARK: - Time

    @Test func `a peer that never finishes its handshake is given up`() throws {
        let (server, port) = try PythonServer.start(.silent)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            var configuration = SocketChannel.Configuration(host: "localhost", port: Int(port), tls: .test)
            configuration.openingLimit = 0.05
            let talk = Conversation(SocketChannel(configuration))
            talk.open(in: loop)
            try loop.run { talk.failure != nil }
            return talk.words.suffix(1) + [talk.failure?.description ?? "no failure"]
        }
        #expect(
            findings == ["failed", "the connection to localhost, port \(port) was not ready within 0.05 s"])
    }

    /// A resolver that answers when it is told to.
    private struct HeldResolver: Sendable {
        let resolver: Resolver
        private let mayAnswer: Latch

        init(_ addresses: [SocketAddress]) {
            let latch = Latch()
            mayAnswer = latch
            resolver = Resolver(idleTime: .milliseconds(1)) { _, _ in
                latch.waitOrRecord()
                return .success(addresses)
            }
        }

        /// Answers; returns when the requests for the host that were made before were answered: one look-up answers them
        /// together, in their order.
        func answer(host: String, port: UInt16) throws {
            let isAnswered = Latch()
            resolver.resolve(host: host, port: port) { _ in isAnswered.open() }
            mayAnswer.open()
            try isAnswered.wait()
        }
    }

    /// While the mode stands still, or a callback takes long.
    @Test(arguments: [true, false])
    func `the limit of time leaves a moment after an address that had come before`(inCallback: Bool) throws {
        let (server, port) = try PythonServer.start(.echo)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let clock = ManualClock(advancesAutomatically: false)
            clock.attach(to: loop)
            let held = HeldResolver([.loopback(port: port)])
            var configuration = SocketChannel.Configuration(host: "localhost", port: Int(port), tls: .test)
            configuration.resolver = held.resolver
            configuration.openingLimit = 5
            let talk = Conversation(SocketChannel(configuration))
            let letTimePass = {
                try? held.answer(host: "localhost", port: port)
                clock.advance(by: 6)
            }
            talk.onEvent = { event in
                if inCallback, case .resolving = event { letTimePass() }
            }
            talk.open(in: loop)
            try loop.run { !talk.words.isEmpty }
            // The next pass takes the address first. The timer fires when TLS has only begun.
            if !inCallback { letTimePass() }
            try loop.run { talk.channel.isOpen || talk.failure != nil }
            talk.channel.close()
            return talk.words
        }
        #expect(findings == ["resolving", "connecting", "connected", "secured", "open"])
    }

    @Test func `a connection that stands counts, also if the timer of the limit fires first`() throws {
        let (refused, listener) = (try RefusedPort(), try TestListener())
        let addresses = [SocketAddress.loopback(port: refused.port), listener.address]
        let findings = try onStreamThread { loop in
            let clock = ManualClock(advancesAutomatically: false)
            clock.attach(to: loop)
            var configuration = SocketChannel.Configuration(host: "several.test", port: 1)
            configuration.resolver = Resolver(idleTime: .milliseconds(1)) { _, _ in .success(addresses) }
            configuration.openingLimit = 5
            let talk = Conversation(SocketChannel(configuration))
            talk.onEvent = { event in
                guard event == .connecting(addresses[1]) else { return }
                #expect(throws: Never.self) {
                    try waitFor("the connection") { listener.hasConnection ? () : nil }
                }
                // A descriptor was served, so that the next pass begins with the timers.
                clock.advance(by: 6)
            }
            talk.open(in: loop)
            try loop.run { talk.channel.isOpen || talk.failure != nil }
            talk.channel.close()
            return talk.words
        }
        #expect(findings == ["resolving", "connecting", "connecting", "connected", "open"])
        withExtendedLifetime((refused, listener)) {}
    }

    @Test func `the limit of time ends with the opening`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port] loop in
            let clock = ManualClock(advancesAutomatically: false)
            clock.attach(to: loop)
            var configuration = SocketChannel.Configuration(host: "127.0.0.1", port: Int(port))
            configuration.openingLimit = 5
            let talk = Conversation(SocketChannel(configuration))
            talk.open(in: loop)
            try loop.run { talk.channel.isOpen }
            loop.add(Port(), forMode: .default)
            // No timer is left, for which the loop would wake up.
            var findings = ["\(loop.limitDate(forMode: .default) == .distantFuture)"]
            clock.advance(by: 6)
            loop.pass()
            findings.append("\(talk.channel.isOpen)")
            return findings
        }
        #expect(findings == ["true", "true"])
    }
}

import RondoCore
import RondoMutex
import RondoTestSupport
import Testing

@testable import RondoStreams

@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct SocketChannelTests {
    @Test(arguments: [false, true])
    func `a channel sends and receives a megabyte in passes of a loop`(isSecured: Bool) throws {
        let content = pattern(1_000_000)
        let (server, port) = try PythonServer.start(isSecured ? .echo : .plainEcho)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let talk = Conversation(port, host: "localhost", tls: isSecured ? .test : nil)
            talk.toSend = content[...]
            talk.channel.schedule(in: loop, forMode: .default)
            talk.channel.open()
            let early = talk.events.count
            try loop.run { talk.channel.isOpen }
            talk.channel.wantsRead = true
            talk.channel.wantsWrite = true
            try loop.run { talk.received.count == content.count }
            talk.channel.close()
            let first = talk.words.prefix(isSecured ? 5 : 4).joined(separator: " ")
            return ["\(early)", first, "\(talk.received == content)", "\(talk.channel.isOpen)"]
        }
        let secured = isSecured ? " secured" : ""
        #expect(findings == ["0", "resolving connecting connected\(secured) open", "true", "false"])
    }

    @Test func `UC-72 a channel's modes are not empty while a name is looked up`() throws {
        let findings = try onStreamThread { loop in
            let talk = Conversation(80, host: "nonexistent.invalid")
            talk.channel.schedule(in: loop, forMode: .default)
            talk.channel.open()
            try loop.run { talk.words.contains("failed") }
            let failure = talk.events.last
            guard case .failed(.resolve(let error)) = failure else { return ["\(talk.events)"] }
            loop.pass()
            return talk.words + [error.host, "\(talk.channel.isOpen)"]
        }
        #expect(findings == ["resolving", "failed", "nonexistent.invalid", "false"])
    }

    @Test func `a refused connection fails once and says so`() throws {
        let port = try TestListener().port
        let findings = try onStreamThread { loop in
            let talk = Conversation(port)
            talk.channel.schedule(in: loop, forMode: .default)
            talk.channel.open()
            try loop.run { talk.words.contains("failed") }
            loop.add(Port(), forMode: .default)
            loop.pass()
            guard case .failed(.connect(_, _, let errors)) = talk.events.last else { return [] }
            return talk.words + errors.map(\.description)
        }
        #expect(
            findings == [
                "connecting", "failed",
                "could not connect to 127.0.0.1:\(port): Connection refused (ECONNREFUSED)",
            ])
    }

    @Test func `a refused certificate fails the channel`() throws {
        let (server, port) = try OpenSSLServer.start(.expired)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let talk = Conversation(port, host: "localhost", tls: .test)
            talk.channel.schedule(in: loop, forMode: .default)
            talk.channel.open()
            try loop.run { talk.words.contains("failed") }
            guard case .failed(.tls(let error)) = talk.events.last else { return [] }
            return talk.words + [error.description]
        }
        #expect(findings.prefix(4) == ["resolving", "connecting", "connected", "failed"])
        #expect(findings.last?.contains("expired on 2021-01-01") == true)
    }

    @Test func `a channel does not open while its loop runs another mode`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port] loop in
            let talk = Conversation(port)
            let mode = RunLoop.Mode("its own")
            talk.channel.schedule(in: loop, forMode: mode)
            talk.channel.open()
            loop.add(Port(), forMode: .default)
            loop.pass()
            let before = talk.words
            try loop.run(inMode: mode) { talk.channel.isOpen }
            talk.channel.remove(from: loop, forMode: mode)
            talk.channel.schedule(in: loop, forMode: .tracking)
            let peer = accept(listener.descriptor, nil, nil)
            #expect(send(peer, "x", 1, 0) == 1)
            talk.channel.wantsRead = true
            loop.add(Port(), forMode: mode)
            loop.pass(inMode: mode)
            let moved = talk.received
            try loop.run(inMode: .tracking) { !talk.received.isEmpty }
            close(peer)
            return ["\(before)", "\(moved)", "\(talk.received)"]
        }
        #expect(findings == ["[]", "[]", "[120]"])
    }

    @Test(arguments: ["connecting", "connected", "open", "readable", "writable"])
    func `a channel that is closed in an event has no further events`(word: String) throws {
        let server = try ContentServer([1, 2, 3])
        let findings = try onStreamThread { [port = server.port] loop in
            let talk = Conversation(port)
            talk.onEvent = { event in
                if event.word == word { talk.channel.close() }
                guard event.word == "open" else { return }
                talk.channel.wantsRead = word != "writable"
                talk.channel.wantsWrite = word == "writable"
            }
            talk.channel.schedule(in: loop, forMode: .default)
            talk.channel.open()
            try loop.run { talk.words.contains(word) }
            loop.add(Port(), forMode: .default)
            loop.pass()
            return [
                "\(talk.words.last == word)", "\(talk.channel.isOpen)", "\(talk.channel.checkIdle())",
            ]
        }
        #expect(findings == ["true", "false", "false"])
    }

    @Test func `decrypted bytes are delivered however quiet the socket is`() throws {
        let (server, port) = try PythonServer.start(.told)
        defer { server.terminate() }
        server.tell("speak")
        let findings = try onStreamThread { loop in
            let talk = Conversation(port, host: "localhost", tls: .test)
            talk.capacity = 1
            talk.channel.schedule(in: loop, forMode: .default)
            talk.channel.open()
            try loop.run { talk.channel.isOpen }
            talk.channel.wantsRead = true
            try loop.run { talk.received.count == 2 }
            // A pause: nothing is read, and nothing is lost.
            talk.channel.wantsRead = false
            let pending = talk.channel.hasBufferedBytes
            loop.pass()
            let paused = talk.received.count
            talk.channel.wantsRead = true
            try loop.run { talk.received.count == 5 }
            return ["\(pending) \(paused)", String(decoding: talk.received, as: UTF8.self)]
        }
        #expect(findings == ["true 2", "told\n"])
    }

    @Test(arguments: [(PythonServer.Mode.orderly, "end"), (.truncate, "truncated")])
    func `a secured connection ends as truncated only without a close_notify`(
        mode: PythonServer.Mode, expected: String
    ) throws {
        let (server, port) = try PythonServer.start(mode)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let talk = Conversation(port, host: "localhost", tls: .test)
            talk.channel.schedule(in: loop, forMode: .default)
            talk.channel.open()
            talk.channel.wantsRead = true
            try loop.run { talk.ending != nil }
            return ["\(talk.received.count)", "\(talk.ending!)"]
        }
        #expect(findings == ["100000", expected])
    }

    @Test func `a kept connection is alive until the peer speaks or closes`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port, descriptor = listener.descriptor] loop in
            let talk = Conversation(port)
            talk.channel.schedule(in: loop, forMode: .default)
            talk.channel.open()
            try loop.run { talk.channel.isOpen }
            talk.channel.removeFromAllLoops()
            let peer = accept(descriptor, nil, nil)
            var findings = ["\(talk.channel.checkIdle())"]
            #expect(send(peer, "x", 1, 0) == 1)
            findings.append("\(talk.channel.checkIdle())")
            talk.read()
            findings.append("\(talk.channel.checkIdle())")
            close(peer)
            findings.append("\(talk.channel.checkIdle())")
            return findings
        }
        #expect(findings == ["true", "false", "true", "false"])
    }

    @Test func `a kept secured connection takes in session tickets`() throws {
        let findings = try onStreamThread { loop in
            let (server, port) = try PythonServer.start(.told)
            defer { server.terminate() }
            let talk = Conversation(port, host: "localhost", tls: .test)
            talk.channel.schedule(in: loop, forMode: .default)
            talk.channel.open()
            try loop.run { talk.channel.isOpen }
            talk.channel.removeFromAllLoops()
            var findings = ["\(talk.channel.checkIdle())"]
            server.tell("speak")
            _ = try server.line(after: "SENT")
            talk.channel.schedule(in: loop, forMode: .default)
            talk.channel.wantsRead = true
            try loop.run { talk.received.count == 5 }
            findings.append("\(talk.channel.checkIdle())")
            server.tell("close")
            _ = try server.line(after: "CLOSED")
            findings.append("\(talk.channel.checkIdle())")
            return findings
        }
        #expect(findings == ["true", "true", "false"])
    }

    /// A broken connection is always ready to be written to.
    @Test(arguments: [false, true])
    func `a secured connection that fails is not watched for what it had to send`(byRead: Bool) throws {
        let findings = try onStreamThread { loop in
            let (server, port) = try PythonServer.start(.deaf)
            defer { server.terminate() }
            let talk = Conversation(port, host: "localhost", tls: .test)
            talk.open(in: loop)
            try loop.run { talk.channel.isOpen }
            let channel = talk.channel
            let piece = pattern(65_536)
            let write = { try piece.withUnsafeBytes { try channel.write($0) } }
            while try write() > 0 {}
            var findings = ["\(channel.transport?.source.interest == .write)"]
            // Bytes that it has not read make it reset the connection.
            server.terminate()
            try wait(try #require(channel.descriptor), for: 0)
            if byRead {
                var buffer = [UInt8](repeating: 0, count: 10)
                #expect(throws: ChannelError.self) {
                    while true { _ = try buffer.withUnsafeMutableBytes { try channel.read(into: $0) } }
                }
            } else {
                #expect(throws: ChannelError.self) { try write() }
            }
            findings.append("\(channel.transport?.source.interest == [])")
            channel.close()
            return findings
        }
        #expect(findings == ["true", "true"])
    }

    @Test func `an event that is turned away at the gate comes again when it is opened`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port, descriptor = listener.descriptor] loop in
            let talk = Conversation(port)
            talk.channel.schedule(in: loop, forMode: .default)
            talk.channel.open()
            try loop.run { talk.channel.isOpen }
            talk.channel.wantsRead = true
            let (gate, registration) = (ClosedGate(), talk.channel.registration)
            registration.beginAccess(to: talk.channel, by: gate)
            let peer = accept(descriptor, nil, nil)
            #expect(send(peer, "x", 1, 0) == 1)
            try loop.run { gate.turnedAway > 0 }
            loop.pass()
            // A level-triggered descriptor does not spin at the gate.
            var findings = ["\(gate.turnedAway)", "\(talk.received)"]
            registration.beginAccess(to: talk.channel, by: TestGate { event, _ in event() })
            defer { registration.endAccess() }
            registration.resume()
            try loop.run { !talk.received.isEmpty }
            findings.append("\(talk.received)")
            close(peer)
            return findings
        }
        #expect(findings == ["1", "[]", "[120]"])
    }

    /// No descriptor brings it back: there is none yet.
    @Test func `a pass that was turned away at the gate comes again when it is opened`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { [port = listener.port] loop in
            let talk = Conversation(port)
            let (gate, registration) = (ClosedGate(), talk.channel.registration)
            registration.beginAccess(to: talk.channel, by: gate)
            talk.channel.schedule(in: loop, forMode: .default)
            talk.channel.open()
            try loop.run { gate.turnedAway > 0 }
            loop.pass()
            var findings = ["\(gate.turnedAway)", "\(talk.words)"]
            registration.beginAccess(to: talk.channel, by: TestGate { event, _ in event() })
            defer { registration.endAccess() }
            registration.resume()
            try loop.run { talk.channel.isOpen }
            findings.append("\(talk.words)")
            talk.channel.close()
            return findings
        }
        #expect(findings == ["1", "[]", "[\"connecting\", \"connected\", \"open\"]"])
    }

    /// As a load does whose response is complete: the next one may have the channel at once, on another thread,
    /// while the first is still telling its delegate.
    @Test(arguments: [false, true])
    func `an event in which its owner has let go of the channel is the last for it`(isSecured: Bool) throws {
        let (server, port) = try PythonServer.start(isSecured ? .echo : .plainEcho)
        defer { server.terminate() }
        let findings = try onStreamThread { loop in
            let talk = Conversation(port, host: "localhost", tls: isSecured ? .test : nil)
            talk.channel.schedule(in: loop, forMode: .default)
            talk.channel.open()
            try loop.run { talk.channel.isOpen }
            let next = Mutex<[String]>([])
            talk.onEvent = { [channel = talk.channel] event in
                guard event == .readable else { return }
                channel.registration.endAccess()
                channel.handler = { event in next.withLock { $0.append(event.word) } }
                // None of the loops that it is in yet may come in.
                channel.registration.beginAccess(to: channel, by: TestGate { _, _ in })
                channel.wantsWrite = true
            }
            talk.say("x")
            // Both at once: it can be read, and can be written as ever.
            try waitFor("the echo") { talk.channel.hasUnreadBytes ? () : nil }
            talk.channel.wantsWrite = true
            try loop.run { talk.words.last == "readable" }
            loop.pass()
            talk.channel.registration.endAccess()
            talk.channel.handler = nil
            talk.channel.close()
            return next.withLock { $0 } + [talk.words.last ?? "nothing"]
        }
        #expect(findings == ["readable"])
    }

    @Test func `two loops serve one channel`() throws {
        let content = pattern(300_000)
        let (server, port) = try PythonServer.start(.plainEcho)
        defer { server.terminate() }
        let talk = Conversation(port)
        talk.toSend = content[...]
        let shared = Shared(talk: talk)
        // The simplest gate there is: one at a time.
        let gate = TestGate { event, _ in shared.lock.withLock { event() } }
        talk.channel.registration.beginAccess(to: talk.channel, by: gate)
        defer { talk.channel.registration.endAccess() }
        let loops = (0..<2).map { _ in
            LoopThread<Bool> { loop in
                shared.lock.withLock { shared.talk.channel.schedule(in: loop, forMode: .default) }
                loop.add(Port(), forMode: .default)
                shared.scheduled.signal()
                return loop.run(in: .default, for: 30, returnAfterSourceHandled: false) == .stopped
            }
        }
        for _ in loops { shared.scheduled.wait() }
        shared.lock.withLock {
            shared.talk.channel.wantsRead = true
            shared.talk.channel.wantsWrite = true
            shared.talk.channel.open()
        }
        try waitFor("the echo") {
            shared.lock.withLock { shared.talk.received.count == content.count } ? () : nil
        }
        shared.lock.withLock { shared.talk.channel.close() }
        for thread in loops {
            try thread.loop.stop()
            #expect(try thread.value())
        }
        #expect(talk.received == content)
    }

    /// `@unchecked Sendable`: the conversation is used with the lock held.
    private struct Shared: @unchecked Sendable {
        let talk: Conversation
        let lock = NSLock()
        let scheduled = DispatchSemaphore(value: 0)
    }
}

import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

extension StreamContractTests {
    /// Both streams scheduled and opened; everything that comes is noted and read.
    private final class Client {
        let input: InputStream
        let output: OutputStream
        let inputNotes = StreamNotes()
        let outputNotes = StreamNotes()
        var received: [UInt8] = []
        var toSend: ArraySlice<UInt8>
        /// Closes the output when all is sent.
        var endsOutput = false
        var capacity = 65_536

        init(_ input: InputStream, _ output: OutputStream, _ toSend: [UInt8] = []) {
            self.input = input
            self.output = output
            self.toSend = toSend[...]
            inputNotes.handler = { [unowned self] _, event in
                if event == .hasBytesAvailable { received += self.input.bytes(capacity).1 }
            }
            outputNotes.handler = { [unowned self] _, event in
                guard event == .hasSpaceAvailable else { return }
                guard !self.toSend.isEmpty else {
                    if endsOutput { self.output.close() }
                    return
                }
                self.output.writePart(of: &self.toSend)
            }
            input.delegate = inputNotes
            output.delegate = outputNotes
        }

        func open(in loop: RunLoop, _ mode: RunLoop.Mode = .default) {
            for stream in [input, output] as [Foundation.Stream] {
                stream.scheduleInRondo(loop, forMode: mode)
                stream.open()
            }
        }

        func close() {
            input.close()
            output.close()
        }
    }

    @Test(arguments: StreamKind.pairs)
    func `ST-5 closing the output is heard and the input is read to its end`(kind: StreamKind) throws {
        let content = pattern(100_000)
        let findings = try onStreamThread { loop in
            let (input, output, keep) = try kind.makeEcho()
            let client = Client(input, output, content)
            client.endsOutput = true
            client.open(in: loop)
            try loop.run { client.inputNotes.events.contains("end") }
            loop.add(Port(), forMode: .default)
            loop.pass()
            client.close()
            withExtendedLifetime(keep) {}
            return [
                "\(client.received == content)", client.inputNotes.events.first ?? "none",
                client.inputNotes.events.last ?? "none", "\(client.inputNotes.count(of: "end"))",
                client.outputNotes.events.first ?? "none", client.outputNotes.events.last ?? "none",
            ]
        }
        #expect(findings == ["true", "open", "end", "1", "open", "space"])
    }

    @Test(arguments: StreamKind.pairs)
    func `ST-24 every pair echoes its content by polling, without any schedule`(kind: StreamKind) throws {
        // No thread would read what a bound pair does not hold.
        let content = pattern(kind == .bound ? 900 : 60_000)
        let findings = try onStreamThread { loop in
            let (input, output, keep) = try kind.makeEcho()
            input.open()
            output.open()
            let isWritten = output.writeAll(content)
            output.close()
            let (last, bytes) = input.allBytes()
            input.close()
            withExtendedLifetime(keep) {}
            return ["\(isWritten)", "\(last)", "\(bytes == content)"]
        }
        #expect(findings == ["true", "0", "true"])
    }

    @Test(arguments: StreamKind.tcp)
    func `ST-38 ST-16 a reset in the middle is one error and nothing follows`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let go = DispatchSemaphore(value: 0)
            let (input, output, keep) = try kind.makePlain { peer in
                PlainSocket.send(pattern(100), on: peer)
                go.wait()
                var hard = linger(l_onoff: 1, l_linger: 0)
                setsockopt(peer, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
            }
            let client = Client(input, output)
            client.open(in: loop)
            try loop.run { client.received.count == 100 && client.outputNotes.events.contains("space") }
            go.signal()
            try loop.run {
                client.inputNotes.events.contains("error") && client.outputNotes.events.contains("error")
            }
            loop.pass()
            let error = input.streamError as NSError?
            let found = [
                client.inputNotes.events.last ?? "none", client.outputNotes.events.last ?? "none",
                "\(client.inputNotes.count(of: "error")) \(client.inputNotes.count(of: "end"))",
                "\(error?.code == Int(ECONNRESET))", "\(input.bytes().0)",
                "\(output.write([1], maxLength: 1))",
            ]
            client.close()
            withExtendedLifetime(keep) {}
            return found
        }
        #expect(findings == ["error", "error", "1 0", "true", "-1", "-1"])
    }

    @Test(arguments: StreamKind.plain)
    func `a peer that sends byte by byte loses none`(kind: StreamKind) throws {
        let content = pattern(500)
        for capacity in [1, 7, 65_536] {
            let findings = try onStreamThread { loop in
                let (input, output, keep) = try kind.makePlain { peer in
                    var on: Int32 = 1
                    setsockopt(peer, Int32(IPPROTO_TCP), TCP_NODELAY, &on, 4)
                    for byte in content { PlainSocket.send([byte], on: peer) }
                }
                let client = Client(input, output)
                client.capacity = capacity
                client.open(in: loop)
                try loop.run { client.inputNotes.events.contains("end") }
                client.close()
                withExtendedLifetime(keep) {}
                return [
                    "\(client.received == content)",
                    "\(client.inputNotes.count(of: "bytes") <= content.count)",
                ]
            }
            #expect(findings == ["true", "true"])
        }
    }

    @Test(arguments: StreamKind.plain)
    func `ST-13 a peer that never stops does not keep others from being served`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let piece = [UInt8](repeating: 1, count: 65_536)
            let (input, output, keep) = try kind.makePlain { peer in
                while Foundation.send(peer, piece, piece.count, Int32(MSG_NOSIGNAL)) > 0 {}
            }
            let client = Client(input, output)
            client.open(in: loop)
            let other = InputStream(data: Data(pattern(50)))
            let otherClient = StreamNotes { stream, event in
                if event == .hasBytesAvailable { _ = (stream as! InputStream).bytes(1) }
            }
            other.delegate = otherClient
            try loop.run { !client.received.isEmpty }
            other.schedule(in: loop, forMode: .default)
            other.open()
            let before = client.inputNotes.events.count
            try loop.run { otherClient.events.contains("end") }
            let meanwhile = client.inputNotes.events.count - before
            client.close()
            withExtendedLifetime(keep) {}
            return ["\(meanwhile < 2_000)"]
        }
        #expect(findings == ["true"])
    }

    @Test(arguments: StreamKind.pairs)
    func `ST-18 in two loops each event comes once, to one of them`(kind: StreamKind) throws {
        let content = pattern(5_000)
        let shared = Shared()
        let ready = DispatchSemaphore(value: 0)
        let go = DispatchSemaphore(value: 0)
        let second = LoopThread<Bool> { loop in
            loop.add(Port(), forMode: .default)
            shared.second.withLock { $0 = loop }
            ready.signal()
            return loop.run(in: .default, for: 30, returnAfterSourceHandled: false) == .stopped
        }
        ready.wait()
        let findings = try onStreamThread { loop in
            let (input, output, keep) = try kind.makeEcho()
            let notes = SharedNotes(input)
            input.delegate = notes
            input.schedule(in: loop, forMode: .default)
            input.schedule(in: shared.second.withLock { $0! }, forMode: .default)
            input.open()
            output.open()
            // A bound pair takes no more than it holds; the loops empty it meanwhile.
            let writer = LoopThread<Bool> { [box = Box(output)] _ in
                defer { box.stream.close() }
                return box.stream.writeAll(content)
            }
            loop.add(Port(), forMode: .default)
            let limit = Date(timeIntervalSinceNow: 30)
            while !notes.hasEnded, Date() < limit {
                _ = loop.run(mode: .default, before: Date(timeIntervalSinceNow: 0.01))
            }
            let isWritten = try writer.value()
            let (events, bytes, overlaps) = notes.found
            input.close()
            go.signal()
            withExtendedLifetime(keep) {}
            return [
                "\(isWritten)", events.first ?? "", events.last ?? "", "\(events.count { $0 == "open" })",
                "\(events.count { $0 == "end" })", "\(bytes == content)", "\(overlaps)",
            ]
        }
        try second.loop.stop()
        #expect(try second.value())
        #expect(findings == ["true", "open", "end", "1", "1", "true", "0"])
    }

    private final class Shared: Sendable {
        let second = Mutex<RunLoop?>(nil)
    }

    /// `@unchecked Sendable`: used by one thread alone, which is what is tested.
    private final class Box: @unchecked Sendable {
        let stream: OutputStream
        init(_ stream: OutputStream) { self.stream = stream }
    }

    /// Reads on whichever thread it is called, and counts calls that overlap.
    private final class SharedNotes: StreamDelegate, Sendable {
        private let state = Mutex((events: [String](), bytes: [UInt8](), inside: 0, overlaps: 0))

        init(_ stream: InputStream) {}

        func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
            state.withLock {
                $0.inside += 1
                if $0.inside > 1 { $0.overlaps += 1 }
                $0.events.append(eventCode.word)
            }
            if eventCode == .hasBytesAvailable {
                let bytes = (aStream as! InputStream).bytes(100).1
                state.withLock { $0.bytes += bytes }
            }
            state.withLock { $0.inside -= 1 }
        }

        var hasEnded: Bool { state.withLock { $0.events.contains("end") || $0.events.contains("error") } }
        var found: ([String], [UInt8], Int) { state.withLock { ($0.events, $0.bytes, $0.overlaps) } }
    }

    @Test(arguments: StreamKind.pairs)
    func `ST-19 streams are released at any moment`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            loop.add(Port(), forMode: .default)
            for passes in 0..<12 {
                let (made, other, keep) = try kind.makeEcho()
                let client = Client(made, other, pattern(10_000))
                client.open(in: loop)
                for _ in 0..<passes { _ = loop.run(mode: .default, before: .distantPast) }
                // One at a time, in either order, or closed first.
                if passes % 3 == 0 { client.input.close() }
                if passes % 3 == 1 { client.output.close() }
                withExtendedLifetime(keep) {}
            }
            loop.pass()
            return ["alive"]
        }
        #expect(findings == ["alive"])
    }

    @Test(arguments: StreamKind.pairs)
    func `ST-19 a handler closes either stream at any event`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            loop.add(Port(), forMode: .default)
            var wrong: Findings = []
            for event in ["open", "bytes", "space", "end"] {
                for closesOther in [false, true] {
                    let (input, output, keep) = try kind.makeEcho()
                    let client = Client(input, output, pattern(3_000))
                    var isClosed = false
                    for (notes, own, other) in [
                        (client.inputNotes, input as Foundation.Stream, output as Foundation.Stream),
                        (client.outputNotes, output, input),
                    ] {
                        let usual = notes.handler
                        notes.handler = { stream, found in
                            if found.word == event, !isClosed {
                                isClosed = true
                                (closesOther ? other : own).close()
                                if !closesOther { return }
                            }
                            usual?(stream, found)
                        }
                    }
                    client.endsOutput = true
                    client.open(in: loop)
                    for _ in 0..<40 {
                        _ = loop.run(mode: .default, before: Date(timeIntervalSinceNow: 0.002))
                    }
                    client.close()
                    let before = client.inputNotes.events.count + client.outputNotes.events.count
                    loop.pass()
                    if client.inputNotes.events.count + client.outputNotes.events.count != before {
                        wrong.append("\(event) \(closesOther)")
                    }
                    withExtendedLifetime(keep) {}
                }
            }
            return wrong
        }
        #expect(findings == [])
    }
}

import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

extension StreamContractTests {
    @Test(arguments: StreamKind.outputs)
    func `ST-10 ST-14 a client that writes once an event writes everything`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let content = pattern(200)
            let (stream, written) = try kind.makeOutput(content.count)
            var rest = content[...]
            let notes = StreamNotes { stream, event in
                guard event == .hasSpaceAvailable, !rest.isEmpty else { return }
                _ = (stream as! OutputStream).writeAll([rest.removeFirst()])
            }
            stream.delegate = notes
            stream.schedule(in: loop, forMode: .default)
            stream.open()
            let afterOpen = notes.events.count
            try loop.run { rest.isEmpty }
            stream.close()
            loop.add(Port(), forMode: .default)
            loop.pass()
            return [
                "\(afterOpen) in open()", notes.events.first ?? "", "\(notes.count(of: "open"))",
                "\(notes.count(of: "space"))", "\(written() == content)", "\(stream.streamStatus == .closed)",
            ]
        }
        #expect(findings == ["0 in open()", "open", "1", "200", "true", "true"])
    }

    @Test(arguments: StreamKind.plain)
    func `ST-14 a connection that was full tells when there is space again`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let go = DispatchSemaphore(value: 0)
            let (input, output, keep) = try kind.makePlain { peer in
                go.wait()
                _ = PlainSocket.receiveAll(peer)
            }
            let notes = StreamNotes()
            output.delegate = notes
            output.schedule(in: loop, forMode: .default)
            input.open()
            output.open()
            try loop.run { notes.events.contains("space") }
            // Until passes of the loop make no more room.
            var before = 0
            repeat {
                before = notes.count(of: "space")
                output.fill()
                loop.pass()
            } while notes.count(of: "space") > before
            let status = output.streamStatus
            go.signal()
            try loop.run { notes.count(of: "space") > before }
            input.close()
            output.close()
            withExtendedLifetime(keep) {}
            return ["\(status == .open)"]
        }
        #expect(findings == ["true"])
    }

    @Test(arguments: StreamKind.plain)
    func `ST-14 ST-24 a write in an event does not wait for a peer that does not read`(kind: StreamKind)
        throws
    {
        let go = DispatchSemaphore(value: 0)
        let findings = try onStreamThread { loop in
            let (input, output, keep) = try kind.makePlain { peer in
                // A held-up thread goes on by this, and that is seen below.
                let isAsked = go.wait(timeout: .now() + 30) == .success
                if isAsked { _ = PlainSocket.receiveAll(peer) }
            }
            defer { withExtendedLifetime(keep) {} }
            return try Self.writeUntilFull(input, output, loop) { go.signal() }
        }
        #expect(findings == ["true", "true"])
    }

    @Test func `ST-14 ST-24 a write in an event does not wait for a peer over TLS that does not read`() throws
    {
        let path = temporaryPath()
        defer { unlink(path) }
        let findings = try onStreamThread { loop in
            let (server, port) = try PythonServer.start(.late, path)
            defer { server.terminate() }
            let (input, output) = securedStreams(port)
            return try Self.writeUntilFull(input, output, loop) { server.tell("go") }
        }
        #expect(findings == ["true", "true"])
    }

    /// One piece an event, each of them small enough to be taken in full, until no more events come.
    private static func writeUntilFull(
        _ input: InputStream, _ output: OutputStream, _ loop: RunLoop, _ go: () -> Void
    ) throws -> Findings {
        let piece = pattern(10_000)
        let notes = StreamNotes { stream, event in
            guard event == .hasSpaceAvailable else { return }
            // The cast: this is the delegate of one stream alone, and that is an output.
            _ = (stream as! OutputStream).write(piece, maxLength: piece.count)
        }
        output.delegate = notes
        output.schedule(in: loop, forMode: .default)
        input.open()
        output.open()
        try loop.run { notes.events.contains("space") }
        var before = 0
        repeat {
            before = notes.count(of: "space")
            loop.pass()
        } while notes.count(of: "space") > before
        let status = output.streamStatus
        go()
        try loop.run { notes.count(of: "space") > before || output.streamStatus != .open }
        let findings = ["\(status == .open)", "\(output.streamStatus == .open)"]
        input.close()
        output.close()
        return findings
    }

    @Test(arguments: StreamKind.outputs)
    func `ST-24 polling without any schedule writes everything`(kind: StreamKind) throws {
        let findings = try onStreamThread { _ in
            var findings: Findings = []
            for count in [1, 300, 100_000] {
                let content = pattern(count)
                let (stream, written) = try kind.makeOutput(count)
                stream.open()
                findings.append("\(stream.writeAll(content))")
                stream.close()
                findings.append("\(written() == content)")
            }
            return findings
        }
        #expect(findings == Array(repeating: "true", count: 6))
    }

    @Test(arguments: StreamKind.outputs)
    func `ST-7 ST-2 a stream that is not open takes nothing`(kind: StreamKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, written) = try kind.makeOutput(100)
            defer { withExtendedLifetime(written) {} }
            var findings = ["\(stream.write([1], maxLength: 1)) \(stream.hasSpaceAvailable)"]
            stream.close()
            stream.open()
            stream.close()
            stream.open()
            findings.append(
                "\(stream.write([1], maxLength: 1)) \(stream.hasSpaceAvailable) \(stream.streamStatus == .closed)"
            )
            return findings
        }
        #expect(findings == ["-1 false", "-1 false true"])
    }
}

import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

// Streams that are scheduled nowhere, used by a client that never waits: it only asks (rules ST-24 and ST-26).
extension StreamContractTests {
    private static let connections = StreamKind.pairs.filter { $0 != .bound }

    @Test(arguments: connections)
    func `ST-26 ST-24 a client that asks and never waits gets everything there and back`(kind: StreamKind)
        throws
    {
        // More than the buffers on the way hold.
        let content = pattern(8_000_000)
        let findings = try onStreamThread { _ in
            let (input, output, keep) = try kind.makeEcho()
            input.open()
            output.open()
            var findings = ["\(input.streamStatus == .opening)"]
            try waitFor("the opening") { input.streamStatus == .open ? () : nil }
            findings.append("\(output.streamStatus == .open) \(input.hasBytesAvailable)")
            var rest = content[...]
            var received: [UInt8] = []
            try waitFor("everything") {
                if !rest.isEmpty, output.hasSpaceAvailable {
                    output.writePart(of: &rest)
                }
                if input.hasBytesAvailable { received += input.bytes().1 }
                return received.count >= content.count ? () : nil
            }
            findings.append("\(received == content)")
            input.close()
            output.close()
            withExtendedLifetime(keep) {}
            return findings
        }
        #expect(findings == ["true", "true false", "true"])
    }

    @Test(arguments: connections)
    func `ST-26 space alone is asked for, from the opening on`(kind: StreamKind) throws {
        let findings = try onStreamThread { _ in
            let (stream, written) = try kind.makeOutput(3)
            let before = stream.hasSpaceAvailable
            stream.open()
            try waitFor("space") { stream.hasSpaceAvailable ? () : nil }
            let count = stream.write([1, 2, 3], maxLength: 3)
            stream.close()
            return ["\(before) \(count) \(written())"]
        }
        #expect(findings == ["false 3 [1, 2, 3]"])
    }

    @Test(arguments: connections)
    func `ST-26 bytes alone are asked for, from the opening on`(kind: StreamKind) throws {
        let findings = try onStreamThread { _ in
            let (stream, keep) = try kind.makeInput([1, 2, 3])
            stream.open()
            var received: [UInt8] = []
            try waitFor("bytes") {
                if stream.hasBytesAvailable { received += stream.bytes().1 }
                return received.count == 3 ? () : nil
            }
            withExtendedLifetime(keep) {}
            return ["\(received)"]
        }
        #expect(findings == ["[1, 2, 3]"])
    }

    @Test(arguments: [StreamKind.memory, .file, .bound])
    func `ST-26 bytes are there until the last was read`(kind: StreamKind) throws {
        let (stream, keep) = try kind.makeInput([1, 2])
        var answers = [stream.hasBytesAvailable]
        stream.open()
        for _ in 0..<2 {
            answers.append(stream.hasBytesAvailable)
            _ = stream.bytes(1)
        }
        // Of a file only a read tells that there are no more.
        if kind == .file { #expect(stream.bytes().0 == 0) }
        #expect(answers + [stream.hasBytesAvailable] == [false, true, true, false])
        withExtendedLifetime(keep) {}
    }

    @Test(arguments: [StreamKind.memory, .file, .buffer, .bound])
    func `ST-26 space is there until none is left`(kind: StreamKind) throws {
        let (stream, written) = try kind.makeOutput(2)
        stream.open()
        var answers: [Bool] = []
        for _ in 0..<2 {
            answers.append(stream.hasSpaceAvailable)
            #expect(stream.writeAll([1]))
        }
        let isLimited = kind == .buffer || kind == .bound
        #expect(answers + [stream.hasSpaceAvailable] == [true, true, !isLimited])
        stream.close()
        #expect(!stream.hasSpaceAvailable)
        withExtendedLifetime(written) {}
    }

    @Test(arguments: StreamKind.plain)
    func `ST-26 a connection that is full has no space until the peer reads`(kind: StreamKind) throws {
        let findings = try onStreamThread { _ in
            let go = DispatchSemaphore(value: 0)
            let (input, output, keep) = try kind.makePlain { peer in
                go.wait()
                _ = PlainSocket.receiveAll(peer)
            }
            input.open()
            output.open()
            try waitFor("the opening") { output.streamStatus == .open ? () : nil }
            output.fill()
            // There was none, or it would go on.
            var findings = ["\(output.streamStatus == .open)"]
            go.signal()
            try waitFor("space") { output.hasSpaceAvailable ? () : nil }
            findings.append("\(output.write([1], maxLength: 1))")
            input.close()
            output.close()
            withExtendedLifetime(keep) {}
            return findings
        }
        #expect(findings == ["true", "1"])
    }

    @Test func `ST-38 a client that asks for the status alone sees the failure`() throws {
        let refused = try RefusedPort()
        let findings = try onStreamThread { [port = refused.port] _ in
            let (input, output) = streamsToHost(port)
            input.open()
            output.open()
            try waitFor("the failure") { input.streamStatus == .error ? () : nil }
            return [
                "\(output.streamStatus == .error)",
                "\((input.streamError as NSError?)?.code == Int(ECONNREFUSED))",
            ]
        }
        #expect(findings == ["true", "true"])
    }
}

import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

extension StreamContractTests {
    @Test(arguments: StreamKind.outputs)
    func `ST-10 ST-14 one event a write delivers everything`(kind: StreamKind) throws {
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

    @Test(arguments: StreamKind.outputs)
    func `ST-14 one event until a write`(kind: StreamKind) throws {
        let findings = try kind.onOutput(100) { loop, stream, notes in
            try loop.run { notes.events.contains("space") }
            loop.pass()
            let before = notes.events
            _ = stream.writeAll([1])
            try loop.run { notes.count(of: "space") == 2 }
            loop.pass()
            return [before.joined(separator: " "), notes.events.joined(separator: " ")]
        }
        #expect(findings == ["open space", "open space space"])
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
    func `ST-7 ST-2 what is not open takes nothing`(kind: StreamKind) throws {
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

    @Test(arguments: StreamKind.outputs)
    func `ST-8 ST-17 nothing comes of an output in another mode and it is delivered later`(kind: StreamKind)
        throws
    {
        let findings = try kind.onOutput(100) { loop, stream, notes in
            let other = RunLoop.Mode("other")
            loop.add(Port(), forMode: other)
            loop.pass(inMode: other)
            let before = notes.events.count
            try loop.run { notes.events.contains("space") }
            return ["\(before)"] + notes.events
        }
        #expect(findings == ["0", "open", "space"])
    }
}

import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

// Opening, closing, and what is left afterwards.
extension StreamContractTests {
    @Test(arguments: StreamEnd.all)
    func `ST-2 opening an open stream changes nothing`(end: StreamEnd) throws {
        let findings = try end.onStream(10) { loop, stream, notes in
            try loop.run { notes.events.contains(end.event) }
            stream.open()
            let status = stream.streamStatus
            loop.pass()
            return notes.events + ["\(status == .open)", "\(stream.transfersPattern(10))"]
        }
        #expect(findings == ["open", end.event, "true", "true"])
    }

    private static let modes: [RunLoop.Mode] = [.default, .tracking, RunLoop.Mode("other")]

    @Test(arguments: StreamEnd.all)
    func `ST-5 closing takes a stream out of all its modes`(end: StreamEnd) throws {
        let findings = try end.onStream(10) { loop, stream, notes in
            stream.schedule(in: loop, forMode: .common)
            stream.schedule(in: loop, forMode: Self.modes[2])
            try loop.run(inMode: Self.modes[2]) { notes.events.contains(end.event) }
            stream.close()
            return Self.modes.map { "\(loop.run(mode: $0, before: .distantPast))" } + notes.events
        }
        #expect(findings == ["false", "false", "false", "open", end.event])
    }

    @Test func `ST-5 closing gives a file's descriptor back, and properties can still be read`() throws {
        let path = temporaryPath()
        defer { unlink(path) }
        let output = OutputStream(toFileAtPath: path, append: false)!
        output.open()
        #expect(output.writeAll([1, 2, 3]))
        #expect(try descriptors(of: path) == 1)
        output.close()
        #expect(try descriptors(of: path) == 0)
        let input = InputStream(fileAtPath: path)!
        input.open()
        #expect(input.bytes().1 == [1, 2, 3])
        #expect(try descriptors(of: path) == 1)
        input.close()
        #expect(try descriptors(of: path) == 0)
        withExtendedLifetime((input, output)) {}
    }

    /// Counts the descriptors of this process that lead to a file.
    private func descriptors(of path: String) throws -> Int {
        let directory = "/proc/self/fd"
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        return try FileManager.default.contentsOfDirectory(atPath: directory).count {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/\($0)")) == target
        }
    }

    @Test(arguments: [StreamKind.socket, .secured])
    func `ST-5 the properties of a connection can be read when it is closed`(kind: StreamKind) throws {
        let findings = try onStreamThread { _ in
            let (input, output, keep) = try kind.makeEcho()
            input.open()
            output.open()
            #expect(output.writeAll([1]))
            input.close()
            output.close()
            withExtendedLifetime(keep) {}
            return ([input, output] as [Foundation.Stream]).flatMap { stream in
                [
                    "\(stream.property(forKey: .socketRemoteHostNameKey) as? String ?? "")",
                    "\(stream.property(forKey: .tlsSettingsKey) != nil)",
                ]
            }
        }
        let expected = kind == .secured ? ["localhost", "true"] : ["127.0.0.1", "false"]
        #expect(findings == expected + expected)
    }

    @Test(arguments: StreamKind.inputs)
    func `ST-6 a stream that has not failed has no error`(kind: StreamKind) throws {
        let findings = try kind.onInput(10) { loop, stream, notes in
            var findings = ["\(stream.streamError == nil)"]
            try loop.run { notes.events.contains("bytes") }
            findings.append("\(stream.streamError == nil)")
            _ = stream.allBytes()
            findings.append("\(stream.streamStatus == .atEnd) \(stream.streamError == nil)")
            stream.close()
            return findings + ["\(stream.streamError == nil)"]
        }
        #expect(findings == ["true", "true", "true true", "true"])
    }

    @Test func `ST-6 closing a stream that has failed frees what it had`() throws {
        let findings = try onStreamThread { loop in
            let stream = InputStream(fileAtPath: "/nonexistent/file")!
            stream.schedule(in: loop, forMode: .default)
            stream.open()
            let before = loop.run(mode: .default, before: .distantPast)
            stream.close()
            let after = loop.run(mode: .default, before: .distantPast)
            return ["\(before) \(after)", "\(stream.streamStatus == .error)"]
        }
        #expect(findings == ["true false", "true"])
    }

    @Test(arguments: StreamEnd.all)
    func `ST-9 a stream is its own delegate by default, and holds another weakly`(end: StreamEnd) throws {
        let findings = try onStreamThread { loop in
            let (stream, keep) = try end.make(300)
            defer { withExtendedLifetime(keep) {} }
            var findings = ["\(stream.delegate === stream)"]
            do {
                let notes = StreamNotes()
                stream.delegate = notes
                findings.append("\(stream.delegate === notes)")
            }
            findings.append("\(stream.delegate === stream)")
            stream.delegate = nil
            findings.append("\(stream.delegate === stream)")
            stream.schedule(in: loop, forMode: .default)
            stream.open()
            loop.pass()
            return findings
        }
        #expect(findings == ["true", "true", "true", "true"])
    }
}

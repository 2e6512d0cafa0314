import RondoCore
import RondoStreams
import RondoTestSupport
import Synchronization
import Testing

/// Every kind of stream that takes bytes.
enum OutputKind: String, CaseIterable, Sendable {
    case memory, buffer, file, bound, socket, secured, unix, adopted, accepted

    /// A stream with room for `count` bytes, and what gives the bytes that it was given, once it is closed.
    func make(_ count: Int) throws -> (OutputStream, written: () -> [UInt8]) {
        switch self {
        case .memory:
            let stream = OutputStream(toMemory: ())
            return (
                stream, { Array(stream.property(forKey: .dataWrittenToMemoryStreamKey) as? Data ?? Data()) }
            )
        case .buffer:
            let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: max(1, count))
            memory.initialize(repeating: 0, count: max(1, count))
            let owner = Deferred { memory.deallocate() }
            return (
                OutputStream(toBuffer: memory, capacity: count),
                { withExtendedLifetime(owner) { Array(UnsafeBufferPointer(start: memory, count: count)) } }
            )
        case .file:
            let path = temporaryPath()
            let owner = Deferred { unlink(path) }
            return (
                OutputStream(toFileAtPath: path, append: false)!,
                {
                    withExtendedLifetime(owner) {
                        Array((try? Data(contentsOf: URL(fileURLWithPath: path))) ?? Data())
                    }
                }
            )
        case .bound:
            let (input, output) = boundStreams(max(1, count))
            input.open()
            return (output, { input.allBytes().1 })
        case .socket:
            let server = try SinkServer()
            return (streamsToHost(server.port).1, { server.received() })
        case .secured:
            return try Self.secured()
        case .unix:
            let sink = Sink()
            let server = try UnixServer { sink.take($0) }
            return (streamsToUnixSocket(server.path).1, { withExtendedLifetime(server) { sink.received() } })
        case .adopted:
            let (ours, theirs) = try PlainSocket.pair()
            let sink = Sink()
            PlainSocket.serve(theirs) { sink.take($0) }
            return (ownedStreamsOnSocket(ours).1, { sink.received() })
        case .accepted:
            let sink = Sink()
            return (try acceptedStreams { sink.take($0) }.output, { sink.received() })
        }
    }

    private static func secured() throws -> (OutputStream, written: () -> [UInt8]) {
        let path = temporaryPath()
        let (server, port) = try PythonServer.start(.save, path)
        let output = streamsToHost(port, host: "localhost").1
        _ = output.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey)
        return (
            output,
            {
                defer {
                    server.terminate()
                    unlink(path)
                }
                guard (try? server.line(after: "SAVED")) != nil else { return [] }
                return Array((try? Data(contentsOf: URL(fileURLWithPath: path))) ?? Data())
            }
        )
    }
}

/// What was received on a connection, to its end.
final class Sink: Sendable {
    private let bytes = Mutex<[UInt8]>([])
    private let done = DispatchSemaphore(value: 0)

    func take(_ peer: Int32) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(peer, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            bytes.withLock { $0 += buffer.prefix(count) }
        }
        done.signal()
    }

    func received() -> [UInt8] {
        guard done.wait(timeout: .now() + 30) == .success else { return [] }
        return bytes.withLock { $0 }
    }
}

/// Takes one connection and reads it to its end.
final class SinkServer {
    private let listener: TestListener
    private let sink = Sink()
    var port: UInt16 { listener.port }

    init() throws {
        let listener = try TestListener()
        self.listener = listener
        // The thread keeps the listener, or it might accept on a number that is another's by then.
        Thread.detachNewThread { [sink] in
            let peer = listener.accept()
            sink.take(peer)
            if peer >= 0 { close(peer) }
        }
    }

    deinit { shutdown(listener.descriptor, Int32(SHUT_RDWR)) }

    func received() -> [UInt8] { sink.received() }
}

/// What every kind of output stream does.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct OutputStreamContractTests {
    @Test(arguments: OutputKind.allCases)
    func `ST-10 ST-14 one event a write delivers everything`(kind: OutputKind) throws {
        let findings = try onStreamThread { loop in
            let content = pattern(200)
            let (stream, written) = try kind.make(content.count)
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

    @Test(arguments: OutputKind.allCases)
    func `ST-14 one event until a write`(kind: OutputKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, written) = try kind.make(100)
            defer { withExtendedLifetime(written) {} }
            let notes = StreamNotes()
            stream.delegate = notes
            stream.schedule(in: loop, forMode: .default)
            stream.open()
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

    @Test(arguments: OutputKind.allCases)
    func `ST-24 polling without any schedule writes everything`(kind: OutputKind) throws {
        let findings = try onStreamThread { _ in
            var findings: Findings = []
            for count in [1, 300, 100_000] {
                let content = pattern(count)
                let (stream, written) = try kind.make(count)
                stream.open()
                findings.append("\(stream.writeAll(content))")
                stream.close()
                findings.append("\(written() == content)")
            }
            return findings
        }
        #expect(findings == Array(repeating: "true", count: 6))
    }

    @Test(arguments: OutputKind.allCases)
    func `ST-7 ST-2 what is not open takes nothing`(kind: OutputKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, written) = try kind.make(100)
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

    @Test(arguments: OutputKind.allCases)
    func `ST-8 ST-17 nothing comes in another mode and it is delivered later`(kind: OutputKind) throws {
        let findings = try onStreamThread { loop in
            let (stream, written) = try kind.make(100)
            defer { withExtendedLifetime(written) {} }
            let notes = StreamNotes()
            stream.delegate = notes
            stream.schedule(in: loop, forMode: .default)
            stream.open()
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

/// What only one kind does.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct OutputStreamTests {
    @Test func `ST-23 D11 a full buffer takes a part and then ends`() throws {
        let findings = try onStreamThread { loop in
            let (stream, written) = try OutputKind.buffer.make(5)
            let notes = StreamNotes()
            stream.delegate = notes
            stream.schedule(in: loop, forMode: .default)
            stream.open()
            var findings = [
                "\(stream.write([1, 2, 3], maxLength: 3))", "\(stream.write([4, 5, 6], maxLength: 3))",
            ]
            findings.append("\(stream.hasSpaceAvailable) \(stream.streamStatus == .open)")
            findings.append("\(stream.write([6], maxLength: 1)) \(stream.streamStatus == .atEnd)")
            findings.append("\(stream.write([6], maxLength: 1)) \(written())")
            try loop.run { notes.events.contains("end") }
            return findings + notes.events
        }
        #expect(findings == ["3", "2", "false true", "0 true", "0 [1, 2, 3, 4, 5]", "open", "end"])
    }

    @Test func `ST-30 what was written to memory can be read at any time`() {
        let stream = OutputStream.toMemory()
        #expect(type(of: stream) == OutputStream.self)
        stream.open()
        func data() -> [UInt8]? {
            (stream.property(forKey: .dataWrittenToMemoryStreamKey) as? Data).map(Array.init)
        }
        _ = stream.writeAll([1])
        #expect(data() == [1])
        _ = stream.writeAll([2])
        stream.close()
        #expect(data() == [1, 2])
    }

    @Test func `ST-31 a file is emptied unless made to append`() throws {
        let path = temporaryPath()
        defer { unlink(path) }
        func write(_ bytes: [UInt8], append: Bool, byProperty: Bool = false) throws -> [UInt8] {
            let stream = OutputStream(toFileAtPath: path, append: append)!
            if byProperty { #expect(stream.setProperty(NSNumber(value: true), forKey: .appendToFileKey)) }
            stream.open()
            #expect(!stream.setProperty(NSNumber(value: true), forKey: .appendToFileKey))
            #expect(stream.writeAll(bytes))
            stream.close()
            return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        }
        #expect(try write([1, 2], append: false) == [1, 2])
        #expect(try write([3], append: true) == [1, 2, 3])
        #expect(try write([4], append: false, byProperty: true) == [1, 2, 3, 4])
        #expect(try write([5], append: false) == [5])
    }

    @Test func `ST-4 a file that cannot be made is an error`() throws {
        let findings = try onStreamThread { loop in
            let stream = OutputStream(toFileAtPath: "/nonexistent/file", append: false)!
            let notes = StreamNotes()
            stream.delegate = notes
            stream.schedule(in: loop, forMode: .default)
            stream.open()
            try loop.run { !notes.events.isEmpty }
            loop.pass()
            return notes.events + [
                "\((stream.streamError as NSError?)?.code ?? 0)", "\(stream.write([1], maxLength: 1))",
            ]
        }
        #expect(findings == ["error", "2", "-1"])
    }

    @Test func `ST-46 a full disk is an error and not a part`() {
        let stream = OutputStream(toFileAtPath: "/dev/full", append: false)!
        stream.open()
        #expect(stream.write([1, 2, 3], maxLength: 3) == -1)
        #expect((stream.streamError as NSError?)?.code == Int(ENOSPC))
    }

    @Test func `ST-46 large pieces are taken whole`() {
        let content = pattern(1_000_000)
        let stream = OutputStream.toMemory()
        stream.open()
        #expect(stream.write(content, maxLength: content.count) == content.count)
    }
}

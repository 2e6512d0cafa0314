import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Tests rules that hold for one kind of output stream only.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct OutputStreamTests {
    @Test func `ST-23 D11 a full buffer takes a part and then ends`() throws {
        let findings = try onStreamThread { loop in
            let (stream, written) = try StreamKind.buffer.makeOutput(5)
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

    @Test func `ST-46 more than the kernel takes in one call is taken whole`() throws {
        // Linux writes at most 2,147,479,552 bytes in a call; these are a hole in memory, and go nowhere.
        let count = 3 << 30
        let memory = mmap(nil, count, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        let start = try #require(memory)
        defer { munmap(start, count) }
        let stream = OutputStream(toFileAtPath: "/dev/null", append: false)!
        stream.open()
        #expect(stream.write(start.assumingMemoryBound(to: UInt8.self), maxLength: count) == count)
    }

    @Test func `ST-46 a piece that fails behind others makes the whole a failure`() {
        let stream = OutputStream(toFileAtPath: "/dev/full", append: false)!
        stream.open()
        let bytes: [UInt8] = [1, 2, 3]
        bytes.withUnsafeBytes { #expect(stream.write(gathering: [$0, $0]) == -1) }
    }

    @Test func `ST-46 a gathering write takes all pieces in one call`() {
        let stream = OutputStream.toMemory()
        stream.open()
        let bytes: [UInt8] = [1, 2, 3]
        bytes.withUnsafeBytes { #expect(stream.write(gathering: [$0, $0, $0]) == 9) }
    }

    @Test func `ST-46 a large write to memory is taken whole`() {
        let content = pattern(1_000_000)
        let stream = OutputStream.toMemory()
        stream.open()
        #expect(stream.write(content, maxLength: content.count) == content.count)
    }
}

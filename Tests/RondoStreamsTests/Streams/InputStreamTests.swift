import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Tests rules that hold for one kind of input stream only.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct InputStreamTests {
    private func events(_ make: @escaping @Sendable () -> InputStream) throws -> Findings {
        try onStreamThread { loop in
            let stream = make()
            let notes = StreamNotes { stream, event in
                if event == .hasBytesAvailable { _ = (stream as! InputStream).bytes() }
            }
            stream.delegate = notes
            stream.schedule(in: loop, forMode: .default)
            stream.open()
            try loop.run { notes.events.contains("end") || notes.events.contains("error") }
            loop.pass()
            return notes.events + ["\(stream.streamStatus.rawValue)"]
        }
    }

    @Test func `ST-28 an empty memory stream has no bytes event`() throws {
        #expect(try events { InputStream(data: Data()) } == ["open", "end", "5"])
        #expect(try events { InputStream(data: Data([1])) } == ["open", "bytes", "end", "5"])
    }

    @Test func `ST-29 an empty file has a bytes event first`() throws {
        #expect(try events { InputStream(fileAtPath: "/dev/null")! } == ["open", "bytes", "end", "5"])
    }

    @Test func `ST-29 a file is at its end when a read has found none`() throws {
        let path = temporaryPath()
        defer { unlink(path) }
        try Data([1, 2, 3]).write(to: URL(fileURLWithPath: path))
        let findings = try events { InputStream(fileAtPath: path)! }
        #expect(findings == ["open", "bytes", "bytes", "end", "5"])
    }

    @Test func `ST-28 a memory stream has the bytes as they were`() {
        let bytes = NSMutableData(data: Data([1, 2, 3]))
        let stream = InputStream(data: bytes as Data)
        bytes.mutableBytes.storeBytes(of: 9, as: UInt8.self)
        stream.open()
        #expect(stream.bytes(2).1 == [1, 2])
        #expect(stream.streamStatus == .open)
        #expect(stream.bytes(1).1 == [3])
        #expect(stream.streamStatus == .atEnd)
    }

    @Test func `ST-4 ST-16 a missing file is an error and never opens`() throws {
        #expect(try events { InputStream(fileAtPath: "/nonexistent/file")! } == ["error", "7"])
        let stream = InputStream(fileAtPath: "/nonexistent/file")!
        stream.open()
        let error = stream.streamError as NSError?
        #expect(error?.domain == NSPOSIXErrorDomain)
        #expect(error?.code == Int(ENOENT))
        #expect(stream.bytes().0 == -1)
        // ST-6
        stream.close()
        #expect(stream.streamStatus == .error)
        #expect(stream.streamError != nil)
    }

    @Test func `ST-32 the offset of a file can be read and set`() throws {
        let path = temporaryPath()
        defer { unlink(path) }
        try Data(Array(0...99)).write(to: URL(fileURLWithPath: path))
        let stream = InputStream(fileAtPath: path)!
        stream.open()
        _ = stream.bytes(10)
        #expect((stream.property(forKey: .fileCurrentOffsetKey) as? NSNumber)?.intValue == 10)
        #expect(stream.setProperty(NSNumber(value: 50), forKey: .fileCurrentOffsetKey))
        #expect(stream.bytes(1).1 == [50])
    }

    @Test func `ST-33 an unknown property is nil and cannot be set`() {
        let key = Foundation.Stream.PropertyKey("nonsense")
        let file = OutputStream(toFileAtPath: "/dev/null", append: false)!
        let streams: [Foundation.Stream] = [
            InputStream(data: Data()), boundStreams(1).0, streamsToHost(1).0, OutputStream(toMemory: ()),
            file,
            boundStreams(1).1, streamsToHost(1).1,
        ]
        for stream in streams {
            #expect(stream.property(forKey: key) == nil)
            #expect(!stream.setProperty("x" as NSString, forKey: key))
        }
    }

    @Test func `a URL that is not of a file makes no stream`() {
        #expect(InputStream(url: URL(string: "http://example.com/")!) == nil)
        #expect(OutputStream(url: URL(string: "http://example.com/")!, append: false) == nil)
    }

    @Test func `Foundation's readers take the stream for their own`() throws {
        let list = ["a": [1, 2, 3]]
        let data = try PropertyListSerialization.data(fromPropertyList: list, format: .xml, options: 0)
        let stream: Foundation.InputStream = InputStream(data: data)
        stream.open()
        let read = try PropertyListSerialization.propertyList(with: stream, format: nil)
        #expect(read as? [String: [Int]] == list)
        let json: Foundation.InputStream = InputStream(data: Data("[1,2]".utf8))
        json.open()
        #expect(try JSONSerialization.jsonObject(with: json) as? [Int] == [1, 2])
    }

    @Test func `ST-9 a subclass may be its own delegate`() throws {
        final class Own: InputStream {
            var events: [String] = []
            override func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
                events.append(eventCode.word)
            }
        }
        let findings = try onStreamThread { loop in
            let stream = Own(data: Data([1]))
            stream.schedule(in: loop, forMode: .default)
            stream.open()
            try loop.run { stream.events.count == 2 }
            return stream.events
        }
        #expect(findings == ["open", "bytes"])
    }
}

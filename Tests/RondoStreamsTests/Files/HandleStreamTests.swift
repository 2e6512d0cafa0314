import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

/// Streams that read what a `FileHandle` has open. (The rules of every stream are StreamContractTests'.)
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct HandleStreamTests {
    @Test(arguments: HandleKind.allCases)
    func `FH-15 bytes of a handle are reported in the modes of its stream, and so is the end`(
        kind: HandleKind
    ) throws {
        let findings = try onStreamThread { loop in
            let (handle, peer) = try kind.make()
            let flags = handle.flags
            let (stream, notes) = openStream(handle, in: loop, .tracking)
            var findings = ["\(stream.streamStatus == .open)"]
            peer.write("one")
            // In another mode nothing is told, and nothing read: the other end would have to wait.
            loop.add(Port(), forMode: .default)
            loop.pass()
            // A terminal hands them over by and by.
            try waitFor("three bytes") { handle.waitingBytes == 3 ? () : nil }
            findings += notes.events
            try loop.run(inMode: .tracking) { notes.count(of: "bytes") == 1 }
            findings += [stream.text(), "\(stream.hasBytesAvailable)"]
            loop.pass(inMode: .tracking)
            peer.write("two")
            try loop.run(inMode: .tracking) { notes.count(of: "bytes") == 2 }
            findings.append(stream.text())
            peer.end()
            // A terminal's end is found by reading.
            try loop.run(inMode: .tracking) {
                if notes.count(of: "bytes") == 3, stream.streamStatus == .open { _ = stream.text() }
                return notes.events.contains("end")
            }
            loop.pass(inMode: .tracking)
            findings += notes.events.filter { $0 != "bytes" }
            findings += [stream.text(), "\(stream.streamStatus == .atEnd)", "\(handle.flags == flags)"]
            stream.close()
            // The handle is the program's still.
            return findings + ["\(handle.fileDescriptor >= 0 && handle.flags == flags)"]
        }
        #expect(
            findings == [
                "true", "one", "false", "two", "open", "end", "0", "true", "true", "true",
            ])
    }

    @Test(arguments: HandleKind.allCases)
    func `FH-15 ST-24 a read waits for bytes, and for the end, whatever the flags of the handle`(
        kind: HandleKind
    ) throws {
        for isNonBlocking in [false, true] {
            let findings = try onStreamThread { _ in
                let (handle, peer) = try kind.make()
                if isNonBlocking { _ = fcntl(handle.fileDescriptor, F_SETFL, O_NONBLOCK | handle.flags) }
                let flags = handle.flags
                let stream = InputStream(handle)
                stream.open()
                let thread = threadNumber()
                let hasRead = DispatchSemaphore(value: 0)
                Thread.detachNewThread {
                    try? waitUntilAsleep(thread: thread)
                    peer.write("late")
                    hasRead.wait()
                    try? waitUntilAsleep(thread: thread)
                    peer.end()
                }
                var findings = ["\(stream.hasBytesAvailable)", stream.text(), "\(stream.hasBytesAvailable)"]
                hasRead.signal()
                findings += [stream.text(), "\(handle.flags == flags)"]
                stream.close()
                return findings
            }
            #expect(findings == ["false", "late", "false", "0", "true"])
        }
    }

    @Test func `FH-15 PP-7 before a FIFO's first writer nothing is told, after the last one the end`() throws
    {
        let findings = try onStreamThread { loop in
            let path = temporaryPath()
            try #require(mkfifo(path, 0o600) == 0)
            defer { unlink(path) }
            let reading = Foundation.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            let handle = FileHandle(fileDescriptor: reading, closeOnDealloc: true)
            let (stream, notes) = openStream(handle, in: loop)
            loop.pass()
            var findings = notes.events + ["\(stream.hasBytesAvailable)"]
            // A read waits for a writer, and is not answered by the end.
            let thread = threadNumber()
            Thread.detachNewThread {
                try? waitUntilAsleep(thread: thread)
                let peer = HandlePeer(Foundation.open(path, O_WRONLY | O_CLOEXEC))
                peer.write("first")
                peer.end()
            }
            findings.append(stream.text())
            try loop.run { notes.events.contains("end") }
            return findings + notes.events
        }
        #expect(findings == ["open", "false", "first", "open", "end"])
    }

    @Test func `FH-15 a lost connection is an error of the handle's stream`() throws {
        let findings = try onStreamThread { loop in
            let (handle, peer) = try HandleKind.tcpSocket.make()
            let (stream, notes) = openStream(handle, in: loop)
            loop.pass()
            peer.reset()
            try loop.run { notes.events.contains("error") || notes.events.contains("end") }
            return notes.events + ["\((stream.streamError as NSError?)?.code ?? 0)"]
        }
        #expect(findings == ["open", "error", "\(ECONNRESET)"])
    }

    /// Looking at a socket takes the error from the kernel, which a read would not find any more.
    @Test func `ST-22 ST-38 a lost connection that is found by asking for bytes fails the read`() throws {
        let findings = try onStreamThread { _ in
            let (handle, peer) = try HandleKind.tcpSocket.make()
            let stream = InputStream(handle)
            stream.open()
            peer.write("x")
            var findings = [stream.text()]
            peer.reset()
            try wait(handle.fileDescriptor, for: 0)
            findings += ["\(stream.hasBytesAvailable)", stream.text(), "\(stream.streamStatus == .error)"]
            return findings + ["\((stream.streamError as NSError?)?.code ?? 0)"]
        }
        #expect(findings == ["x", "true", "-1", "true", "\(ECONNRESET)"])
    }

    @Test func `ST-38 chunks of a connection that is lost end with its error`() async throws {
        let (handle, peer) = try HandleKind.tcpSocket.make()
        // Unsafe: this thread uses the stream before the chunks have it, and not afterwards.
        nonisolated(unsafe) let stream = InputStream(handle)
        stream.open()
        peer.reset()
        try wait(handle.fileDescriptor, for: 0)
        let thread = RunLoopThread(name: "chunks")
        let loop = thread.start()
        defer { thread.stop() }
        let chunks = StreamChunks(stream, in: loop)
        let error = await #expect(throws: NSError.self) { for try await _ in chunks {} }
        #expect(error?.code == Int(ECONNRESET))
    }

    // MARK: - Files and devices

    @Test func `FH-15 FH-12 a file is read from the handle's offset on, which moves with it`() throws {
        let content = pattern(700_000)
        let findings = try onStreamThread { loop in
            let handle = try openFile(content)
            try handle.seek(toOffset: 100_000)
            let (stream, notes) = openStream(handle, in: loop)
            var read: [UInt8] = []
            notes.handler = { stream, event in
                guard event == .hasBytesAvailable else { return }
                read += (stream as! InputStream).bytes(30_000).1
            }
            try loop.run { notes.events.contains("end") }
            stream.close()
            return [
                "\(read == Array(content[100_000...]))", "\(try handle.offset())",
                notes.events.first ?? "", "\(handle.availableData.count)",
            ]
        }
        #expect(findings == ["true", "700000", "open", "0"])
    }

    @Test
    func `FH-15 ST-32 a program may set the offset while a stream reads, and bytes read ahead are dropped`()
        throws
    {
        let content = pattern(300_000)
        let findings = try onStreamThread { loop in
            let handle = try openFile(content)
            let (stream, notes) = openStream(handle, in: loop)
            try loop.run { notes.events.contains("bytes") }
            var findings = ["\(stream.bytes(10).1 == Array(content[..<10]))", "\(try handle.offset())"]
            try handle.seek(toOffset: 200_000)
            findings.append("\(stream.bytes(10).1 == Array(content[200_000..<200_010]))")
            findings.append("\(stream.property(forKey: .fileCurrentOffsetKey) as? Int ?? -1)")
            findings.append("\(stream.setProperty(299_999 as NSNumber, forKey: .fileCurrentOffsetKey))")
            findings.append("\(stream.bytes(10).1 == [content[299_999]])")
            findings.append(stream.text())
            return findings
        }
        #expect(findings == ["true", "10", "true", "200010", "true", "true", "0"])
    }

    @Test func `FH-15 the null device is at its end, and a device that is always ready is read`() throws {
        let findings = try onStreamThread { loop in
            let (none, notes) = openStream(.nullDevice, in: loop)
            try loop.run { notes.events.contains("bytes") }
            #expect(none.text() == "0")
            try loop.run { notes.events.contains("end") }
            let zeros = try #require(FileHandle(forReadingAtPath: "/dev/zero"))
            let (stream, others) = openStream(zeros, in: loop)
            try loop.run { others.count(of: "bytes") == 1 }
            let first = stream.bytes(5).1
            try loop.run { others.count(of: "bytes") == 2 }
            stream.close()
            return ["\(none.streamStatus == .atEnd)", "\(first)", "\(others.events)"]
        }
        #expect(findings == ["true", "[0, 0, 0, 0, 0]", #"["open", "bytes", "bytes"]"#])
    }

    @Test func `FH-15 a handle that cannot be read is an error of the stream`() throws {
        let findings = try onStreamThread { loop in
            let closed = try openFile([1])
            try closed.close()
            let datagrams = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            let listening = try TestListener()
            let pipe = Pipe()
            let handles = [
                closed, pipe.fileHandleForWriting,
                FileHandle(fileDescriptor: datagrams, closeOnDealloc: true),
                FileHandle(fileDescriptor: dup(listening.descriptor), closeOnDealloc: true),
                FileHandle(fileDescriptor: socket(AF_INET, closeOnExec, 0), closeOnDealloc: true),
                try #require(FileHandle(forReadingAtPath: "/")),
            ]
            return try handles.map { handle in
                let (stream, notes) = openStream(handle, in: loop)
                try loop.run { notes.events.contains("error") }
                let error = stream.streamError as NSError?
                return "\(error?.domain == NSPOSIXErrorDomain) \(error?.code ?? 0) \(stream.text())"
            }
        }
        let codes = [EBADF, EBADF, EPROTOTYPE, ENOTCONN, ENOTCONN, EISDIR]
        #expect(findings == codes.map { "true \($0) -1" })
    }
}

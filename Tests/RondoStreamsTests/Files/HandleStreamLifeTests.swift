import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

/// Tests how streams of a `FileHandle` stand to their handle, to other readers of it, and to loops.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct HandleStreamLifeTests {
    @Test func `FH-15 the stream retains its handle until it is closed, and closes nothing`() throws {
        let findings = try onStreamThread { loop in
            weak var gone: FileHandle?
            let peer: HandlePeer
            let stream: InputStream
            let notes = StreamNotes()
            do {
                let (handle, other) = try HandleKind.pipe.make()
                (gone, peer, stream) = (handle, other, InputStream(handle))
            }
            stream.delegate = notes
            stream.schedule(in: loop, forMode: .default)
            stream.open()
            peer.write("alive")
            try loop.run { notes.events.contains("bytes") }
            var findings = [stream.text(), "\(gone != nil)"]
            stream.close()
            findings.append("\(gone == nil)")
            return findings
        }
        #expect(findings == ["alive", "true", "true"])
    }

    @Test(arguments: HandleKind.allCases)
    func `FH-15 closing the handle ends the stream with EBADF, in its modes`(kind: HandleKind) throws {
        let findings = try onStreamThread { loop in
            let (handle, peer) = try kind.make()
            let (stream, notes) = openStream(handle, in: loop)
            loop.pass()
            peer.write("unread")
            try handle.closeAfterBackground()
            var findings = ["\((stream.streamError as NSError?)?.code ?? 0)"] + notes.events
            try loop.run { notes.events.contains("error") }
            findings += notes.events + [stream.text()]
            // With it goes the last descriptor of this end.
            if kind == .pipe {
                var ready = pollfd(fd: peer.descriptor, events: 0, revents: 0)
                findings.append("\(poll(&ready, 1, 0) == 1 && Int32(ready.revents) & POLLERR != 0)")
            }
            return findings
        }
        #expect(
            findings == ["\(EBADF)", "open", "open", "error", "-1"] + (kind == .pipe ? ["true"] : []))
    }

    @Test func `FH-15 a close by Foundation's own method is noticed when something comes, or by a read`()
        throws
    {
        let findings = try onStreamThread { loop in
            let (handle, peer) = try HandleKind.pipe.make()
            let (first, notes) = openStream(handle, in: loop)
            try handle.close()
            peer.write("late")
            try loop.run { notes.events.contains("error") }
            let (other, keep) = try HandleKind.pipe.make()
            let (second, _) = openStream(other, in: loop)
            try other.close()
            let text = second.text()
            withExtendedLifetime(keep) {}
            return [first, second].map { "\(($0.streamError as NSError?)?.code ?? 0)" } + [text]
        }
        #expect(findings == ["\(EBADF)", "\(EBADF)", "-1"])
    }

    @Test func `FH-15 a close on another thread ends a read that waits`() throws {
        let findings = try onStreamThread { _ in
            let (handle, peer) = try HandleKind.pipe.make()
            let stream = InputStream(handle)
            stream.open()
            let thread = threadNumber()
            Thread.detachNewThread {
                try? waitUntilAsleep(thread: thread)
                try? handle.closeAfterBackground()
            }
            let text = stream.text()
            withExtendedLifetime(peer) {}
            return [text, "\((stream.streamError as NSError?)?.code ?? 0)"]
        }
        #expect(findings == ["-1", "\(EBADF)"])
    }

    @Test func `FH-15 a handler may close the handle, or the stream, or let go of it`() throws {
        let findings = try onStreamThread { loop in
            var findings: Findings = []
            for action in ["handle", "stream", "release"] {
                let (handle, peer) = try HandleKind.unixSocket.make()
                var stream: InputStream? = InputStream(handle)
                let notes = StreamNotes { _, event in
                    guard event == .hasBytesAvailable else { return }
                    switch action {
                    case "handle": try? handle.closeAfterBackground()
                    case "stream": stream?.close()
                    default: stream = nil
                    }
                }
                stream?.delegate = notes
                stream?.schedule(in: loop, forMode: .default)
                stream?.open()
                peer.write("x")
                try loop.run { notes.events.contains("bytes") }
                loop.add(Port(), forMode: .default)
                loop.pass()
                findings.append(notes.events.joined(separator: " "))
            }
            return findings
        }
        #expect(findings == ["open bytes error", "open bytes", "open bytes"])
    }

    // MARK: - Other readers, other places

    @Test func `FH-15 FH-10 another reader may be first, and then the stream waits for more`() throws {
        let findings = try onStreamThread { loop in
            let (handle, peer) = try HandleKind.pipe.make()
            let (stream, notes) = openStream(handle, in: loop)
            peer.write("taken")
            try loop.run { notes.count(of: "bytes") == 1 }
            var findings = [String(decoding: handle.availableData, as: UTF8.self)]
            // Asking finds nothing, and so the next bytes are told.
            findings.append("\(stream.hasBytesAvailable)")
            peer.write("left")
            try loop.run { notes.count(of: "bytes") == 2 }
            findings.append(stream.text())
            // Two streams of one handle.
            let (other, others) = openStream(handle, in: loop)
            peer.write("both")
            try loop.run { notes.count(of: "bytes") == 3 && others.count(of: "bytes") == 1 }
            findings += [other.text(), "\(stream.hasBytesAvailable)"]
            other.close()
            peer.end()
            try loop.run { notes.events.contains("end") }
            return findings + others.events
        }
        #expect(findings == ["taken", "false", "left", "both", "false", "open", "bytes"])
    }

    @Test func `FH-15 unread bytes of a closed stream keep no loop busy`() throws {
        let passes = try onStreamThread { loop in
            let (handle, peer) = try HandleKind.pipe.make()
            let (stream, notes) = openStream(handle, in: loop)
            peer.write("unread")
            try loop.run { notes.events.contains("bytes") }
            stream.close()
            let passes = Mutex(0)
            let observer = RunLoop.Observer(activities: .beforeTimers, repeats: true) { _, _ in
                passes.withLock { $0 += 1 }
            }
            loop.add(observer, forMode: .default)
            loop.add(Port(), forMode: .default)
            _ = loop.run(in: .default, for: 0.2, returnAfterSourceHandled: false)
            observer.invalidate()
            return ["\(passes.withLock { $0 })"]
        }
        #expect(passes.first.flatMap(Int.init).map { $0 < 10 } == true, "\(passes)")
    }

    /// One after the other, so that the room in which a piece is read is there once.
    @Test func `FH-15 FH-12 reading ahead in a short file takes no more memory than its bytes`() throws {
        let count = 200
        let grown = try onStreamThread { loop in
            let handle = try openFile(Array("short".utf8))
            func opened() throws -> InputStream {
                try handle.seek(toOffset: 0)
                let (stream, notes) = openStream(handle, in: loop)
                try loop.run { notes.events.contains("bytes") }
                return stream
            }
            var streams = [try opened()]
            let before = try memoryInUse()
            for _ in 0..<count { streams.append(try opened()) }
            let after = try memoryInUse()
            for stream in streams { stream.close() }
            return ["\(after - before)"]
        }
        // A quarter of what pieces of full length would take.
        let bytes = try #require(grown.first.flatMap { Int($0) }, "\(grown)")
        #expect(bytes < count * (1 << 18) / 4)
    }

    @Test func `FH-15 ST-21 a file handle's stream is read on a dispatch queue`() async throws {
        let (handle, peer) = try HandleKind.pipe.make()
        let reader = QueueReader(handle)
        peer.write("queued")
        #expect(await reader.firstText() == "queued")
    }
}

/// Reads a handle on a serial queue.
private final class QueueReader: StreamDelegate, @unchecked Sendable {
    // `@unchecked Sendable`: used on the queue only, after the initialiser.
    private let queue = DispatchQueue(label: "test.handle")
    private let stream: InputStream
    private let texts = AsyncStream.makeStream(of: String.self)

    init(_ handle: FileHandle) {
        stream = InputStream(handle)
        queue.sync {
            stream.delegate = self
            stream.dispatchQueue = queue
            stream.open()
        }
    }

    func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
        guard eventCode == .hasBytesAvailable else { return }
        texts.continuation.yield(stream.text())
        stream.close()
        texts.continuation.finish()
    }

    func firstText() async -> String? {
        for await text in texts.stream { return text }
        return nil
    }
}

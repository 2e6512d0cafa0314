// The only import of Foundation's names is Rondo: so the methods by these names are Rondo's.
import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// `FileHandle`'s methods in the background, by Apple's names.
@Suite(.leavesNothing, .timeLimit(.minutes(5))) struct FileHandleTests {
    @Test func `FH-1 trap 2 the notification comes on the calling thread, while its loop runs in the mode`()
        throws
    {
        let notes = try onLoopThread { loop in
            let pipe = Pipe()
            let notes = Notes(of: pipe.fileHandleForReading, stopping: loop)
            loop.add(Port(), forMode: .tracking)
            pipe.fileHandleForReading.readInBackgroundAndNotify(forModes: [.tracking])
            pipe.fileHandleForWriting.write(Data("body".utf8))
            loop.add(Port(), forMode: .default)
            _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
            #expect(notes.all.isEmpty)
            #expect(loop.run(in: .tracking, for: 60, returnAfterSourceHandled: false) == .stopped)
            return notes.all
        }
        #expect(notes.map(\.name) == [FileHandle.readCompletionNotification])
        #expect(notes.first?.data == Data("body".utf8))
        #expect(notes.first?.isOnLoop == true)
    }

    @Test func `FH-1 a background read without modes, or with nil, notifies in the default mode`() throws {
        try onLoopThread { loop in
            for call in [{ $0.readInBackgroundAndNotify() }, { $0.readInBackgroundAndNotify(forModes: nil) }]
                as [@Sendable (FileHandle) -> Void]
            {
                let pipe = Pipe()
                let notes = Notes(of: pipe.fileHandleForReading, stopping: loop)
                call(pipe.fileHandleForReading)
                pipe.fileHandleForWriting.write(Data("x".utf8))
                #expect(loop.run(in: .work, for: 0, returnAfterSourceHandled: false) == .finished)
                #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped)
                #expect(notes.all.count == 1)
            }
        }
    }

    @Test func `FH-2 FH-3 one call reads once, and an observer may call again, to the empty end`() throws {
        let texts = try onLoopThread { loop in
            let pipe = Pipe()
            let handle = pipe.fileHandleForReading
            let notes = Notes(of: handle, stopping: nil)
            notes.then = { note in
                if note.data?.isEmpty ?? true { return }
                handle.readInBackgroundAndNotify()
                if notes.all.count == 1 {
                    pipe.fileHandleForWriting.write(Data("two".utf8))
                } else {
                    pipe.fileHandleForWriting.closeFile()
                }
            }
            handle.readInBackgroundAndNotify()
            pipe.fileHandleForWriting.write(Data("one".utf8))
            // Nothing is left in the mode after the end.
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .finished)
            notes.then = nil
            return notes.all.map { String(decoding: $0.data ?? Data("nil".utf8), as: UTF8.self) }
        }
        #expect(texts == ["one", "two", ""])
    }

    @Test func `FH-3 at most 64 KiB of a socket at once, and a mebibyte of a file`() throws {
        try onThrowingLoopThread { loop in
            var ends: [Int32] = [-1, -1]
            socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
            var size = Int32(1 << 20)
            setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
            let handle = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
            let notes = Notes(of: handle, stopping: loop)
            let bytes = [UInt8](repeating: 7, count: 100_000)
            #expect(send(ends[1], bytes, bytes.count, Int32(MSG_DONTWAIT)) == bytes.count)
            handle.readInBackgroundAndNotify()
            loop.run(in: .default)
            #expect(notes.all.first?.data?.count == 65_536)
            close(ends[1])

            let file = try TemporaryFile(Data(count: 1_500_000))
            let read = Notes(of: file.handle, stopping: loop)
            file.handle.readInBackgroundAndNotify()
            loop.run(in: .default)
            #expect(read.all.first?.data?.count == 1 << 20)
            file.handle.readInBackgroundAndNotify()
            loop.run(in: .default)
            #expect(read.all.last?.data?.count == 1_500_000 - 1 << 20)
        }
    }

    @Test func `FH-4 FH-12 readToEndOfFile posts all bytes in one notification, of a pipe and of a file`()
        throws
    {
        try onThrowingLoopThread { loop in
            let pipe = Pipe()
            let notes = Notes(of: pipe.fileHandleForReading, stopping: loop)
            pipe.fileHandleForReading.readToEndOfFileInBackgroundAndNotify()
            let body = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0) })
            let writer = pipe.fileHandleForWriting
            Thread.detachNewThread {
                writer.write(body)
                try? writer.close()
            }
            loop.run(in: .default)
            #expect(notes.all.map(\.name) == [.NSFileHandleReadToEndOfFileCompletion])
            #expect(notes.all.first?.data == body)

            let file = try TemporaryFile(body)
            let read = Notes(of: file.handle, stopping: loop)
            file.handle.readToEndOfFileInBackgroundAndNotify(forModes: [.common])
            loop.run(in: .tracking)
            #expect(read.all.map(\.data) == [body])
        }
    }

    @Test func `FH-5 trap 2 a connection that is accepted comes with a handle that closes its descriptor`()
        throws
    {
        try onThrowingLoopThread { loop in
            let listener = Listener()
            let notes = Notes(of: listener.handle, stopping: loop)
            // A mode has a descriptor of its own from its first run on.
            _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
            let before = try openDescriptorCount()
            for _ in 0..<2 {
                listener.handle.acceptConnectionInBackgroundAndNotify()
                let client = listener.connect()
                loop.run(in: .default)
                let accepted = notes.takeLast()
                #expect(accepted?.name == .NSFileHandleConnectionAccepted)
                let nearEnd = accepted?.accepted
                #expect(write(client, "hello", 5) == 5)
                #expect(nearEnd?.availableData == Data("hello".utf8))
                close(client)
            }
            notes.forget()
            // Those of an earlier test may be closed meanwhile.
            #expect(try openDescriptorCount() <= before)
        }
    }

    @Test func `FH-6 waitForData posts when there is something or the end, and reads nothing`() throws {
        try onLoopThread { loop in
            let pipe = Pipe()
            let handle = pipe.fileHandleForReading
            let notes = Notes(of: handle, stopping: loop)
            handle.waitForDataInBackgroundAndNotify()
            pipe.fileHandleForWriting.write(Data("still there".utf8))
            loop.run(in: .default)
            #expect(notes.all.map(\.name) == [.NSFileHandleDataAvailable])
            #expect(handle.availableData == Data("still there".utf8))
            handle.waitForDataInBackgroundAndNotify(forModes: [.tracking])
            pipe.fileHandleForWriting.closeFile()
            loop.run(in: .tracking)
            #expect(notes.all.count == 2)
            #expect(handle.availableData == Data())
        }
    }

    @Test func `FH-7 an error is the number of errno, with empty data`() throws {
        try onThrowingLoopThread { loop in
            let directory = try FileHandle(forReadingFrom: FileManager.default.temporaryDirectory)
            for call in [{ $0.readInBackgroundAndNotify() }, { $0.readToEndOfFileInBackgroundAndNotify() }]
                as [@Sendable (FileHandle) -> Void]
            {
                let notes = Notes(of: directory, stopping: loop)
                call(directory)
                loop.run(in: .default)
                #expect(notes.all.first?.error == Int(EISDIR))
                #expect(notes.all.first?.data == Data())
            }
            let notes = Notes(of: directory, stopping: loop)
            directory.acceptConnectionInBackgroundAndNotify()
            loop.run(in: .default)
            #expect(notes.all.first?.error == Int(ENOTSOCK))
            #expect(notes.all.first?.data == nil)
        }
    }

    @Test func `FH-8 while none of the modes runs nothing is read or accepted`() throws {
        try onThrowingLoopThread { loop in
            let pipe = Pipe()
            pipe.fileHandleForReading.readInBackgroundAndNotify()
            let file = try TemporaryFile(Data("file".utf8))
            file.handle.readInBackgroundAndNotify()
            pipe.fileHandleForWriting.write(Data("body".utf8))
            loop.add(Port(), forMode: .work)
            _ = loop.run(in: .work, for: 0, returnAfterSourceHandled: false)
            var count: Int32 = 0
            #expect(
                ioctl(pipe.fileHandleForReading.fileDescriptor, UInt(FIONREAD), &count) == 0 && count == 4)
            #expect(try file.handle.offset() == 0)
        }
    }

    @Test func `FH-9 a call counts as a source, and its delivery is a handled source`() throws {
        try onLoopThread { loop in
            let pipe = Pipe()
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .finished)
            pipe.fileHandleForReading.readInBackgroundAndNotify()
            #expect(loop.run(in: .default, for: 0, returnAfterSourceHandled: false) == .timedOut)
            pipe.fileHandleForWriting.write(Data("x".utf8))
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: true) == .handledSource)
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .finished)
        }
    }

    @Test func `FH-10 a second call while one is under way traps, and names both`() async {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            let pipe = Pipe()
            Thread.detachNewThread {
                pipe.fileHandleForReading.readInBackgroundAndNotify()
                pipe.fileHandleForReading.waitForDataInBackgroundAndNotify()
            }
            // Until the trap on the other thread ends the process.
            sleep(60)
        }
        let text = result?.standardErrorText ?? ""
        #expect(
            text.contains(
                "FileHandle.waitForDataInBackgroundAndNotify was called while readInBackgroundAndNotify is under way"
            ))
    }

    @Test func `FH-10 another reader may be first, and then the call waits for more`() throws {
        let data = try onLoopThread { loop in
            let pipe = Pipe()
            let handle = pipe.fileHandleForReading
            let notes = Notes(of: handle, stopping: loop)
            handle.readInBackgroundAndNotify()
            // In the pass that finds it readable, this one reads first.
            let first = RunLoop.Source(fileDescriptor: handle.fileDescriptor, interest: .read) { source, _ in
                #expect(handle.availableData == Data("first".utf8))
                source.invalidate()
                loop.perform { pipe.fileHandleForWriting.write(Data("second".utf8)) }
            }
            loop.add(first, forMode: .default)
            pipe.fileHandleForWriting.write(Data("first".utf8))
            loop.run(in: .default)
            return notes.all.first?.data
        }
        #expect(data == Data("first".utf8) || data == Data("second".utf8))
    }

    @Test func `FH-11 closing the handle ends a call without a notification, and leaves nothing in the mode`()
        throws
    {
        try onLoopThread { loop in
            for closes in [{ try? $0.close() }, { $0.closeFile() }] as [@Sendable (FileHandle) -> Void] {
                let pipe = Pipe()
                let notes = Notes(of: pipe.fileHandleForReading, stopping: loop)
                pipe.fileHandleForReading.readInBackgroundAndNotify()
                closes(pipe.fileHandleForReading)
                #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .finished)
                #expect(notes.all.isEmpty)
                // The reading end is closed altogether.
                signal(SIGPIPE, SIG_IGN)
                #expect(write(pipe.fileHandleForWriting.fileDescriptor, "x", 1) == -1 && errno == EPIPE)
            }
        }
    }

    @Test
    func `FH-11 a close by Foundation's method ends a call when something comes, without a notification`()
        throws
    {
        try onLoopThread { loop in
            let pipe = Pipe()
            let notes = Notes(of: pipe.fileHandleForReading, stopping: loop)
            pipe.fileHandleForReading.readInBackgroundAndNotify()
            closeByFoundation(pipe.fileHandleForReading)
            pipe.fileHandleForWriting.write(Data("x".utf8))
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .finished)
            #expect(notes.all.isEmpty)
        }
    }

    @Test func `FH-12 a file is read on a thread of its own`() throws {
        try onThrowingLoopThread { loop in
            // Large, and without memory on the disk, so that the thread is there for a while.
            let file = try TemporaryFile(Data())
            #expect(truncate("/proc/self/fd/\(file.handle.fileDescriptor)", 64 << 20) == 0)
            var threads: Set<String> = []
            // That thread may be quicker than a look at the names; then it has another chance.
            try waitFor("a thread that reads") {
                lseek(file.handle.fileDescriptor, 0, SEEK_SET)
                let read = Notes(of: file.handle, stopping: nil)
                file.handle.readToEndOfFileInBackgroundAndNotify()
                while read.all.isEmpty {
                    _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
                    threads.formUnion(threadNames())
                }
                return threads.contains("rondo.file") ? () : nil
            }
        }
    }

    @Test func `FH-11 a handle that nothing refers to lives until its notification`() throws {
        try onLoopThread { loop in
            let log = EventLog()
            var ends: [Int32] = [-1, -1]
            #expect(pipe(&ends) == 0)
            let gone = WeakHandle()
            let token: any NSObjectProtocol
            do {
                let handle = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
                gone.handle = handle
                token = NotificationCenter.default.addObserver(
                    forName: FileHandle.readCompletionNotification, object: handle, queue: nil
                ) { _ in log.note("posted") }
                handle.readInBackgroundAndNotify()
            }
            #expect(write(ends[1], "x", 1) == 1)
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: true) == .handledSource)
            #expect(log.entries == ["posted"])
            NotificationCenter.default.removeObserver(token)
            close(ends[1])
        }
    }

    @Test func `FH-11 at the end of the thread a call is dropped, and its descriptor closed`() throws {
        let gone = WeakHandle()
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        let reading = ends[0]
        try onLoopThread { _ in
            let handle = FileHandle(fileDescriptor: reading, closeOnDealloc: true)
            gone.handle = handle
            handle.readInBackgroundAndNotify()
        }
        #expect(gone.handle == nil)
        close(ends[1])
    }

    @Test func `FH-15 a handle gives a stream, which ends when the handle is closed`() throws {
        let events = try onThrowingLoopThread { loop in
            let pipe = Pipe()
            let stream = InputStream(pipe.fileHandleForReading)
            let reader = LineReader(stream)
            stream.schedule(in: .current, forMode: .default)
            stream.open()
            pipe.fileHandleForWriting.write(Data("one\n".utf8))
            reader.then = { line in
                if line == "one" { pipe.fileHandleForWriting.write(Data("two\n".utf8)) }
                if line == "two" { try? pipe.fileHandleForWriting.close() }
            }
            while stream.streamStatus == .open { loop.run(mode: .default, before: .distantFuture) }
            loop.run(mode: .default, before: .distantFuture)

            let open = Pipe()
            let other = InputStream(open.fileHandleForReading)
            let closed = LineReader(other)
            other.schedule(in: .current, forMode: .default)
            other.open()
            try open.fileHandleForReading.close()
            while !closed.events.contains("error") { loop.run(mode: .default, before: .distantFuture) }
            return reader.events + closed.events
        }
        #expect(events == ["open", "one", "two", "end", "open", "error"])
    }

    @Test func `FH-13 a task names the loop`() async throws {
        let worker = RunLoopThread(name: "reader")
        let loop = worker.start()
        let pipe = Pipe()
        let notes = Notes(of: pipe.fileHandleForReading, on: loop)
        pipe.fileHandleForReading.readInBackground(on: loop)
        pipe.fileHandleForWriting.write(Data("body".utf8))
        let note = try waitFor("the notification") { notes.all.first }
        #expect(note.isOnLoop && note.data == Data("body".utf8))
        worker.stop()
        worker.join()
    }

    @Test func `FH-13 on a loop that does not run the call waits, and says so`() throws {
        try onLoopThread { loop in
            let pipe = Pipe()
            #expect(pipe.fileHandleForReading.whyNotDelivering.reason == .notScheduled)
            pipe.fileHandleForReading.readInBackgroundAndNotify()
            #expect(pipe.fileHandleForReading.whyNotDelivering.reason == .loopNeverRan)
            #expect(loop.debugDescription.contains("source “readInBackgroundAndNotify”, descriptor "))
        }
    }

    @Test func `FH-14 without a schedule readabilityHandler stays Foundation's, on a queue`() throws {
        let pipe = Pipe()
        let isCalled = Latch()
        pipe.fileHandleForReading.readabilityHandler = { handle in
            _ = handle.availableData
            handle.readabilityHandler = nil
            isCalled.open()
        }
        pipe.fileHandleForWriting.write(Data("x".utf8))
        try isCalled.wait()
        #expect(pipe.fileHandleForReading.readabilityHandler == nil)
    }

    @Test func `FH-14 scheduled on a loop the handlers are called there, and the end is told once`() throws {
        let texts = try onLoopThread { loop in
            let pipe = Pipe()
            let handle = pipe.fileHandleForReading
            let log = EventLog()
            handle.readabilityHandler = { handle in
                #expect(RunLoop.current === loop)
                log.note(String(decoding: handle.availableData, as: UTF8.self))
                if log.entries.count == 1 { pipe.fileHandleForWriting.closeFile() }
            }
            try? handle.schedule(in: loop, forMode: .work)
            pipe.fileHandleForWriting.write(Data("body".utf8))
            // Nothing is left in the mode when the end was told.
            #expect(loop.run(in: .work, for: 60, returnAfterSourceHandled: false) == .finished)
            #expect(handle.readabilityHandler == nil)
            return log.entries
        }
        #expect(texts == ["body", ""])
    }

    @Test(arguments: [RunLoop.Mode.work, .common])
    func `FH-14 handlers in a mode and in the common modes are called when one of these schedules ends`(
        removed: RunLoop.Mode
    ) throws {
        let texts = try onLoopThread { loop in
            let (pipe, log) = (Pipe(), EventLog())
            let handle = pipe.fileHandleForReading
            handle.readabilityHandler = { log.note(String(decoding: $0.availableData, as: UTF8.self)) }
            loop.addCommonMode(.work)
            try? handle.schedule(in: loop, forMode: .work)
            try? handle.schedule(in: loop, forMode: .common)
            handle.remove(from: loop, forMode: removed)
            pipe.fileHandleForWriting.closeFile()
            #expect(loop.run(in: .work, for: 60, returnAfterSourceHandled: false) == .finished)
            return log.entries
        }
        #expect(texts == [""])
    }

    @Test func `FH-14 the end is told once, too, where the peer has broken the connection`() throws {
        let texts = try onLoopThread { loop in
            var ends: [Int32] = [-1, -1]
            #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
            let log = EventLog()
            let handle = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
            handle.readabilityHandler = { handle in
                log.note(String(decoding: handle.availableData, as: UTF8.self))
            }
            try? handle.schedule(in: loop, forMode: .work)
            // What the peer has not read breaks the connection: ECONNRESET here.
            #expect(send(ends[0], "x", 1, 0) == 1)
            close(ends[1])
            #expect(loop.run(in: .work, for: 60, returnAfterSourceHandled: false) == .finished)
            return log.entries
        }
        #expect(texts == [""])
    }

    @Test func `FH-14 an empty datagram is no end`() throws {
        let texts = try onLoopThread { loop in
            var ends: [Int32] = [-1, -1]
            #expect(socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0, &ends) == 0)
            defer { close(ends[1]) }
            let log = EventLog()
            let handle = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
            handle.readabilityHandler = { handle in
                log.note(String(decoding: handle.availableData, as: UTF8.self))
                if log.entries.count == 2 { handle.readabilityHandler = nil }
            }
            try? handle.schedule(in: loop, forMode: .work)
            #expect(send(ends[1], "", 0, 0) == 0 && send(ends[1], "x", 1, 0) == 1)
            #expect(loop.run(in: .work, for: 60, returnAfterSourceHandled: false) == .finished)
            return log.entries
        }
        #expect(texts == ["", "x"])
    }

    @Test func `FH-14 a socket that listens has no end: its handler is called for each connection`() throws {
        let count = try onLoopThread { loop in
            let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            // The kernel gives it a name.
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            var size = socklen_t(MemoryLayout<sa_family_t>.size)
            let clients = (0..<2).map { _ in socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0) }
            defer { for client in clients { close(client) } }
            withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    #expect(bind(listener, address, size) == 0 && listen(listener, 8) == 0)
                    size = socklen_t(MemoryLayout<sockaddr_un>.size)
                    #expect(getsockname(listener, address, &size) == 0)
                    for client in clients { #expect(connect(client, address, size) == 0) }
                }
            }
            let log = EventLog()
            let handle = FileHandle(fileDescriptor: listener, closeOnDealloc: true)
            handle.readabilityHandler = { handle in
                close(accept(handle.fileDescriptor, nil, nil))
                log.note("accepted")
                if log.entries.count == 2 { handle.readabilityHandler = nil }
            }
            try? handle.schedule(in: loop, forMode: .work)
            #expect(loop.run(in: .work, for: 60, returnAfterSourceHandled: false) == .finished)
            return log.entries.count
        }
        #expect(count == 2)
    }

    @Test func `FH-14 handlers of a loop whose thread has ended are called on the next one`() throws {
        let (pipe, log) = (Pipe(), EventLog())
        let (reading, writing) = (pipe.fileHandleForReading, pipe.fileHandleForWriting)
        try onLoopThread { loop in
            for handle in [reading, writing] { try? handle.schedule(in: loop, forMode: .work) }
            reading.readabilityHandler = { handle in
                log.note(String(decoding: handle.availableData, as: UTF8.self))
            }
            writing.writeabilityHandler = { handle in
                handle.write(Data("body".utf8))
                handle.closeFile()
            }
        }
        try onLoopThread { loop in
            for handle in [reading, writing] { try? handle.schedule(in: loop, forMode: .work) }
            // Nothing is left in the mode when the end was told.
            #expect(loop.run(in: .work, for: 60, returnAfterSourceHandled: false) == .finished)
        }
        #expect(log.entries == ["body", ""])
    }

    @Test func `FH-14 a loop whose thread has ended does not keep the handlers from Foundation's queue`()
        throws
    {
        let pipe = Pipe()
        let handle = pipe.fileHandleForReading
        let isCalled = Latch()
        handle.readabilityHandler = { handle in
            _ = handle.availableData
            handle.readabilityHandler = nil
            isCalled.open()
        }
        for _ in 0..<2 { try onLoopThread { loop in _ = try? handle.schedule(in: loop, forMode: .work) } }
        try onLoopThread { loop in
            try? handle.schedule(in: loop, forMode: .work)
            handle.remove(from: loop, forMode: .work)
        }
        pipe.fileHandleForWriting.write(Data("x".utf8))
        try isCalled.wait()
    }

    @Test func `FH-14 a schedule that finds no descriptor throws, and leaves the handler as it was`() async {
        await #expect(processExitsWith: .success) {
            try onLoopThread { loop in
                let pipe = Pipe()
                let handle = pipe.fileHandleForReading
                let log = EventLog()
                handle.readabilityHandler = { handle in
                    precondition(RunLoop.current === loop, "called on a queue")
                    log.note(String(decoding: handle.availableData, as: UTF8.self))
                }
                let isScheduled = withNoDescriptorLeft {
                    (try? handle.schedule(in: loop, forMode: .work)) != nil
                }
                precondition(!isScheduled, "there was a descriptor")
                precondition(loop.run(in: .work, for: 0, returnAfterSourceHandled: false) == .finished)
                precondition(handle.readabilityHandler != nil, "the handler is lost")
                try? handle.schedule(in: loop, forMode: .work)
                pipe.fileHandleForWriting.write(Data("body".utf8))
                pipe.fileHandleForWriting.closeFile()
                precondition(loop.run(in: .work, for: 60, returnAfterSourceHandled: false) == .finished)
                precondition(log.entries == ["body", ""], "\(log.entries)")
            }
        }
    }

    @Test func `FH-14 on two loops one calls the handler at a time, and the end is told once`() throws {
        let (pipe, log) = (Pipe(), EventLog())
        let handle = pipe.fileHandleForReading
        let threads = (0..<2).map { _ in
            LoopThread { loop in
                loop.add(Port(), forMode: .work)
                return loop.run(in: .work, for: 60, returnAfterSourceHandled: false)
            }
        }
        let loops = try threads.map { try $0.loop }
        handle.readabilityHandler = { handle in
            log.note("begins")
            if log.entries.count == 1 {
                // The other loop finds the bytes, too.
                for loop in loops where !loop.isCurrent { try? loop.waitUntilServed(.work) }
            }
            log.note(String(decoding: handle.availableData, as: UTF8.self))
            if log.entries.count == 2 { pipe.fileHandleForWriting.closeFile() }
        }
        for loop in loops { try handle.schedule(in: loop, forMode: .work) }
        pipe.fileHandleForWriting.write(Data("body".utf8))
        try waitFor("the end") { handle.readabilityHandler == nil && log.entries.count >= 4 ? () : nil }
        for loop in loops { loop.stop() }
        for thread in threads { #expect(try thread.value() == .stopped) }
        #expect(log.entries == ["begins", "body", "begins", ""])
    }

    /// There are many rounds, because only the timing of the threads can make two sources.
    @Test func `FH-14 a handler that two threads set leaves nothing in the mode when it is removed`() throws {
        try onLoopThread { loop in
            for _ in 0..<300 {
                let handle = Pipe().fileHandleForReading
                try? handle.schedule(in: loop, forMode: .work)
                DispatchQueue.concurrentPerform(iterations: 2) { _ in handle.readabilityHandler = { _ in } }
                handle.readabilityHandler = nil
                #expect(loop.run(in: .work, for: 0, returnAfterSourceHandled: false) == .finished)
            }
        }
    }

    /// There are many rounds, because only the timing of the threads can make two schedules.
    @Test func `FH-14 two first schedules at once leave nothing in their modes when they end`() throws {
        try onLoopThread { loop in
            let modes: [RunLoop.Mode] = [.work, .tracking]
            for _ in 0..<300 {
                let handle = Pipe().fileHandleForReading
                handle.readabilityHandler = { _ in }
                DispatchQueue.concurrentPerform(iterations: 2) { number in
                    _ = try? handle.schedule(in: loop, forMode: modes[number])
                }
                for mode in modes { handle.remove(from: loop, forMode: mode) }
                handle.readabilityHandler = nil
                for mode in modes {
                    #expect(loop.run(in: mode, for: 0, returnAfterSourceHandled: false) == .finished)
                }
            }
        }
    }

    /// There are many rounds, because only the timing of the threads can lose the handler or bring it back.
    @Test(arguments: [true, false])
    func `FH-14 a handler that is set or removed while the last schedule ends is set or removed after it`(
        isSet: Bool
    ) throws {
        try onLoopThread { loop in
            for _ in 0..<300 {
                let handle = Pipe().fileHandleForReading
                try? handle.schedule(in: loop, forMode: .work)
                if !isSet { handle.readabilityHandler = { _ in } }
                DispatchQueue.concurrentPerform(iterations: 2) { number in
                    if number == 0 {
                        handle.remove(from: loop, forMode: .work)
                    } else if isSet {
                        handle.readabilityHandler = { _ in }
                    } else {
                        handle.readabilityHandler = nil
                    }
                }
                #expect((handle.readabilityHandler != nil) == isSet)
                handle.readabilityHandler = nil
            }
        }
    }

    @Test func `FH-14 a handler that is replaced is released where its objects can ask the handle`() async {
        await #expect(processExitsWith: .success) {
            try onThrowingLoopThread { loop in
                let handle = Pipe().fileHandleForReading
                let released = Latch()
                let ask: @Sendable () -> Void = {
                    _ = handle.readabilityHandler
                    released.open()
                }
                try handle.schedule(in: loop, forMode: .work)
                handle.readabilityHandler = { [probe = ReleaseProbe(ask)] _ in
                    withExtendedLifetime(probe) {}
                }
                handle.readabilityHandler = { _ in }
                try released.wait()
            }
        }
    }

    @Test func `FH-14 a writeabilityHandler that takes itself off is not called again`() throws {
        let count = try onLoopThread { loop in
            let pipe = Pipe()
            let log = EventLog()
            try? pipe.fileHandleForWriting.schedule(in: loop, forMode: .default)
            pipe.fileHandleForWriting.writeabilityHandler = { handle in
                log.note("writable")
                if log.entries.count == 2 { handle.writeabilityHandler = nil }
            }
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .finished)
            return log.entries.count
        }
        #expect(count == 2)
    }
}

/// The names of the process' threads.
private func threadNames() -> [String] {
    let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
    return tasks.compactMap { task in
        try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8)
            .trimmingCharacters(in: .newlines)
    }
}

/// `onLoopThread` for a body that may throw.
private func onThrowingLoopThread<Value: Sendable>(
    _ body: @escaping @Sendable (RunLoop) throws -> Value
) throws -> Value {
    try onLoopThread { loop in Result { try body(loop) } }.get()
}

extension RunLoop.Mode {
    static let work = RunLoop.Mode("work")
}

extension RunLoop {
    /// Runs until an observer stops it; the limit is for failures only.
    func run(in mode: Mode) {
        let result = run(in: mode, for: 60, returnAfterSourceHandled: false)
        #expect(result == .stopped)
    }
}

/// The notifications of one handle.
final class Notes: Sendable {
    struct Note: @unchecked Sendable {
        // `@unchecked Sendable`: the handle that was accepted is used by one thread at a time.
        let name: Notification.Name
        let data: Data?
        let error: Int?
        let accepted: FileHandle?
        let isOnLoop: Bool
    }

    private let notes = Mutex<[Note]>([])
    private let action = Mutex<(@Sendable (Note) -> Void)?>(nil)
    private let token = Mutex<Token?>(nil)

    /// `@unchecked Sendable`: the centre takes it back on any thread.
    private struct Token: @unchecked Sendable {
        let token: any NSObjectProtocol
    }

    var all: [Note] { notes.withLock { $0 } }

    var then: (@Sendable (Note) -> Void)? {
        get { action.withLock { $0 } }
        set { action.withLock { $0 = newValue } }
    }

    /// - Parameters:
    ///   - stopping: The loop that a notification stops.
    ///   - expected: The loop on whose thread it is to come.
    init(of handle: FileHandle, stopping: RunLoop? = nil, on expected: RunLoop? = nil) {
        let expected = stopping ?? expected
        let token = NotificationCenter.default.addObserver(forName: nil, object: handle, queue: nil) {
            [weak self] note in
            let found = Note(
                name: note.name, data: note.userInfo?[NSFileHandleNotificationDataItem] as? Data,
                error: (note.userInfo?["NSFileHandleError"] as? NSNumber)?.intValue,
                accepted: note.userInfo?[NSFileHandleNotificationFileHandleItem] as? FileHandle,
                isOnLoop: expected.map { $0.currentMode != nil && Self.currentLoop === $0 } ?? true)
            self?.notes.withLock { $0.append(found) }
            self?.then?(found)
            stopping?.stop()
        }
        self.token.withLock { $0 = Token(token: token) }
    }

    private static var currentLoop: RunLoop { .current }

    func takeLast() -> Note? { notes.withLock { $0.popLast() } }

    func forget() { notes.withLock { $0 = [] } }

    deinit {
        if let token = token.withLock({ $0 }) { NotificationCenter.default.removeObserver(token.token) }
    }
}

/// A stream's delegate that notes its events, and reads lines.
private final class LineReader: StreamDelegate {
    private(set) var events: [String] = []
    var then: ((String) -> Void)?

    init(_ stream: InputStream) { stream.delegate = self }

    func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
        switch eventCode {
        case .openCompleted: events.append("open")
        case .endEncountered: events.append("end")
        case .errorOccurred: events.append("error")
        default:
            var buffer = [UInt8](repeating: 0, count: 100)
            let count = (aStream as? InputStream)?.read(&buffer, maxLength: buffer.count) ?? 0
            let line = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self).dropLast()
            if count > 0 { events.append(String(line)) }
            then?(String(line))
        }
    }
}

private final class WeakHandle: @unchecked Sendable {
    // `@unchecked Sendable`: a weak reference may be read on any thread.
    weak var handle: FileHandle?
}

/// A file that goes with this object.
private struct TemporaryFile: ~Copyable {
    let handle: FileHandle
    private let url: URL

    init(_ data: Data) throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try data.write(to: url)
        handle = try FileHandle(forReadingFrom: url)
    }

    deinit { try? FileManager.default.removeItem(at: url) }
}

/// A socket that listens on loopback.
private struct Listener {
    let handle: FileHandle
    private let address: sockaddr_in

    init() {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                precondition(bind(descriptor, $0, length) == 0 && listen(descriptor, 8) == 0)
                getsockname(descriptor, $0, &length)
            }
        }
        self.address = address
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    func connect() -> Int32 {
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = address
        withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                precondition(Glibc.connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0)
            }
        }
        return client
    }
}

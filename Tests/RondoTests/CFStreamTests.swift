import Rondo
import RondoTestSupport
import Testing

/// Core Foundation's stream functions, in the words of programs that call them.
@Suite(.timeLimit(.minutes(2)), .leavesNothing) struct CFStreamTests {
    /// Notes the events of a client, and counts how often its context was retained and released.
    private final class Notes {
        var events: [String] = []
        var received: [UInt8] = []
        var retains = 0
        var releases = 0

        func context() -> CFStreamClientContext {
            CFStreamClientContext(
                version: 0, info: Unmanaged.passUnretained(self).toOpaque(),
                retain: { info in
                    let notes = Notes.of(info)
                    notes.retains += 1
                    return Unmanaged.passRetained(notes).toOpaque()
                },
                release: { info in
                    Notes.of(info).releases += 1
                    // Balances the retain: the stream may outlive the object that has made the notes.
                    Unmanaged<Notes>.fromOpaque(info!).release()
                }, copyDescription: nil)
        }

        static func of(_ info: UnsafeMutableRawPointer?) -> Notes {
            Unmanaged<Notes>.fromOpaque(info!).takeUnretainedValue()
        }
    }

    private static func word(_ event: CFStreamEventType) -> String {
        switch event {
        case .openCompleted: "open"
        case .hasBytesAvailable: "bytes"
        case .canAcceptBytes: "space"
        case .errorOccurred: "error"
        case .endEncountered: "end"
        default: "?"
        }
    }

    /// Every event is written down, and what can be read is.
    private static let readAll: CFReadStreamClientCallBack = { stream, event, info in
        let notes = Notes.of(info)
        notes.events.append(word(event))
        guard event == .hasBytesAvailable else { return }
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = CFReadStreamRead(stream, &buffer, buffer.count)
        notes.received += buffer.prefix(max(0, count))
    }

    private static let everything: CFOptionFlags =
        CFStreamEventType.openCompleted.rawValue | CFStreamEventType.hasBytesAvailable.rawValue
        | CFStreamEventType.canAcceptBytes.rawValue | CFStreamEventType.errorOccurred.rawValue
        | CFStreamEventType.endEncountered.rawValue

    private static func boundPair(_ size: CFIndex) -> (CFReadStream, CFWriteStream) {
        var read: Unmanaged<CFReadStream>?
        var write: Unmanaged<CFWriteStream>?
        CFStreamCreateBoundPair(kCFAllocatorDefault, &read, &write, size)
        return (read!.takeRetainedValue(), write!.takeRetainedValue())
    }

    private static func run(until isDone: () -> Bool) {
        let limit = CFAbsoluteTimeGetCurrent() + testPatience
        while !isDone(), CFAbsoluteTimeGetCurrent() < limit {
            _ = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1, true)
        }
    }

    /// Runs `body` on a thread of its own: a read that waits runs the loop of its thread.
    private static func onThread(_ body: @escaping @Sendable () throws -> Void) throws {
        let failure = try onLoopThread { _ in
            do {
                try body()
                return ""
            } catch {
                return "\(error)"
            }
        }
        #expect(failure == "")
    }

    private static func passes() {
        for _ in 0..<4 { _ = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false) }
    }

    // MARK: - Clients

    @Test func `ST-10 a client with a context is called for the events it has asked for`() throws {
        let found = try onLoopThread { _ in
            let (read, write) = Self.boundPair(100)
            let (all, some) = (Notes(), Notes())
            var (context, other) = (all.context(), some.context())
            let isSet = CFReadStreamSetClient(read, Self.everything, Self.readAll, &context)
            let spaceOnly: CFWriteStreamClientCallBack = { _, event, info in
                Notes.of(info).events.append(Self.word(event))
            }
            _ = CFWriteStreamSetClient(write, CFStreamEventType.canAcceptBytes.rawValue, spaceOnly, &other)
            CFReadStreamScheduleWithRunLoop(read, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode)
            CFWriteStreamScheduleWithRunLoop(write, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode)
            _ = CFReadStreamOpen(read) && CFWriteStreamOpen(write)
            let before = all.events
            Self.run { !some.events.isEmpty }
            CFWriteStreamWrite(write, Array("hello".utf8), 5)
            CFWriteStreamClose(write)
            Self.run { all.events.contains("end") }
            CFReadStreamClose(read)
            return [
                "\(isSet) \(before) \(all.events) \(some.events)",
                String(decoding: all.received, as: UTF8.self),
                "\(all.retains) \(all.releases)",
            ]
        }
        #expect(found == [#"true [] ["open", "bytes", "end"] ["space"]"#, "hello", "1 0"])
    }

    @Test(arguments: [false, true])
    func `a client that is taken away or replaced in its callback is released when that has returned`(
        isReplaced: Bool
    ) throws {
        let found = try onLoopThread { _ in
            let notes = Notes()
            var context = notes.context()
            let stream = CFReadStream(data: Data([1]))
            let callBack: CFReadStreamClientCallBack = { stream, _, info in
                let notes = Notes.of(info)
                var other = CFStreamClientContext()
                CFReadStreamSetClient(stream, isReplaced ? Self.everything : 0, Self.ignore, &other)
                notes.events.append("\(notes.releases) in the callback")
            }
            CFReadStreamSetClient(stream, CFStreamEventType.openCompleted.rawValue, callBack, &context)
            CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode)
            CFReadStreamOpen(stream)
            Self.passes()
            CFReadStreamClose(stream)
            return notes.events + ["\(notes.releases) after it"]
        }
        #expect(found == ["0 in the callback", "1 after it"])
    }

    private static let ignore: CFReadStreamClientCallBack = { _, _, _ in }

    @Test func `a client is released once, when it is replaced, taken away, or its stream goes`() throws {
        let found = try onLoopThread { _ in
            let notes = [Notes(), Notes(), Notes(), Notes()]
            var contexts = notes.map { $0.context() }
            var counts: [String] = []
            func count() { counts.append(notes.map { "\($0.retains)\($0.releases)" }.joined(separator: " ")) }
            do {
                let stream = CFReadStream(data: Data([1]))
                CFReadStreamSetClient(stream, Self.everything, Self.readAll, &contexts[0])
                CFReadStreamSetClient(stream, Self.everything, Self.readAll, &contexts[1])
                count()
                CFReadStreamSetClient(stream, 0, Self.readAll, &contexts[2])
                count()
                CFReadStreamSetClient(stream, Self.everything, Self.readAll, &contexts[2])
                CFReadStreamSetClient(stream, Self.everything, nil, &contexts[2])
                count()
                CFReadStreamSetClient(stream, Self.everything, Self.readAll, &contexts[3])
                CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode)
                CFReadStreamOpen(stream)
                CFReadStreamClose(stream)
                count()
            }
            count()
            Self.passes()
            return counts + ["\(notes.map(\.events))"]
        }
        #expect(
            found == [
                "11 10 00 00", "11 11 00 00", "11 11 11 00", "11 11 11 10", "11 11 11 11",
                "[[], [], [], []]",
            ])
    }

    @Test func `a client and a delegate replace each other`() throws {
        let found = try onLoopThread { _ in
            let notes = Notes()
            var context = notes.context()
            let stream = CFReadStream(data: Data([1]))
            CFReadStreamSetClient(stream, Self.everything, Self.readAll, &context)
            stream.delegate = nil
            CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode)
            CFReadStreamOpen(stream)
            Self.passes()
            let without = notes.events
            CFReadStreamSetClient(stream, Self.everything, Self.readAll, &context)
            CFReadStreamSetClient(stream, Self.everything, Self.readAll, &context)
            CFReadStreamClose(stream)
            return ["\(without)", "\(notes.retains) \(notes.releases)"]
        }
        #expect(found == ["[]", "3 2"])
    }

    @Test func `ST-9 ST-13 a client that asks for bytes later is told of those that are there`() throws {
        let found = try onLoopThread { _ in
            let (ends, all) = (Notes(), Notes())
            var (context, other) = (ends.context(), all.context())
            let stream = CFReadStream(data: Data([1]))
            CFReadStreamSetClient(
                stream, CFStreamEventType.endEncountered.rawValue, Self.readAll, &context)
            CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode)
            CFReadStreamOpen(stream)
            Self.passes()
            CFReadStreamSetClient(stream, Self.everything, Self.readAll, &other)
            Self.run { all.events.contains("end") }
            CFReadStreamClose(stream)
            return ["\(ends.events) \(all.events)"]
        }
        #expect(found == [#"[] ["bytes", "end"]"#])
    }

    /// Writes events down, reads nothing, and removes itself and sets itself as the stream's client again.
    private static func setAgain(
        _ stream: CFReadStream?, _ event: CFStreamEventType, _ info: UnsafeMutableRawPointer?
    ) {
        let notes = Notes.of(info)
        notes.events.append(word(event))
        var context = notes.context()
        CFReadStreamSetClient(stream, 0, nil, nil)
        CFReadStreamSetClient(stream, everything, { Self.setAgain($0, $1, $2) }, &context)
    }

    @Test func `ST-9 ST-13 a client that sets itself again is not told again`() throws {
        let found = try onLoopThread { _ in
            let notes = Notes()
            var context = notes.context()
            let stream = CFReadStream(data: Data([1]))
            CFReadStreamSetClient(stream, Self.everything, { Self.setAgain($0, $1, $2) }, &context)
            CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode)
            CFReadStreamOpen(stream)
            Self.passes()
            CFReadStreamClose(stream)
            return ["\(notes.events)"]
        }
        #expect(found == [#"["open", "bytes"]"#])
    }

    @Test func `ST-21 a client with a dispatch queue is called there`() throws {
        let (read, write) = Self.boundPair(10)
        let queue = DispatchQueue(label: "client")
        let hasCome = DispatchSemaphore(value: 0)
        let notes = Notes()
        var context = notes.context()
        CFReadStreamSetClient(
            read, CFStreamEventType.hasBytesAvailable.rawValue,
            { stream, event, info in
                dispatchPrecondition(condition: .onQueue(queue))
                Self.readAll(stream, event, info)
                hasCome.signal()
            }, &context)
        CFReadStreamSetDispatchQueue(read, queue)
        #expect(CFReadStreamCopyDispatchQueue(read) === queue)
        CFReadStreamOpen(read)
        CFWriteStreamOpen(write)
        CFWriteStreamWrite(write, [7], 1)
        #expect(hasCome.wait(timeout: .now() + testPatience) == .success)
        queue.sync {
            #expect(notes.received == [7])
            CFReadStreamSetDispatchQueue(read, nil)
            CFReadStreamClose(read)
        }
        CFWriteStreamClose(write)
    }

    @Test func `ST-17 events while a stream is unscheduled are delivered when it is scheduled again`() throws
    {
        let found = try onLoopThread { _ in
            let (read, write) = Self.boundPair(10)
            let notes = Notes()
            var context = notes.context()
            CFReadStreamSetClient(read, Self.everything, Self.readAll, &context)
            let loop = CFRunLoopGetCurrent()
            CFReadStreamScheduleWithRunLoop(read, loop, kCFRunLoopDefaultMode)
            CFReadStreamOpen(read)
            CFWriteStreamOpen(write)
            CFReadStreamUnscheduleFromRunLoop(read, loop, kCFRunLoopDefaultMode)
            CFWriteStreamWrite(write, [1, 2], 2)
            Self.passes()
            let meanwhile = notes.events
            CFReadStreamScheduleWithRunLoop(read, loop, kCFRunLoopDefaultMode)
            Self.run { !notes.received.isEmpty }
            CFReadStreamClose(read)
            CFWriteStreamClose(write)
            return ["\(meanwhile) \(notes.events) \(notes.received)"]
        }
        #expect(found == [#"[] ["open", "bytes"] [1, 2]"#])
    }

    // MARK: - Bytes in place

    private static func get(_ stream: CFReadStream, _ limit: CFIndex) -> String {
        var count: CFIndex = 99
        let bytes = CFReadStreamGetBuffer(stream, limit, &count)
        return bytes.map { "\(Array(UnsafeBufferPointer(start: $0, count: count)))" } ?? "nil \(count)"
    }

    @Test func `ST-27 the buffer has at most so many bytes, all if none are named, and they count as read`() {
        let stream = CFReadStream(data: Data([1, 2, 3, 4, 5, 6]))
        #expect(Self.get(stream, 2) == "nil -1")
        #expect(CFReadStreamOpen(stream))
        #expect(!CFReadStreamOpen(stream))
        #expect(Self.get(stream, 2) == "[1, 2]")
        var byte: UInt8 = 0
        #expect(CFReadStreamRead(stream, &byte, 1) == 1 && byte == 3)
        #expect(CFReadStreamHasBytesAvailable(stream))
        #expect(Self.get(stream, 100) == "[4, 5, 6]")
        #expect(CFReadStreamGetStatus(stream) == .atEnd)
        #expect(Self.get(stream, 0) == "nil 0")
        CFReadStreamClose(stream)
        #expect(Self.get(stream, 0) == "nil -1")
        #expect(CFReadStreamGetStatus(stream) == .closed)
    }

    @Test func `ST-27 CFReadStreamGetBuffer lends bytes of a pair and of a socket`() throws {
        try Self.onThread {
            let (read, write) = Self.boundPair(4)
            #expect(CFReadStreamOpen(read) && CFWriteStreamOpen(write))
            #expect(Self.get(read, 0) == "nil 0")
            #expect(CFWriteStreamWrite(write, [1, 2, 3, 4], 4) == 4)
            #expect(!CFWriteStreamCanAcceptBytes(write))
            #expect(Self.get(read, 3) == "[1, 2, 3]")
            // It is lent: its room is the writer's with the next operation.
            #expect(Self.get(read, 0) == "[4]")
            #expect(CFWriteStreamWrite(write, [5, 6, 7], 3) == 3)
            #expect(["[5]", "[6, 7]"].allSatisfy { Self.get(read, -1) == $0 })
            CFWriteStreamClose(write)
            CFReadStreamClose(read)

            let server = try TestServer { peer in try peer.send(Array("abcdef".utf8)) }
            defer { server.stop() }
            let (input, output) = Self.pair(server.port)
            #expect(CFReadStreamOpen(input))
            var first: UInt8 = 0
            #expect(CFReadStreamRead(input, &first, 1) == 1 && first == 97)
            var bytes: [UInt8] = []
            while bytes.count < 5 {
                var count: CFIndex = 0
                if let found = CFReadStreamGetBuffer(input, 2, &count) {
                    #expect(count <= 2)
                    bytes += UnsafeBufferPointer(start: found, count: count)
                } else if count == 0, CFReadStreamRead(input, &first, 1) == 1 {
                    bytes.append(first)
                } else {
                    break
                }
            }
            #expect(bytes == Array("bcdef".utf8))
            CFReadStreamClose(input)
            withExtendedLifetime(output) {}
        }
    }

    // MARK: - Sockets

    private static func pair(_ port: UInt16) -> (CFReadStream, CFWriteStream) {
        var read: Unmanaged<CFReadStream>?
        var write: Unmanaged<CFWriteStream>?
        CFStreamCreatePairWithSocketToHost(
            kCFAllocatorDefault, "127.0.0.1", UInt32(port), &read, &write)
        return (read!.takeRetainedValue(), write!.takeRetainedValue())
    }

    @Test func `ST-39 a pair to a host echoes by polling, and has its properties`() throws {
        try Self.onThread {
            let server = try TestServer { peer in try peer.send(try peer.read(count: 5)) }
            defer { server.stop() }
            let (read, write) = Self.pair(server.port)
            #expect(CFReadStreamGetStatus(read) == .notOpen)
            #expect(
                CFReadStreamCopyProperty(read, kCFStreamPropertySocketRemoteHostName) as? String
                    == "127.0.0.1")
            #expect(
                CFWriteStreamCopyProperty(write, kCFStreamPropertySocketRemotePortNumber) as? Int
                    == Int(server.port))
            #expect(CFReadStreamOpen(read) && CFWriteStreamOpen(write))
            #expect(CFWriteStreamWrite(write, Array("hello".utf8), 5) == 5)
            #expect(CFWriteStreamCopyProperty(write, kCFStreamPropertySocketNativeHandle) as? Data != nil)
            #expect(!CFReadStreamSetProperty(read, "unknown", true as NSNumber))
            var received: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 16)
            while case let count = CFReadStreamRead(read, &buffer, 16), count > 0 {
                received += buffer[..<count]
            }
            #expect(received == Array("hello".utf8))
            #expect(CFReadStreamGetStatus(read) == .atEnd)
            #expect(CFReadStreamCopyError(read) == nil && CFWriteStreamCopyError(write) == nil)
            CFReadStreamClose(read)
            CFWriteStreamClose(write)
            #expect(CFWriteStreamGetStatus(write) == .closed)
            #expect(CFWriteStreamWrite(write, [1], 1) == -1)
        }
    }

    @Test(arguments: ["name", "address", "signature"])
    func `ST-39 a pair is made to a CFHost's name or address, or to a signature`(_ form: String) throws {
        try Self.onThread {
            let server = try TestServer { peer in try peer.send(try peer.read(count: 5)) }
            defer { server.stop() }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = inet_addr("127.0.0.1")
            address.sin_port = server.port.bigEndian
            let data = Data(bytes: &address, count: MemoryLayout<sockaddr_in>.size) as CFData
            var read: Unmanaged<CFReadStream>?
            var write: Unmanaged<CFWriteStream>?
            if form == "signature" {
                var signature = CFSocketSignature(
                    protocolFamily: PF_INET, socketType: SOCK_STREAM, protocol: IPPROTO_TCP,
                    address: Unmanaged.passUnretained(data))
                withExtendedLifetime(data) {
                    CFStreamCreatePairWithPeerSocketSignature(nil, &signature, &read, &write)
                }
            } else {
                let host =
                    form == "name"
                    ? CFHostCreateWithName(nil, "127.0.0.1" as CFString) : CFHostCreateWithAddress(nil, data)
                CFStreamCreatePairWithSocketToCFHost(
                    nil, host.takeRetainedValue(), Int32(server.port), &read, &write)
            }
            let (input, output) = (read!.takeRetainedValue(), write!.takeRetainedValue())
            #expect(CFReadStreamOpen(input) && CFWriteStreamOpen(output))
            #expect(CFWriteStreamWrite(output, Array("hello".utf8), 5) == 5)
            var received: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 16)
            while case let count = CFReadStreamRead(input, &buffer, 16), count > 0 {
                received += buffer[..<count]
            }
            #expect(received == Array("hello".utf8))
            CFReadStreamClose(input)
            CFWriteStreamClose(output)
        }
    }

    @Test func `ST-40 the socket of a pair stays open, or is closed where that is asked for`() throws {
        try Self.onThread {
            for closes in [false, true] {
                var ends: [Int32] = [0, 0]
                #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
                var read: Unmanaged<CFReadStream>?
                var write: Unmanaged<CFWriteStream>?
                CFStreamCreatePairWithSocket(kCFAllocatorDefault, ends[0], &read, &write)
                let (input, output) = (read!.takeRetainedValue(), write!.takeRetainedValue())
                if closes {
                    #expect(
                        CFReadStreamSetProperty(
                            input, kCFStreamPropertyShouldCloseNativeSocket, true as NSNumber))
                }
                #expect(CFReadStreamOpen(input) && CFWriteStreamOpen(output))
                #expect(CFWriteStreamWrite(output, [9], 1) == 1)
                CFReadStreamClose(input)
                CFWriteStreamClose(output)
                // The other end tells, since the number may be another test's by now.
                var bytes: [UInt8] = [0, 0]
                #expect(recv(ends[1], &bytes, 2, 0) == 1)
                let end = recv(ends[1], &bytes, 2, Int32(MSG_DONTWAIT))
                #expect(closes ? end == 0 : end == -1 && errno == EAGAIN)
                if !closes { close(ends[0]) }
                close(ends[1])
            }
        }
    }

    @Test func `ST-38 a refused connection is an error of the client's, and can be asked for`() throws {
        let port = try RefusedPort()
        let found = try onLoopThread { [number = port.port] _ in
            let (read, write) = Self.pair(number)
            let notes = Notes()
            var context = notes.context()
            CFReadStreamSetClient(read, Self.everything, Self.readAll, &context)
            CFReadStreamScheduleWithRunLoop(read, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode)
            CFReadStreamOpen(read)
            Self.run { !notes.events.isEmpty }
            let error = CFReadStreamCopyError(read) as NSError?
            let older = CFReadStreamGetError(read)
            CFReadStreamClose(read)
            let isSame = older.domain == kCFStreamErrorDomainPOSIX && older.error == ECONNREFUSED
            let isNone = CFWriteStreamGetError(CFWriteStream(toMemory: ())) == CFStreamError()
            withExtendedLifetime(write) {}
            return [
                "\(notes.events) \(error?.domain ?? "") \(error?.code == Int(ECONNREFUSED))",
                "\(isSame) \(isNone)",
            ]
        }
        #expect(found == [#"["error"] NSPOSIXErrorDomain true"#, "true true"])
    }

    // MARK: - Files and memory

    @Test func `ST-31 ST-32 CF streams empty a file, append to it and read it from the middle`() throws {
        let url = URL(fileURLWithPath: NSTemporaryDirectory() + "/rondo-cf-\(UUID().uuidString)")
        defer { unlink(url.path) }
        for (text, appends) in [("old", false), ("first", false), (" and second", true)] {
            let stream: CFWriteStream = CFWriteStreamCreateWithFile(kCFAllocatorDefault, url)
            if appends {
                #expect(CFWriteStreamSetProperty(stream, kCFStreamPropertyAppendToFile, true as NSNumber))
            }
            #expect(CFWriteStreamOpen(stream) && CFWriteStreamCanAcceptBytes(stream))
            #expect(CFWriteStreamWrite(stream, Array(text.utf8), text.utf8.count) == text.utf8.count)
            CFWriteStreamClose(stream)
        }
        let stream: CFReadStream = CFReadStreamCreateWithFile(kCFAllocatorDefault, url)
        #expect(CFReadStreamOpen(stream))
        #expect(CFReadStreamSetProperty(stream, kCFStreamPropertyFileCurrentOffset, 10 as NSNumber))
        #expect(Self.get(stream, 0) == "nil 0")
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = CFReadStreamRead(stream, &buffer, 64)
        #expect(String(decoding: buffer[..<count], as: UTF8.self) == "second")
        CFReadStreamClose(stream)
        #expect(CFGetTypeID(stream) == CFReadStreamGetTypeID())
        #expect(CFReadStreamGetTypeID() != CFWriteStreamGetTypeID())

        let missing: CFReadStream = CFReadStreamCreateWithFile(
            kCFAllocatorDefault, url.appendingPathExtension("not"))
        #expect(!CFReadStreamOpen(missing))
        #expect((CFReadStreamCopyError(missing) as NSError?)?.code == Int(ENOENT))
        CFReadStreamClose(missing)
    }

    @Test func `ST-31 ST-32 files by CFURL, as on Apple's systems`() throws {
        let url = URL(fileURLWithPath: NSTemporaryDirectory() + "/rondo-cf-\(UUID().uuidString)")
        defer { unlink(url.path) }
        let output: CFWriteStream = CFWriteStreamCreateWithFile(kCFAllocatorDefault, url as CFURL)
        #expect(CFWriteStreamOpen(output))
        #expect(CFWriteStreamWrite(output, Array("text".utf8), 4) == 4)
        CFWriteStreamClose(output)
        let input: CFReadStream = CFReadStreamCreateWithFile(kCFAllocatorDefault, url as CFURL)
        #expect(CFReadStreamOpen(input))
        var buffer = [UInt8](repeating: 0, count: 16)
        let count = CFReadStreamRead(input, &buffer, 16)
        #expect(String(decoding: buffer.prefix(max(0, count)), as: UTF8.self) == "text")
        CFReadStreamClose(input)
    }

    @Test(arguments: [true, false])
    func `ST-28 a CF stream reads memory where it lies, and frees it or not`(isKept: Bool) {
        // Freed twice, or never, is for the sanitizer to say.
        let memory = malloc(3)!
        memory.copyMemory(from: [1, 2, 3] as [UInt8], byteCount: 3)
        defer { if isKept { free(memory) } }
        let stream: CFReadStream = CFReadStreamCreateWithBytesNoCopy(
            kCFAllocatorDefault, memory.assumingMemoryBound(to: UInt8.self), 3,
            isKept ? kCFAllocatorNull : kCFAllocatorDefault)
        #expect(CFReadStreamOpen(stream))
        var count = 0
        let found = CFReadStreamGetBuffer(stream, 0, &count)
        #expect(Array(UnsafeBufferPointer(start: found, count: count)) == [1, 2, 3])
        #expect(CFReadStreamGetStatus(stream) == .atEnd)
        CFReadStreamClose(stream)
    }

    @Test func `ST-30 ST-23 a CF stream writes to memory that grows or is of a fixed size`() {
        let growing: CFWriteStream = CFWriteStreamCreateWithAllocatedBuffers(
            kCFAllocatorDefault, kCFAllocatorDefault)
        #expect(CFWriteStreamOpen(growing))
        #expect(CFWriteStreamWrite(growing, [1, 2, 3], 3) == 3)
        CFWriteStreamClose(growing)
        #expect(CFWriteStreamCopyProperty(growing, kCFStreamPropertyDataWritten) as? Data == Data([1, 2, 3]))

        let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: 2)
        memory.initialize(repeating: 0, count: 2)
        defer { memory.deallocate() }
        let fixed: CFWriteStream = CFWriteStreamCreateWithBuffer(kCFAllocatorDefault, memory, 2)
        #expect(CFWriteStreamOpen(fixed))
        #expect(CFWriteStreamWrite(fixed, [4, 5, 6], 3) == 2)
        #expect(CFWriteStreamWrite(fixed, [6], 1) == 0)
        #expect(CFWriteStreamGetStatus(fixed) == .atEnd)
        #expect([memory[0], memory[1]] == [4, 5])
        CFWriteStreamClose(fixed)
    }
}

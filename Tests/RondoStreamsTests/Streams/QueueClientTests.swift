import RondoCore
import RondoMutex
import RondoTestSupport
import Testing

@testable import RondoStreams

/// Streams whose client is on a dispatch queue, while the shared background loop watches their descriptor: two threads.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct QueueClientTests {
    enum Kind: String, CaseIterable, Sendable {
        case pipeHandle, socketHandle, childPipe

        func make() throws -> (InputStream, HandlePeer) {
            switch self {
            case .pipeHandle:
                let (handle, peer) = try HandleKind.pipe.make()
                return (InputStream(handle), peer)
            case .socketHandle:
                let (handle, peer) = try HandleKind.unixSocket.make()
                return (InputStream(handle), peer)
            case .childPipe:
                let (handle, peer) = try HandleKind.pipe.make()
                let reading = fcntl(handle.fileDescriptor, F_DUPFD_CLOEXEC, 0)
                _ = fcntl(reading, F_SETFL, O_NONBLOCK)
                return (InputStream(pipe: reading, name: "test", ended: {}), peer)
            }
        }
    }

    private static let rounds = 2_000

    /// Each round the client takes two bytes, one at a time, after a while of another length: the second one while the loop finds
    /// it, or gives up watching.
    @Test(arguments: Kind.allCases)
    func `ST-13 ST-21 a queue's client is told of all bytes, and of none that it has read`(kind: Kind) throws
    {
        let (stream, peer) = try kind.make()
        let reader = SlowReader(stream)
        defer { reader.close() }
        for round in 1...Self.rounds {
            peer.write("ab")
            try reader.waitUntil(count: 2 * round)
        }
        #expect(reader.toldInVain == 0)
    }

    /// A handler that asks instead of reading waits for an event then, while the file's first piece comes.
    @Test func `ST-13 ST-21 FH-12 a queue's client is told of the piece of a file that comes while it asks`()
        throws
    {
        let handle = try openFile(Array("text".utf8))
        for round in 0..<Self.rounds {
            try handle.seek(toOffset: 0)
            let asker = Asker(InputStream(handle), delay: round % 64)
            defer { asker.close() }
            try asker.told.wait()
        }
    }

    @Test func `ST-13 bytes that a client takes on another thread during a look are not reported`() throws {
        let core = StreamCore(.input)
        core.update { _ = $0.open() }
        core.opened(isReady: false)
        let client = core.noteReady {
            let number = Mutex<pid_t?>(nil)
            let client = LoopThread { _ in
                number.withLock { $0 = threadNumber() }
                core.update { $0.used(isReady: false) }
                number.withLock { $0 = 0 }
            }
            // It has to wait for the look to be over, or is over itself.
            #expect(throws: Never.self) {
                let thread = try waitFor("the client") { number.withLock { $0 } }
                try waitFor("the client to wait") {
                    number.withLock { $0 } == 0 || isAsleep(thread: thread) ? () : nil
                }
            }
            return client
        } _: { _ in
            true
        }
        try client.value()
        #expect(!core.isReady)
    }

    @Test func `a source that is waited for when it is no longer watched is watched again`() {
        let pipe = Pipe()
        let source = RunLoop.Source(
            fileDescriptor: pipe.fileHandleForReading.fileDescriptor, interest: .read
        ) { _, _ in }
        defer { source.invalidate() }
        var seen: [RunLoop.Source.Interest] = []
        source.stopWatching(.read) {
            seen.append(source.interest)
            return false
        }
        #expect(seen == [[]] && source.interest == [])
        source.stopWatching(.read) { true }
        #expect(source.interest == .read)
    }
}

/// Asks in its first event, after a while, whether bytes are there.
///
/// `@unchecked Sendable`: used on the queue only, after the initialiser.
private final class Asker: StreamDelegate, @unchecked Sendable {
    private let queue = DispatchQueue(label: "test.asker")
    private let stream: InputStream
    private let delay: Int
    let told = Latch()

    init(_ stream: InputStream, delay: Int) {
        self.stream = stream
        self.delay = delay
        queue.sync {
            stream.delegate = self
            stream.dispatchQueue = queue
            stream.open()
        }
    }

    func close() { queue.sync { stream.close() } }

    func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
        guard eventCode == .openCompleted else { return told.open() }
        for _ in 0..<delay { _ = stream.streamStatus }
        if stream.hasBytesAvailable { told.open() }
    }
}

/// Reads bytes one by one on a serial queue, and takes its time.
///
/// `@unchecked Sendable`: what changes is used on the queue, or behind the Mutex.
private final class SlowReader: StreamDelegate, @unchecked Sendable {
    private let queue = DispatchQueue(label: "test.slow")
    private let stream: InputStream
    private let inVain = Mutex(0)
    private let taken = DispatchSemaphore(value: 0)
    private var count = 0
    private var delay: UInt32 = 0

    init(_ stream: InputStream) {
        self.stream = stream
        queue.sync {
            stream.delegate = self
            stream.dispatchQueue = queue
            stream.open()
        }
    }

    var toldInVain: Int { inVain.withLock { $0 } }

    func close() { queue.sync { stream.close() } }

    func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
        guard eventCode == .hasBytesAvailable else { return }
        guard stream.hasBytesAvailable else { return inVain.withLock { $0 += 1 } }
        repeat {
            _ = stream.bytes(1)
            count += 1
            // A linear congruential generator: the lengths spread, and are the same in each run.
            delay = delay &* 1_664_525 &+ 1_013_904_223
            for _ in 0..<(delay >> 26) { _ = stream.streamStatus }
            taken.signal()
        } while stream.hasBytesAvailable
    }

    private var seen = 0

    /// Of the thread that writes.
    func waitUntil(count: Int) throws {
        while seen < count {
            guard taken.wait(timeout: .now() + testPatience) == .success else {
                throw NeverCame(description: "waited in vain for byte \(seen + 1)")
            }
            seen += 1
        }
    }
}

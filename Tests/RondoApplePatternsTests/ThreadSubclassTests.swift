import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// Threads that are subclasses of Foundation's and run their loop in main(): with Foundation alone they do not compile on
/// Linux, as they need a module that it hides.
@Suite(.timeLimit(.minutes(2))) struct ThreadSubclassTests {
    @Test func `TH-8 a subclass of Thread runs its loop until it is cancelled`() throws {
        let log = EventLog()
        let thread = StreamEventsThread()
        thread.start()
        let loop = thread.runLoop
        loop.perform { log.note("\(Thread.current is StreamEventsThread) \(RunLoop.current === loop)") }
        try waitFor("the block") { log.entries.count == 1 ? () : nil }
        #expect(log.entries == ["true true"])
        loop.perform {
            let timer = Timer(timeInterval: 0.001, repeats: false) { _ in log.note("timer") }
            RunLoop.current.add(timer, forMode: .default)
        }
        try waitFor("the timer") { log.entries.count == 2 ? () : nil }
        thread.cancel()
        // Blocks alone end no run (rule RL-64).
        CFRunLoopStop(loop)
        try thread.hasEnded.wait()
    }

    @Test func `a counter that subclasses NSLock loses no count on many threads`() {
        let count = AtomicCount()
        DispatchQueue.concurrentPerform(iterations: 100) { _ in count.add(1) }
        #expect(count.value == 100)
    }
}

private final class StreamEventsThread: Thread {
    private let ready = DispatchGroup()
    private let found = Mutex<RunLoop?>(nil)
    let hasEnded = Latch()

    /// Waits until the thread has one.
    var runLoop: RunLoop {
        ready.wait()
        return found.withLock { $0! }
    }

    override init() {
        ready.enter()
        super.init()
    }

    override func main() {
        autoreleasepool {
            let loop = RunLoop.current
            found.withLock { $0 = loop }
            ready.leave()
            // Keeps the loop from finding its mode empty.
            var context = CFRunLoopSourceContext(
                version: 0, info: nil, retain: nil, release: nil, copyDescription: nil, equal: nil, hash: nil,
                schedule: nil, cancel: nil, perform: nil)
            let source = CFRunLoopSourceCreate(nil, 0, &context)
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source, CFRunLoopMode.defaultMode)
            while !isCancelled && loop.run(mode: .default, before: .distantFuture) {}
        }
        hasEnded.open()
    }
}

/// RxSwift's, in short.
private final class AtomicCount: NSLock, @unchecked Sendable {
    // `@unchecked Sendable` because the class is the lock of its value.
    private var count = 0

    var value: Int {
        lock()
        defer { unlock() }
        return count
    }

    func add(_ number: Int) {
        lock()
        defer { unlock() }
        count += number
    }
}

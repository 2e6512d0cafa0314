import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// AFNetworking's way: one thread for all connections, whose run loop a port keeps alive.
@Suite(.timeLimit(.minutes(5))) struct LoaderThreadTests {
    @Test func `TH-8 AFNetworking's thread serves many loads in the common modes, also after idle times`()
        throws
    {
        let server = try server()
        let thread = NetworkRequestThread()
        for round in 1...3 {
            // Idle again.
            try waitFor("an idle thread") { CFRunLoopIsWaiting(thread.runLoop) ? () : nil }
            let operations = (1...4).map { number in
                ConnectionOperation(URLRequest(url: server.url("/\(round)/\(number)")), on: thread)
            }
            for operation in operations { operation.start() }
            for operation in operations {
                try operation.isOver.wait()
                #expect(operation.collector.end == "finished 50000")
            }
        }
        thread.end()
        try thread.hasEnded.wait()
    }

    @Test func `TH-8 the run of a loader thread without a port returns at once`() throws {
        try onLoopThread { _ in
            NSRunLoop.current.run()
            #expect(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false) == .finished)
        }
    }

    @Test func `TH-7 a port keeps NSRunLoop's run alive, and CFRunLoopStop does not end it`() throws {
        let log = EventLog()
        let thread = NetworkRequestThread()
        for _ in 1...3 {
            try waitFor("an idle thread") { CFRunLoopIsWaiting(thread.runLoop) ? () : nil }
            CFRunLoopStop(thread.runLoop)
        }
        CFRunLoopPerformBlock(thread.runLoop, kCFRunLoopCommonModes) { log.note("served") }
        CFRunLoopWakeUp(thread.runLoop)
        try waitFor("the block") { log.entries == ["served"] ? () : nil }
        #expect(!thread.hasEnded.isOpen)
        thread.end()
        try thread.hasEnded.wait()
    }

    @Test func `TH-6 the flag pattern loads completely, and spins in an empty mode`() throws {
        let server = try server(length: 1_000_000)
        let result = try onLoopThread { _ -> (end: String?, calls: Int, emptyRuns: [Bool]) in
            var calls = 0
            let collector = Collector()
            let connection = NSURLConnection(request: URLRequest(url: server.url()), delegate: collector)
            while collector.end == nil, calls < 1_000_000 {
                NSRunLoop.current.run(mode: NSDefaultRunLoopMode, before: Date(timeIntervalSinceNow: 0.1))
                calls += 1
            }
            withExtendedLifetime(connection) {}
            let emptyRuns = (1...3).map { _ in
                NSRunLoop.current.run(mode: NSDefaultRunLoopMode, before: .distantFuture)
            }
            return (collector.end, calls, emptyRuns)
        }
        #expect(result.end == "finished 1000000")
        #expect(result.calls > 0)
        #expect(result.emptyRuns == [false, false, false])
    }
}

/// `+networkRequestThread` and its entry point.
private final class NetworkRequestThread: Sendable {
    private struct State {
        var runLoop: NSRunLoop?
        var port: Port?
    }

    let hasEnded = Latch()
    private let started = Latch()
    private let state = Mutex(State())

    init() {
        Thread.detachNewThread { [self] in
            Thread.current.name = "AFNetworking"
            let runLoop = NSRunLoop.current
            let port = Port()
            runLoop.add(port, forMode: NSDefaultRunLoopMode)
            state.withLock { $0 = State(runLoop: runLoop, port: port) }
            started.open()
            runLoop.run()
            hasEnded.open()
        }
    }

    var runLoop: CFRunLoop? {
        started.waitOrRecord()
        return state.withLock { $0.runLoop }
    }

    /// `performSelector:onThread:withObject:waitUntilDone:modes:` with the operation's modes.
    func perform(_ block: sending @escaping () -> Void) {
        CFRunLoopPerformBlock(runLoop, kCFRunLoopCommonModes, block)
        CFRunLoopWakeUp(runLoop)
    }

    func end() {
        perform { [self] in
            state.withLock { $0.port }?.invalidate()
            CFRunLoopWakeUp(runLoop)
        }
    }
}

/// `AFURLConnectionOperation`, as far as run loops go.
private final class ConnectionOperation: Sendable {
    let isOver: Latch
    let collector: Collector
    private let request: URLRequest
    private let thread: NetworkRequestThread

    init(_ request: URLRequest, on thread: NetworkRequestThread) {
        let isOver = Latch()
        self.isOver = isOver
        self.request = request
        self.thread = thread
        collector = Collector { isOver.open() }
    }

    func start() {
        thread.perform { [self] in operationDidStart() }
    }

    private func operationDidStart() {
        let connection = NSURLConnection(request: request, delegate: collector, startImmediately: false)
        for mode in [NSRunLoopCommonModes] { connection?.schedule(in: .current, forMode: mode) }
        connection?.start()
    }
}

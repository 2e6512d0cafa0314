import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// SDWebImage's way: each operation runs the loop of the worker that it is on.
@Suite(.timeLimit(.minutes(5))) struct WorkerOperationTests {
    @Test func `TH-9 SDWebImage's operation runs its worker's loop until the terminal callback stops it`()
        throws
    {
        let server = try server()
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 2
        let operations = (1...4).map { DownloadOperation(URLRequest(url: server.url("/\($0)"))) }
        queue.addOperations(operations, waitUntilFinished: true)
        #expect(operations.map(\.outcome) == Array(repeating: "finished 50000", count: 4))
    }

    @Test func `TH-9 an operation cancelled from another thread ends, with no callback`() throws {
        let server = try silentServer()
        let operation = DownloadOperation(URLRequest(url: server.url()))
        let queue = OperationQueue()
        queue.addOperation(operation)
        try waitFor("the request") { server.requests.isEmpty ? nil : () }
        operation.cancel()
        queue.waitUntilAllOperationsAreFinished()
        #expect(operation.outcome == "cancelled")
    }

    @Test func `TH-9 a bounded run that ends without an end is cancelled and reported as timed out`() throws {
        let server = try silentServer()
        let operation = DownloadOperation(URLRequest(url: server.url()), limit: 0.2)
        let queue = OperationQueue()
        queue.addOperations([operation], waitUntilFinished: true)
        #expect(operation.outcome == "failed -1001")
    }

    @Test func `TH-9 a bounded run is ended early by the terminal callback`() throws {
        let server = try server()
        let operation = DownloadOperation(URLRequest(url: server.url()), limit: 60)
        let queue = OperationQueue()
        queue.addOperations([operation], waitUntilFinished: true)
        #expect(operation.outcome == "finished 50000")
    }
}

/// `SDWebImageDownloaderOperation`, as far as run loops go.
private final class DownloadOperation: Operation, @unchecked Sendable {
    // `@unchecked`: as Operation itself; what threads share is in the Mutex.

    private struct State {
        var loop: CFRunLoop?
        var connection: NSURLConnection?
        var outcome: String?
    }

    private let request: URLRequest
    private let limit: CFTimeInterval?
    private let state = Mutex(State())

    init(_ request: URLRequest, limit: CFTimeInterval? = nil) {
        self.request = request
        self.limit = limit
    }

    var outcome: String? { state.withLock { $0.outcome } }

    override func main() {
        let collector = Collector { CFRunLoopStop(CFRunLoopGetCurrent()) }
        let connection = NSURLConnection(request: request, delegate: collector, startImmediately: false)
        state.withLock {
            $0.loop = CFRunLoopGetCurrent()
            $0.connection = connection
        }
        connection?.start()
        if let limit {
            CFRunLoopRunInMode(kCFRunLoopDefaultMode, limit, false)
        } else {
            CFRunLoopRun()
        }
        if let connection, collector.end == nil, !isCancelled {
            connection.cancel()
            collector.connection(connection, didFailWithError: NSError(domain: NSURLErrorDomain, code: -1001))
        }
        state.withLock {
            $0.outcome = isCancelled ? "cancelled" : collector.end
            $0.connection = nil
        }
    }

    override func cancel() {
        super.cancel()
        let loop = state.withLock { $0.loop }
        // `performSelector:onThread:`, to the worker.
        CFRunLoopPerformBlock(loop, kCFRunLoopDefaultMode) { [self] in
            state.withLock { $0.connection }?.cancel()
            CFRunLoopStop(CFRunLoopGetCurrent())
        }
        CFRunLoopWakeUp(loop)
    }
}

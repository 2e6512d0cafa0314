import Rondo
import RondoMutex
import RondoTestSupport

/// A server that answers each request with `length` bytes.
func server(length: Int = 50_000) throws -> TestServer {
    try TestServer.answering { _ in String(repeating: "x", count: length) }
}

/// A server that answers no request.
func silentServer() throws -> TestServer {
    try TestServer { peer in
        _ = try peer.readRequest()
        peer.waitForEnd()
    }
}

/// Collects a body, and calls `atEnd` in the terminal callback.
final class Collector: NSObject, NSURLConnectionDataDelegate, Sendable {
    private let state = Mutex((length: 0, end: String?.none))
    private let atEnd: @Sendable () -> Void

    init(atEnd: @escaping @Sendable () -> Void = {}) {
        self.atEnd = atEnd
    }

    /// "finished 50000", "failed -1001"; nil before the end.
    var end: String? { state.withLock { $0.end } }

    func connection(_ connection: NSURLConnection, didReceive data: Data) {
        state.withLock { $0.length += data.count }
    }

    func connectionDidFinishLoading(_ connection: NSURLConnection) {
        state.withLock { $0.end = "finished \($0.length)" }
        atEnd()
    }

    func connection(_ connection: NSURLConnection, didFailWithError error: any Error) {
        state.withLock { $0.end = "failed \((error as NSError).code)" }
        atEnd()
    }
}

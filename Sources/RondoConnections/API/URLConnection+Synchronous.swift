public import FoundationNetworking
public import RondoCore

extension URLConnection {
    /// The maximum size of a body that the class methods collect in memory; a longer body fails with
    /// `dataLengthExceedsMaximum`. Load such bodies with a delegate, piece by piece.
    public static let maximumCollectedBytes = CollectedBody.maximumBytes

    /// Loads `request` while the calling thread waits (rules UC-60 to UC-62).
    ///
    /// Meanwhile the thread's run loop runs in a private mode: none of its other sources, timers and blocks
    /// is served. It also works on a thread whose loop never ran. Redirects are followed.
    ///
    /// A `URLProtocol` that answers the request runs on a thread of Rondo's. If the request is made on that
    /// very thread, as by another protocol for a load without a run loop of the program's, the protocol is
    /// started there at once, and has to answer without timers and sources of its own: none of them fires
    /// before the request has ended (rule UC-66).
    /// - Parameters:
    ///   - response: Set to the last response, if there was one.
    ///   - configuration: Certificate authorities, pins, proxy, cookies, cache and the rest; nil for the
    ///     defaults.
    /// - Throws: A `URLError`.
    @available(*, noasync, message: "It blocks the thread.")
    public class func sendSynchronousRequest(
        _ request: URLRequest, returning response: UnsafeMutablePointer<URLResponse?>?,
        configuration: Configuration? = nil
    ) throws -> Data {
        let collector = Collector { _ in }
        guard let connection = collector.connection(for: request, configuration) else {
            throw URLErrors.error(.unsupportedURL, url: request.url)
        }
        let result = try collector.result(of: connection, in: RunLoop.currentLoop())
        response?.pointee = collector.response
        return try result.get()
    }

    /// Loads `request` in the background and calls `handler` once with the result, as an operation of `queue`
    /// (rule UC-63). The caller needs no run loop; for `OperationQueue.main` the main loop has to run.
    ///
    /// - Parameter configuration: Certificate authorities, pins, proxy, cookies, cache and the rest; nil for
    ///   the defaults.
    public class func sendAsynchronousRequest(
        _ request: URLRequest, queue: OperationQueue, configuration: Configuration? = nil,
        completionHandler handler: @escaping @Sendable (URLResponse?, Data?, (any Error)?) -> Void
    ) {
        let collector = Collector { collector in
            let (response, result) = (collector.response, collector.result)
            DelegateQueue(queue).submit {
                switch result {
                case .success(let data): handler(response, data, nil)
                case .failure(let error): handler(nil, nil, error)
                case nil: break
                }
            }
        }
        guard let connection = collector.connection(for: request, configuration) else {
            let error = URLErrors.error(.unsupportedURL, url: request.url)
            return queue.addOperation { handler(nil, nil, error) }
        }
        connection.driveOnLoader()
        connection.start()
    }
}

extension RunLoop.Mode {
    /// The private mode of all synchronous requests: a mode lives as long as its loop, so a name for each
    /// request would leak.
    static let synchronousRequest = RunLoop.Mode("RondoSynchronousRequest")
}

/// A delegate that keeps everything until the end.
private final class Collector: NSObject, URLConnectionDataDelegate {
    private static let defaults = DelegateDefaults.leavingTLSToSettings()

    private(set) var response: URLResponse?
    private(set) var result: Result<Data, any Error>?
    private var body = CollectedBody()
    private let whenDone: (Collector) -> Void

    init(whenDone: @escaping (Collector) -> Void) {
        self.whenDone = whenDone
    }

    /// A connection with this delegate that has not been started; nil if none can be made for `request`.
    func connection(
        for request: URLRequest, _ configuration: URLConnection.Configuration?
    ) -> URLConnection? {
        let connection = URLConnection(request: request, delegate: self, startImmediately: false)
        connection?.setDefaults(Self.defaults)
        if let configuration { connection?.configuration = configuration }
        return connection
    }

    /// Runs the calling thread's `loop` in a private mode until the connection has ended.
    @available(*, noasync, message: "It blocks the thread.")
    func result(of connection: URLConnection, in loop: RunLoop) throws -> Result<Data, any Error> {
        connection.schedule(in: loop, forMode: .synchronousRequest)
        connection.start()
        while result == nil {
            // The run ends when the connection has been unregistered, or when all runs of the thread are
            // stopped.
            let ended = loop.runUnstoppably(
                in: .synchronousRequest, for: .infinity, returnAfterSourceHandled: false)
            if ended == .finished { break }
        }
        if let result { return result }
        connection.cancel()
        throw URLErrors.error(.noRunLoop, url: connection.originalRequest.url)
    }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        self.response = response
        body.begin(response)
    }

    func connection(_ connection: URLConnection, didReceive data: Data) {
        guard let failure = body.add(data) else { return }
        connection.cancel()
        finish(.failure(URLErrors.error(failure, url: connection.currentRequest.url)))
    }

    func connectionDidFinishLoading(_ connection: URLConnection) { finish(.success(body.data)) }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        finish(.failure(error))
    }

    private func finish(_ result: Result<Data, any Error>) {
        self.result = result
        whenDone(self)
    }
}

public import FoundationNetworking
public import RondoCore

extension URLConnection {
    /// How many bytes of a body the class methods collect in memory; a longer one fails with
    /// `dataLengthExceedsMaximum`. Take it as it comes, with a delegate.
    public static let maximumCollectedBytes = CollectedBody.maximumBytes

    /// Loads `request` while the calling thread waits (rules UC-60 to UC-62).
    ///
    /// The thread's own run loop runs meanwhile in a private mode: none of its sources, timers and blocks is
    /// served, and it works on a thread whose loop never ran. Redirects are followed.
    /// - Parameters:
    ///   - response: Set to the last response, if there was one.
    ///   - configuration: Authorities, pins, proxy, cookies, cache and the rest; nil: as every connection has them.
    /// - Throws: A `URLError`.
    @available(*, noasync, message: "It blocks the thread.")
    public class func sendSynchronousRequest(
        _ request: URLRequest, returning response: UnsafeMutablePointer<URLResponse?>?,
        configuration: Configuration? = nil
    ) throws -> Data {
        let collector = RequestCollector { _ in }
        guard let connection = URLConnection(request: request, delegate: collector, startImmediately: false)
        else {
            throw URLErrors.error(.unsupportedURL, url: request.url)
        }
        if let configuration { connection.configuration = configuration }
        let loop = RunLoop.currentLoop()
        connection.schedule(in: loop, forMode: .synchronousRequest)
        connection.start()
        var wasStopped = false
        while collector.result == nil {
            // Until the connection has left. (After a handled source it could not be told that it was
            // stopped.)
            let ended = loop.run(in: .synchronousRequest, for: .infinity, returnAfterSourceHandled: false)
            if ended == .finished { break }
            if ended == .stopped { wasStopped = true }
        }
        // No other code knows of this run: a stop that ended it was meant for the one further out.
        if wasStopped { loop.stop() }
        guard let result = collector.result else {
            connection.cancel()
            throw URLErrors.error(.noRunLoop, url: request.url)
        }
        response?.pointee = collector.response
        return try result.get()
    }

    /// Loads `request` in the background and hands the end to `handler`, once, as an operation of `queue`
    /// (rule UC-63). The caller needs no run loop; for `OperationQueue.main` the main loop has to run.
    ///
    /// - Parameter configuration: Authorities, pins, proxy, cookies, cache and the rest; nil: as every connection has
    ///   them.
    public class func sendAsynchronousRequest(
        _ request: URLRequest, queue: OperationQueue, configuration: Configuration? = nil,
        completionHandler handler: @escaping @Sendable (URLResponse?, Data?, (any Error)?) -> Void
    ) {
        let collector = RequestCollector { collector in
            let (response, result) = (collector.response, collector.result)
            DelegateQueue(queue).submit {
                switch result {
                case .success(let data): handler(response, data, nil)
                case .failure(let error): handler(nil, nil, error)
                case nil: break
                }
            }
        }
        guard let connection = URLConnection(request: request, delegate: collector, startImmediately: false)
        else {
            let error = URLErrors.error(.unsupportedURL, url: request.url)
            return queue.addOperation { handler(nil, nil, error) }
        }
        if let configuration { connection.configuration = configuration }
        connection.driveOnLoader()
        connection.start()
    }
}

extension RunLoop.Mode {
    /// The one private mode of synchronous requests; a mode lives as long as its loop, so there is one name.
    static let synchronousRequest = RunLoop.Mode("RondoSynchronousRequest")
}

/// A delegate that keeps everything until the end.
final class RequestCollector: NSObject, URLConnectionDataDelegate {
    private(set) var response: URLResponse?
    private(set) var result: Result<Data, any Error>?
    private var body = CollectedBody()
    private let whenDone: (RequestCollector) -> Void

    init(whenDone: @escaping (RequestCollector) -> Void) {
        self.whenDone = whenDone
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

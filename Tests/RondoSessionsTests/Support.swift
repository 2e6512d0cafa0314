import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// A delegate that writes down what it is told.
///
/// The calls read "response 200", "data" (any number of them in a row is one), "complete", "complete -999".
final class Notes: NSObject, URLSessionDataDelegate, Sendable {
    private struct State {
        var calls: [String] = []
        /// The place of each call: the mode of the watched loop, or "another thread".
        var places: [String] = []
        var body = Data()
        var errors: [URLError] = []
        var hook: (@Sendable (String, URLSessionTask?) -> Void)?
        var answer:
            (
                @Sendable (URLSessionTask, @escaping @Sendable (URLSession.ResponseDisposition) -> Void) ->
                    Void
            )?
        var redirect: (@Sendable (URLRequest, @escaping @Sendable (URLRequest?) -> Void) -> Void)?
    }

    private let state = Mutex(State())
    private let loop: RunLoop?

    /// - Parameters:
    ///   - loop: The loop that calls are expected on.
    ///   - hook: Called in each call, after it was noted.
    init(on loop: RunLoop? = nil, hook: (@Sendable (String, URLSessionTask?) -> Void)? = nil) {
        self.loop = loop
        state.withLock { $0.hook = hook }
    }

    /// Sets the answer to `didReceive response`, which is otherwise allow, at once.
    func answerResponses(
        _ answer:
            @escaping @Sendable (
                URLSessionTask, @escaping @Sendable (URLSession.ResponseDisposition) -> Void
            ) -> Void
    ) {
        state.withLock { $0.answer = answer }
    }

    func answerRedirects(
        _ answer: @escaping @Sendable (URLRequest, @escaping @Sendable (URLRequest?) -> Void) -> Void
    ) {
        state.withLock { $0.redirect = answer }
    }

    var calls: [String] { state.withLock { $0.calls } }
    var places: Set<String> { state.withLock { Set($0.places) } }
    var body: Data { state.withLock { $0.body } }
    var text: String { String(decoding: body, as: UTF8.self) }
    var errors: [URLError] { state.withLock { $0.errors } }
    /// So many tasks have had their last call.
    var completed: Int { calls.count { $0.hasPrefix("complete") } }

    private func note(_ call: String, _ task: URLSessionTask?, data: Data? = nil) {
        let hook = state.withLock { state in
            if call != "data" || state.calls.last != call { state.calls.append(call) }
            if let data { state.body.append(data) }
            if let loop {
                state.places.append(
                    loop.isCurrent ? loop.currentMode?.rawValue ?? "no mode" : "another thread")
            }
            return state.hook
        }
        hook?(call, task)
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        note("invalid", nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        note("redirect \(response.statusCode)", task)
        if let answer = state.withLock({ $0.redirect }) { return answer(request, completionHandler) }
        completionHandler(request)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)", dataTask)
        if let answer = state.withLock({ $0.answer }) { return answer(dataTask, completionHandler) }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note("data", dataTask, data: data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error = error as? URLError { state.withLock { $0.errors.append(error) } }
        note((error as? URLError).map { "complete \($0.errorCode)" } ?? "complete", task)
    }
}

/// A delegate that keeps the metrics of tasks, and notes "metrics" and the last call, as in "complete 0".
final class Measuring: NSObject, URLSessionDataDelegate, Sendable {
    let log = EventLog()
    let metrics = Box<[URLSessionTaskMetrics]>([])

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        self.metrics.value.append(metrics)
        log.note("metrics")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        log.note("complete \((error as? URLError)?.errorCode ?? 0)")
    }
}

/// A delegate that notes "waiting" where a task waits for a network, and the last call, as in "complete 0".
final class ConnectivityNotes: NSObject, URLSessionDataDelegate, Sendable {
    let log = EventLog()

    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
        log.note("waiting")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        log.note("complete \((error as? URLError)?.errorCode ?? 0)")
    }
}

extension URLSession {
    /// Loads a request by a data task with a handler, and waits for the handler's call.
    ///
    /// - Returns: The body, which is empty without a response, and the error.
    func load(_ request: URLRequest) throws -> (text: String, error: URLError?) {
        let (text, failure, done) = (Box(""), Box<URLError?>(nil), Latch())
        dataTask(with: request) { data, _, error in
            text.value = String(decoding: data ?? Data(), as: UTF8.self)
            failure.value = error as? URLError
            done.open()
        }.resume()
        try done.wait()
        return (text.value, failure.value)
    }
}

extension Trait where Self == LeavesNothing {
    /// The suite leaves nothing behind but connections that are kept.
    static var leavesNoConnections: Self {
        .leavesNothing {
            // The process keeps it once it is made: a count begins after that.
            _ = URLSession.shared
            URLConnection.closeIdleConnections()
        }
    }
}

extension RunLoop.Mode {
    static let work = RunLoop.Mode("work")
    static let other = RunLoop.Mode("other")
}

extension RunLoop {
    /// Runs `mode` until `condition` holds, asked after each source and every now and then; answers whether
    /// it does.
    @discardableResult
    func run(_ mode: Mode = .default, until condition: () -> Bool) -> Bool {
        let limit = Date(timeIntervalSinceNow: testPatience)
        while !condition() {
            guard limit.timeIntervalSinceNow > 0, run(mode: mode, before: Date(timeIntervalSinceNow: 0.05))
            else { break }
        }
        return condition()
    }
}

/// A server that answers each request of a connection with its number and target.
func echoServer() throws -> TestServer {
    try TestServer { peer in
        while true {
            let request = try peer.readRequest()
            try peer.respond(body: "\(request.method) \(request.target) \(peer.number)")
        }
    }
}

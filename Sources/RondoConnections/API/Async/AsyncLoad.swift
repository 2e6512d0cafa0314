internal import FoundationNetworking
internal import RondoCore
internal import RondoMutex

/// A load for a task that waits for the whole response.
final class AsyncLoad: NSObject, URLConnectionDataDelegate, Sendable {
    typealias Value = (Data, URLResponse)

    private struct State {
        var connection: URLConnection?
        var continuation: CheckedContinuation<Value, any Error>?
        var isCancelled = false
        var response: URLResponse?
        var body = CollectedBody()
    }

    private static let defaults = DelegateDefaults.leavingTLSToSettings()

    private let state = Mutex(State())
    private let configuration: URLConnection.Configuration?

    private let progress: (@Sendable (URLConnection.TransferProgress) -> Void)?

    init(
        _ configuration: URLConnection.Configuration?,
        progress: (@Sendable (URLConnection.TransferProgress) -> Void)? = nil
    ) {
        self.configuration = configuration
        self.progress = progress
    }

    func value(of request: URLRequest) async throws -> Value {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { start(request, $0) }
        } onCancel: {
            let connection = state.withLock { state in
                state.isCancelled = true
                return state.connection
            }
            connection?.cancel()
            end(.failure(URLErrors.error(.cancelled, url: request.url)))
        }
    }

    private func start(_ request: URLRequest, _ continuation: CheckedContinuation<Value, any Error>) {
        let connection = URLConnection(request: request, delegate: self, startImmediately: false)
        connection?.setDefaults(Self.defaults)
        let isWanted = state.withLock { state in
            state.continuation = continuation
            state.connection = connection
            return !state.isCancelled
        }
        guard isWanted else {
            // The connection retains its delegate, this object, until the load ends or is cancelled.
            connection?.cancel()
            return end(.failure(URLErrors.error(.cancelled, url: request.url)))
        }
        guard let connection else {
            return end(.failure(URLErrors.error(.unsupportedURL, url: request.url)))
        }
        if let configuration { connection.configuration = configuration }
        connection.driveOnLoader()
        connection.start()
    }

    /// Resumes the task, once: later calls have no effect.
    private func end(_ result: Result<Value, any Error>) {
        let continuation = state.withLock { state in
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume(with: result)
    }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        state.withLock { state in
            state.response = response
            state.body.begin(response)
        }
    }

    func connection(_ connection: URLConnection, didReceive data: Data) {
        guard let failure = state.withLock({ $0.body.add(data) }) else { return }
        connection.cancel()
        end(.failure(URLErrors.error(failure, url: connection.currentRequest.url)))
    }

    func connection(
        _ connection: URLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
        totalBytesExpectedToWrite: Int
    ) {
        progress?(
            URLConnection.TransferProgress(
                bytes: Int64(totalBytesWritten), total: Int64(totalBytesExpectedToWrite)))
    }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        let value = state.withLock { state in state.response.map { (state.body.data, $0) } }
        if let value { end(.success(value)) }
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) { end(.failure(error)) }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoMutex

/// A download for a task that waits for its end. The file is written on the loader's thread.
final class AsyncDownload: NSObject, URLDownloadDelegate, Sendable {
    private struct State {
        var download: URLDownload?
        var continuation: CheckedContinuation<URLResponse, any Error>?
        var isCancelled = false
        var response: URLResponse?
        var bytes: Int64 = 0
    }

    private let state = Mutex(State())
    private let destination: URL
    private let progress: (@Sendable (URLConnection.TransferProgress) -> Void)?

    init(_ destination: URL, _ progress: (@Sendable (URLConnection.TransferProgress) -> Void)?) {
        self.destination = destination
        self.progress = progress
    }

    func response(
        to request: URLRequest, _ configuration: URLConnection.Configuration?
    ) async throws -> URLResponse {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { start(request, configuration, $0) }
        } onCancel: {
            let download = state.withLock { state in
                state.isCancelled = true
                return state.download
            }
            download?.cancel()
            end(.failure(URLErrors.error(.cancelled, url: request.url)))
        }
    }

    private func start(
        _ request: URLRequest, _ configuration: URLConnection.Configuration?,
        _ continuation: CheckedContinuation<URLResponse, any Error>
    ) {
        let download = URLDownload(request: request, delegate: self, startImmediately: false)
        if let configuration { download.configuration = configuration }
        download.failsOnErrorStatus = true
        download.setDestination(destination.path, allowOverwrite: true)
        let isWanted = state.withLock { state in
            state.continuation = continuation
            state.download = download
            return !state.isCancelled
        }
        guard isWanted else {
            return end(.failure(URLErrors.error(.cancelled, url: request.url)))
        }
        do throws(SystemError) {
            download.schedule(in: try RunLoop.startedLoader(), forMode: .default)
        } catch {
            return end(.failure(URLErrors.noThread(error, url: request.url)))
        }
        download.start()
    }

    /// Resumes the task, once: later calls have no effect.
    private func end(_ result: Result<URLResponse, any Error>) {
        let continuation = state.withLock { state in
            defer {
                state.continuation = nil
                // The download retains this object as its delegate: break the cycle.
                state.download = nil
            }
            return state.continuation
        }
        continuation?.resume(with: result)
    }

    // MARK: Called on the loader's thread

    func download(_ download: URLDownload, didReceive response: URLResponse) {
        state.withLock { state in
            state.response = response
            state.bytes = 0
        }
    }

    func download(_ download: URLDownload, didReceiveDataOfLength length: Int) {
        guard let progress else { return }
        let (bytes, total) = state.withLock { state in
            state.bytes += Int64(length)
            return (state.bytes, state.response?.expectedContentLength ?? -1)
        }
        progress(URLConnection.TransferProgress(bytes: bytes, total: total))
    }

    func downloadDidFinish(_ download: URLDownload) {
        if let response = state.withLock({ $0.response }) { end(.success(response)) }
    }

    func download(_ download: URLDownload, didFailWithError error: any Error) { end(.failure(error)) }
}

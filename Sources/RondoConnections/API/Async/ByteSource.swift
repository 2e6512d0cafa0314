internal import FoundationNetworking
internal import RondoCore
internal import RondoMutex

/// The pieces of a body, between the loader's loop, which brings them, and a task, which takes them.
final class ByteSource: NSObject, URLConnectionDataDelegate, Sendable {
    /// Bytes that wait for the task; from there on the socket is not read.
    static let maximumWaitingBytes = 256 * 1024

    /// Ends the load when the last reference to it is gone.
    final class Handle: Sendable {
        let source: ByteSource

        init(_ source: ByteSource) { self.source = source }
        deinit { source.cancel() }
    }

    private enum End {
        case finished
        case failed(any Error)
    }

    private struct State {
        var connection: URLConnection?
        var url: URL?
        var isCancelled = false
        var response: CheckedContinuation<URLResponse, any Error>?
        var reader: CheckedContinuation<Data?, any Error>?
        var pieces: [Data] = []
        var waiting = 0
        var end: End?
    }

    private let state = Mutex(State())
    private let configuration: URLConnection.Configuration?

    init(_ configuration: URLConnection.Configuration?) { self.configuration = configuration }

    // MARK: The task's side

    func response(to request: URLRequest) async throws -> URLResponse {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { start(request, $0) }
        } onCancel: {
            cancel()
        }
    }

    private func start(_ request: URLRequest, _ continuation: CheckedContinuation<URLResponse, any Error>) {
        let connection = URLConnection(request: request, delegate: self, startImmediately: false)
        let isWanted = state.withLock { state in
            state.response = continuation
            state.url = request.url
            state.connection = connection
            return !state.isCancelled
        }
        guard isWanted else { return cancel() }
        guard let connection else {
            return end(.failed(URLErrors.error(.unsupportedURL, url: request.url)))
        }
        if let configuration { connection.configuration = configuration }
        connection.driveOnLoader()
        connection.start()
    }

    /// The next piece; nil at the end.
    func next() async throws -> Data? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let (answer, connection) = state.withLock {
                    state -> (Result<Data?, any Error>?, URLConnection?) in
                    if !state.pieces.isEmpty {
                        let piece = state.pieces.removeFirst()
                        let wasFull = state.waiting > Self.maximumWaitingBytes
                        state.waiting -= piece.count
                        let isFull = state.waiting > Self.maximumWaitingBytes
                        return (.success(piece), wasFull && !isFull ? state.connection : nil)
                    }
                    switch state.end {
                    case .finished: return (.success(nil), nil)
                    case .failed(let error): return (.failure(error), nil)
                    case nil:
                        state.reader = continuation
                        return (nil, nil)
                    }
                }
                connection?.holdBack(false)
                if let answer { continuation.resume(with: answer) }
            }
        } onCancel: {
            cancel()
        }
    }

    /// What is loaded.
    var url: URL? { state.withLock { $0.url } }

    /// Bytes that wait for the task.
    var waitingBytes: Int { state.withLock { $0.waiting } }

    func cancel() {
        let (connection, url) = state.withLock { state in
            state.isCancelled = true
            state.pieces = []
            return (state.connection, state.url)
        }
        connection?.cancel()
        end(.failed(URLErrors.error(.cancelled, url: url)))
    }

    /// The first end counts.
    private func end(_ end: End) {
        let (response, reader) = state.withLock { state in
            if state.end == nil { state.end = end }
            defer {
                state.response = nil
                state.reader = nil
                state.connection = nil
            }
            return (state.response, state.reader)
        }
        switch end {
        case .finished: reader?.resume(returning: nil)
        case .failed(let error):
            response?.resume(throwing: error)
            reader?.resume(throwing: error)
        }
    }

    // MARK: The loader's side

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        let continuation = state.withLock { state in
            defer { state.response = nil }
            return state.response
        }
        continuation?.resume(returning: response)
    }

    func connection(_ connection: URLConnection, didReceive data: Data) {
        let (reader, isFull) = state.withLock { state -> (CheckedContinuation<Data?, any Error>?, Bool) in
            if let reader = state.reader {
                state.reader = nil
                return (reader, false)
            }
            if state.isCancelled { return (nil, false) }
            state.pieces.append(data)
            state.waiting += data.count
            return (nil, state.waiting > Self.maximumWaitingBytes)
        }
        if isFull {
            connection.holdBack(true)
            // Taken meanwhile?
            let isStillFull = state.withLock { $0.waiting > Self.maximumWaitingBytes }
            if !isStillFull { connection.holdBack(false) }
        }
        reader?.resume(returning: data)
    }

    func connectionDidFinishLoading(_ connection: URLConnection) { end(.finished) }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) { end(.failed(error)) }
}

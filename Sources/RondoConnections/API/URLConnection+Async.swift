public import FoundationNetworking
public import RondoCore
internal import RondoMutex

// For tasks, which have no thread and no run loop of their own: the load is driven by `RunLoop.loader`.

extension URLConnection {
    /// Loads `request` and returns its whole body; a longer one than `maximumCollectedBytes` fails.
    ///
    /// Redirects are followed, and an error status is a response. A task that is cancelled cancels the load.
    /// - Throws: A `URLError`; `.cancelled` if the task was cancelled.
    public static func data(for request: URLRequest) async throws -> (Data, URLResponse) {
        try await AsyncLoad().value(of: request)
    }

    /// Loads a URL; see `data(for:)`.
    public static func data(from url: URL) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url))
    }

    /// Sends `body` with `request` in place of what that has for a body, and returns the response's body.
    ///
    /// The method is the request's: a URLRequest's is GET unless it was set.
    /// - Throws: A `URLError`; `.cancelled` if the task was cancelled.
    public static func upload(for request: URLRequest, from body: Data) async throws -> (Data, URLResponse) {
        var upload = request
        upload.httpBody = body
        return try await data(for: upload)
    }

    /// Loads `request` and returns once the response is there; the body is read byte by byte as it comes.
    ///
    /// Bytes that are not taken hold the server back. The load ends when the sequence and its iterators are
    /// let go, and when the task that iterates is cancelled.
    /// - Throws: A `URLError`; `.cancelled` if the task was cancelled.
    public static func bytes(for request: URLRequest) async throws -> (Bytes, URLResponse) {
        let source = ByteSource()
        let response = try await source.response(to: request)
        return (Bytes(handle: ByteSource.Handle(source)), response)
    }

    /// Loads a URL; see `bytes(for:)`.
    public static func bytes(from url: URL) async throws -> (Bytes, URLResponse) {
        try await bytes(for: URLRequest(url: url))
    }

    /// The bytes of a body, as they come. To be iterated once.
    public struct Bytes: AsyncSequence, Sendable {
        public typealias Element = UInt8

        let handle: ByteSource.Handle

        public func makeAsyncIterator() -> Iterator { Iterator(handle: handle) }

        public struct Iterator: AsyncIteratorProtocol {
            let handle: ByteSource.Handle
            private var piece = Data()
            private var position = 0

            init(handle: ByteSource.Handle) { self.handle = handle }

            /// - Throws: A `URLError` where the load fails; `.cancelled` if the task was cancelled.
            public mutating func next() async throws -> UInt8? {
                if position == piece.endIndex {
                    guard let next = try await handle.source.next() else { return nil }
                    piece = next
                    position = piece.startIndex
                }
                defer { position += 1 }
                return piece[position]
            }
        }
    }
}

/// One load for a task that waits for all of it.
private final class AsyncLoad: NSObject, URLConnectionDataDelegate, Sendable {
    typealias Value = (Data, URLResponse)

    private struct State {
        var connection: URLConnection?
        var continuation: CheckedContinuation<Value, any Error>?
        var isCancelled = false
        var response: URLResponse?
        var body = Data()
    }

    private let state = Mutex(State())

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
        let isWanted = state.withLock { state in
            state.continuation = continuation
            state.connection = connection
            return !state.isCancelled
        }
        guard isWanted else {
            // It keeps its delegate until it ends or is cancelled, and the delegate keeps it.
            connection?.cancel()
            return end(.failure(URLErrors.error(.cancelled, url: request.url)))
        }
        guard let connection else {
            return end(.failure(URLErrors.error(.unsupportedURL, url: request.url)))
        }
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
            state.body = Data()
        }
    }

    func connection(_ connection: URLConnection, didReceive data: Data) {
        let limit = URLConnection.maximumCollectedBytes
        let isTooMuch = state.withLock { state in
            if state.body.count + data.count > limit { return true }
            state.body.append(data)
            return false
        }
        guard isTooMuch else { return }
        connection.cancel()
        end(.failure(URLErrors.error(.collectedTooMuch(limit), url: connection.currentRequest.url)))
    }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        let value = state.withLock { state in state.response.map { (state.body, $0) } }
        if let value { end(.success(value)) }
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) { end(.failure(error)) }
}

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

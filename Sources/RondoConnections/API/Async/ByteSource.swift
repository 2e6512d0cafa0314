package import FoundationNetworking
package import RondoCore
internal import RondoMutex

/// A load that delivers its bytes to a byte source. Any thread may call its methods.
package protocol ByteFlow: Sendable {
    func start()
    /// Stops reading from the server, or continues to read.
    func holdBack(_ holds: Bool)
    func cancel()
}

/// A queue of the pieces of a body, between the loader's thread, which adds them, and a task, which takes
/// them.
package final class ByteSource: Sendable {
    /// The maximum of bytes that wait for the task.
    package static let maximumWaitingBytes = 256 * 1024
    /// With more waiting bytes than this the socket is not read: a piece has at most `ReceiveBuffer.capacity`
    /// bytes.
    static let pausesAbove = maximumWaitingBytes - ReceiveBuffer.capacity

    /// Ends the load when the last reference to the handle is gone.
    package final class Handle: Sendable {
        let source: ByteSource

        package init(_ source: ByteSource) { self.source = source }
        deinit { source.cancel() }
    }

    private enum End {
        case finished
        case failed(any Error)
    }

    private struct State {
        var flow: (any ByteFlow)?
        var response: CheckedContinuation<URLResponse, any Error>?
        /// The tasks that wait for a piece: one, unless a program reads in several tasks at once. Then each
        /// piece goes to one of them.
        var readers: [CheckedContinuation<Data?, any Error>] = []
        var pieces: [Data] = []
        var waiting = 0
        var end: End?
    }

    /// The URL that is loaded.
    let url: URL?
    private let state = Mutex(State())

    package init(url: URL?) { self.url = url }

    // MARK: The task's side

    /// Starts `flow`, unless the task was cancelled, and waits for its response.
    package nonisolated(nonsending) func response(of flow: any ByteFlow) async throws -> URLResponse {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let end = state.withLock { state in
                    guard state.end == nil else { return state.end }
                    state.response = continuation
                    state.flow = flow
                    return nil
                }
                guard let end else { return flow.start() }
                flow.cancel()
                continuation.resume(throwing: error(of: end))
            }
        } onCancel: {
            cancel()
        }
    }

    /// Waits for the next piece; nil at the end.
    nonisolated(nonsending) func next() async throws -> Data? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let (answer, flow) = state.withLock { state -> (Result<Data?, any Error>?, (any ByteFlow)?) in
                    if !state.pieces.isEmpty {
                        let piece = state.pieces.removeFirst()
                        let wasFull = state.waiting > Self.pausesAbove
                        state.waiting -= piece.count
                        let isFull = state.waiting > Self.pausesAbove
                        return (.success(piece), wasFull && !isFull ? state.flow : nil)
                    }
                    switch state.end {
                    case .finished: return (.success(nil), nil)
                    case .failed(let error): return (.failure(error), nil)
                    case nil:
                        state.readers.append(continuation)
                        return (nil, nil)
                    }
                }
                flow?.holdBack(false)
                if let answer { continuation.resume(with: answer) }
            }
        } onCancel: {
            cancel()
        }
    }

    /// Bytes that wait for the task.
    package var waitingBytes: Int { state.withLock { $0.waiting } }

    /// The tasks that wait for a piece.
    package var readerCount: Int { state.withLock { $0.readers.count } }

    func cancel() {
        let cancelled = End.failed(URLErrors.error(.cancelled, url: url))
        let flow = state.withLock { state in
            // Bytes are lost, which must not look like the end of the body.
            if !state.pieces.isEmpty, case .finished = state.end { state.end = cancelled }
            state.pieces = []
            state.waiting = 0
            return state.flow
        }
        end(cancelled)
        flow?.cancel()
    }

    /// Ends the source; only the first end counts. Tasks are resumed after the lock is released.
    private func end(_ end: End) {
        let (response, readers, flow) = state.withLock { state in
            if state.end == nil { state.end = end }
            defer {
                state.response = nil
                state.readers = []
                state.flow = nil
            }
            return (state.response, state.readers, state.flow)
        }
        withExtendedLifetime(flow) {}
        response?.resume(throwing: error(of: end))
        for reader in readers {
            switch end {
            case .finished: reader.resume(returning: nil)
            case .failed(let error): reader.resume(throwing: error)
            }
        }
    }

    /// The error for a task that waits for a response when the load ends.
    private func error(of end: End) -> any Error {
        switch end {
        case .finished: URLErrors.error(.badServerResponse, "The load ended without a response.", url: url)
        case .failed(let error): error
        }
    }

    // MARK: The load's side

    package func received(_ response: URLResponse) {
        let continuation = state.withLock { state in state.response.take() }
        continuation?.resume(returning: response)
    }

    package func received(_ data: Data) {
        let (reader, flow) = state.withLock {
            state -> (CheckedContinuation<Data?, any Error>?, (any ByteFlow)?) in
            if !state.readers.isEmpty { return (state.readers.removeFirst(), nil) }
            guard state.end == nil else { return (nil, nil) }
            // Small pieces become one: a server may send any number of them.
            if let last = state.pieces.indices.last,
                state.pieces[last].count + data.count <= ReceiveBuffer.inPlaceThreshold
            {
                state.pieces[last].append(data)
            } else {
                state.pieces.append(data)
            }
            state.waiting += data.count
            return (nil, state.waiting > Self.pausesAbove ? state.flow : nil)
        }
        if let flow {
            flow.holdBack(true)
            // The task may have taken pieces since.
            let isStillFull = state.withLock { $0.waiting > Self.pausesAbove }
            if !isStillFull { flow.holdBack(false) }
        }
        reader?.resume(returning: data)
    }

    package func finished() { end(.finished) }

    package func failed(_ error: any Error) { end(.failed(error)) }
}

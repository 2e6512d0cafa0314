internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex

/// The wait of an async function for the outcome of a session's task or for its own cancellation, whichever
/// is first.
///
/// No continuation is resumed while the lock is held (rule US-82).
final class TaskWait<Value: Sendable>: Sendable {
    private enum State {
        /// The function does not wait yet, and there is no outcome.
        case early
        case waiting(CheckedContinuation<Value, any Error>)
        /// The outcome arrived before the function began to wait.
        case kept(Result<Value, any Error>)
        case over
    }

    /// The sender of the outcome.
    ///
    /// If the thread of the session's run loop ends, the session releases its tasks without a call. Then this
    /// object goes too, and the function fails.
    final class Promise: Sendable {
        private let wait: TaskWait

        fileprivate init(_ wait: TaskWait) { self.wait = wait }

        deinit { wait.end(.failure(URLErrors.loopHasEnded(url: wait.url))) }

        /// - Returns: False if the function has its outcome already.
        @discardableResult
        func keep(_ outcome: Result<Value, any Error>) -> Bool { wait.end(outcome) }
    }

    private let url: URL?
    private let state = Mutex(State.early)

    init(url: URL?) { self.url = url }

    /// Makes the sender of the outcome. Only the task's completion handler may own it.
    func promise() -> Promise { Promise(self) }

    /// Calls `resume`, unless the Swift task was cancelled before, and waits for the outcome. `cancel` is
    /// called when the Swift task is cancelled.
    nonisolated(nonsending) func outcome(
        resume: @Sendable () -> Void, cancel: @escaping @Sendable () -> Void
    ) async throws -> Value {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let kept = state.withLock { state -> Result<Value, any Error>? in
                    if case .kept(let outcome) = state {
                        state = .over
                        return outcome
                    }
                    state = .waiting(continuation)
                    return nil
                }
                if let kept { continuation.resume(with: kept) } else { resume() }
            }
        } onCancel: {
            end(.failure(URLErrors.error(.cancelled, url: url)))
            cancel()
        }
    }

    @discardableResult
    private func end(_ outcome: Result<Value, any Error>) -> Bool {
        let (isFirst, continuation) = state.withLock {
            state -> (Bool, CheckedContinuation<Value, any Error>?) in
            switch state {
            case .early:
                state = .kept(outcome)
                return (true, nil)
            case .waiting(let continuation):
                state = .over
                return (true, continuation)
            case .kept, .over: return (false, nil)
            }
        }
        continuation?.resume(with: outcome)
        return isFirst
    }
}

extension TaskWait {
    /// A completion handler for tasks that yield either a value with a response, or an error.
    func handler<Part: Sendable>() -> @Sendable (Part?, URLResponse?, (any Error)?) -> Void
    where Value == (Part, URLResponse) {
        let promise = promise()
        return { [url] part, response, error in
            if let part, let response, error == nil {
                promise.keep(.success((part, response)))
            } else {
                promise.keep(.failure(URLErrors.urlError(error, url: url)))
            }
        }
    }
}

extension TaskWait where Value == (URL, URLResponse) {
    /// A completion handler for downloads. It renames the file, which would be deleted when the handler
    /// returns.
    func fileHandler() -> @Sendable (URL?, URLResponse?, (any Error)?) -> Void {
        let promise = promise()
        return { [url] file, response, error in
            guard let file, let response, error == nil else {
                promise.keep(.failure(URLErrors.urlError(error, url: url)))
                return
            }
            let name = "rondo-download-\(UUID().uuidString)"
            let kept = file.deletingLastPathComponent().appendingPathComponent(name)
            if rename(file.path, kept.path) == 0 {
                // The function was cancelled meanwhile, so the file has no owner.
                if !promise.keep(.success((kept, response))) { unlink(kept.path) }
            } else {
                let reason = String(cString: strerror(errno))
                promise.keep(
                    .failure(
                        URLErrors.error(
                            .cannotMoveFile, "The file of the download could not be kept: \(reason)", url: url
                        )))
            }
        }
    }
}

extension URLErrors {
    /// The error of a task whose session's run loop has lost its thread, so that no call can be made.
    static func loopHasEnded(url: URL?) -> URLError {
        error(.cancelled, "The thread of the session's run loop has ended, and its tasks with it.", url: url)
    }

    /// `error` as a `URLError`. A `URLProtocol` of the program may fail with any error, which then is the
    /// underlying error (rule US-81).
    static func urlError(_ error: (any Error)?, url: URL?) -> URLError {
        if let error = error as? URLError { return error }
        return self.error(
            .unknown, "The load failed: \(error?.localizedDescription ?? "no reason was given").", url: url,
            cause: error.map { $0 as NSError })
    }
}

internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex

/// What an async function waits for: the outcome of a task, or its own cancellation; the first one counts.
///
/// No continuation is resumed under the lock (rule US-82).
final class TaskWait<Value: Sendable>: Sendable {
    private enum State {
        /// The function has not begun to wait.
        case early
        case waiting(CheckedContinuation<Value, any Error>)
        /// It was over before the function began to wait.
        case kept(Result<Value, any Error>)
        case over
    }

    /// The side that owes the outcome. A session on a run loop whose thread has ended lets go of it without a word: then the
    /// function fails.
    final class Promise: Sendable {
        private let wait: TaskWait

        fileprivate init(_ wait: TaskWait) { self.wait = wait }

        deinit { wait.end(.failure(URLErrors.loopHasEnded(url: wait.url))) }

        /// - Returns: False: the function has its outcome already.
        @discardableResult
        func keep(_ outcome: Result<Value, any Error>) -> Bool { wait.end(outcome) }
    }

    private let url: URL?
    private let state = Mutex(State.early)

    init(url: URL?) { self.url = url }

    /// To be held by what tells the outcome, and by nothing else.
    func promise() -> Promise { Promise(self) }

    /// Resumes the session's task, unless the function's own was cancelled, and waits.
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
    /// The handler of a task that has either a value with a response, or an error.
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
    /// The same of a download, whose file would be removed when the handler returns: it gets a name of its own.
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
                // Cancelled meanwhile: the file is of no use any more.
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
    /// A session's loop whose thread has ended makes no calls.
    static func loopHasEnded(url: URL?) -> URLError {
        error(.cancelled, "The thread of the session's run loop has ended, and its tasks with it.", url: url)
    }

    /// What a `URLProtocol` of the program says may be any error: then it is the cause (rule US-81).
    static func urlError(_ error: (any Error)?, url: URL?) -> URLError {
        if let error = error as? URLError { return error }
        return self.error(
            .unknown, "The load failed: \(error?.localizedDescription ?? "no reason was given").", url: url,
            cause: error.map { $0 as NSError })
    }
}

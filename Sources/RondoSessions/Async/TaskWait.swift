internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// The wait of an async function for the outcome of a session's task or for its own cancellation, whichever
/// is first.
struct TaskWait<Value: Sendable>: Sendable {
    private let url: URL?
    private let first = SingleOutcome<Result<Value, any Error>>()

    init(url: URL?) { self.url = url }

    /// Calls `resume`, unless the Swift task was cancelled before, and waits for the outcome. `cancel` is
    /// called when the Swift task is cancelled.
    nonisolated(nonsending) func outcome(
        resume: @Sendable () -> Void, cancel: @escaping @Sendable () -> Void
    ) async throws -> Value {
        let outcome = await withTaskCancellationHandler {
            await first.wait(onceWaiting: resume)
        } onCancel: {
            first.end(.failure(URLErrors.error(.cancelled, url: url)))
            cancel()
        }
        // The session has released its tasks without a call.
        guard let outcome else { throw URLErrors.loopHasEnded(url: url) }
        return try outcome.get()
    }
}

extension TaskWait {
    /// A completion handler for tasks that yield either a value with a response, or an error.
    func handler<Part: Sendable>() -> @Sendable (Part?, URLResponse?, (any Error)?) -> Void
    where Value == (Part, URLResponse) {
        let sender = first.sender()
        return { [url] part, response, error in
            if let part, let response, error == nil {
                sender.send(.success((part, response)))
            } else {
                sender.send(.failure(URLErrors.urlError(error, url: url)))
            }
        }
    }
}

extension TaskWait where Value == (URL, URLResponse) {
    /// A completion handler for downloads. It renames the file, which would be deleted when the handler
    /// returns.
    func fileHandler() -> @Sendable (URL?, URLResponse?, (any Error)?) -> Void {
        let sender = first.sender()
        return { [url] file, response, error in
            guard let file, let response, error == nil else {
                sender.send(.failure(URLErrors.urlError(error, url: url)))
                return
            }
            // Not the name of a partial file, which may be removed later (rule US-64): this one is the
            // program's.
            let name = "rondo-file-\(UUID().uuidString)"
            let kept = file.deletingLastPathComponent().appendingPathComponent(name)
            if rename(file.path, kept.path) == 0 {
                // The function was cancelled meanwhile, so the file has no owner.
                if !sender.send(.success((kept, response))) { unlink(kept.path) }
            } else {
                let reason = String(cString: strerror(errno))
                sender.send(
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
            cause: error)
    }
}

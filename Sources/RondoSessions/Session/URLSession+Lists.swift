internal import RondoCore

extension URLSession {
    /// The tasks that were resumed and have not ended, by their identifiers (rule US-79).
    public var allTasks: [URLSessionTask] {
        get async {
            await HandlerWait.value({ getAllTasks(completionHandler: $0) }, or: [])
        }
    }

    /// The same tasks, sorted into data, upload and download tasks.
    public var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async {
            await HandlerWait.value(
                { give in getTasksWithCompletionHandler { give(($0, $1, $2)) } }, or: ([], [], []))
        }
    }

    /// Does what `reset(completionHandler:)` does, and returns when that would call its handler.
    public nonisolated(nonsending) func reset() async {
        await HandlerWait.value({ give in reset { give(()) } }, or: ())
    }

    /// Does what `flush(completionHandler:)` does, and returns when that would call its handler.
    public nonisolated(nonsending) func flush() async {
        await HandlerWait.value({ give in flush { give(()) } }, or: ())
    }
}

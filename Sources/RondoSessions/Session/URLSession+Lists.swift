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
}

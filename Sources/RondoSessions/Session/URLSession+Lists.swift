internal import RondoCore

extension URLSession {
    /// The tasks that were resumed and have not ended, by their identifiers (rule US-79).
    public var allTasks: [URLSessionTask] {
        get async {
            await LastAnswer.of({ getAllTasks(completionHandler: $0) }, or: [])
        }
    }

    /// The same tasks, sorted into data, upload and download tasks.
    public var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async {
            await LastAnswer.of(
                { answer in getTasksWithCompletionHandler { answer(($0, $1, $2)) } }, or: ([], [], []))
        }
    }
}

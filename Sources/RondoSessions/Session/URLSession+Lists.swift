internal import RondoCore

extension URLSession {
    /// The tasks that were resumed and have not ended, by their identifiers (rule US-79).
    public var allTasks: [URLSessionTask] {
        get async {
            await withCheckedContinuation { continuation in
                getAllTasks { continuation.resume(returning: $0) }
            }
        }
    }

    /// The same tasks, sorted into data, upload and download tasks.
    public var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async {
            await withCheckedContinuation { continuation in
                getTasksWithCompletionHandler { continuation.resume(returning: ($0, $1, $2)) }
            }
        }
    }
}

public import RondoCore

/// A task that saves the response's body in a file (rule US-62).
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {
    // `@unchecked Sendable` for the same reason as its superclass.

    /// Cancels the task and passes the data with which a new task can continue the download (rule US-63).
    ///
    /// The partial file stays in the folder of temporary files until a task that was made from the data has
    /// ended, or until a later process removes it, after ten days at the earliest (rule US-64).
    ///
    /// - Parameter completionHandler: Called once, on the delegate queue or the session's run loop, before
    ///   the last call of the task. It gets nil if the server does not announce that downloads can be
    ///   continued, nothing has arrived, or the task had ended. The data contain the header fields of the
    ///   request.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        work.cancel(taskIdentifier, givingResumeData: completionHandler)
    }

    /// Cancels the task as `cancel(byProducingResumeData:)` does, and returns the resume data.
    public func cancelByProducingResumeData() async -> Data? {
        await HandlerWait.value({ cancel(byProducingResumeData: $0) }, or: nil)
    }
}

/// The `userInfo` key of a failed download's error for the data that
/// `URLSession.downloadTask(withResumeData:)` takes.
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

extension URLError {
    /// The resume data of a failed download; nil if the download cannot be continued (rule US-63).
    ///
    /// The partial files that failed downloads of a process leave are at most 64, with 4 GiB in all; then the
    /// oldest are removed, but not the last one. A download from resume data whose file is gone starts again
    /// (rule US-64).
    public var downloadTaskResumeData: Data? { userInfo[NSURLSessionDownloadTaskResumeData] as? Data }
}

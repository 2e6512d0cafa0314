public import RondoCore

/// A task whose response goes to a file.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {
    // `@unchecked Sendable`: as its superclass.

    /// Ends the task as `cancel()` does, and says how another one can go on where it has stopped (rule US-63).
    ///
    /// The file so far stays in the folder of temporary files until a task that was made of the data has ended.
    ///
    /// - Parameter completionHandler: Called once, where the session's calls come, before the task's own end is told. Nil: the
    ///   server does not say that it can continue, nothing has come, or the task had ended. The data hold the request's
    ///   fields.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        work.cancel(taskIdentifier, givingResumeData: completionHandler)
    }

    /// The same.
    public func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in
            cancel(byProducingResumeData: { continuation.resume(returning: $0) })
        }
    }
}

/// Where the `userInfo` of a failed download's error holds what `URLSession.downloadTask(withResumeData:)` takes.
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

extension URLError {
    /// Of a download that has failed: what it takes to go on with it. Nil: it cannot be resumed.
    public var downloadTaskResumeData: Data? { userInfo[NSURLSessionDownloadTaskResumeData] as? Data }
}

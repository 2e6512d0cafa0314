public import RondoCore

/// A task that sends a body, and whose response comes as data.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {
    // `@unchecked Sendable`: as its superclass.

    /// Ends the task as `cancel()` does. Uploads cannot be resumed (rule US-61).
    ///
    /// - Parameter completionHandler: Called once, with nil, where the session's calls come.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        work.cancel(taskIdentifier, givingResumeData: completionHandler)
    }

    /// The same.
    ///
    /// - Returns: Nil.
    public func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in
            cancel(byProducingResumeData: { continuation.resume(returning: $0) })
        }
    }
}

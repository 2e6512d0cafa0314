public import RondoCore

/// A task that sends a body and delivers the response's body as data (rules US-59 to US-61).
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {
    // `@unchecked Sendable` for the same reason as its superclass.

    /// Cancels the task. Uploads cannot be resumed (rule US-61).
    ///
    /// - Parameter completionHandler: Called once, with nil, on the delegate queue or the session's run
    ///   loop.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        work.cancel(taskIdentifier, givingResumeData: completionHandler)
    }

    /// Cancels the task, and returns nil: uploads cannot be resumed (rule US-61).
    public func cancelByProducingResumeData() async -> Data? {
        await HandlerWait.value({ cancel(byProducingResumeData: $0) }, or: nil)
    }
}

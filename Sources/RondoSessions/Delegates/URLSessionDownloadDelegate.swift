public import RondoCore

/// The delegate of download tasks, in addition to the methods of `URLSessionTaskDelegate`.
///
/// Methods are called on the session's delegate queue, or on the thread of its run loop.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// The body is complete in the file at `location`, which is deleted when the call returns, unless the
    /// delegate has moved it (rule US-62).
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// A piece of the body was written to the file. Optional.
    ///
    /// - Parameters:
    ///   - bytesWritten: Bytes of this piece.
    ///   - totalBytesWritten: Bytes so far.
    ///   - totalBytesExpectedToWrite: Bytes in all; -1 if not known.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

    /// A download continues where an earlier one has stopped (rule US-64). Optional.
    ///
    /// - Parameters:
    ///   - fileOffset: Bytes that the file has already.
    ///   - expectedTotalBytes: Bytes in all; -1 if not known.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64)
}

// The default implementations, which make the methods optional (rule US-5).
extension URLSessionDownloadDelegate {
    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        noteDefault(.wrote)
    }

    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        noteDefault(.resumed)
    }
}

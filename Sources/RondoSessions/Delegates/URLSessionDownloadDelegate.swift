public import RondoCore

/// Is told of download tasks, beside what `URLSessionTaskDelegate` is told.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// The body is complete in a file, which is deleted when the call returns, unless it was moved.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// A piece of the body was written.
    ///
    /// - Parameters:
    ///   - bytesWritten: Bytes of this piece.
    ///   - totalBytesWritten: Bytes so far.
    ///   - totalBytesExpectedToWrite: Bytes in all; -1: not known. By default, nothing.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

    /// A download that was broken off goes on behind what is there already. By default, nothing.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64)
}

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

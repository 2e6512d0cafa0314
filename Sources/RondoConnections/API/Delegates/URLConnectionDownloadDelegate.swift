public import RondoCore

/// The delegate of a connection that writes the body to a file (rule UC-67).
///
/// A connection whose delegate conforms to it writes the body to a temporary file as it comes, and delivers
/// no data. The delegate may conform to `URLConnectionDataDelegate` as well: its methods about redirects,
/// responses, body streams and the cache are called as they are without a file.
public protocol URLConnectionDownloadDelegate: URLConnectionDelegate {
    /// Bytes of the body were written to the file.
    ///
    /// - Parameter expectedTotalBytes: 0 if the length is unknown.
    func connection(
        _ connection: URLConnection, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        expectedTotalBytes: Int64)

    /// The connection to the server broke in the middle of the body, and another one continues at the same
    /// byte: the server has confirmed by a strong validator that the file has not changed.
    func connectionDidResumeDownloading(
        _ connection: URLConnection, totalBytesWritten: Int64, expectedTotalBytes: Int64)

    /// The file is complete. This is the last call, and the method is required.
    ///
    /// - Parameter destinationURL: A temporary file that is removed when this returns: move it.
    func connectionDidFinishDownloading(_ connection: URLConnection, destinationURL: URL)
}

extension URLConnectionDownloadDelegate {
    public func connection(
        _ connection: URLConnection, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        expectedTotalBytes: Int64
    ) {}

    public func connectionDidResumeDownloading(
        _ connection: URLConnection, totalBytesWritten: Int64, expectedTotalBytes: Int64
    ) {}
}

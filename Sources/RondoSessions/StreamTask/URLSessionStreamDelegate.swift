internal import RondoCore
public import RondoStreams

/// The delegate of stream tasks, in addition to the methods of `URLSessionTaskDelegate` (rule US-89). All
/// methods are optional.
///
/// Methods are called on the session's delegate queue, or on the thread of its run loop.
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {
    /// The reading side is closed: a read found that the server has closed its side, or the program called
    /// `closeRead()`. Called once.
    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask)

    /// The writing side is closed by `closeWrite()`; everything written before was sent. Called once.
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask)

    /// Never called: Linux does not report better routes.
    func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask)

    /// Hands over the connection as two unopened streams, after `captureStreams()`. This is the last call of
    /// the task (rule US-89).
    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask,
        didBecome inputStream: RondoStreams.InputStream, outputStream: RondoStreams.OutputStream)
}

// The default implementations, which make the methods optional (rule US-5).
extension URLSessionStreamDelegate {
    public func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) {
        noteDefault(.readClosed)
    }

    public func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) {
        noteDefault(.writeClosed)
    }

    public func urlSession(
        _ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask
    ) {}

    public func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask,
        didBecome inputStream: RondoStreams.InputStream, outputStream: RondoStreams.OutputStream
    ) {
        noteDefault(.captured)
    }
}

internal import RondoCore
public import RondoStreams

/// Is told of stream tasks, beside what `URLSessionTaskDelegate` is told; all methods are optional.
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {
    /// The server has closed its side, as a read has found, or the program has by `closeRead()`. Once.
    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask)

    /// The program has closed its side by `closeWrite()`: what it had written before is sent. Once.
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask)

    /// Never called: Linux does not tell of better routes.
    func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask)

    /// The connection as two unopened streams, after `captureStreams()`. The last call of the task (rule US-89).
    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask,
        didBecome inputStream: RondoStreams.InputStream, outputStream: RondoStreams.OutputStream)
}

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

internal import FoundationNetworking
internal import RondoConnections
public import RondoCore

/// A TCP connection, on which the program may begin TLS (rule US-89).
///
/// Reads are performed in the order of their calls, and so are writes; both at the same time. The connection
/// is served only in the modes of its session. It is read only as far as reads ask for: a server that sends
/// more is held back. Operations wait before `resume()` and fail after the end of the task. Any thread may
/// use it.
///
/// The task ends when both sides are closed, when it is cancelled, or by `captureStreams()`. The connection
/// goes through the proxy of the session's configuration, if there is one. An HTTP proxy gets the name and
/// the password that the configuration gives, as Basic; the delegate is not asked for them.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {
    // `@unchecked Sendable` for the same reason as its superclass.

    private let shared: StreamTaskState

    init(_ parts: Parts, _ shared: StreamTaskState) {
        self.shared = shared
        super.init(parts)
    }

    /// Makes a task without a session: its operations fail with `URLError.cancelled`. For classes that
    /// replace stream tasks in tests.
    @available(*, deprecated, message: "Stream tasks are made by a session.")
    public override init() {
        shared = StreamTaskState(host: "", port: 0, schedule: .queue(DelegateQueue()))
        super.init()
        shared.endBeforeStart(URLErrors.error(.cancelled, "The stream task has no session.", url: nil))
    }

    // MARK: - Reading and writing

    /// Reads as soon as `minBytes` bytes are there or the server has closed its side.
    ///
    /// - Parameters:
    ///   - minBytes: A number below 1 counts as 1.
    ///   - maxBytes: The most that is delivered; a number below 1 counts as 1. Further bytes are left for the
    ///     next read.
    ///   - timeout: In seconds; 0 means no limit. It begins again when the task is resumed. A read that can
    ///     be performed when a pass of the session's modes notices its timeout succeeds. After a timeout,
    ///     bytes that have arrived are left for the next read.
    ///   - completionHandler: Called once, on the delegate queue or the session's run loop: with the bytes
    ///     and true if no more will come, or with an error: `URLError.timedOut`, or the reason why the
    ///     connection ended.
    open func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
        completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
    ) {
        _ = shared.read(minimum: minBytes, maximum: maxBytes, timeout: timeout, completionHandler)
    }

    /// Reads as `readData(ofMinLength:maxLength:timeout:completionHandler:)` does, and returns the bytes and
    /// true if no more will come. If the Swift task is cancelled, a read that was not performed is withdrawn
    /// and no byte is lost.
    ///
    /// - Throws: A `URLError`; `.cancelled` if the Swift task was cancelled.
    open nonisolated(nonsending) func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval
    ) async throws -> (Data?, Bool) {
        try await OperationWait<(Data?, Bool)>.value { outcome in
            shared.read(minimum: minBytes, maximum: maxBytes, timeout: timeout) { data, isAtEnd, error in
                outcome(error.map { .failure($0) } ?? .success((data, isAtEnd)))
            }
        } cancel: { [shared] in
            shared.cancelRead($0)
        }
    }

    /// Writes all of `data`.
    ///
    /// - Parameters:
    ///   - timeout: In seconds; 0 means no limit. After a write that was sent in part when its timeout
    ///     expired, nothing more is written: all later writes fail.
    ///   - completionHandler: Called once, on the delegate queue or the session's run loop: with nil when
    ///     the kernel has taken all bytes, or with an error.
    open func write(
        _ data: Data, timeout: TimeInterval, completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
        _ = shared.write(data, timeout: timeout, completionHandler)
    }

    /// Writes as `write(_:timeout:completionHandler:)` does, and returns when the kernel has taken all bytes.
    /// If the Swift task is cancelled, a write that was not begun is withdrawn.
    ///
    /// - Throws: A `URLError`; `.cancelled` if the Swift task was cancelled.
    open nonisolated(nonsending) func write(_ data: Data, timeout: TimeInterval) async throws {
        try await OperationWait<Void>.value { outcome in
            shared.write(data, timeout: timeout) { outcome($0.map { .failure($0) } ?? .success(())) }
        } cancel: { [shared] in
            shared.cancelWrite($0)
        }
    }

    // MARK: - The connection

    /// Hands the connection to the delegate as an `InputStream` and an `OutputStream`, after all earlier
    /// operations, and ends the task. Later operations fail.
    open func captureStreams() { shared.add(.capture) }

    /// Closes the writing side after all earlier writes, so that the server reads the end of the stream.
    /// Later writes fail.
    open func closeWrite() { shared.closeWrite() }

    /// Closes the reading side after all earlier reads. Later reads get the end of the stream.
    open func closeRead() { shared.closeRead() }

    /// Begins TLS as a client, after all earlier operations; later ones are encrypted. The delegate is asked
    /// to trust the server, and for a client certificate, as for https. The TLS settings are those of
    /// `URLSessionConfiguration.connection`.
    open func startSecureConnection() { shared.add(.secure) }

    /// Does nothing but log a warning: TLS 1.3 has no way back to plain text, and plain text after TLS could
    /// come from any machine on the way.
    @available(*, deprecated, message: "TLS cannot be ended on an open connection: close it.")
    open func stopSecureConnection() {
        Log.sessions.warning("A stream task's TLS cannot be ended on an open connection: nothing was done.")
    }

    // MARK: - Bytes

    /// Bytes that were read from the connection.
    open override var countOfBytesReceived: Int64 { shared.state.withLock { $0.received } }
    /// Bytes that the kernel has taken.
    open override var countOfBytesSent: Int64 { shared.state.withLock { $0.sent } }
}

internal import FoundationNetworking
public import RondoCore

/// A TCP connection, with TLS from when the program wants it.
///
/// Reads are done in the order of their calls, and so are writes; both at the same time. The connection is served in the modes
/// of its session and at no other time. It is read only for reads that were asked for: a server that sends more than that is
/// held back. Before `resume()` operations wait; when the task is over they fail. Any thread may use it (rule US-89).
///
/// The task ends when both sides are closed, when it is cancelled, or by `captureStreams()`. It goes by the proxy of its
/// session's configuration, if that names one.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {
    // `@unchecked Sendable`: as its superclass.

    private let link: StreamLink

    init(_ parts: Parts, _ link: StreamLink) {
        self.link = link
        super.init(parts)
    }

    // MARK: - Reading and writing

    /// Reads as soon as `minBytes` are there, or the server has closed its side.
    ///
    /// - Parameters:
    ///   - minBytes: At least 1; a lower number counts as 1.
    ///   - maxBytes: The most that is handed over. Further bytes are for the next read.
    ///   - timeout: In seconds; it begins anew where the task is resumed. 0: as long as it takes. What can be done when the
    ///     session's modes notice that it is over is done. Bytes that have come meanwhile are for the next read.
    ///   - completionHandler: Called once, where the session's calls come: with the bytes and whether nothing comes behind them,
    ///     or with an error: `URLError.timedOut`, or why the connection has ended.
    open func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
        completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
    ) {
        _ = link.read(minimum: minBytes, maximum: maxBytes, timeout: timeout, completionHandler)
    }

    /// The same. A read that was not answered is taken back when the Swift task is cancelled; no byte is lost by that.
    open func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval
    ) async throws -> (Data?, Bool) {
        let turn = AsyncTurn<(Data?, Bool)>()
        return try await turn.value { outcome in
            link.read(minimum: minBytes, maximum: maxBytes, timeout: timeout) { data, isAtEnd, error in
                outcome(error.map { .failure($0) } ?? .success((data, isAtEnd)))
            }
        } cancel: { [link] in
            link.cancelRead($0)
        }
    }

    /// Writes all of `data`.
    ///
    /// - Parameters:
    ///   - timeout: In seconds, as of a read. A write of which a part was sent when its time is over is the last one: those
    ///     behind it fail as well.
    ///   - completionHandler: Called once, where the session's calls come: with nil when the kernel has taken all of it, or
    ///     with an error.
    open func write(
        _ data: Data, timeout: TimeInterval, completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
        _ = link.write(data, timeout: timeout, completionHandler)
    }

    /// The same. A write that was not begun is taken back when the Swift task is cancelled.
    open func write(_ data: Data, timeout: TimeInterval) async throws {
        let turn = AsyncTurn<Void>()
        try await turn.value { outcome in
            link.write(data, timeout: timeout) { outcome($0.map { .failure($0) } ?? .success(())) }
        } cancel: { [link] in
            link.cancelWrite($0)
        }
    }

    // MARK: - The connection

    /// When all is done that was asked for before, the delegate gets the connection as an `InputStream` and an `OutputStream`,
    /// and the task is over. What comes later fails.
    open func captureStreams() { link.add(.capture) }

    /// Closes the writing side when all is written that was handed over before: the server reads to the end of it. Later
    /// writes fail.
    open func closeWrite() { link.closeWrite() }

    /// Closes the reading side when all reads are answered that were asked for before; later ones get the end.
    open func closeRead() { link.closeRead() }

    /// Secures the connection, as a client, when all is done that was asked for before; what comes later is encrypted. The
    /// delegate is asked whether to trust the server, and for an identity, as for https; the settings are those of
    /// `URLSessionConfiguration.connection`.
    open func startSecureConnection() { link.add(.secure) }

    /// Not possible: TLS 1.3 has no way back to plain text, and what the server says after it could come from any machine on the way.
    @available(*, deprecated, message: "TLS cannot be ended on an open connection: close it.")
    open func stopSecureConnection() {
        Log.sessions.warning("A stream task's TLS cannot be ended on an open connection: nothing was done.")
    }

    // MARK: - Bytes

    /// Bytes that were read.
    open override var countOfBytesReceived: Int64 { link.state.withLock { $0.received } }
    /// Bytes that the kernel has taken.
    open override var countOfBytesSent: Int64 { link.state.withLock { $0.sent } }
}

internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// Passes the content of a task to the reader of `bytes(for:)`.
///
/// The task owns it. If the thread of the session's run loop ends, the session releases its tasks without a
/// call: then the `deinit` here fails the reader.
final class ByteFeed: Sendable {
    let source: ByteSource
    private let url: URL?

    init(_ source: ByteSource, url: URL?) {
        self.source = source
        self.url = url
    }

    deinit { source.failed(URLErrors.loopHasEnded(url: url)) }

    /// - Parameter error: Nil if the whole body has arrived.
    func end(_ error: (any Error)?) {
        if let error { source.failed(URLErrors.urlError(error, url: url)) } else { source.finished() }
    }
}

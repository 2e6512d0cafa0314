internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// Brings the content of a task to the reader of `bytes(for:)`. It is held by the task: a session on a run loop whose thread
/// has ended lets go of it without a word, and the reader fails.
final class ByteFeed: Sendable {
    let source: ByteSource
    private let url: URL?

    init(_ source: ByteSource, url: URL?) {
        self.source = source
        self.url = url
    }

    deinit { source.failed(URLErrors.loopHasEnded(url: url)) }

    /// - Parameter error: Nil: all has come.
    func end(_ error: (any Error)?) {
        if let error { source.failed(URLErrors.urlError(error, url: url)) } else { source.finished() }
    }
}

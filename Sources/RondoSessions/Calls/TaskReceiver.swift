internal import FoundationNetworking
internal import RondoCore

/// Takes what a task brings.
enum TaskReceiver: Sendable {
    /// The delegate, piece by piece.
    case delegate
    /// A completion handler, which gets all of it at the end.
    case data(@Sendable (Data?, URLResponse?, (any Error)?) -> Void)
    /// A completion handler of a download, which gets the file.
    case download(@Sendable (URL?, URLResponse?, (any Error)?) -> Void)
    /// The reader of `bytes(for:)`, as it comes.
    case bytes(ByteFeed)

    var isDelegate: Bool { if case .delegate = self { true } else { false } }

    var feed: ByteFeed? { if case .bytes(let feed) = self { feed } else { nil } }

    /// The task has failed before anything of it could come; completion handlers are called by `driver`.
    func fail(_ error: URLError, on driver: SessionDriver) {
        switch self {
        case .delegate: break
        case .data(let handler): driver.perform { handler(nil, nil, error) }
        case .download(let handler): driver.perform { handler(nil, nil, error) }
        case .bytes(let feed): feed.end(error)
        }
    }
}

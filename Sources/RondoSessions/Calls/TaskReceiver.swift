internal import FoundationNetworking
internal import RondoCore

/// The receiver of a task's response and content.
enum TaskReceiver: Sendable {
    /// The delegate; it gets the content piece by piece.
    case delegate
    /// A completion handler, called with the whole content at the end.
    case data(@Sendable (Data?, URLResponse?, (any Error)?) -> Void)
    /// A download's completion handler, called with the file at the end.
    case download(@Sendable (URL?, URLResponse?, (any Error)?) -> Void)
    /// The reader of `bytes(for:)`; it gets the content piece by piece.
    case bytes(ByteFeed)

    var isDelegate: Bool { if case .delegate = self { true } else { false } }

    var feed: ByteFeed? { if case .bytes(let feed) = self { feed } else { nil } }

    /// Reports that the task failed before any of its content arrived. Completion handlers are called by
    /// `schedule`.
    func fail(_ error: URLError, on schedule: SessionSchedule) {
        switch self {
        case .delegate: break
        case .data(let handler): schedule.perform { handler(nil, nil, error) }
        case .download(let handler): schedule.perform { handler(nil, nil, error) }
        case .bytes(let feed): feed.end(error)
        }
    }
}

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
    func fail(_ error: URLError, of work: TaskWork, on schedule: SessionSchedule) {
        let call: @Sendable () -> Void
        switch self {
        case .delegate: return
        case .data(let handler): call = { handler(nil, nil, error) }
        case .download(let handler): call = { handler(nil, nil, error) }
        case .bytes(let feed): return feed.end(error)
        }
        work.noteHandler(waits: true)
        schedule.perform {
            work.noteHandler(waits: false)
            call()
        }
    }
}

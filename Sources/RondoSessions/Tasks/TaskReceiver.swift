internal import FoundationNetworking
internal import RondoCore

/// Who takes what a task brings.
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
}

/// What kind of task it is.
enum TaskKind: Sendable {
    case data, upload, download, webSocket
}

internal import RondoCore
internal import RondoMutex

/// The calls `…InBackgroundAndNotify` in progress, at most one for each handle.
enum FileHandleActivities {
    private struct Entry {
        /// Used for comparison only: the loop's source retains the activity.
        let activity: ObjectIdentifier
        let kind: FileHandleActivity.Kind
        weak var source: RunLoop.Source?
    }

    /// Keyed by handle. Each activity retains its handle, so no other handle can have its address meanwhile.
    private static let entries = Mutex<[ObjectIdentifier: Entry]>([:])

    static func begin(_ activity: FileHandleActivity, of handle: FileHandle, _ source: RunLoop.Source) {
        let entry = Entry(activity: ObjectIdentifier(activity), kind: activity.kind, source: source)
        let other = entries.withLock { entries -> FileHandleActivity.Kind? in
            if let other = entries[ObjectIdentifier(handle)] { return other.kind }
            entries[ObjectIdentifier(handle)] = entry
            return nil
        }
        guard let other else { return }
        // Not a precondition, which loses its message in release builds.
        fatalError(
            "FileHandle.\(activity.kind.rawValue) was called while \(other.rawValue) is under way on the same "
                + "handle: wait for its notification, and call again in the observer.")
    }

    static func end(of handle: FileHandle, _ activity: FileHandleActivity) {
        entries.withLock { entries in
            guard entries[ObjectIdentifier(handle)]?.activity == ObjectIdentifier(activity) else { return }
            entries[ObjectIdentifier(handle)] = nil
        }
    }

    /// Cancels the call in progress on `handle`, without a notification.
    static func cancel(on handle: FileHandle) { source(of: handle)?.invalidate() }

    /// The source of the call in progress on `handle`.
    static func source(of handle: FileHandle) -> RunLoop.Source? {
        entries.withLock { $0[ObjectIdentifier(handle)]?.source }
    }
}

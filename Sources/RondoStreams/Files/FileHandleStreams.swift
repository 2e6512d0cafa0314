internal import RondoCore
internal import RondoMutex

/// The open streams of file handles, needed when a handle is closed.
enum FileHandleStreams {
    private struct Entry {
        /// Used for comparison: in an object's deinit the weak reference is nil already, the identity is not.
        let identity: ObjectIdentifier
        weak var input: HandleInput?
    }

    /// Keyed by handle. Each stream retains its handle while it is in the table, so no other handle can have
    /// its address meanwhile.
    private static let entries = Mutex<[ObjectIdentifier: [Entry]]>([:])

    static func insert(_ input: HandleInput, of handle: FileHandle) {
        let entry = Entry(identity: ObjectIdentifier(input), input: input)
        entries.withLock { $0[ObjectIdentifier(handle), default: []].append(entry) }
    }

    static func remove(_ input: HandleInput, of handle: FileHandle) {
        entries.withLock { entries in
            let rest =
                entries[ObjectIdentifier(handle)]?.filter { $0.identity != ObjectIdentifier(input) } ?? []
            entries[ObjectIdentifier(handle)] = rest.isEmpty ? nil : rest
        }
    }

    /// Ends the streams of a handle that is about to be closed.
    static func end(of handle: FileHandle) {
        let inputs = entries.withLock { $0[ObjectIdentifier(handle)]?.compactMap(\.input) ?? [] }
        for input in inputs { input.handleWasClosed() }
    }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// A response that is to be written to a `URLCache` of the program.
///
/// `@unchecked Sendable`: a URLCache has a lock of its own, and the response is not changed any more.
struct ForeignWrite: ResponseWrite, @unchecked Sendable {
    let store: ForeignStore
    let cached: CachedURLResponse
    /// Nil for the response of a protocol of the program.
    let entry: CacheEntry?
    let url: URL
    /// The note by which other loads see that this response is written; nil if they are to write it again.
    let note: ForeignStore.Note?

    func noteAsWritten() { if let note { store.noteAsWritten(note) } }

    /// Foundation archives each response that goes to the disk, 5 ms for a small one, and a program's own
    /// class may do anything.
    var takesTime: Bool {
        guard type(of: store.cache) == URLCache.self else { return true }
        return cached.storagePolicy == .allowed && store.cache.diskCapacity > 0
    }

    func perform() {
        guard let entry else { return store.write(cached, url) }
        store.write(cached, entry, url)
    }
}

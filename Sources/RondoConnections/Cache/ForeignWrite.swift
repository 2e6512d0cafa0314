internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// A response that is to be written to a `URLCache` of the program's.
///
/// `@unchecked Sendable`: a URLCache has a lock of its own, and the response is not changed any more.
struct ForeignWrite: ResponseWrite, @unchecked Sendable {
    let store: ForeignStore
    let cached: CachedURLResponse
    /// Nil for the response of a protocol of the program.
    let entry: CacheEntry?
    let url: URL
    /// By which another load sees that the same is written; nil: it is written again.
    let note: ForeignStore.Note?

    func noteAsWritten() { if let note { store.noteAsWritten(note) } }

    /// Foundation archives what goes to a disk, 5 ms for a small response, and a program's own class may do anything.
    var takesTime: Bool {
        guard type(of: store.cache) == URLCache.self else { return true }
        return cached.storagePolicy == .allowed && store.cache.diskCapacity > 0
    }

    func perform() {
        guard let entry else { return store.write(cached, url) }
        store.write(cached, entry, url)
    }
}

internal import Dispatch
internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import Synchronization

/// What is to be done about a response that the delegate wants to be stored.
enum CacheDecision {
    /// It is not to be kept.
    case nothing
    /// The same was written a moment ago, or is about to be.
    case isWritten
    case write(CacheWrite)
}

/// A response that is to be stored, with all that is known of it.
///
/// `@unchecked Sendable`: a URLCache has a lock of its own, and what is stored is not changed any more: whoever
/// performs it is the only one who has it, but for readers.
struct CacheWrite: @unchecked Sendable {
    let store: CacheStore
    let cached: CachedURLResponse
    /// Nil for the response of a protocol of the program.
    let entry: CacheEntry?
    let url: URL

    /// Whether somebody had better wait for it elsewhere: Foundation archives what goes to a disk, 5 ms for a small
    /// response, and a program's own class may do anything.
    var takesTime: Bool {
        guard type(of: store.cache) == URLCache.self else { return true }
        return cached.storagePolicy == .allowed && store.cache.diskCapacity > 0
    }

    /// Nobody wants it any more.
    func cancel() { store.forgetWritten(url) }

    func callAsFunction() {
        guard let entry else { return store.write(cached, url) }
        store.write(cached, entry, url)
    }
}

/// Stores responses, and takes out what is valid no longer, one after the other, so that no run loop waits while that is
/// done. (What is kept is still looked up on the loop that asks.)
///
/// A load whose response is being stored has nothing else left to do but to say that it has finished, which it does
/// when the response is there. So what waits here is bounded by the loads under way, and those that were cancelled
/// in the end; and whoever has heard of the end of a load finds what it has stored.
final class CacheWriter: Sendable {
    static let shared = CacheWriter()

    private let queue = DispatchQueue(label: "rondo.cache")
    /// A dispatch queue hands closures on behind the thread sanitizer's back.
    private let waiting = Mutex<[@Sendable () -> Void]>([])

    /// Has `body` called after what was added before.
    func add(_ body: @escaping @Sendable () -> Void) {
        waiting.withLock { $0.append(body) }
        queue.async { [self] in
            waiting.withLock { $0.first }?()
            // What it holds, a load and objects of the program, is not released under the lock.
            let done = waiting.withLock { $0.removeFirst() }
            withExtendedLifetime(done) {}
        }
    }

    /// Something is being stored or waits for it.
    var isBusy: Bool { waiting.withLock { !$0.isEmpty } }
}

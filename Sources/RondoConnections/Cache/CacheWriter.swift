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
    let store: ForeignStore
    let cached: CachedURLResponse
    /// Nil for the response of a protocol of the program.
    let entry: CacheEntry?
    let url: URL
    /// For who would write the same again; nil: it is written again.
    let note: ForeignStore.Note?

    /// It is written, or waits for that.
    func noteAsWritten() { if let note { store.noteAsWritten(note) } }

    /// Whether somebody had better wait for it elsewhere: Foundation archives what goes to a disk, 5 ms for a small
    /// response, and a program's own class may do anything.
    var takesTime: Bool {
        guard type(of: store.cache) == URLCache.self else { return true }
        return cached.storagePolicy == .allowed && store.cache.diskCapacity > 0
    }

    func callAsFunction() {
        guard let entry else { return store.write(cached, url) }
        store.write(cached, entry, url)
    }
}

/// Stores responses, and takes out what is valid no longer, one after the other, so that no run loop waits while that is
/// done. (What is kept is still looked up on the loop that asks.)
///
/// A load whose response is being stored has nothing else left to do but to say that it has finished, which it does
/// when the response is there: a program that has heard of the end of a load finds what it has stored. Of many responses
/// that come at once the first `maximumWaiting` are stored and the others are not, so that no load waits long.
final class CacheWriter: Sendable {
    static let shared = CacheWriter()

    private let state = Mutex(State())

    private struct State {
        var waiting: [@Sendable () -> Void] = []
        var isBusy = false
        /// Those that wait and the one that is being called.
        var count = 0
    }

    /// Responses that may wait while one is stored. Foundation's cache takes 5 to 100 ms for each.
    static let maximumWaiting = 8

    /// Another response would wait too long.
    var isFull: Bool { state.withLock { $0.count > Self.maximumWaiting } }

    /// Has `body` called after what was added before.
    func add(_ body: @escaping @Sendable () -> Void) {
        let begins = state.withLock { state in
            defer { state.isBusy = true }
            state.waiting.append(body)
            state.count += 1
            return !state.isBusy
        }
        guard begins else { return }
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.cache") { [self] in work() }
        } catch {
            // Without a thread the run loop waits: loads wait for this before they end.
            work()
        }
    }

    private func work() {
        while true {
            var taken = state.withLock { state in
                defer { state.waiting = [] }
                state.isBusy = !state.waiting.isEmpty
                return state.waiting
            }
            if taken.isEmpty { return }
            taken.reverse()
            // What each holds, a load and objects of the program, is released as soon as it was called.
            while let body = taken.popLast() {
                body()
                state.withLock { $0.count -= 1 }
            }
        }
    }

    /// Something is being stored or waits for it.
    var isBusy: Bool { state.withLock { $0.isBusy } }
}

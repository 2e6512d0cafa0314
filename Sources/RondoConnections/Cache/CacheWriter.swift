internal import RondoCore
internal import RondoMutex

/// A queue of changes to caches, which one thread makes in their order, so that no run loop waits for them.
///
/// Look-ups are still made on the loop that asks. A load whose response is being stored has nothing else left to do but to
/// say that it has finished, which it does when the response is there: a program that has heard of the end of a load finds
/// what it has stored. Of many responses that come at once the first `maximumWaiting` are stored and the others are not, so
/// that no load waits long.
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

    /// True if another response would wait too long.
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
            // A closure may hold a load and objects of the program: each is released as soon as it was called.
            while let body = taken.popLast() {
                body()
                state.withLock { $0.count -= 1 }
            }
        }
    }

    /// True while a change is being made or waits.
    var isBusy: Bool { state.withLock { $0.isBusy } }
}

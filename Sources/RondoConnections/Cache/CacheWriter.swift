internal import RondoCore
internal import RondoMutex

/// A queue of changes to caches, which one thread makes in order, so that no run loop waits for them.
///
/// Look-ups are still made on the loop that asks. A load reports its end only after its response has been
/// stored, so that a program that has been told of the end finds what the load stored. If many responses come
/// at once, only the first `maximumWaiting` of them are stored, so that no load waits long.
final class CacheWriter: Sendable {
    static let shared = CacheWriter()

    private let state = Mutex(State())

    private struct State {
        var waiting: [(isResponse: Bool, body: @Sendable () -> Void)] = []
        var isBusy = false
        /// The responses that wait to be stored, with the one that is being stored.
        var responses = 0
    }

    /// Responses that may wait while one is stored. Foundation's cache takes 5 to 100 ms for each.
    static let maximumWaiting = 8

    /// Whether another response would wait too long.
    var isFull: Bool { state.withLock { $0.responses > Self.maximumWaiting } }

    /// Calls `body` on the writer's thread, after everything that was added before.
    ///
    /// - Parameter isResponse: Whether it stores a response.
    func add(isResponse: Bool = false, _ body: @escaping @Sendable () -> Void) {
        let begins = state.withLock { state in
            defer { state.isBusy = true }
            state.waiting.append((isResponse, body))
            if isResponse { state.responses += 1 }
            return !state.isBusy
        }
        guard begins else { return }
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.cache") { [self] in work() }
        } catch {
            // No thread could be started: the run loop does the work itself, because loads wait for it before
            // they end.
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
            // A closure may hold a load and objects of the program: each is released as soon as it has been
            // called.
            while let (isResponse, body) = taken.popLast() {
                body()
                if isResponse { state.withLock { $0.responses -= 1 } }
            }
        }
    }

    /// Whether a change is being made or waits.
    var isBusy: Bool { state.withLock { $0.isBusy } }
}

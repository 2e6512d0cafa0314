// What there is to tell of a child, as a value: its end, its stops, its completion, each once and in that order.
//
//     runs ── ended ──> ended, outputs open ── last output ended, or grace over ──> complete
//
// The outputs may also end first. A callback that is not set is not called, and counts as told.
//
// Several loops may have the news at once. One thread tells at a time: another one leaves it what there is, and goes.

internal import Glibc
internal import RondoCore

/// What has happened to a child and was not told yet.
struct ChildNews: Sendable {
    enum Item: Equatable {
        case ended(ChildStatus)
        case stopped(ChildStop)
        case completed(ChildStatus)
    }

    /// A task waits for the end, wherever the child is scheduled.
    var isAwaited = false
    /// The piped outputs that have not met their end.
    var openOutputs = 0

    /// A thread waits for stops.
    private var watchesStops = false
    private(set) var isStopping = false
    private var status: ChildStatus?
    private var owedStop: ChildStop?
    private var isEndTold = false
    private var isCompletionTold = false
    private var hasNoGrace = false
    /// The thread that tells, and how many of its callbacks are under way: one may run its loop again.
    private var teller: (thread: pthread_t, depth: Int)?

    /// - Returns: Whether outputs are open.
    mutating func ended(_ status: ChildStatus) -> Bool {
        self.status = status
        return openOutputs > 0
    }

    /// - Returns: Whether that completes the child.
    mutating func outputEnded() -> Bool {
        openOutputs -= 1
        return openOutputs == 0 && status != nil && !hasNoGrace
    }

    /// - Returns: Whether that completes the child.
    mutating func graceIsOver() -> Bool {
        defer { hasNoGrace = true }
        return openOutputs > 0 && !hasNoGrace
    }

    /// - Returns: False: it is being stopped already, or has ended.
    mutating func beginStopping() -> Bool {
        guard !isStopping, status == nil else { return false }
        isStopping = true
        return true
    }

    /// - Returns: False: a thread waits for stops already.
    mutating func beginWatchingStops() -> Bool {
        defer { watchesStops = true }
        return !watchesStops
    }

    mutating func stopped(_ stop: ChildStop) { owedStop = stop }

    /// The child has ended, and so have its outputs, as far as they are waited for.
    var isComplete: Bool { status != nil && (openOutputs == 0 || hasNoGrace) }

    /// Everything was told.
    var isOver: Bool { isEndTold && isCompletionTold }

    /// The calling thread begins to tell, and asks for the next item until there is none.
    ///
    /// - Returns: False: another thread does.
    mutating func beginTelling() -> Bool {
        let thread = pthread_self()
        guard let teller else {
            teller = (thread, 1)
            return true
        }
        guard pthread_equal(teller.thread, thread) != 0 else { return false }
        self.teller = (thread, teller.depth + 1)
        return true
    }

    /// The next item for the thread that tells, which counts as told from here on; nil: the thread tells no more.
    mutating func next() -> Item? {
        if let item = nextOwed() { return item }
        teller = teller.flatMap { $0.depth > 1 ? ($0.thread, $0.depth - 1) : nil }
        return nil
    }

    private mutating func nextOwed() -> Item? {
        if let stop = owedStop.take(), status == nil { return .stopped(stop) }
        guard let status else { return nil }
        if !isEndTold {
            isEndTold = true
            return .ended(status)
        }
        guard isComplete, !isCompletionTold else { return nil }
        isCompletionTold = true
        return .completed(status)
    }
}

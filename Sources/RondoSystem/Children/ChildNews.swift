// What there is to tell of a child, as a value: its end, its stops, its completion, each once and in that order.
//
//     runs ── ended ──> ended, outputs open ── last output ended, or grace over ──> complete
//
// The outputs may also end first. A callback that is not set is not called, and counts as told.

internal import RondoCore

extension Child {
    /// A change of a child by job control.
    public enum Stop: Hashable, Sendable {
        /// By this signal, SIGSTOP or SIGTSTP as a rule.
        case stopped(Int32)
        case continued
    }
}

/// What has happened to a child and was not told yet.
struct ChildNews: Sendable {
    enum Item: Equatable {
        case ended(Child.Status)
        case stopped(Child.Stop)
        case completed(Child.Status)
    }

    var onEnd: (@Sendable (Child, Child.Status) -> Void)?
    var onCompletion: (@Sendable (Child, Child.Status) -> Void)?
    var onStop: (@Sendable (Child, Child.Stop) -> Void)?
    /// A thread waits for stops.
    var watchesStops = false
    /// A task waits for the end, wherever the child is scheduled.
    var isAwaited = false
    /// The piped outputs that have not met their end.
    var openOutputs = 0

    private(set) var isStopping = false
    private var status: Child.Status?
    private var owedStop: Child.Stop?
    private var isEndTold = false
    private var isCompletionTold = false
    private var hasNoGrace = false

    /// - Returns: Whether outputs are open.
    mutating func ended(_ status: Child.Status) -> Bool {
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

    mutating func stopped(_ stop: Child.Stop) { owedStop = stop }

    private var isComplete: Bool { status != nil && (openOutputs == 0 || hasNoGrace) }

    /// Everything was told.
    var isOver: Bool { isEndTold && isCompletionTold }

    /// The next item to be told, which counts as told from here on.
    mutating func next() -> Item? {
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

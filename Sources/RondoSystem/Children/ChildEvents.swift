// The callbacks of a child that are due, as a value: its end, its stops, its completion, each once and in
// that order.
//
//     runs ── ended ──> ended, outputs open ── last output ended, or grace over ──> complete
//
// The outputs may also end first. A callback that is not set is skipped and counts as made.
//
// Several loops may find callbacks at once. One thread makes them; any other leaves its callbacks to that
// thread's loop and returns.

internal import RondoCore

/// The events of a child that were not reported yet.
struct ChildEvents: Sendable {
    enum Item: Equatable {
        case ended(ChildStatus)
        case stopped(ChildStop)
        case completed(ChildStatus)
    }

    /// True if a Swift task awaits the end, even if the child is scheduled nowhere.
    var isAwaited = false
    /// The number of piped outputs that have not ended.
    var openOutputs = 0
    /// The loops and modes in which the child was scheduled and not unscheduled, as the program has named
    /// them. A child that is in default and under `.common` is in default until it has left both.
    private var modes: [LoopMode] = []

    /// True if a thread waits for stops.
    private var watchesStops = false
    private var status: ChildStatus?
    private var unreportedStop: ChildStop?
    private var isEndReported = false
    private var isCompletionReported = false
    private var hasNoGrace = false
    private var reporter = CallingThread()

    /// The action of a thread that has found callbacks to make.
    enum Turn {
        /// It makes them.
        case begun
        /// Another thread makes them. The caller tells its loop, where a nested run may be waiting for them;
        /// nil if that was done already.
        case left(to: RunLoop?)
    }

    mutating func enter(_ mode: LoopMode) {
        modes.removeAll { $0 == mode }
        if !isOver { modes.append(mode) }
    }

    /// Leaves the loops whose threads have ended: a child may outlive many of them.
    mutating func leaveEndedLoops() { modes.removeAll { !$0.loop.isAlive } }

    /// - Returns: The other modes in which the program has scheduled the child. Its sources stay in a mode
    ///   that one of these names.
    mutating func leave(_ mode: LoopMode) -> [LoopMode] {
        modes.removeAll { $0 == mode }
        return modes
    }

    /// - Returns: True if outputs are still open.
    mutating func ended(_ status: ChildStatus) -> Bool {
        self.status = status
        return openOutputs > 0
    }

    /// - Returns: True if the child is complete now.
    mutating func outputEnded() -> Bool {
        openOutputs -= 1
        return openOutputs == 0 && status != nil && !hasNoGrace
    }

    /// - Returns: True if the child is complete now.
    mutating func graceIsOver() -> Bool {
        defer { hasNoGrace = true }
        return openOutputs > 0 && !hasNoGrace
    }

    /// - Returns: False if a thread waits for stops already.
    mutating func beginWatchingStops() -> Bool {
        defer { watchesStops = true }
        return !watchesStops
    }

    mutating func stopped(_ stop: ChildStop) { unreportedStop = stop }

    /// True if the child has ended, and its outputs have ended or are not awaited any more.
    var isComplete: Bool { status != nil && (openOutputs == 0 || hasNoGrace) }

    /// True if the end and the completion were reported.
    var isOver: Bool { isEndReported && isCompletionReported }

    /// Lets the calling thread make callbacks, if no other one does. It then calls `next()` until that
    /// returns nil.
    ///
    /// - Parameter loop: The loop of the calling thread.
    mutating func beginReporting(on loop: RunLoop) -> Turn {
        reporter.begin(on: loop) ? .begun : .left(to: reporter.ask())
    }

    /// Records that the loop to which callbacks were left knows of them, or holds the child in no mode.
    ///
    /// - Returns: Whether callbacks are still due.
    mutating func endAsking() -> Bool {
        reporter.endAsking()
        return hasUnreported
    }

    /// The next event for the thread that makes callbacks; it counts as reported. Nil ends the thread's turn.
    mutating func next() -> Item? {
        if let item = nextUnreported() { return item }
        reporter.end()
        return nil
    }

    private var hasUnreported: Bool {
        guard status != nil else { return unreportedStop != nil }
        return !isEndReported || isComplete && !isCompletionReported
    }

    private mutating func nextUnreported() -> Item? {
        if let stop = unreportedStop.take(), status == nil { return .stopped(stop) }
        guard let status else { return nil }
        if !isEndReported {
            isEndReported = true
            return .ended(status)
        }
        guard isComplete, !isCompletionReported else { return nil }
        isCompletionReported = true
        modes = []
        return .completed(status)
    }
}

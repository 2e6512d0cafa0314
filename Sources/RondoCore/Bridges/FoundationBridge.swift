/// One of three ways to serve the thread's Foundation run loop beside this loop.
///
/// A pass calls its loop's bridge where the pass would sleep; in a loop without a bridge that is one
/// comparison. The bridge belongs to the loop's thread. The loop knows only this protocol, not the three
/// types that conform to it.
protocol FoundationBridge: AnyObject {
    /// The line about the bridge in `RunLoop.debugDescription`.
    var summary: String { get }

    /// Detects work of the main queue that Foundation's loop has done; nil if it does none while this loop
    /// sleeps.
    var mainQueueUse: MainQueueUse? { get }

    /// Whether Foundation's loop is to run in place of this loop's sleep in the current mode.
    var borrowsSleep: Bool { get }

    /// Waits for an event of `modeLoop`, and serves Foundation's loop meanwhile.
    ///
    /// - Parameter instant: When the wait ends at the latest.
    /// - Returns: False if the loop has to sleep by itself.
    func sleep(_ modeLoop: ModeLoop, until instant: LoopInstant) -> Bool

    /// Serves Foundation's loop if that is overdue because this loop has not slept. Called in each look at
    /// the kernel.
    func serveIfOverdue()

    /// Called when a run of this loop has ended.
    func activationEnded()

    /// Called when the loop no longer uses this bridge.
    func end()
}

extension FoundationBridge {
    var mainQueueUse: MainQueueUse? { nil }
    var borrowsSleep: Bool { false }
    func sleep(_ modeLoop: ModeLoop, until instant: LoopInstant) -> Bool { false }
    func serveIfOverdue() {}
    func activationEnded() {}
}

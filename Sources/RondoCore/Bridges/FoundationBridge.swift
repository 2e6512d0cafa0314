/// How Foundation's run loop of a thread is served beside this one: one of the three bridges.
///
/// The passes of a loop ask it where they would sleep; a loop without a bridge pays a comparison there. It belongs to the
/// loop's thread. The loop knows this protocol alone, and none of the three.
protocol FoundationBridge: AnyObject {
    /// For `RunLoop.debugDescription`.
    var summary: String { get }

    /// Tells of work of the main queue that Foundation's loop has done; nil: none of it is done while this loop sleeps.
    var mainQueueUse: MainQueueUse? { get }

    /// Whether this loop, about to sleep in its current mode, lets Foundation's loop run instead.
    var borrowsSleep: Bool { get }

    /// Waits for an event of `modeLoop`, and serves Foundation's loop meanwhile.
    ///
    /// - Parameter instant: When the wait ends at the latest.
    /// - Returns: False where the loop is to sleep by itself.
    func sleep(_ modeLoop: ModeLoop, until instant: LoopInstant) -> Bool

    /// To be called in each look at the kernel: serves Foundation's loop if that is due although this loop has not slept.
    func serveIfOverdue()

    /// A run of this loop has ended.
    func activationEnded()

    /// The loop has let go of this bridge.
    func end()
}

extension FoundationBridge {
    var mainQueueUse: MainQueueUse? { nil }
    var borrowsSleep: Bool { false }
    func sleep(_ modeLoop: ModeLoop, until instant: LoopInstant) -> Bool { false }
    func serveIfOverdue() {}
    func activationEnded() {}
}

/// A running activation as other threads see it.
struct RunningActivation {
    let mode: Int
    /// Whether it ends after one source.
    let returnsAfterSource: Bool
    /// Whether `stop()` applies to it, rather than to the activation outside it.
    let isStoppable: Bool
    var isStopped = false
    var tookWakeUp = false
}

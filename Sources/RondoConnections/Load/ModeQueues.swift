internal import RondoCore

/// The shared queues of the modes in which a load is served.
///
/// A value, for which a load in one mode allocates nothing.
struct ModeQueues {
    /// Nil once the load has left its loops.
    let first: SharedQueue?
    /// Those of further modes and loops.
    let others: [SharedQueue]

    /// The queue of the only loop and mode; nil if there are several, or the load has left.
    var only: SharedQueue? { others.isEmpty ? first : nil }

    func forEach(_ body: (SharedQueue) -> Void) {
        if let first { body(first) }
        for queue in others { body(queue) }
    }
}

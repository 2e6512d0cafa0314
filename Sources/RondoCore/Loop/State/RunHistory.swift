/// The runs of a loop so far, for explanations why a member is not called. Part of the loop's state.
struct RunHistory {
    /// A call of a run function that returned at once, because its mode held nothing to serve (rule RL-12).
    struct EmptyRun {
        let modeName: String
        /// The number of runs that had begun before.
        let earlierRuns: UInt64
    }

    /// The number of outermost activations that have begun.
    private(set) var count: UInt64 = 0
    /// The index of the mode of the outermost activation that ended last.
    private(set) var lastMode: Int?
    private var empty: EmptyRun?

    /// The last call of a run function, if it found its mode empty.
    var lastEmptyRun: EmptyRun? { empty.flatMap { $0.earlierRuns == count ? $0 : nil } }

    /// Notes that an outermost activation begins.
    mutating func begin() { count += 1 }

    mutating func end(inMode mode: Int) { lastMode = mode }

    /// Notes that the loop, which does not run, was to be run in a mode that is empty.
    mutating func noteEmptyRun(in modeName: String) {
        empty = EmptyRun(modeName: modeName, earlierRuns: count)
    }
}

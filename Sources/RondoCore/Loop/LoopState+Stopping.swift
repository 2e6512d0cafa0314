// What ends activations: each ends after the pass that it is in.
extension LoopState {
    /// Stops the innermost activation.
    ///
    /// - Returns: False where the loop does not run.
    mutating func stopInnermost() -> Bool {
        guard !activations.isEmpty else { return false }
        activations[activations.count - 1].isStopped = true
        return true
    }

    /// Stops the activation that `depth` others are outside of.
    mutating func stopActivation(at depth: Int) {
        guard depth < activations.count else { return }
        activations[depth].isStopped = true
    }

    /// Stops the nested activations that would keep a block for `mode` from being run.
    mutating func stopNested(outside mode: RunLoop.Mode) {
        var index = activations.count - 1
        while index > 0, modes[activations[index].mode].name != mode {
            activations[index].isStopped = true
            index -= 1
        }
    }

    mutating func stopAll() {
        for index in activations.indices { activations[index].isStopped = true }
    }
}

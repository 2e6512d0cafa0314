// Stopping activations: each ends after its current pass.
extension LoopState {
    /// Stops the innermost activation that can be stopped.
    ///
    /// - Returns: False if there is none.
    mutating func stopInnermost() -> Bool {
        guard let index = activations.lastIndex(where: \.isStoppable) else { return false }
        activations[index].isStopped = true
        return true
    }

    /// Stops the activation inside `depth` outer ones.
    mutating func stopActivation(at depth: Int) {
        guard depth < activations.count else { return }
        activations[depth].isStopped = true
    }

    /// Stops the nested activations that delay a block for `mode`.
    mutating func stopNested(outside mode: RunLoop.Mode) {
        var index = activations.count - 1
        while index > 0, modes[activations[index].mode].name != mode {
            activations[index].isStopped = true
            index -= 1
        }
    }

    mutating func stopAll() { for index in activations.indices { activations[index].isStopped = true } }
}

/// The closures that one mode of a loop calls at the start of a pass; see `OrderedPerform`. Loop's thread
/// only.
struct ModePerforms {
    let loop: RunLoop
    /// The index of the mode.
    let mode: Int

    /// Calls the closures that were made before this pass. Called at the start of the pass.
    ///
    /// - Returns: Whether there were any.
    @inline(never)
    func callDue() -> Bool {
        let pass = loop.threadState.passes
        let due = loop.state.withLock { [mode, loop] state in
            let due = state.orderedPerforms.removeDue(
                in: state.modes[mode].name.rawValue, isCommon: state.modes[mode].isCommon, pass: pass)
            if !due.isEmpty { loop.hints.notePending(state.pendingWork) }
            return due
        }
        guard !due.isEmpty else { return false }
        let outer = loop.threadState.performing
        loop.threadState.performing = outer + due
        for perform in due.stablySorted(by: \.order) {
            guard let due = perform.take() else { continue }
            Trace.callOut(loop, mode, .block, label: "perform", of: due.target) { due.call() }
        }
        loop.threadState.performing = outer
        return true
    }
}

extension LoopState {
    /// Whether closures wait for a pass of `mode`.
    func hasOrderedPerforms(for mode: Int) -> Bool {
        orderedPerforms.has(in: modes[mode].name.rawValue, isCommon: modes[mode].isCommon)
    }
}

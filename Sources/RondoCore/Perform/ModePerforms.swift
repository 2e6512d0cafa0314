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
            let waiting = state.orderedPerforms
            let due = waiting.filter { state.modes[mode].calls($0, in: pass) }
            if !due.isEmpty {
                state.orderedPerforms = waiting.filter { !state.modes[mode].calls($0, in: pass) }
            }
            loop.hints.notePending(state.pendingWork)
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
        orderedPerforms.contains { modes[mode].isNamed(among: $0.modes) }
    }
}

extension ModeState {
    /// Whether `perform` is called at the start of the pass: not if it was made in it.
    fileprivate func calls(_ perform: OrderedPerform, in pass: UInt) -> Bool {
        perform.pass != pass && isNamed(among: perform.modes)
    }

    /// Whether `names` contains the name of this mode, or the common name if this is a common mode.
    fileprivate func isNamed(among names: [String]) -> Bool {
        names.contains { $0 == name.rawValue || isCommon && $0 == RunLoop.Mode.common.rawValue }
    }
}

/// Makes the watchers of one mode match its members. Loop's thread only.
struct WatcherUpdate {
    let loop: RunLoop
    let mode: Int
    let modeLoop: ModeLoop

    /// Stops what has left first, so that a number that was closed and
    /// given out again is free, and starts what came or changed.
    ///
    /// libev, as Debian builds it, aborts the process when it hands a closed descriptor to the kernel. So
    /// that is done here at once, under the lock that every removal needs: whoever invalidates a source on
    /// another thread and closes its descriptor then, does so before the check or after the kernel knows it.
    func apply(_ changes: ModeState.Changes) {
        // The locks of sources come before that of the loop.
        let interests = changes.watch.map(\.interest)
        loop.state.withLock { [loop, mode, modeLoop] state in
            for source in changes.stop { modeLoop.unwatch(source) }
            var isChanged = !changes.stop.isEmpty
            for (source, interest) in zip(changes.watch, interests) {
                guard let descriptor = source.kind.behaviour.descriptor,
                    state.modes[mode].holds(source)
                else { continue }
                // It has left and come back, as a connection does between two requests.
                if source.keepsFile, modeLoop.watches(source, events: interest.events),
                    !loop.owner.serving.contains(source)
                {
                    continue
                }
                isChanged = true
                if let code = modeLoop.refusal(of: descriptor) {
                    modeLoop.refuse(source, code: code)
                    continue
                }
                modeLoop.watch(source, descriptor: descriptor, events: interest.events)
                // A nested run must not find what it cannot serve (rule SRC-26): it would spin.
                if loop.owner.serving.contains(source) { modeLoop.pause(source) }
            }
            if isChanged { modeLoop.applyChanges() }
        }
    }

    /// Takes out what has left `mode` and is not back.
    func endLeaves() {
        // The locks of sources come before that of the loop. Those that stand last are found first.
        for source in loop.state.withLock({ [mode] in $0.modes[mode].leaving }).reversed() {
            source.endLeaving()
        }
    }
}

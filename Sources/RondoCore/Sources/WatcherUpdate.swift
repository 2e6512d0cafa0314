/// Makes the watchers of a mode match its members. Loop's thread only.
struct WatcherUpdate {
    let loop: RunLoop
    /// The index of the mode.
    let mode: Int
    let modeLoop: ModeLoop

    /// Applies `changes` to the watchers. Sources that left are stopped first, so that a number
    /// that was closed and given out again is free when the others are started.
    ///
    /// libev, as Debian builds it, aborts the process when it hands a closed descriptor to the kernel. So
    /// libev does that here at once, under the lock that every removal needs: a thread that invalidates a
    /// source and then closes its descriptor has done so before the check, or does it after the kernel knows
    /// the descriptor.
    func apply(_ changes: ModeState.Changes) {
        // The locks of sources come before that of the loop.
        let interests = changes.watch.map(\.interest)
        let withdrawn = loop.state.withLock { [mode, modeLoop, owner = loop.owner] state in
            // Those that were withdrawn since the changes were taken as well: their descriptors may be closed by now.
            let withdrawn = state.modes[mode].takeWithdrawn()
            for source in changes.stop { modeLoop.unwatch(source) }
            for source in withdrawn { modeLoop.unwatch(source) }
            var isChanged = !changes.stop.isEmpty || !withdrawn.isEmpty
            for (source, interest) in zip(changes.watch, interests) {
                guard let descriptor = source.kind.behaviour.descriptor,
                    state.modes[mode].holds(source)
                else { continue }
                // The source has left and come back, as a connection does between two requests.
                if source.keepsFile, modeLoop.watches(source, events: interest.events),
                    !owner.serving.contains(source)
                {
                    continue
                }
                isChanged = true
                if let code = modeLoop.refusal(of: descriptor) {
                    modeLoop.refuse(source, code: code)
                    continue
                }
                modeLoop.watch(source, descriptor: descriptor, events: interest.events)
                // A nested run must not find a source that it cannot serve (rule SRC-26): it would spin.
                if owner.serving.contains(source) { modeLoop.pause(source) }
            }
            if isChanged { modeLoop.applyChanges() }
            return withdrawn
        }
        // Released without the lock.
        withExtendedLifetime(withdrawn) {}
    }

    /// Has the sources watched anew whose watchers were stopped for a new epoll set.
    func noteInterrupted() {
        let interrupted = modeLoop.takeInterrupted().compactMap { $0 as? RunLoop.Source }
        loop.state.withLock { [mode] state in
            for source in interrupted { state.modes[mode].noteChange(of: source) }
        }
    }

    /// Removes the sources that have left the mode and have not come back.
    func endLeaves() {
        // The locks of sources come before that of the loop. Those that left last are found first.
        for source in loop.state.withLock({ $0.modes[mode].leaving }).reversed() {
            source.endLeaving()
        }
    }
}

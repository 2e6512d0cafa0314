/// Makes the watchers of a mode match its members. Loop's thread only.
struct WatcherUpdate {
    let loop: RunLoop
    /// The index of the mode.
    let mode: Int
    let modeLoop: ModeLoop

    /// Applies `changes` to the watchers. Sources that left are stopped first, so that a descriptor number
    /// that was closed and reused is free when the others are started.
    ///
    /// libev, as Debian builds it, aborts the process when it hands a closed descriptor to the kernel. So
    /// libev has to hand over the descriptors here at once, under the loop's lock, which every removal needs:
    /// a thread that invalidates a source and then closes its descriptor has done both before the check here,
    /// or does both after the kernel knows the descriptor.
    func apply(_ changes: ModeState.Changes) {
        // Locks of sources are taken before the loop's lock.
        let interests = changes.watch.map(\.interest)
        let withdrawn = loop.state.withLock { [mode, modeLoop, threadState = loop.threadState] state in
            // Also stop sources withdrawn since the changes were taken: their descriptors may be closed by
            // now.
            let withdrawn = state.modes[mode].takeWithdrawn()
            for source in changes.stop { modeLoop.unwatch(source) }
            for source in withdrawn { modeLoop.unwatch(source) }
            var isChanged = !changes.stop.isEmpty || !withdrawn.isEmpty
            for (source, interest) in zip(changes.watch, interests) {
                guard let descriptor = source.kind.behaviour.descriptor,
                    state.modes[mode].holds(source)
                else { continue }
                // The source has left and come back, as a connection's does between two requests.
                if source.keepsFile, modeLoop.watches(source, events: interest.events),
                    !threadState.serving.contains(source)
                {
                    continue
                }
                isChanged = true
                if let code = modeLoop.refusal(of: descriptor) {
                    modeLoop.refuse(source, code: code)
                    continue
                }
                modeLoop.watch(source, descriptor: descriptor, events: interest.events)
                // A nested run must not find a source that it may not serve (rule SRC-26): it would spin.
                if threadState.serving.contains(source) { modeLoop.pause(source) }
            }
            if isChanged { modeLoop.applyChanges() }
            return withdrawn
        }
        // Released after the lock.
        withExtendedLifetime(withdrawn) {}
    }

    /// Marks the sources whose watchers were stopped for a new epoll set as changed, so that they are watched
    /// again.
    func noteInterrupted() {
        let interrupted = modeLoop.takeInterrupted().compactMap { $0 as? RunLoop.Source }
        loop.state.withLock { [mode] state in
            for source in interrupted { state.modes[mode].noteChange(of: source) }
        }
    }
}

internal import CRondoEv

/// The end of a run loop, when its thread ends: every member leaves every mode, sources with their cancel
/// callbacks, and blocks are released unrun (rule RL-6).
struct ThreadEnd {
    private let loop: RunLoop

    /// Called by the thread library.
    ///
    /// - Parameter pointer: The value of `LoopThreadState.key`. It is set again, so that `RunLoop.current` is
    ///   still this loop in a cancel callback.
    static func run(_ pointer: UnsafeMutableRawPointer?) {
        guard let pointer else { return }
        // `Unmanaged` to pass through C: retained by `adoptThread`, and released below.
        let loop = Unmanaged<RunLoop>.fromOpaque(pointer)
        pthread_setspecific(LoopThreadState.key, pointer)
        let whenEnded = loop.takeUnretainedValue().threadState.whenEnded.take()
        ThreadEnd(loop: loop.takeUnretainedValue()).run()
        pthread_setspecific(LoopThreadState.key, nil)
        loop.release()
        whenEnded?()
    }

    /// Ends the calling thread's loop now, before the thread ends.
    static func runNow() { run(pthread_getspecific(LoopThreadState.key)) }

    private func run() {
        loop.warnOfLostMembers()
        loop.threadState.beginEnding()
        // Nothing is released under the lock, because a deinit may call back.
        var blocks = PerformedBlocks()
        close(takingBlocksInto: &blocks)
        removeQueued()
        let members = removeMembers()
        let common = removeCommonMembers()
        loop.threadState.closeModes()
        // Deferred work is left only if the thread has ended inside a callback.
        loop.threadState.performAllDeferredWork(of: loop)
        loop.threadState.removeAttachments()
        // Taken out, because a source that the loop retains may retain the loop.
        let watched = loop.state.withLock { state in
            state.modes.indices.map { state.modes[$0].forgetWatchers() }
        }
        while blocks.popFirst() != nil {}
        withExtendedLifetime((members, common, watched)) {}
        WaitingCalls.threadEnded(of: ObjectIdentifier(loop))
        UnservedWatch.forget(loop)
        if loop.threadState.timeSource != nil { LoopClock.setTimeSource(nil) }
    }

    /// Makes the loop refuse everything from here on.
    private func close(takingBlocksInto blocks: inout PerformedBlocks) {
        loop.state.withLock { [loop] state in
            state.end()
            loop.attention.end()
            loop.intake.close()
            state.collectBlocks(from: loop.intake)
            for index in state.modes.indices { state.modes[index].blocks.removeAll(into: &blocks) }
            state.commonBlocks.removeAll(into: &blocks)
        }
    }

    /// Drops waiting notifications, and closures for a pass that will never begin.
    private func removeQueued() {
        ThreadLoops.forget(loop, loop.threadState.threadKey)
        let (notifications, performs) = loop.state.withLock { [loop] state in
            let queued = (state.notifications.take(), state.orderedPerforms.removeAll { _ in true })
            loop.hints.notePending(state.pendingWork)
            return queued
        }
        for perform in performs { _ = perform.take() }
        withExtendedLifetime(notifications) {}
    }

    /// - Returns: The members of the modes.
    private func removeMembers() -> [AnyObject] {
        let modes = loop.state.withLock { state in
            state.modes.enumerated().map { index, mode in
                (
                    name: mode.name, sources: mode.sources, timers: state.timers(inMode: index),
                    observers: mode.observers
                )
            }
        }
        for mode in modes {
            for timer in mode.timers { loop.remove(timer, forMode: mode.name) }
            for observer in mode.observers { loop.remove(observer, forMode: mode.name) }
            for source in mode.sources { loop.remove(source, forMode: mode.name) }
        }
        return modes.flatMap { $0.timers as [AnyObject] + $0.observers + Array($0.sources) }
    }

    /// - Returns: The members that were registered under the common name, and the executors for tasks.
    private func removeCommonMembers() -> [AnyObject] {
        let (sources, observers, timers, executors, taskExecutors) = loop.state.withLock { state in
            defer { state.taskExecutors = [:] }
            return (
                state.commonSources, state.commonObservers, state.commonTimers, state.executors,
                state.taskExecutors
            )
        }
        for source in sources { _ = source.unregister(from: loop) }
        for observer in observers { _ = observer.unregister(from: loop) }
        for timer in timers { _ = timer.unregister(from: loop) }
        for executor in executors.values { executor.releaseLoop() }
        return Array(sources) as [AnyObject] + Array(observers) + Array(timers) + Array(taskExecutors.values)
    }
}

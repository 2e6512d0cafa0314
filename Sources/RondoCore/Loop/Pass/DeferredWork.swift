// Deferred work: work that the callback of a descriptor causes, and that costs less when it is done for
// several callbacks together.
//
// One look at the kernel finds many descriptors ready, and the passes that follow serve one each. Some work
// of their callbacks need not be done between these passes: it is deferred, and done in one step of a pass
// (see `Pass`) when no ready descriptor waits any more, when there is enough of it, or when it is old enough.
// There are four kinds, each with its saving when it was last measured (CPU of the whole process; 2 cores, 64
// connections). Streams that become readable together wait as the first kind does (W4 by streams, 64 B:
// 15 %):
//
//     a shared queue's service: clients that several callbacks enqueue begin in a row      W5, 64 GETs of 1 KiB: 2 to 4 %
//     leaving a loop: a kept connection that another load takes at once need not come back W5, the same: 2 %; http.request: 12 %
//     one poll(2) for space in all sockets that were written to, instead of one each       W4 by streams, 64 B: 2 to 5 %
//     an operation of a delegate queue: one makes the calls of several callbacks           W10, with what `DelegateQueue` joins: 13 to 24 %
//
// Blocks of other threads are joined in another way, without being deferred: by a pause, see
// `BlockIntake.pauseForMoreBlocks()`.
//
// Setting `DeferredWorkList.defaultMaximumCount` to 0 switches all of it off: to measure the saving, run W4
// and W5 of Benchmarks/ with and without it.

extension RunLoop {
    /// Defers `work`. It is done in the next pass, after signalled sources, but may wait longer while ready
    /// descriptors wait to be served: until there are 16 pieces of work, the first is a millisecond old, or
    /// the limit of the run is reached. It is done before a timer fires, before the main queue is drained,
    /// before the loop sleeps, and before a run begins or ends.
    ///
    /// - Returns: False if the work has to be done now: the calling thread is not the loop's, the loop does
    ///   not run or its run returns after a source, an observer is registered in some mode, or too much work
    ///   is already deferred.
    package func deferWork(_ work: any DeferredWork) -> Bool {
        guard isCurrent, mayDeferWork else { return false }
        threadState.deferWork(work)
        return true
    }

    /// Defers `work` of a callback on this thread's loop, if callbacks may follow that cause more work of the
    /// same kind.
    ///
    /// - Returns: False if the work has to be done now.
    package static func deferWorkBehindCallbacks(_ work: any DeferredWork) -> Bool {
        guard let loop = existingLoop else { return false }
        return loop.hasDescriptorsToServe() && loop.deferWork(work)
    }

    /// Loop's thread only.
    private var mayDeferWork: Bool {
        threadState.run.mayDeferWork && !threadState.deferred.isFull && !hints.isObserved
    }

    /// Whether descriptors were found ready in the running mode and wait to be served. Their callbacks may
    /// cause more work to defer.
    ///
    /// - Parameter mode: The answer is false unless this mode runs, or a common mode for `.common`; nil: any
    ///   mode.
    /// - Note: On this loop's thread.
    package func hasDescriptorsToServe(in mode: Mode? = nil) -> Bool {
        let running = state.withLock { state -> Int? in
            guard let running = state.activations.last?.mode else { return nil }
            let isThere =
                mode == nil || state.modes[running].name == mode
                || mode == .common && state.modes[running].isCommon
            return isThere ? running : nil
        }
        guard let running, let modeLoop = threadState.modeLoops[running] else { return false }
        return !modeLoop.ready.isEmpty
    }

    /// Whether an idle connection may leave this loop by deferred work, so that a waiting client can use it
    /// without moving it.
    ///
    /// Only while the callback of its `source` is on the stack, where no run serves the source (rule SRC-26).
    /// Otherwise a run would find the source, which is still registered, ready over and over.
    /// - Note: On this loop's thread.
    package func mayUnregisterLater(_ source: Source) -> Bool {
        mayDeferWork && threadState.serving.contains { $0 === source }
    }
}

extension LoopThreadState {
    /// Does deferred work, up to and including the first piece that signals a source.
    ///
    /// - Parameter loop: The loop of this state, for the trace.
    /// - Returns: Whether a source was signalled.
    func performDeferredWork(of loop: RunLoop) -> Bool {
        let began = Trace.isListening.load(ordering: .relaxed) ? LoopClock.systemNow : nil
        var count = 0
        var hasSignalled = false
        while !hasSignalled, let work = takeDeferredWork() {
            hasSignalled = work.performDeferredWork()
            count += 1
        }
        forgetNow()
        if let began, count > 0 {
            let lasted = LoopClock.systemNow.nanoseconds - began.nanoseconds
            Trace.tell(
                loop, RunLoop.Mode?.none, .deferredWork(count: count, nanoseconds: lasted), began: began,
                of: nil)
        }
        return hasSignalled
    }

    /// Does all deferred work. To be called before a run begins or returns, since the next pass may be much
    /// later.
    func performAllDeferredWork(of loop: RunLoop) {
        while !deferred.isEmpty { _ = performDeferredWork(of: loop) }
    }
}

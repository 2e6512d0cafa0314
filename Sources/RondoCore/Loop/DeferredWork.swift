// Deferred work: work that a descriptor's callback makes, and that costs less if it is done for several
// callbacks together.
//
// One look at the kernel finds many descriptors ready, and the passes that follow serve one each. Some of
// what their callbacks ask for need not be done between them: it is deferred, and done in one step of the
// pass (see `Pass`), when no descriptor found earlier waits any more, or when there is enough of it, or when
// it is old enough. There are four kinds, each with what it was worth when it was last measured (CPU of the
// whole process; 2 cores, 64 connections):
//
//     a shared queue's service: clients that several callbacks enqueue begin in a row      W5, 64 GETs of 1 KiB: 2 to 4 %
//     leaving a loop: a kept connection that another load takes at once need not come back W5, the same: 2 %
//     one poll(2) for space in all sockets that were written to, instead of one each       W4 by streams, 64 B: 2 to 5 %
//     an operation of a delegate queue: one makes the calls of several callbacks           W10, with what `DelegateQueue` joins: 13 to 24 %
//
// All of it is switched off by setting `DeferredWorkList.defaultMaximumCount` to 0: run W4 and W5 of
// Benchmarks/ with and without to see what it is worth.

extension RunLoop {
    /// Defers `work`. It is done in the next pass after signalled sources, but may wait longer while
    /// descriptors found earlier wait to be served: until there are 16 pieces of work, the first is a
    /// millisecond old, or the limit of the run is reached. The loop does not sleep before, nor begins or
    /// ends a run.
    ///
    /// - Returns: False where it is to be done now: the calling thread is not the loop's, the loop does not
    ///   run or its run returns after a source, an observer is registered in some mode, or there is much
    ///   deferred already.
    package func deferWork(_ work: any DeferredWork) -> Bool {
        guard isCurrent, mayDeferWork else { return false }
        owner.deferred.append(work, at: LoopClock.now)
        return true
    }

    /// Defers `work` of a callback on this thread's loop, where others may follow that make more of the kind.
    ///
    /// - Returns: False where it is to be done now.
    package static func deferWorkBehindCallbacks(_ work: any DeferredWork) -> Bool {
        guard let loop = existingLoop else { return false }
        return loop.hasDescriptorsToServe() && loop.deferWork(work)
    }

    /// Loop's thread only.
    private var mayDeferWork: Bool {
        owner.run.mayDeferWork && !owner.deferred.isFull && !mayBeObserved(.allActivities)
    }

    /// Whether descriptors were found ready in the mode that runs and wait to be served: their callbacks may
    /// make more work of the kind.
    ///
    /// - Parameter mode: It has to be this mode that runs, or one of the common modes where it is their name;
    ///   nil: any.
    /// - Note: On this loop's thread.
    package func hasDescriptorsToServe(in mode: Mode? = nil) -> Bool {
        let running = state.withLock { state -> Int? in
            guard let running = state.activations.last?.mode else { return nil }
            let isThere =
                mode == nil || state.modes[running].name == mode
                || mode == .common && state.modes[running].isCommon
            return isThere ? running : nil
        }
        guard let running, let modeLoop = owner.modeLoops[running] else { return false }
        return !modeLoop.ready.isEmpty
    }

    /// Whether an idle connection may leave this loop by deferred work, so that a client that waits to be
    /// served can use it where it is.
    ///
    /// Only while the callback of its `source` is on the stack in the innermost run, which does not look at
    /// the source meanwhile; a nested run would find it ready again and again.
    /// - Note: On this loop's thread.
    package func mayLeaveLater(_ source: Source) -> Bool {
        mayDeferWork && owner.serving.contains { $0 === source }
    }

    /// Does deferred work, up to and including the first that signals a source.
    ///
    /// - Returns: Whether there was one.
    func performDeferredWork() -> Bool {
        let began = Trace.isListening.load(ordering: .relaxed) ? LoopClock.now : nil
        var count = 0
        var hasSignalled = false
        while !hasSignalled, let work = owner.deferred.popFirst() {
            hasSignalled = work.performDeferredWork()
            count += 1
        }
        owner.knownNow = nil
        if let began, count > 0 {
            let lasted = LoopClock.now.nanoseconds - began.nanoseconds
            Trace.tell(
                self, RunLoop.Mode?.none, .deferredWork(count: count, nanoseconds: lasted), began: began,
                of: nil)
        }
        return hasSignalled
    }

    /// Does all deferred work. To be called before a run begins or returns: the next pass may be far off.
    func performAllDeferredWork() {
        while !owner.deferred.isEmpty { _ = performDeferredWork() }
    }
}

// An activation of a loop that has a bridge to Foundation's run loop.
extension Activation {
    /// Does the same as `run()`, for a call that may come from a callback of Foundation's loop, which
    /// `bridge` serves.
    consuming func run(beside bridge: any FoundationBridge) -> RunLoop.RunResult? {
        let threadState = loop.threadState
        let (wasDraining, wasServedAsleep) = (threadState.isDrainingMainQueue, threadState.wasServedAsleep)
        threadState.wasServedAsleep = false
        let isNested = threadState.isInFoundation
        let wasUsed = isNested && (bridge.mainQueueUse?.isSeen ?? true)
        if loop.isMain, !wasDraining { threadState.isDrainingMainQueue = isInForeignDrain(wasUsed: wasUsed) }
        if isNested {
            // An outer run of this loop is asleep; now the loop is awake.
            loop.attention.endWaiting()
            threadState.isInFoundation = false
        }
        let result = run()
        threadState.isDrainingMainQueue = wasDraining
        threadState.wasServedAsleep = wasServedAsleep
        if isNested {
            threadState.isInFoundation = true
            // A drain by this run does not count as one by Foundation's loop.
            bridge.mainQueueUse?.begin(asSeen: wasUsed)
            // From now on a thread that asks for attention takes the loop for awake, so the sleep has to end.
            threadState.kernel.wakeUp?.wake()
        }
        threadState.bridge?.activationEnded()
        return result
    }

    /// Whether an outer call on this stack, of Foundation's loop, is draining the main queue, so that nothing
    /// can drain it here (rule RL-59).
    ///
    /// libdispatch does not report this. So a block is put on the queue, and the queue is drained; inside
    /// another drain that does nothing.
    ///
    /// - Parameter wasUsed: Whether the queue may have been drained since this loop fell asleep.
    private func isInForeignDrain(wasUsed: Bool) -> Bool {
        let threadState = loop.threadState
        guard Foundation.RunLoop.main.currentMode != nil else { return false }
        if threadState.isInFoundation, !wasUsed { return false }
        // `@unchecked Sendable`: only the main thread touches the mark, because blocks of the main queue run
        // there.
        final class Mark: @unchecked Sendable {
            var isReached = false
        }
        let mark = Mark()
        let hadWork = MainQueue.hasWork
        DispatchQueue.main.async { mark.isReached = true }
        threadState.isDrainingMainQueue = true
        MainQueue.drain()
        threadState.isDrainingMainQueue = false
        threadState.forgetNow()
        guard mark.isReached else { return true }
        if hadWork { threadState.wasServedAsleep = true }
        return false
    }
}

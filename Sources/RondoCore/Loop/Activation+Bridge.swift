// An activation of a loop that has a bridge to Foundation's.
extension Activation {
    /// As `run()`, where the beginning may lie in a callback of Foundation's loop, which `bridge` serves.
    consuming func run(beside bridge: any FoundationBridge) -> RunLoop.RunResult? {
        let owner = loop.owner
        let (wasDraining, wasServedAsleep) = (owner.isDrainingMainQueue, owner.wasServedAsleep)
        owner.wasServedAsleep = false
        let isNested = owner.isInFoundation
        let wasUsed = isNested && (bridge.mainQueueUse?.isSeen ?? true)
        if loop.isMain, !wasDraining { owner.isDrainingMainQueue = isInForeignDrain(wasUsed: wasUsed) }
        if isNested {
            // This loop is asleep further out: now it is awake.
            loop.attention.endWaiting()
            owner.isInFoundation = false
        }
        let result = run()
        owner.isDrainingMainQueue = wasDraining
        owner.wasServedAsleep = wasServedAsleep
        if isNested {
            owner.isInFoundation = true
            // What this run has drained is not Foundation's.
            bridge.mainQueueUse?.begin(asSeen: wasUsed)
            // A thread that asks for attention from now on takes the loop for awake, so the sleep ends.
            owner.kernel.wakeUp?.wake()
        }
        owner.bridge?.activationEnded()
        return result
    }

    /// Whether Foundation's loop is draining the main queue further out, so that nothing can drain it here (rule RL-59).
    ///
    /// libdispatch does not tell. A block is put on the queue, and the queue is drained: within another drain that does
    /// nothing.
    ///
    /// - Parameter wasUsed: Whether the queue may have been drained since this loop has fallen asleep.
    private func isInForeignDrain(wasUsed: Bool) -> Bool {
        let owner = loop.owner
        guard Foundation.RunLoop.main.currentMode != nil else { return false }
        if owner.isInFoundation, !wasUsed { return false }
        // `@unchecked Sendable`: only the main thread touches it, where blocks of the main queue run.
        final class Mark: @unchecked Sendable {
            var isReached = false
        }
        let mark = Mark()
        let hadWork = MainQueue.hasWork
        DispatchQueue.main.async { mark.isReached = true }
        owner.isDrainingMainQueue = true
        MainQueue.drain()
        owner.isDrainingMainQueue = false
        guard mark.isReached else { return true }
        if hadWork { owner.wasServedAsleep = true }
        return false
    }
}

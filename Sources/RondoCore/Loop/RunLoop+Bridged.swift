// Runs of a loop that has a bridge to Foundation's.

extension RunLoop {
    /// Makes `bridge` that of this loop.
    func setBridge(_ bridge: any FoundationBridge, function: String) {
        if let other = owner.bridge {
            // Not a precondition, which loses its message in release.
            fatalError(
                "RunLoop.\(function): the loop has a bridge to Foundation's run loop already (\(other.summary)). A thread has "
                    + "one at a time: call endFoundationBridge() first.")
        }
        owner.bridge = bridge
        state.withLock { $0.bridge = bridge.summary }
        // Where a callback of Foundation's has made it, this loop may be asleep.
        wakeIfForeign()
    }

    /// Runs `run`, an activation of this loop, whose beginning may lie in a callback of Foundation's loop.
    func runBridged(_ bridge: any FoundationBridge, _ run: () -> RunResult?) -> RunResult? {
        let (wasDraining, wasServedAsleep) = (owner.isDrainingMainQueue, owner.wasServedAsleep)
        owner.wasServedAsleep = false
        let isNested = owner.isInFoundation
        let wasUsed = isNested && (bridge.mainQueueUse?.isSeen ?? true)
        if isMain, !wasDraining { owner.isDrainingMainQueue = isInForeignDrain(bridge, wasUsed: wasUsed) }
        if isNested {
            // This loop is asleep further out: now it is awake.
            attention.endWaiting()
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

    /// See `FoundationBridge.serveIfOverdue()`.
    func serveBridgeIfOverdue(_ modeLoop: ModeLoop) {
        owner.bridge?.serveIfOverdue()
        guard owner.wasServedAsleep else { return }
        owner.wasServedAsleep = false
        modeLoop.owesDrain = true
    }

    /// Whether Foundation's loop is draining the main queue further out, so that nothing can drain it here (rule RL-59).
    ///
    /// libdispatch does not tell. A block is put on the queue, and the queue is drained: within another drain that does
    /// nothing.
    ///
    /// - Parameter wasUsed: Whether the queue may have been drained since this loop has fallen asleep.
    private func isInForeignDrain(_ bridge: any FoundationBridge, wasUsed: Bool) -> Bool {
        guard Foundation.RunLoop.main.currentMode != nil else { return false }
        if owner.isInFoundation, !wasUsed { return false }
        final class Mark: @unchecked Sendable {
            // Only the main thread touches it: blocks of the main queue run there.
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

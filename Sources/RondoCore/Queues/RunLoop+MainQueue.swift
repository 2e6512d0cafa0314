internal import CEv

// The main run loop also drains the main dispatch queue, in its common modes, so that `DispatchQueue.main`,
// `OperationQueue.main` and `@MainActor` work while it runs (rules RL-14, RL-58 and RL-59).
extension RunLoop {
    /// Whether this loop, running in `mode` now, serves the main queue.
    func drainsMainQueue(in mode: ModeState) -> Bool {
        isMain && mode.isCommon && !owner.isDrainingMainQueue
    }

    @inline(__always)
    func mainQueueHasWork(in mode: Int) -> Bool {
        isMain && state.withLock { drainsMainQueue(in: $0.modes[mode]) } && MainQueue.hasWork
    }

    func drainMainQueue(in mode: Int, _ modeLoop: ModeLoop) {
        var count: eventfd_t = 0
        // libdispatch leaves it to the loop to take the wake-up; that nobody has is no error.
        if let descriptor = MainQueue.descriptor {
            _ = try? systemCall("eventfd_read") { eventfd_read(descriptor, &count) }
        }
        owner.isDrainingMainQueue = true
        Trace.callOut(self, mode, .mainQueue) { _dispatch_main_queue_callback_4CF(nil) }
        owner.isDrainingMainQueue = false
        modeLoop.mainQueueWasDrained()
    }
}

internal import CEv

// The main run loop also drains the main dispatch queue, in its common modes, so that `DispatchQueue.main`,
// `OperationQueue.main` and `@MainActor` work while it runs (rules RL-14, RL-58 and RL-59).
extension RunLoop {
    /// Whether this loop, running in `mode` now, serves the main queue.
    func drainsMainQueue(in mode: ModeState) -> Bool {
        isMain && mode.isCommon && !owner.isDrainingMainQueue
    }

    func mainQueueHasWork(in mode: Int) -> Bool {
        guard isMain, state.withLock({ drainsMainQueue(in: $0.modes[mode]) }) else { return false }
        var request = pollfd(fd: _dispatch_get_main_queue_handle_4CF(), events: Int16(POLLIN), revents: 0)
        return poll(&request, 1, 0) > 0
    }

    func drainMainQueue(in mode: Int, _ modeLoop: ModeLoop) {
        var count: eventfd_t = 0
        // libdispatch leaves it to the loop to take the wake-up; that nobody has is no error.
        _ = try? systemCall("eventfd_read") { eventfd_read(_dispatch_get_main_queue_handle_4CF(), &count) }
        owner.isDrainingMainQueue = true
        Trace.callOut(self, mode, .mainQueue) { _dispatch_main_queue_callback_4CF(nil) }
        owner.isDrainingMainQueue = false
        modeLoop.mainQueueWasDrained()
    }
}

public import RondoCore

extension Process {
    // MARK: - Starting

    // (The functions that a subclass may override are in the class's own file.)

    /// Implements `run()`.
    func start() throws {
        let settings = try claim()
        let child: ChildHandle
        do {
            child = try settings.spawn()
        } catch {
            state.withLock { $0.hasStarted = false }
            throw error
        }
        settings.closeEndsOfChild()
        let loop = RunLoop.currentLoop()
        let change = state.withLock { state -> ProcessSchedule.Change? in
            state.child = child
            state.schedule.begin(on: loop)
            // A handler needs no loop, unless the program has scheduled the process.
            guard state.handler == nil || state.schedule.isScheduled else { return nil }
            return state.schedule.listen(for: self)
        }
        if let change { carryOut(change) }
        // The child retains the process until its end (rule PR-9).
        child.whenEnded { [self] status in noteEnd(status) }
        child.reaper.watch(child)
    }

    /// Marks the process as started; a process runs only once (rule PR-2).
    private func claim() throws -> ProcessSettings {
        try state.withLock { state in
            guard !state.hasStarted else {
                throw NSError.ofProcess(.executableLoad, "a Process runs once: make a new one")
            }
            guard state.settings.executableURL != nil else {
                throw NSError.ofProcess(.fileNoSuchFile, "executableURL was not set")
            }
            state.hasStarted = true
            return state.settings
        }
    }

    // MARK: - The end

    /// Called on the thread that has collected the child.
    private func noteEnd(_ status: ChildStatus) {
        let waits = state.withLock { state in
            state.status = status
            defer { state.waits = [] }
            return state.waits
        }
        // Announced before the waits end: a waiting loop posts the notification in the same pass.
        announce()
        for wait in waits { wait.end() }
    }

    /// Has the end reported: by the handler in the background, or by a loop.
    private func announce() {
        let (change, unneeded) = state.withLock { state -> (ProcessSchedule.Change?, RunLoop.Source?) in
            if state.handler != nil, !state.schedule.isScheduled { return (nil, state.schedule.take()) }
            return (state.schedule.listen(for: self), nil)
        }
        if let change {
            carryOut(change)
            if !state.withLock({ $0.schedule.isScheduled }) { WaitingNotifications.add(change.source) }
        } else {
            callHandlerInBackground(insteadOf: unneeded)
        }
    }

    private func callHandlerInBackground(insteadOf source: RunLoop.Source?) {
        source?.invalidate()
        DispatchQueue.global().async { [self] in callHandler() }
    }

    /// Called when the source has left a mode, as when the thread of its loop ends: a handler that is due is
    /// called in the background if the process is scheduled on no other loop.
    func sourceHasLeft() {
        let unneeded = state.withLock { state -> RunLoop.Source? in
            guard state.handler != nil, state.status != nil, !state.schedule.isScheduled else { return nil }
            return state.schedule.take()
        }
        if let unneeded { callHandlerInBackground(insteadOf: unneeded) }
    }

    /// Makes the change, and has the end reported if it has come.
    ///
    /// - Parameter old: Invalidated once the new source is in the modes, so that these are not empty
    ///   meanwhile.
    private func carryOut(_ change: ProcessSchedule.Change, insteadOf old: RunLoop.Source? = nil) {
        change.apply()
        old?.invalidate()
        if state.withLock({ $0.status != nil }) { change.signal() }
        // The threads of the loops may have ended before the source could enter a mode: then no cancel
        // callback comes.
        if !change.source.isScheduled { sourceHasLeft() }
    }

    /// Called when a handler was set: if the child has ended, the handler is called soon.
    func handlerWasSet() { if state.withLock({ $0.status != nil }) { announce() } }

    /// Reports the end, on a loop that the process is scheduled on.
    func tell() {
        state.withLock { $0.schedule.take() }?.invalidate()
        if !callHandler() {
            NotificationCenter.default.post(name: Process.didTerminateNotification, object: self)
        }
    }

    /// - Returns: False if there is no handler.
    @discardableResult
    private func callHandler() -> Bool {
        let (handler, isOwed) = state.withLock { state in
            defer { state.owesHandler = false }
            return (state.handler.map(HandlerBox.init), state.owesHandler)
        }
        // Two threads may announce the end if the handler is set at that moment.
        if isOwed { handler?.call(self) }
        return handler != nil
    }

    // MARK: - Scheduling

    /// Has the end reported on the thread of `loop`, while it runs in `mode`, instead of the loop that has
    /// started the process (rule PR-10): there the handler is called or the notification posted. In several
    /// modes or loops it is reported once. Any thread, before or after `run()`; once the end was reported, it
    /// does nothing.
    public func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        let (old, change) = state.withLock { state -> (RunLoop.Source?, ProcessSchedule.Change?) in
            guard state.schedule.schedule(in: loop, mode), state.child != nil else { return (nil, nil) }
            // After the end there is a source only while the end has not been reported.
            guard state.status == nil || state.schedule.source != nil else { return (nil, nil) }
            return (state.schedule.take(), state.schedule.listen(for: self))
        }
        if let change { carryOut(change, insteadOf: old) }
    }

    /// Undoes `schedule(in:forMode:)`. With the last mode, a handler that is due is called on a queue in the
    /// background (rule PR-6). Any thread.
    public func unschedule(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        let (old, change) = state.withLock { state -> (RunLoop.Source?, ProcessSchedule.Change?) in
            guard state.schedule.unschedule(from: loop, mode), let old = state.schedule.take() else {
                return (nil, nil)
            }
            let isDue = state.handler != nil && state.status != nil
            if isDue, !state.schedule.isScheduled { return (old, nil) }
            return (old, state.schedule.listen(for: self))
        }
        if let change {
            carryOut(change, insteadOf: old)
        } else if let old {
            callHandlerInBackground(insteadOf: old)
        }
    }

    /// Why the end was not reported. Any thread may ask.
    public var whyNotDelivering: DeliveryObstacle {
        let (child, status, source, handler) = state.withLock {
            ($0.child, $0.status, $0.schedule.source, $0.handler != nil)
        }
        guard child != nil else {
            return DeliveryObstacle(reason: .notScheduled, description: "it was not started: call run()")
        }
        guard status != nil else {
            return DeliveryObstacle(reason: .nothingToDeliver, description: "the process runs")
        }
        if let source { return source.whyNotDelivering }
        return handler
            ? DeliveryObstacle(
                reason: .nothingToDeliver, description: "its handler is called in the background")
            : DeliveryObstacle.invalid
    }

    // MARK: - Waiting

    /// Implements `waitUntilExit()`.
    func wait() {
        guard let child = state.withLock({ $0.child }) else { return }
        let loop = RunLoop.currentLoop()
        let wait = LoopWait()
        let hasEnded = state.withLock { state in
            if state.status == nil { state.waits.append(wait) }
            return state.status != nil
        }
        // If the thread's loop cannot run any more, block the thread.
        if !hasEnded, !wait.run(loop, in: .default) { _ = child.wait() }
        // Handlers on this very loop are called before this function returns.
        let isTold = state.withLock {
            $0.schedule.source?.isSignalled ?? false && $0.schedule.isServed(by: loop)
        }
        if isTold { _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false) }
    }

    // MARK: - Signals

    /// Implements `terminate()` and the like.
    ///
    /// - Returns: True if the child has got the signal.
    @discardableResult
    func send(_ number: Int32, _ name: String) -> Bool { state.withLock { $0.send(number, name) } }
}

extension Process.State {
    /// Sends a signal to the child for a method of this name, under the process's lock: it calls nothing
    /// back.
    ///
    /// - Returns: True if the child has got the signal.
    func send(_ number: Int32, _ name: String) -> Bool {
        guard let child else { fatalError("Process.\(name)() was called before run().") }
        // The child has ended, or the kernel forbids the signal: Foundation's methods report neither.
        return (try? child.send(number)) != nil
    }
}

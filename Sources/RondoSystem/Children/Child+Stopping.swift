public import RondoCore

extension Child {
    /// Sends a signal to the child, and never to another process that has got its number (rule CH-7). Any
    /// thread.
    ///
    /// - Throws: A `ChildError` with ESRCH if the child has ended.
    public func send(signal number: Int32) throws(ChildError) { try handle.send(number) }

    /// Stops the child by the steps of its configuration: by default SIGTERM, then SIGKILL 5 seconds later.
    /// The remaining steps are dropped when the child ends. The signals go to the child's process group if it
    /// leads one (rules CH-17 and CH-18). Further calls do nothing. Any thread; it does not wait.
    public func stop() {
        guard events.withLock({ $0.beginStopping() }) else { return }
        stopTimer.withLock { $0.take() }?.invalidate()
        take(step: 0)
    }

    /// True if the child was asked to stop before it ended: by `stop()`, a time limit or the limit of an
    /// output.
    public var wasStopped: Bool { events.withLock { $0.isStopping } }

    /// Stops the child `seconds` after its spawn unless it has ended by then, on the monotonic clock and
    /// whether or not a mode of the child runs (rule CH-16). A later call replaces an earlier one. Any
    /// thread.
    public func stop(after seconds: TimeInterval) {
        guard events.withLock({ !$0.isStopping }) else { return }
        later(max(0, seconds - LoopClock.systemNow.seconds(since: handle.spawned))) { $0.stop() }
    }

    /// Kills the child, and its process group if it leads one, by SIGKILL, which no process can catch. Any
    /// thread.
    public func kill() {
        // An error means that the child has ended, as intended.
        try? handle.send(SIGKILL, toGroup: true)
    }

    private func take(step index: Int) {
        guard index < stopping.count else { return kill() }
        let step = stopping[index]
        do throws(ChildError) {
            try handle.send(step.signal, toGroup: true)
        } catch {
            // The child has ended, or this signal is not permitted (EPERM after a setuid program): then the
            // next step may work.
            if error.systemCode == ESRCH { return }
        }
        later(step.seconds) { $0.take(step: index + 1) }
    }

    /// Runs `body` on the background loop's thread: a time limit must not depend on the program's loops
    /// (rule CH-16).
    private func later(_ seconds: TimeInterval, _ body: @escaping @Sendable (Child) -> Void) {
        let timer = Timer(timeInterval: seconds, repeats: false) { [weak self] _ in
            if let self { body(self) }
        }
        let old = stopTimer.withLock { kept in
            let old = kept
            kept = timer
            return old
        }
        old?.invalidate()
        RunLoop.loader.add(timer, forMode: .default)
        // If the child ended meanwhile, the timer is no longer needed.
        if handle.status != nil { stopTimer.withLock { $0.take() }?.invalidate() }
    }
}

extension Child: CustomDebugStringConvertible {
    /// One line with program, process number, and state or status.
    public var debugDescription: String {
        let end = handle.status.map(\.description) ?? "runs"
        let limit = stopTimer.withLock { $0 }.map { timer in
            String(format: "to be stopped in %.1f s", timer.fireDate.timeIntervalSinceNow)
        }
        return
            "child \(label ?? handle.name) (process \(processIdentifier)), \(end), \(limit ?? "no limit of time")"
    }
}

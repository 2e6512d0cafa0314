public import RondoCore

extension Child {
    /// Sends a signal to the child, and to no other process that has got its number since (rule CH-7).
    ///
    /// - Throws: ESRCH after the end.
    public func send(signal number: Int32) throws(ChildError) { try handle.send(number) }

    /// Stops the child by the steps of its configuration: by default SIGTERM, SIGKILL 5 seconds later. What remains of the
    /// steps is dropped when the child ends. Where the child leads a group the signals go to the group (rules CH-17 and
    /// CH-18). Again: nothing. Any thread; it does not wait.
    public func stop() {
        stopTimer.withLock { $0.take() }?.invalidate()
        if news.withLock({ $0.beginStopping() }) { take(step: 0) }
    }

    /// Whether it was asked to stop, by `stop()`, a limit of time or of an output, and had not ended by then.
    public var wasStopped: Bool { news.withLock { $0.isStopping } }

    /// Stops the child `seconds` after its spawn, unless it has ended by then, on the monotonic clock and whether or not a
    /// mode of the child runs (rule CH-16). A later call takes the place of an earlier one.
    public func stop(after seconds: TimeInterval) {
        guard news.withLock({ !$0.isStopping }) else { return }
        later(max(0, seconds - LoopClock.machineNow.seconds(since: handle.spawned))) { $0.stop() }
    }

    /// Ends the child by SIGKILL, which it cannot catch, and its group where it leads one.
    public func kill() {
        // It has ended: that is what was wanted.
        try? handle.send(SIGKILL, toGroup: true)
    }

    private func take(step index: Int) {
        guard index < stopping.count else { return kill() }
        let step = stopping[index]
        do throws(ChildError) {
            try handle.send(step.signal, toGroup: true)
        } catch {
            // It has ended, or is not to be signalled that way (EPERM after a setuid program): the next step is another way.
            if error.systemCode == ESRCH { return }
        }
        later(step.seconds) { $0.take(step: index + 1) }
    }

    /// On the background loop's thread: a limit of time is a promise about the machine (rule CH-16).
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
        // The end may have come meanwhile, which takes the timer away.
        if handle.status != nil { stopTimer.withLock { $0.take() }?.invalidate() }
    }
}

extension Child: CustomDebugStringConvertible {
    /// The child in a line: program, number, and what becomes of it.
    public var debugDescription: String {
        let end = handle.status.map(\.description) ?? "runs"
        let limit = stopTimer.withLock { $0 }.map { timer in
            String(format: "to be stopped in %.1f s", timer.fireDate.timeIntervalSinceNow)
        }
        return
            "child \(label ?? handle.name) (process \(processIdentifier)), \(end), \(limit ?? "no limit of time")"
    }
}

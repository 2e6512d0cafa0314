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
    public func stop() { stopper.stop() }

    /// True if the child was asked to stop before it ended: by `stop()`, a time limit or the limit of an
    /// output.
    public var wasStopped: Bool { stopper.hasBegun }

    /// Stops the child `seconds` after its spawn unless it has ended by then, on the monotonic clock and
    /// whether or not a mode of the child runs (rule CH-16). A later call replaces an earlier one. Any
    /// thread.
    public func stop(after seconds: TimeInterval) { stopper.stop(after: seconds) }

    /// Kills the child, and its process group if it leads one, by SIGKILL, which no process can catch. Any
    /// thread.
    public func kill() { stopper.kill() }
}

extension Child: CustomDebugStringConvertible {
    /// One line with program, process number, and state or status.
    public var debugDescription: String {
        let end = handle.status.map(\.description) ?? "runs"
        let limit = stopper.nextDate.map {
            String(format: "to be stopped in %.1f s", $0.timeIntervalSinceNow)
        }
        return
            "child \(label ?? handle.name) (process \(processIdentifier)), \(end), \(limit ?? "no limit of time")"
    }
}

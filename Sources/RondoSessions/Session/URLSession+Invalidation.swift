internal import RondoConnections
internal import RondoCore

// How a session comes to its end.

extension URLSession {
    func invalidate(cancelsAll: Bool) {
        guard !engine.isShared else { return }
        let (unresumed, running) = table.invalidate()
        for task in unresumed { task.cancel() }
        if cancelsAll { for task in running { task.cancel() } }
        engine.pool.renew()
        becomeInvalidIfDone()
    }

    /// The last call of the task has returned.
    func taskDidEnd(_ identifier: Int) {
        table.remove(identifier)
        becomeInvalidIfDone()
    }

    private func becomeInvalidIfDone() {
        guard table.takeEnd() else { return }
        engine.pool.retire()
        engine.driver.perform { [self] in audience.tellInvalid(self) }
    }
}

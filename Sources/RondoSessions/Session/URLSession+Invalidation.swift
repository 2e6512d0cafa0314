internal import RondoConnections
internal import RondoCore

// Invalidation of a session.

extension URLSession {
    /// Forbids new tasks and cancels those that were never resumed, or all (rules US-73 and US-74).
    func invalidate(cancelsAll: Bool) {
        guard !engine.isShared else { return }
        let (created, running) = table.invalidate()
        for task in created { task.cancel() }
        if cancelsAll {
            for task in running {
                task.cancel()
                task.work.cancel()
            }
        }
        engine.pool.renew()
        becomeInvalidIfDone()
    }

    /// Removes a task after its last call.
    func taskDidEnd(_ identifier: Int) {
        table.remove(identifier)
        becomeInvalidIfDone()
    }

    private func becomeInvalidIfDone() {
        guard table.takeEnd() else { return }
        engine.pool.retire()
        engine.handlers.call { [self] in client.tellInvalid(self) }
    }
}

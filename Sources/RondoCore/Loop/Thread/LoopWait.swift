internal import RondoMutex

/// A wait of one thread for an event that another thread announces; the waiting thread's run loop runs
/// meanwhile.
///
/// Callbacks of the mode are made during the wait, and may wait in the same way: each wait ends when its own
/// event has come and the waits nested in it have ended. The program's calls of `stop()` end none of them.
package final class LoopWait: Sendable {
    private let hasCome = Mutex(false)
    private let source = Mutex<RunLoop.Source?>(nil)

    package init() {}

    /// Announces the event. Any thread, once or more.
    package func end() {
        hasCome.withLock { $0 = true }
        source.withLock { $0 }?.signalAndWakeUp()
    }

    /// Runs `mode` of the calling thread's loop until the event has come, and sleeps while there is nothing
    /// to do.
    ///
    /// - Returns: False if the thread's loop cannot run because the thread is ending.
    package func run(_ loop: RunLoop, in mode: RunLoop.Mode) -> Bool {
        let depth = loop.state.withLock { $0.activations.count }
        // The source may be served by a run nested in this one, in a callback. That run goes on, and this one
        // ends when the callback returns.
        let source = RunLoop.Source { [weak loop] in
            loop?.state.withLock { $0.stopActivation(at: depth) }
        }
        source.label = "waits for an end"
        loop.addUnwatched(source, forMode: mode)
        defer { source.invalidate() }
        self.source.withLock { $0 = source }
        while !hasCome.withLock({ $0 }) {
            guard loop.runActivation(mode, limit: .never, returnAfterSourceHandled: false) != nil else {
                return false
            }
        }
        return true
    }
}

internal import RondoMutex

/// A wait of one thread for an event that another thread announces, during which the thread's run loop runs.
///
/// Callbacks of the mode come meanwhile, and may wait in the same way: each wait ends when its own event has come and
/// those that began inside it have returned. A `stop()` of the program's ends none of them.
package final class LoopWait: Sendable {
    private let hasCome = Mutex(false)
    private let source = Mutex<RunLoop.Source?>(nil)

    package init() {}

    /// The event has come. Any thread, once or more.
    package func end() {
        hasCome.withLock { $0 = true }
        source.withLock { $0 }?.signalAndWakeUp()
    }

    /// Runs `mode` of the calling thread's loop until the event has come, and sleeps while there is nothing to do.
    ///
    /// - Returns: False where the thread's loop cannot run, since its thread is ending.
    package func run(_ loop: RunLoop, in mode: RunLoop.Mode) -> Bool {
        let depth = loop.state.withLock { $0.activations.count }
        // The run that serves the source may be one that began inside this one, in a callback: it goes on, and this one is
        // over when that returns.
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

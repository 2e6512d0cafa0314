internal import RondoCore

/// The threads that wait inside a read or a write of a connection (rules ST-24, ST-25).
///
/// A waiting thread runs its loop in a private mode that holds nothing but the channel. The channel may be served by another
/// thread's loop meanwhile: a source of the waiting thread's tells it that something has changed.
///
/// A client that does not want to wait asks for the status, bytes or space again and again; then each question polls that
/// mode, and so drives the channel.
///
/// Behind the pair's lock.
final class WaitingThreads {
    /// The mode that a waiting thread runs its loop in.
    static let mode = RunLoop.Mode("RondoStreamWaiting")

    private var sources: [RunLoop.Source] = []
    /// Loops whose waiting mode holds the channel already.
    private var loops: [RunLoop] = []

    var isEmpty: Bool { sources.isEmpty }

    func add(_ waiter: Waiter) { sources.append(waiter.source) }

    func remove(_ waiter: Waiter) { sources.removeAll { $0 === waiter.source } }

    /// Something has changed. Any thread.
    func wakeUp() {
        for source in sources { source.signalAndWakeUp() }
    }

    /// Puts the channel into the waiting mode of `loop`.
    func drive(_ channel: SocketChannel, in loop: RunLoop) {
        guard !loops.contains(loop) else { return }
        loops.append(loop)
        channel.schedule(in: loop, forMode: Self.mode)
    }

    /// Serves the sources that are ready in the waiting mode of `loop`, which is the thread's own. Without the lock.
    static func poll(_ loop: RunLoop) {
        let result = loop.run(in: mode, for: 0, returnAfterSourceHandled: false)
        if result == .stopped { loop.stop() }
    }

    /// The calling thread, while it waits. Used by itself, without the lock.
    final class Waiter {
        let loop = RunLoop.currentLoop()
        /// Signalled when something has changed.
        let source = RunLoop.Source {}
        private var wasStopped = false

        init() { loop.add(source, forMode: WaitingThreads.mode) }

        /// - Returns: False: the thread itself is ending.
        func waitForChange() -> Bool {
            switch loop.run(in: WaitingThreads.mode, for: .infinity, returnAfterSourceHandled: true) {
            case .handledSource, .timedOut: break
            case .stopped: wasStopped = true
            // The mode holds the source and is run, unless the thread itself is ending.
            case .finished: return false
            }
            return true
        }

        func end() {
            source.invalidate()
            // The stop was meant for the run outside of this one.
            if wasStopped { loop.stop() }
        }
    }
}

internal import RondoCore

/// The threads that wait inside a read or a write of a connection (rules ST-24, ST-25).
///
/// A waiting thread runs its loop in a private mode that holds nothing but the channel. Another thread's loop
/// may serve the channel meanwhile: it then signals a source of the waiting thread.
///
/// A client that does not want to wait reads the status, bytes or space again and again; each of these reads
/// polls that mode once, and so drives the channel.
///
/// Protected by the pair's lock.
final class WaitingThreads {
    /// The mode in which a waiting thread runs its loop.
    static let mode = RunLoop.Mode("RondoStreamWaiting")

    private var sources: [RunLoop.Source] = []

    var count: Int { sources.count }

    func add(_ waiter: Waiter) { sources.append(waiter.source) }

    func remove(_ waiter: Waiter) { sources.removeAll { $0 === waiter.source } }

    /// Wakes the waiting threads, because something has changed. Any thread.
    func wakeUp() {
        for source in sources { source.signalAndWakeUp() }
    }

    /// Adds the channel to the waiting mode of `loop`.
    ///
    /// - Parameter isAlone: No other thread waits. Then the channel leaves the waiting modes of the other
    ///   loops.
    static func drive(_ channel: SocketChannel, in loop: RunLoop, isAlone: Bool) {
        let own = LoopMode(loop: loop, mode: mode)
        guard !channel.registration.contains(own) else { return }
        channel.schedule(in: loop, forMode: mode)
        if isAlone { release(channel, except: own) }
    }

    /// Takes the channel, for which no thread waits in other loops, out of their waiting modes. The loop of a
    /// thread that has only polled may not be run any more, and would keep the timers of the opening.
    static func release(_ channel: SocketChannel, except kept: LoopMode? = nil) {
        for left in channel.registration.modes where left.mode == mode && left != kept {
            channel.remove(from: left.loop, forMode: mode)
        }
    }

    /// Serves the sources that are ready in the waiting mode of `loop`, which must be the thread's own. Must
    /// be called without the lock.
    static func poll(_ loop: RunLoop) {
        _ = loop.runUnstoppably(in: mode, for: 0, returnAfterSourceHandled: false)
    }

    /// The calling thread while it waits. Only that thread uses it, without the lock.
    final class Waiter {
        let loop = RunLoop.currentLoop()
        /// Signalled when something has changed.
        let source = RunLoop.Source {}

        init() { loop.add(source, forMode: WaitingThreads.mode) }

        /// - Returns: False if the thread itself is ending.
        func waitForChange() -> Bool {
            // The mode holds the source, so a run finishes only if the thread itself is ending.
            loop.runUnstoppably(in: WaitingThreads.mode, for: .infinity, returnAfterSourceHandled: true)
                != .finished
        }

        func end() { source.invalidate() }
    }
}

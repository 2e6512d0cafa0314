internal import RondoCore

// A read or write that must wait runs the thread's loop in a private mode that holds nothing but the channel
// (rules ST-24, ST-25). The channel may be served by another thread's loop meanwhile: a source of the
// waiter's own tells it that something has changed.
//
// A client that does not want to wait asks for the status, bytes or space again and again; then that is what
// drives the channel (`advance`).
extension SocketPair {
    /// The mode that a waiting thread runs its loop in.
    static let waitingMode = RunLoop.Mode("RondoStreamWaiting")

    /// Makes attempts until one answers, and runs the thread's loop in the waiting mode between them.
    func wait(_ attempt: () -> Int?) -> Int {
        if let result = lock.withLock({ _ in attempt() }) { return result }
        let loop = RunLoop.currentLoop()
        let waiter = RunLoop.Source {}
        loop.add(waiter, forMode: Self.waitingMode)
        lock.withLock { _ in madeWaiting.sources.append(waiter) }
        var wasStopped = false
        defer {
            lock.withLock { _ in waiting?.sources.removeAll { $0 === waiter } }
            waiter.invalidate()
            // Whoever stopped the loop meant what runs outside of this.
            if wasStopped { loop.stop() }
        }
        while true {
            let result = lock.withLock { _ in
                let result = attempt()
                if result == nil { channel.map { waitIn(loop, $0) } }
                return result
            }
            if let result { return result }
            switch loop.run(in: Self.waitingMode, for: .infinity, returnAfterSourceHandled: true) {
            case .handledSource, .timedOut: break
            case .stopped: wasStopped = true
            // The mode holds the waiter and is run, unless the thread itself is ending.
            case .finished: return -1
            }
        }
    }

    /// One poll of the waiting mode, where the connection has something to do that no call of the client's
    /// would do, and no loop either: nobody has scheduled it.
    func advance() {
        let loop = lock.withLock { _ -> RunLoop? in
            guard let channel, channel.isBusy, !input.isScheduled, !output.isScheduled else { return nil }
            let loop = RunLoop.currentLoop()
            waitIn(loop, channel)
            return loop
        }
        guard let loop else { return }
        let result = loop.run(in: Self.waitingMode, for: 0, returnAfterSourceHandled: false)
        if result == .stopped { loop.stop() }
    }

    private var madeWaiting: Waiting {
        if let waiting { return waiting }
        let waiting = Waiting()
        self.waiting = waiting
        return waiting
    }

    private func waitIn(_ loop: RunLoop, _ channel: SocketChannel) {
        let waiting = madeWaiting
        guard !waiting.loops.contains(loop) else { return }
        waiting.loops.append(loop)
        channel.schedule(in: loop, forMode: Self.waitingMode)
        // What it had to do before it was in any loop, to begin with opening, it does now.
        channel.resumeInterest()
    }
}

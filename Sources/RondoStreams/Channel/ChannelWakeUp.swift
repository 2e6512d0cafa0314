internal import RondoCore
internal import RondoMutex

/// The channel's client of the shared queues: any thread can request that the channel is served in one of its
/// modes.
///
/// It also keeps the modes from being empty while a name is looked up and there is no descriptor yet.
final class ChannelWakeUp: SharedQueueClient {
    /// `isWanted` in it means: signalled and not served yet. It is remembered while there is no mode, like
    /// the signal of a source.
    private let schedule = Mutex(StreamSchedule())
    private let interest: ChannelInterest

    init(_ interest: ChannelInterest) { self.interest = interest }

    // No queue can still refer to this object: a queue retains its waiting clients.
    deinit { schedule.withLock { $0.takeAll(of: nil) }.leave() }

    var modes: [ScheduledMode] { schedule.withLock { $0.modes } }

    /// - Parameter queue: Must have been joined for the channel; this object leaves it.
    /// - Returns: False if the channel has the queue's mode already; the caller must leave the queue then.
    func add(_ queue: SharedQueue) -> Bool {
        let queues = schedule.withLock { schedule -> StreamSchedule.Queues? in
            guard !schedule.contains(queue) else { return nil }
            schedule.insert(queue)
            return schedule.isWanted ? schedule.startWaiting() : StreamSchedule.Queues.none
        }
        guard let queues else { return false }
        queues.enqueue(self)
        return true
    }

    func remove(_ mode: ScheduledMode) {
        schedule.withLock { $0.remove(mode, of: self) }?.leave()
    }

    /// - Parameter body: Called for each mode.
    /// - Returns: The queues, which the caller must leave.
    func removeAll(_ body: (RunLoop, RunLoop.Mode) -> Void) -> StreamSchedule.RemovedQueues {
        let left = schedule.withLock { $0.takeAll(of: self) }
        left.forEach { body($0.loop, $0.mode) }
        return left
    }

    /// Requests a pass of the channel in one of its modes. Any thread.
    ///
    /// - Parameter first: Whether it comes before the other channels and loads that wait.
    func signal(first: Bool = false) {
        let queues = schedule.withLock { schedule in
            schedule.isWanted = true
            return schedule.startWaiting()
        }
        queues.enqueue(self, first: first)
    }

    /// Ends the wake-ups: the channel gets no further pass.
    func invalidate() {
        let left = schedule.withLock { schedule in
            schedule.isWanted = false
            return schedule.takeAll(of: self)
        }
        left.leave()
    }

    func serve(by queue: SharedQueue) -> Bool {
        let isWanted = schedule.withLock { schedule in
            guard schedule.endWaiting(servedBy: queue, self) else { return false }
            defer { schedule.isWanted = false }
            return schedule.isWanted
        }
        if isWanted { interest.enter { $0.servePass() } }
        return isWanted
    }

    // MARK: - Sources and timers that lead to the channel

    /// Makes a source whose callback reaches the channel through this object, and so needs no memory of its
    /// own.
    func makeSource(_ descriptor: Int32, interest: RunLoop.Source.Interest) -> RunLoop.Source {
        RunLoop.Source(fileDescriptor: descriptor, keepsFile: true, interest: interest) {
            [self] source, ready in
            self.interest.enter { $0.sourceIsReady(source, ready) }
        }
    }

    /// Makes a timer that brings the channel a pass.
    func makeTimer(after seconds: Double) -> Timer {
        Timer(timeInterval: max(0, seconds), repeats: false) { [self] timer in
            // The channel recognizes a fired timer by this, even in a later pass if the gate refuses this
            // one.
            timer.invalidate()
            interest.enter { $0.servePass() }
        }
    }
}

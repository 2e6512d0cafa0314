internal import RondoCore
internal import RondoMutex

/// The channel's client of the shared queues: has the channel served in one of its modes when any thread asks for it.
///
/// It keeps the modes from being empty while a name is looked up and there is no descriptor yet.
final class ChannelWakeUp: SharedQueueClient {
    /// `isWanted`: signalled, and not served yet; remembered while there is no mode, as the signal of a source is.
    private let schedule = Mutex(StreamSchedule())
    private let interest: ChannelInterest

    init(_ interest: ChannelInterest) { self.interest = interest }

    // A client that waits in a queue is retained by it.
    deinit { schedule.withLock { $0.takeAll(of: nil) }.leave() }

    var modes: [ScheduledMode] { schedule.withLock { $0.modes } }

    /// - Parameter queue: It was joined for the channel, and is left by it.
    /// - Returns: False if the channel has the queue's mode already: the queue is not left.
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
    /// - Returns: The queues, to be left.
    func removeAll(_ body: (RunLoop, RunLoop.Mode) -> Void) -> StreamSchedule.Left {
        let left = schedule.withLock { $0.takeAll(of: self) }
        left.forEach { body($0.loop, $0.mode) }
        return left
    }

    /// Asks for a pass of the channel in one of its modes. Any thread.
    ///
    /// - Parameter first: Before other channels and loads that wait for one.
    func signal(first: Bool = false) {
        let queues = schedule.withLock { schedule in
            schedule.isWanted = true
            return schedule.startWaiting()
        }
        queues.enqueue(self, first: first)
    }

    /// Ends it: the channel gets no pass any more.
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
        if isWanted { interest.enter { $0.goOn() } }
        return isWanted
    }

    // MARK: - What else leads to the channel

    /// A source whose callback has this object for its way to the channel, and so needs no memory of its own.
    func makeSource(_ descriptor: Int32, interest: RunLoop.Source.Interest) -> RunLoop.Source {
        RunLoop.Source(fileDescriptor: descriptor, keepsFile: true, interest: interest) {
            [self] source, ready in
            self.interest.enter { $0.sourceIsReady(source, ready) }
        }
    }

    /// A timer that brings the channel a pass.
    func makeTimer(after seconds: Double) -> Timer {
        Timer(timeInterval: max(0, seconds), repeats: false) { [self] timer in
            // The channel sees by this that it has fired, in a later pass too where the gate is closed now.
            timer.invalidate()
            interest.enter { $0.goOn() }
        }
    }
}

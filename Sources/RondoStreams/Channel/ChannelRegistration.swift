internal import RondoCore

/// The registration of a channel with loops and modes: its sources and timers are added to each of them.
///
/// Only the channel and its opening use it, except for `interest` and `signal`, which any thread may use.
final class ChannelRegistration: ChannelSources {
    /// The events that the channel's descriptors are watched for.
    let interest = ChannelInterest()
    private let wakeUp: ChannelWakeUp
    /// Nearly every open channel has one source and no timer, and needs no array.
    private var source: RunLoop.Source?
    private var otherSources: [RunLoop.Source] = []
    private var timers: [Timer] = []
    /// The name of the sources in traces; set by the channel.
    var label: String? {
        didSet { forEachSource { $0.label = label } }
    }

    init() { wakeUp = ChannelWakeUp(interest) }

    var modes: [ScheduledMode] { wakeUp.modes }

    /// Requests a pass of the channel: a call of its `servePass()` in one of its modes.
    var signal: @Sendable () -> Void { { [wakeUp] in wakeUp.signal() } }

    /// Requests a pass of the channel before the other channels and loads that wait for one.
    var signalFirst: @Sendable () -> Void { { [wakeUp] in wakeUp.signal(first: true) } }

    /// Takes the channel out of all modes for good.
    func end() { wakeUp.invalidate() }

    // MARK: - Modes

    /// - Parameter queue: Must have been joined for the channel; the registration leaves it.
    func add(_ queue: SharedQueue) {
        guard wakeUp.add(queue) else { return queue.leave() }
        let (loop, mode) = (queue.loop, queue.mode)
        forEachSource { loop.add($0, forMode: mode) }
        for timer in timers { loop.add(timer, forMode: mode) }
    }

    func remove(_ mode: ScheduledMode) {
        wakeUp.remove(mode)
        remove(from: mode.loop, mode.mode)
    }

    /// - Returns: The queues, which the caller must leave.
    func removeAll() -> StreamSchedule.RemovedQueues { wakeUp.removeAll { remove(from: $0, $1) } }

    private func remove(from loop: RunLoop, _ mode: RunLoop.Mode) {
        forEachSource { loop.remove($0, forMode: mode) }
        for timer in timers { loop.remove(timer, forMode: mode) }
    }

    // MARK: - Sources

    private func forEachSource(_ body: (RunLoop.Source) -> Void) {
        if let source { body(source) }
        for source in otherSources { body(source) }
    }

    /// Makes a source for the descriptor and adds it to all modes.
    func makeSource(_ descriptor: Int32, interest wanted: RunLoop.Source.Interest) -> RunLoop.Source {
        let source = wakeUp.makeSource(descriptor, interest: wanted)
        interest.set(wanted, of: source)
        add(source)
        return source
    }

    func add(_ added: RunLoop.Source) {
        added.label = label
        if source == nil { source = added } else { otherSources.append(added) }
        for mode in modes { mode.loop.add(added, forMode: mode.mode) }
    }

    func setInterest(_ wanted: RunLoop.Source.Interest, of source: RunLoop.Source) {
        interest.set(wanted, of: source)
    }

    func remove(_ removed: RunLoop.Source) {
        interest.remove(removed)
        if source === removed {
            source = otherSources.popLast()
        } else {
            otherSources.removeAll { $0 === removed }
        }
        removed.invalidate()
    }

    // MARK: - Timers

    /// Starts timers that bring the channel a pass, one for each loop, because a timer belongs to one loop.
    func startTimers(after seconds: Double) -> [Timer] {
        let modes = modes
        let started = Set(modes.map(\.loop)).map { loop in
            let timer = wakeUp.makeTimer(after: seconds)
            for mode in modes where mode.loop == loop { loop.add(timer, forMode: mode.mode) }
            return timer
        }
        timers += started
        return started
    }

    func stop(_ stopped: [Timer]) {
        guard !stopped.isEmpty else { return }
        for timer in stopped { timer.invalidate() }
        timers.removeAll { timer in stopped.contains { $0 === timer } }
    }
}

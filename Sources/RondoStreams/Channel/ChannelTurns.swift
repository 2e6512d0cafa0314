internal import RondoCore
internal import Synchronization

/// What a channel has in its modes besides its descriptors, so that they are not empty while a name is looked
/// up: turns, asked for from any thread. Less than a source of its own: the couriers of the modes serve it.
final class ChannelTurns: SharedQueueClient {
    /// `isWanted`: asked for, and had nowhere; remembered as the signal of a source is.
    private let schedule = Mutex(StreamSchedule())
    private let interest: ChannelInterest

    init(_ interest: ChannelInterest) { self.interest = interest }

    // Nobody who waits for a turn goes.
    deinit { schedule.withLock { $0.takeAll(of: nil) }.leave() }

    var places: [StreamCore.Place] { schedule.withLock { $0.places } }

    /// - Parameter courier: It was joined for them, and is left by them.
    /// - Returns: False if they have one already in its place: it is not left.
    func add(_ courier: SharedQueue) -> Bool {
        let turns = schedule.withLock { schedule -> StreamSchedule.Turns? in
            guard !schedule.contains(courier) else { return nil }
            schedule.insert(courier)
            return schedule.isWanted ? schedule.turnsToAskFor() : StreamSchedule.Turns.none
        }
        guard let turns else { return false }
        turns.ask(for: self)
        return true
    }

    func leave(_ place: StreamCore.Place) {
        schedule.withLock { $0.remove(place, of: self) }?.leave()
    }

    /// - Parameter body: Called for each place.
    /// - Returns: The couriers, to be left.
    func takeAll(_ body: (RunLoop, RunLoop.Mode) -> Void) -> StreamSchedule.Left {
        let left = schedule.withLock { $0.takeAll(of: self) }
        left.forEach { body($0.loop, $0.mode) }
        return left
    }

    /// Asks for a turn of the channel in one of its modes. Any thread.
    func signalAndWakeUp() {
        let turns = schedule.withLock { schedule in
            schedule.isWanted = true
            return schedule.turnsToAskFor()
        }
        turns.ask(for: self)
    }

    /// No turn comes any more.
    func invalidate() {
        let left = schedule.withLock { schedule in
            schedule.isWanted = false
            return schedule.takeAll(of: self)
        }
        left.leave()
    }

    func serve(by queue: SharedQueue) -> Bool {
        let isWanted = schedule.withLock { schedule in
            guard schedule.turnHasCome(by: queue, to: self) else { return false }
            defer { schedule.isWanted = false }
            return schedule.isWanted
        }
        if isWanted { enter { $0.turn() } }
        return isWanted
    }

    func enter(_ body: (SocketChannel) -> Void) { interest.enter(body) }

    /// A source of the channel's. Its callback has these turns for its way there, and so needs no memory of
    /// its own.
    func makeSource(_ descriptor: Int32, interest: RunLoop.Source.Interest) -> RunLoop.Source {
        RunLoop.Source(fileDescriptor: descriptor, keepsFile: true, interest: interest) {
            [self] source, ready in
            enter { $0.sourceIsReady(source, ready) }
        }
    }
}

internal import RondoCore
internal import Synchronization

/// What a channel has in its modes besides its descriptors, so that they are not empty while a name is looked
/// up: turns, asked for from any thread. Less than a source of its own: the couriers of the modes serve it.
final class ChannelTurns: CourierClient {
    private struct State {
        var schedule = StreamSchedule()
        /// Asked for, and had nowhere; remembered as the signal of a source is.
        var isWanted = false

        mutating func turnsToAskFor() -> StreamSchedule.Turns {
            isWanted ? schedule.turnsToAskFor() : .none
        }
    }

    private let state = Mutex(State())
    private let way: SocketChannel.Way

    init(_ way: SocketChannel.Way) { self.way = way }

    deinit { invalidate() }

    var places: [StreamCore.Place] { state.withLock { $0.schedule.places } }

    func contains(_ place: StreamCore.Place) -> Bool { state.withLock { $0.schedule.contains(place) } }

    func join(_ place: StreamCore.Place) {
        let courier = StreamCourier.join(place.loop, place.mode)
        let turns = state.withLock { state -> StreamSchedule.Turns? in
            guard !state.schedule.contains(place) else { return nil }
            state.schedule.insert(courier)
            return state.turnsToAskFor()
        }
        if let turns { turns.ask(for: self) } else { courier.leave() }
    }

    func leave(_ place: StreamCore.Place) {
        state.withLock { $0.schedule.remove(place) }?.leave()
    }

    /// Asks for a turn of the channel in one of its modes. Any thread.
    func signalAndWakeUp() {
        let turns = state.withLock { state in
            state.isWanted = true
            return state.turnsToAskFor()
        }
        turns.ask(for: self)
    }

    /// No turn comes any more.
    func invalidate() {
        let left = state.withLock { state in
            state.isWanted = false
            return state.schedule.takeAll()
        }
        left.leave()
    }

    func turnHasCome(by courier: StreamCourier) -> Bool {
        let isWanted = state.withLock { state in
            guard state.schedule.turnHasCome(by: courier) else { return false }
            defer { state.isWanted = false }
            return state.isWanted
        }
        if isWanted { way.enter { $0.turn() } }
        return isWanted
    }
}

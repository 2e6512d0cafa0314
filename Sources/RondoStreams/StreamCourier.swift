// What streams have in a mode of a loop instead of a source each.
//
// An idle stream should cost little, and a source costs more than all the rest of a stream: so all streams of
// one loop and mode share one signalled source, which keeps the mode from being empty, and a queue of those
// that have something to say. A stream that is served is served as if the source were its own: in the order
// of the signals, one of them where the run ends after a source (rule RL-37), and in nested runs as well.
//
// Threads: a courier is found and made under the lock of the register, its queue is behind a Mutex of its
// own. Clients are called with neither held. The register's lock comes before those of sources and loops.

internal import RondoCore
internal import Synchronization

/// Whoever has something to do when a loop runs in a mode.
protocol CourierClient: AnyObject, Sendable {
    /// Its turn, on the loop's thread, with no lock held. What it asked for at `courier` is over with.
    ///
    /// - Returns: Whether there was anything to do: another loop or mode may have been quicker.
    func turnHasCome(by courier: StreamCourier) -> Bool
}

final class StreamCourier: Sendable {
    private struct Key: Hashable {
        let loop: RunLoop
        let mode: RunLoop.Mode

        // A loop is an NSObject, whose own equality takes its time to come to the same.
        static func == (left: Key, right: Key) -> Bool { left.loop === right.loop && left.mode == right.mode }

        func hash(into hasher: inout Hasher) {
            hasher.combine(ObjectIdentifier(loop))
            hasher.combine(mode)
        }
    }

    private struct Register {
        var couriers: [Key: StreamCourier] = [:]
        /// The one that was joined last, which is nearly always the one that is wanted next.
        var last: StreamCourier?
    }

    private static let register = Mutex(Register())

    let loop: RunLoop
    let mode: RunLoop.Mode
    private let source: RunLoop.Source
    /// Who has joined; behind the register's lock.
    private let members = Mutex(0)
    private let waiting = Mutex<ArraySlice<any CourierClient>>([])

    private init(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        self.loop = loop
        self.mode = mode
        let way = Way()
        source = RunLoop.Source { way.courier.withLock { $0 }?.turn() }
        source.label = "streams"
        way.courier.withLock { $0 = self }
    }

    /// From the source to its courier, who keep each other until the last member leaves: an invalid source
    /// lets go of what it performs.
    private final class Way: Sendable {
        let courier = Mutex<StreamCourier?>(nil)
    }

    // MARK: - Members

    /// The courier of `mode`, which is not empty from now on until everybody who has joined has left.
    static func join(_ loop: RunLoop, _ mode: RunLoop.Mode) -> StreamCourier {
        register.withLock { register in
            if let last = register.last, last.loop === loop, last.mode == mode {
                last.members.withLock { $0 += 1 }
                return last
            }
            let key = Key(loop: loop, mode: mode)
            let courier = register.couriers[key] ?? StreamCourier(loop, mode)
            if register.couriers.updateValue(courier, forKey: key) == nil {
                loop.add(courier.source, forMode: mode)
            }
            courier.members.withLock { $0 += 1 }
            register.last = courier
            return courier
        }
    }

    /// To be called once for each `join`.
    func leave() {
        Self.register.withLock { register in
            let isEmpty = members.withLock { members in
                members -= 1
                return members == 0
            }
            guard isEmpty else { return }
            register.couriers[Key(loop: loop, mode: mode)] = nil
            if register.last === self { register.last = nil }
            source.invalidate()
        }
    }

    // MARK: - Turns

    /// Asks for a turn of `client`, who does not ask again before it has come.
    func post(_ client: any CourierClient) {
        waiting.withLock { $0.append(client) }
        source.signal()
        loop.wakeUp()
    }

    /// Serves those who wait now, and no more: whoever comes meanwhile has the next pass. One alone where the
    /// run ends after a source.
    private func turn() {
        var rest = loop.returnsAfterSource ? 1 : waiting.withLock { $0.count }
        while rest > 0, let client = next() {
            if client.turnHasCome(by: self) { rest -= 1 }
        }
        // Under the lock, or a signal that comes between would be lost.
        waiting.withLock { waiting in
            if waiting.isEmpty { source.withdrawSignal() } else { source.signal() }
        }
    }

    /// Those behind it stay signalled: its callback may run the loop, and they are served there.
    private func next() -> (any CourierClient)? {
        waiting.withLock { waiting in
            guard let client = waiting.popFirst() else { return nil }
            if waiting.isEmpty { waiting = [] } else { source.signal() }
            return client
        }
    }
}

// What streams and loads have in a mode of a loop instead of a source each.
//
// An idle stream should cost little, and a source costs more than all the rest of a stream; a load comes and goes
// in no time, and a source takes longer to come and go: so all streams and loads of one loop and mode share one
// signalled source, which keeps the mode from being empty, and a queue of those
// that have something to say. A stream that is served is served as if the source were its own: in the order
// of the signals, one that calls somebody where the run ends after a source (rule RL-37), and in nested runs as well.
//
// Threads: a courier is found and made under the lock of the register, its queue is behind a Mutex of its
// own. Clients are called with neither held. The register's lock comes before those of sources and loops.

package import RondoCore
internal import Synchronization

/// Whoever has something to do when a loop runs in a mode.
package protocol CourierClient: AnyObject, Sendable {
    /// Its turn, on the loop's thread, with no lock held. What it asked for at `courier` is over with.
    ///
    /// - Returns: Whether it has called anybody of the program's, or may have: not if another loop or mode was quicker.
    func turnHasCome(by courier: StreamCourier) -> Bool
}

/// A client that hears more of its courier than its turns. It has a seat there.
package protocol SeatedCourierClient: CourierClient {
    /// The thread of the courier's loop has ended, and no turn comes any more. On that thread.
    func courierIsLost()
    /// A moment has passed: see `StreamCourier.Seat.tellWhenAMomentHasPassed()`. On the loop's thread, in its mode.
    func momentHasPassed()
}

/// What a courier keeps for a while and then releases.
package protocol SpentObject: AnyObject, Sendable {
    /// For the courier's use.
    var nextSpent: (any SpentObject)? { get set }
}

package final class StreamCourier: Sendable {
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

    package let loop: RunLoop
    package let mode: RunLoop.Mode
    private let source: RunLoop.Source
    private let members = Mutex(Members())
    private let waiting = Mutex(Waiting())
    /// For those whose turns are here.
    let spaceLook: SpaceLook

    private struct Waiting: ~Copyable {
        var clients = CourierQueue()
        /// The source is signalled, and not to be served late: whoever comes need not do it again.
        var isSignalled = false
        /// See `releaseAfterTurns`; the last one, which leads to the others.
        var spent: (any SpentObject)?
    }

    private struct Members: ~Copyable {
        /// Everybody who has joined.
        var count = 0
        /// Those who have a seat, each at its number.
        var seats: [Occupied] = []
        var free: [Int] = []
        var momentTimer: Timer?

        struct Occupied {
            /// Nil: the seat is free.
            var client: (any SeatedCourierClient)?
            /// It is to be told when a moment has passed.
            var waitsForMoment = false
        }

        mutating func take(_ client: any SeatedCourierClient) -> Int {
            if let number = free.popLast() {
                seats[number] = Occupied(client: client)
                return number
            }
            seats.append(Occupied(client: client))
            return seats.count - 1
        }

        mutating func takeThoseWhoWaitForAMoment() -> [any SeatedCourierClient] {
            momentTimer = nil
            var found: [any SeatedCourierClient] = []
            for number in seats.indices where seats[number].waitsForMoment {
                seats[number].waitsForMoment = false
                if let client = seats[number].client { found.append(client) }
            }
            return found
        }
    }

    private init(_ loop: RunLoop, _ mode: RunLoop.Mode, label: String = "streams and loads") {
        self.loop = loop
        self.mode = mode
        spaceLook = SpaceLook(loop)
        let way = Way()
        source = RunLoop.Source(
            cancel: { _, _ in way.courier.withLock { $0 }?.isLost() },
            perform: { way.courier.withLock { $0 }?.turn() })
        source.label = label
        way.courier.withLock { $0 = self }
    }

    deinit { Self.release(waiting.withLock { $0.spent.take() }) }

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
                last.members.withLock { $0.count += 1 }
                return last
            }
            let key = Key(loop: loop, mode: mode)
            let courier = register.couriers[key] ?? StreamCourier(loop, mode)
            if register.couriers.updateValue(courier, forKey: key) == nil {
                loop.add(courier.source, forMode: mode)
            }
            courier.members.withLock { $0.count += 1 }
            register.last = courier
            return courier
        }
    }

    /// Joins once more, by who has joined already and does not leave meanwhile.
    func joinAgain() { members.withLock { $0.count += 1 } }

    /// To be called once for each `join`.
    func leave() {
        // Nearly always somebody stays, and nothing more is to be done.
        let isLast = members.withLock { members in
            guard members.count > 1 else { return true }
            members.count -= 1
            return false
        }
        guard isLast else { return }
        let hasLeft = Self.register.withLock { register -> Bool in
            let timer = members.withLock { members -> Timer?? in
                members.count -= 1
                if members.count > 0 { return nil }
                defer { members.momentTimer = nil }
                return .some(members.momentTimer)
            }
            guard case .some(let timer) = timer else { return false }
            let key = Key(loop: loop, mode: mode)
            if register.couriers[key] === self { register.couriers[key] = nil }
            if register.last === self { register.last = nil }
            source.invalidate()
            timer?.invalidate()
            return true
        }
        // The mode may be empty, which is asked at the end of a pass: one that has served nothing sleeps before (rule RL-32).
        if hasLeft { loop.wakeUp() }
    }

    // MARK: - Seats

    package struct Seat: Sendable {
        package let courier: StreamCourier
        fileprivate let number: Int

        /// To be called once.
        package func leave() {
            let client = courier.members.withLock { members in
                members.free.append(number)
                defer { members.seats[number] = Members.Occupied() }
                return members.seats[number].client
            }
            courier.leave()
            withExtendedLifetime(client) {}
        }

        /// Has the client told, once, when a moment has passed, or somewhat sooner: nearly all loads are over by then,
        /// and what only long ones need is not made for them.
        package func tellWhenAMomentHasPassed() { courier.tellWhenAMomentHasPassed(number) }
    }

    /// Joins, for a client that wants to hear more than its turns.
    ///
    /// - Parameter label: What the source is called in the loop. Whoever has a name has a courier of its own; nil:
    ///   the one that is shared.
    package static func join(
        _ loop: RunLoop, _ mode: RunLoop.Mode, label: String?, as client: any SeatedCourierClient
    ) -> Seat {
        guard let label else {
            let courier = join(loop, mode)
            return Seat(courier: courier, number: courier.members.withLock { $0.take(client) })
        }
        let courier = StreamCourier(loop, mode, label: label)
        let number = courier.members.withLock { members in
            members.count = 1
            return members.take(client)
        }
        loop.add(courier.source, forMode: mode)
        return Seat(courier: courier, number: number)
    }

    /// Whether its loop's thread has ended.
    package var hasLostItsThread: Bool { !source.isScheduled }

    private func isLost() {
        for client in members.withLock({ $0.seats.compactMap(\.client) }) { client.courierIsLost() }
    }

    /// How long a moment is, in seconds.
    package static let moment = 0.1

    private func tellWhenAMomentHasPassed(_ number: Int) {
        let timer = members.withLock { members -> Timer? in
            members.seats[number].waitsForMoment = true
            guard members.momentTimer == nil else { return nil }
            // Until it fires, or everybody has left.
            let timer = Timer(timeInterval: Self.moment, repeats: false) { [self] _ in momentHasPassed() }
            members.momentTimer = timer
            return timer
        }
        if let timer { loop.add(timer, forMode: mode) }
    }

    private func momentHasPassed() {
        for client in members.withLock({ $0.takeThoseWhoWaitForAMoment() }) { client.momentHasPassed() }
    }

    // MARK: - Turns

    /// Asks for a turn of `client`, who does not ask again before it has come.
    package func post(_ client: any CourierClient) {
        let isFirst = waiting.withLock { waiting in
            waiting.clients.append(client)
            defer { signal(&waiting) }
            return !waiting.isSignalled
        }
        // Whoever has signalled before has woken it, or is its own thread.
        if isFirst { loop.wakeUp() }
    }

    /// As `post`, where it may wait until the loop has served what is ready: see `RunLoop.letsTurnComeLate(in:)`.
    package func postLater(_ client: any CourierClient) {
        guard loop.isCurrent, let running = loop.letsTurnComeLate(in: mode) else { return post(client) }
        waiting.withLock { $0.clients.append(client) }
        if source.signalForLater() { loop.noteLateTurn(in: running) }
    }

    /// Keeps `spent`, which is over and done with, until those who wait for a turn have had it: what they send does not
    /// wait for what is cleared away. If nobody waits it goes at once, and so does what is left of turns that were
    /// withdrawn.
    ///
    /// - Returns: Whether somebody waits.
    @discardableResult
    package func releaseAfterTurns(_ spent: (any SpentObject)?) -> Bool {
        let (left, isWaited) = waiting.withLock { waiting -> ((any SpentObject)?, Bool) in
            if waiting.clients.isEmpty { return (waiting.spent.take(), false) }
            if let spent {
                spent.nextSpent = waiting.spent
                waiting.spent = spent
            }
            return (nil, true)
        }
        Self.release(left)
        return isWaited
    }

    /// One after the other: of a long chain each would be released inside of the one before, as deep as the stack goes.
    private static func release(_ first: (any SpentObject)?) {
        var next = first
        while let object = next { next = object.nextSpent.take() }
    }

    /// No turn is wanted any more of what was asked for.
    func withdraw(_ client: any CourierClient) {
        waiting.withLock { waiting in
            waiting.clients.remove(client)
            if waiting.clients.isEmpty { withdrawSignal(&waiting) }
        }
    }

    /// Serves those who wait now, and no more: whoever comes meanwhile has the next pass. Where the run ends after a source,
    /// one who calls somebody, and some before him who do not.
    private func turn() {
        loop.takeLateTurns()
        let isLast = loop.returnsAfterSource
        var rest = waiting.withLock { waiting in
            waiting.isSignalled = false
            return waiting.clients.count
        }
        if isLast { rest = min(rest, RunLoop.maximumPutOff) }
        let areSeveral = rest > 1
        loop.servesSeveral = areSeveral
        while rest > 0, let client = next() {
            rest -= 1
            if client.turnHasCome(by: self) && isLast { break }
            loop.doWhatIsOverdue()
        }
        if areSeveral { loop.endTurnOfSeveral() }
        // Under the lock, or a signal that comes between would be lost.
        let spent = waiting.withLock { waiting in
            if waiting.clients.isEmpty { withdrawSignal(&waiting) } else { signal(&waiting) }
            return waiting.spent.take()
        }
        Self.release(spent)
    }

    /// Those behind it stay signalled: its callback may run the loop, and they are served there.
    private func next() -> (any CourierClient)? {
        waiting.withLock { waiting in
            guard let client = waiting.clients.popFirst() else { return nil }
            if !waiting.clients.isEmpty { signal(&waiting) }
            return client
        }
    }

    // Under the lock, by which a signal is never withdrawn that somebody counts on.

    private func signal(_ waiting: inout Waiting) {
        if !waiting.isSignalled { source.signal() }
        waiting.isSignalled = true
    }

    private func withdrawSignal(_ waiting: inout Waiting) {
        source.withdrawSignal()
        waiting.isSignalled = false
    }
}

// Which of a host's addresses is tried when: RFC 8305, "happy eyeballs".
//
// A value: the owner starts and cancels the attempts and keeps the clock; this type only returns the next
// step. The first address is tried at once, then one more every 250 ms, or as soon as an attempt fails;
// earlier attempts continue meanwhile, and the first that succeeds wins. The two families alternate, starting
// with the one that the resolver put first. There is no time limit here: the owner limits the connection as a
// whole.

/// Decides which addresses of a host are tried and when, as a value.
///
/// Inputs are the `mutating` methods; each returns the actions to perform now, in this order.
package struct Connector {
    /// The time between two attempts, unless one fails (RFC 8305, section 5: recommended 250 ms).
    package static let attemptDelay: UInt64 = 250_000_000
    /// The most addresses of a host that are tried; further ones are ignored.
    package static let addressLimit = 32

    /// The number of an attempt, from 0 in the order of their start.
    package typealias AttemptID = Int

    package enum Action: Equatable {
        case start(AttemptID, SocketAddress)
        /// Call `timeReached` at this time; replaces any earlier time.
        case waitUntil(UInt64)
        case cancel(AttemptID)
        /// This attempt has succeeded; all others were cancelled.
        case connected(AttemptID)
        /// All attempts have failed; the errors are in the order in which they came. Empty if there was no
        /// address.
        case failed([SocketError])
    }

    private enum State {
        case idle
        case trying(Trying)
        /// Connected, failed or cancelled: later inputs are ignored.
        case over
    }

    private struct Trying {
        var remaining: ArraySlice<SocketAddress>
        var running: [AttemptID] = []
        var started = 0
        /// The time when the next attempt is due.
        var due: UInt64
        var errors: [SocketError] = []
    }

    private var state = State.idle

    package init() {}

    /// Starts with the addresses of the host. Must be called once.
    package mutating func start(_ addresses: [SocketAddress], now: UInt64) -> [Action] {
        guard case .idle = state else { preconditionFailure("bug in Rondo: a connector was started twice") }
        let order = Self.interleaved(addresses).prefix(Self.addressLimit)
        return advance(Trying(remaining: order, due: now), now: now)
    }

    /// Reports that an attempt has failed, or could not be started.
    package mutating func attemptFailed(_ id: AttemptID, _ error: SocketError, now: UInt64) -> [Action] {
        guard case .trying(var trying) = state, let index = trying.running.firstIndex(of: id) else {
            return []
        }
        trying.running.remove(at: index)
        trying.errors.append(error)
        trying.due = now
        return advance(trying, now: now)
    }

    /// Reports that an attempt has succeeded.
    package mutating func attemptSucceeded(_ id: AttemptID) -> [Action] {
        guard case .trying(let trying) = state, trying.running.contains(id) else { return [] }
        state = .over
        return trying.running.filter { $0 != id }.map(Action.cancel) + [.connected(id)]
    }

    /// Reports that the time of `waitUntil` has come; a call that is too early does no harm.
    package mutating func timeReached(_ now: UInt64) -> [Action] {
        guard case .trying(let trying) = state, !trying.remaining.isEmpty else { return [] }
        return now >= trying.due ? advance(trying, now: now) : [.waitUntil(trying.due)]
    }

    /// Gives the connection up.
    package mutating func cancel() -> [Action] {
        defer { state = .over }
        guard case .trying(let trying) = state else { return [] }
        return trying.running.map(Action.cancel)
    }

    /// Starts the next attempt; fails if no address and no running attempt is left.
    private mutating func advance(_ before: Trying, now: UInt64) -> [Action] {
        var trying = before
        guard let address = trying.remaining.popFirst() else {
            state = trying.running.isEmpty ? .over : .trying(trying)
            return trying.running.isEmpty ? [.failed(trying.errors)] : []
        }
        let id = trying.started
        trying.started += 1
        trying.running.append(id)
        trying.due = now.addingReportingOverflow(Self.attemptDelay).overflow ? .max : now + Self.attemptDelay
        state = .trying(trying)
        return trying.remaining.isEmpty
            ? [.start(id, address)] : [.start(id, address), .waitUntil(trying.due)]
    }

    /// RFC 8305, section 4: the families alternate, each in its own order, the first one first.
    static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        guard addresses.count > 2, let family = addresses.first?.family else { return addresses }
        let first = addresses.filter { $0.family == family }
        let others = addresses.filter { $0.family != family }
        var order: [SocketAddress] = []
        for index in 0..<max(first.count, others.count) {
            if index < first.count { order.append(first[index]) }
            if index < others.count { order.append(others[index]) }
        }
        return order
    }
}

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
        case connecting(Progress)
        /// Connected, failed or cancelled: later inputs are ignored.
        case over
    }

    private struct Progress {
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
        return advance(Progress(remaining: order, due: now), now: now)
    }

    /// Reports that an attempt has failed, or could not be started.
    package mutating func attemptFailed(_ id: AttemptID, _ error: SocketError, now: UInt64) -> [Action] {
        guard case .connecting(var progress) = state, let index = progress.running.firstIndex(of: id) else {
            return []
        }
        progress.running.remove(at: index)
        progress.errors.append(error)
        progress.due = now
        return advance(progress, now: now)
    }

    /// Reports that an attempt has succeeded.
    package mutating func attemptSucceeded(_ id: AttemptID) -> [Action] {
        guard case .connecting(let progress) = state, progress.running.contains(id) else { return [] }
        state = .over
        return progress.running.filter { $0 != id }.map(Action.cancel) + [.connected(id)]
    }

    /// Reports that the time of `waitUntil` has come; a call that is too early does no harm.
    package mutating func timeReached(_ now: UInt64) -> [Action] {
        guard case .connecting(let progress) = state, !progress.remaining.isEmpty else { return [] }
        return now >= progress.due ? advance(progress, now: now) : [.waitUntil(progress.due)]
    }

    /// Gives the connection up.
    package mutating func cancel() -> [Action] {
        defer { state = .over }
        guard case .connecting(let progress) = state else { return [] }
        return progress.running.map(Action.cancel)
    }

    /// Starts the next attempt; fails if no address and no running attempt is left.
    private mutating func advance(_ before: Progress, now: UInt64) -> [Action] {
        var progress = before
        guard let address = progress.remaining.popFirst() else {
            state = progress.running.isEmpty ? .over : .connecting(progress)
            return progress.running.isEmpty ? [.failed(progress.errors)] : []
        }
        let id = progress.started
        progress.started += 1
        progress.running.append(id)
        progress.due =
            now.addingReportingOverflow(Self.attemptDelay).overflow ? .max : now + Self.attemptDelay
        state = .connecting(progress)
        return progress.remaining.isEmpty
            ? [.start(id, address)] : [.start(id, address), .waitUntil(progress.due)]
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

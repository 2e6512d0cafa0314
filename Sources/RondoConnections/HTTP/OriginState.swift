internal import RondoCore
internal import Synchronization

/// Who may have a connection to a server now, and who waits for one: decisions only.
struct SlotState<Waiter>: ~Copyable {
    typealias Server = PoolKey.Server

    private struct Entry {
        let ticket: Int
        let server: Server
        let waiter: Waiter
    }

    private struct Used {
        let server: Server
        var count = 0
    }

    /// Where more servers are remembered, those are forgotten to which no connection is in use.
    static var serversKept: Int { 16 }

    private(set) var limits: URLConnection.Limits
    private var used: [Used] = []
    /// Where each stands in `used`.
    private var places: [Server: Int] = [:]
    /// Which was named last, and is nearly always the next one too: found without hashing.
    private var last = 0
    private var total = 0
    private var waiting: [Entry] = []
    private var nextTicket = 0

    init(limits: URLConnection.Limits) { self.limits = limits }

    var isUnused: Bool { total == 0 && waiting.isEmpty }

    /// How many servers are remembered.
    var serverCount: Int { used.count }

    /// - Returns: Nil if there is room; a ticket if the waiter has to wait for its turn.
    mutating func enter(_ server: Server, _ waiter: Waiter) -> Int? {
        let place = place(of: server)
        // Who comes later does not overtake.
        if hasRoom(at: place), waiting.isEmpty || !waiting.contains(where: { $0.server == server }) {
            take(at: place)
            return nil
        }
        nextTicket += 1
        waiting.append(Entry(ticket: nextTicket, server: server, waiter: waiter))
        return nextTicket
    }

    /// A connection is not in use any more.
    ///
    /// - Returns: Who has one now, with the ticket.
    mutating func leave(_ server: Server) -> [(ticket: Int, waiter: Waiter)] {
        let place = place(of: server)
        precondition(used[place].count > 0, "bug in Rondo: no connection to \(server.host) is in use")
        used[place].count -= 1
        total -= 1
        forgetIfUnused(at: place)
        return waiting.isEmpty ? [] : admit()
    }

    /// Somebody waits no longer.
    ///
    /// - Returns: False if that ticket has had its turn already.
    mutating func withdraw(_ ticket: Int) -> Bool {
        guard let index = waiting.firstIndex(where: { $0.ticket == ticket }) else { return false }
        let place = place(of: waiting.remove(at: index).server)
        forgetIfUnused(at: place)
        return true
    }

    mutating func setLimits(_ limits: URLConnection.Limits) -> [(ticket: Int, waiter: Waiter)] {
        self.limits = limits
        return admit()
    }

    /// In order, but nobody waits for a server that has room because another one has none.
    private mutating func admit() -> [(ticket: Int, waiter: Waiter)] {
        var admitted: [(ticket: Int, waiter: Waiter)] = []
        var index = 0
        while index < waiting.count, total < limits.connections {
            let entry = waiting[index]
            let place = place(of: entry.server)
            guard hasRoom(at: place) else {
                index += 1
                continue
            }
            waiting.remove(at: index)
            take(at: place)
            admitted.append((entry.ticket, entry.waiter))
        }
        return admitted
    }

    private mutating func place(of server: Server) -> Int {
        if last < used.count, used[last].server == server { return last }
        if let place = places[server] {
            last = place
        } else {
            last = used.count
            places[server] = last
            used.append(Used(server: server))
        }
        return last
    }

    /// Or whoever speaks to ever new servers would have them all remembered.
    private mutating func forgetIfUnused(at place: Int) {
        guard used[place].count == 0, used.count > Self.serversKept else { return }
        places[used[place].server] = nil
        used.swapAt(place, used.count - 1)
        used.removeLast()
        if place < used.count { places[used[place].server] = place }
    }

    private func hasRoom(at place: Int) -> Bool {
        var limit = limits.connectionsPerServer
        let server = used[place].server
        if !limits.exceptions.isEmpty, let exception = limits.exceptions["\(server.host):\(server.port)"] {
            limit = max(1, exception)
        }
        return total < limits.connections && used[place].count < limit
    }

    private mutating func take(at place: Int) {
        used[place].count += 1
        total += 1
    }
}

extension URLConnection {
    /// How many connections to servers may be in use at once, and how many are kept open for later requests.
    ///
    /// A load that finds no room waits, in order, and that time is not held against its timeout.
    ///
    /// A load that stands still because its mode does not run keeps its place.
    public struct Limits: Sendable, Hashable {
        /// To one host and port, or to one proxy. At least 1.
        public var connectionsPerServer = 256
        /// Other numbers for servers, or proxies, by "host:port". At least 1.
        public var exceptions: [String: Int] = [:]
        /// In all: well below the 1,024 descriptors that a process may have open as a rule. At least 1.
        public var connections = 512
        /// Kept open to one server while no load uses them. 0 keeps none.
        public var idleConnectionsPerServer = 64
        /// Kept open in all while no load uses them; beyond that the one that was used longest ago is closed.
        /// 0 keeps none.
        public var idleConnections = 256

        public init() {}
    }

    /// The limits of this process. Any thread.
    public static var limits: Limits {
        get { ConnectionSlots.shared.limits }
        set { ConnectionSlots.shared.limits = newValue }
    }
}

/// The places of the process.
final class ConnectionSlots: Sendable {
    static let shared = ConnectionSlots()

    private let state = Mutex(SlotState<Loader>(limits: URLConnection.Limits()))

    var limits: URLConnection.Limits {
        get { state.withLock { $0.limits } }
        set {
            var limits = newValue
            limits.connections = max(1, limits.connections)
            limits.connectionsPerServer = max(1, limits.connectionsPerServer)
            limits.idleConnections = max(0, limits.idleConnections)
            limits.idleConnectionsPerServer = max(0, limits.idleConnectionsPerServer)
            Pool.shared.setLimits(limits)
            call(state.withLock { [limits] in $0.setLimits(limits) })
        }
    }

    /// - Returns: Nil if there is room; if not, a ticket, with which the load is told once there is.
    func enter(_ key: PoolKey, _ load: Loader) -> Int? {
        state.withLock { $0.enter(key.server, load) }
    }

    func leave(_ key: PoolKey) {
        let (admitted, isLast) = state.withLock { ($0.leave(key.server), $0.isUnused) }
        call(admitted)
        if isLast { HeapTrimmer.shared.trimAfterBurst() }
    }

    func withdraw(_ ticket: Int) -> Bool { state.withLock { $0.withdraw(ticket) } }

    private func call(_ admitted: [(ticket: Int, waiter: Loader)]) {
        for (ticket, load) in admitted { load.isAdmitted(with: ticket) }
    }
}

internal import RondoCore
internal import RondoStreams

/// A load that waits for a network instead of failing (rule US-70): until something changes in the machine's addresses and
/// routes, and for so long at most.
///
/// Used inside the gate of its load.
struct ConnectivityWait {
    /// It is tried again at least so often, in seconds: what a name server or a router does further out, nothing tells.
    static let longestPause: TimeInterval = 30
    /// Between a change and the next try, in seconds: an address, a route and a name server come one after the other.
    static let settlingTime: TimeInterval = 0.2

    /// The client was told that the load waits, which it is at most once.
    private(set) var isTold = false
    private var pause: ScheduleTimer?
    private var changes: NetworkChanges.Registration?

    /// Nothing is sent before `end()`.
    var isWaiting: Bool { pause != nil }

    /// - Parameter tryAgain: Called when it is time; on whatever thread, more than once perhaps.
    /// - Returns: Whether the client has to be told.
    mutating func begin(in schedule: [LoopMode], tryAgain: @escaping @Sendable () -> Void) -> Bool {
        pause?.invalidate()
        let timer = ScheduleTimer(schedule, after: Self.longestPause, repeats: false) { _ in tryAgain() }
        pause = timer
        if changes == nil { changes = NetworkChanges.shared.register { timer.move(to: Self.settlingTime) } }
        defer { isTold = true }
        return !isTold
    }

    /// - Returns: Whether it has waited.
    mutating func end() -> Bool {
        changes = nil
        guard let pause = pause.take() else { return false }
        pause.invalidate()
        return true
    }
}

extension LoadFailure {
    /// There is no route, no network, or no answer of a name server; not that a server or a name is not there.
    var isLackOfConnectivity: Bool {
        guard case .channel(let error) = self else { return false }
        return error.isLackOfConnectivity
    }
}

extension ChannelError {
    fileprivate var isLackOfConnectivity: Bool {
        switch self {
        case .resolve(let error): error.kind == .lookupFailed
        case .connect(_, _, let errors):
            !errors.isEmpty
                && errors.allSatisfy {
                    [ENETUNREACH, ENETDOWN, EHOSTUNREACH, EADDRNOTAVAIL].contains($0.code)
                }
        case .proxy(_, let error): error.isLackOfConnectivity
        case .tls, .negotiation, .timedOut, .gaveWay, .broken: false
        }
    }
}

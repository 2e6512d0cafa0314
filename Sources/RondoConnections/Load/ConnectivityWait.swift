internal import RondoCore
internal import RondoStreams

/// A load's wait for a network, instead of failing (rule US-70): until something changes in the machine's addresses and
/// routes, and for so long at most. It ends when it is released.
///
/// Used inside the gate of its load.
final class ConnectivityWait {
    /// The maximum pause before another attempt, in seconds: nothing reports changes at a name server or a
    /// distant router.
    static let longestPause: TimeInterval = 30
    /// Between a change and the next try, in seconds: an address, a route and a name server come one after the other.
    static let settlingTime: TimeInterval = 0.2

    private let pause: ScheduleTimer
    private let changes: NetworkChanges.Registration

    /// - Parameter tryAgain: Called when it is time; on whatever thread, more than once perhaps.
    init(in schedule: [LoopMode], tryAgain: @escaping @Sendable () -> Void) {
        let pause = ScheduleTimer(schedule, after: Self.longestPause, repeats: false) { _ in tryAgain() }
        self.pause = pause
        changes = NetworkChanges.shared.register { pause.move(to: Self.settlingTime) }
    }

    deinit { pause.invalidate() }
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
        case .tls, .negotiation, .timedOut, .evicted, .broken: false
        }
    }
}

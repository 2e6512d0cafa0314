package import RondoCore
internal import RondoStreams

/// A load's wait for a network, instead of failing (rule US-70): until the machine's addresses or routes
/// change, and for `longestPause` at most. Then the load tries again. Releasing the object ends the wait.
///
/// Used inside the gate of its load, or on the thread of its loop.
package final class ConnectivityWait {
    /// The maximum pause before another attempt, in seconds: nothing reports changes at a name server or a
    /// distant router.
    static let longestPause: TimeInterval = 30
    /// The pause between a change and the next attempt, in seconds: a new network brings its address, its
    /// route and its name server one after the other.
    static let settlingTime: TimeInterval = 0.2

    private let pause: ScheduleTimer
    private let changes: NetworkChanges.Registration

    /// - Parameter tryAgain: Called at the end of the wait, on any thread, perhaps more than once.
    package init(in modes: [LoopMode], tryAgain: @escaping @Sendable () -> Void) {
        let pause = ScheduleTimer(modes, after: Self.longestPause, repeats: false) { _ in tryAgain() }
        self.pause = pause
        changes = NetworkChanges.shared.register { pause.move(to: Self.settlingTime) }
    }

    deinit { pause.invalidate() }
}

extension LoadFailure {
    /// Whether the failure is that of a missing network: no route, or no name server that answers. A host
    /// name that does not exist, or a server that refuses the connection, is no such failure.
    package var isLackOfConnectivity: Bool {
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

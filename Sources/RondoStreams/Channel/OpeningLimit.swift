internal import RondoCore

/// The limits of an opening: its time and, for a server's connection, the number of unfinished handshakes.
struct OpeningLimit {
    private enum Time {
        case unlimited
        case running([Timer])
        /// The time is over, but the peer's bytes were here already: they are looked at first.
        case grace([Timer])
    }

    /// What a peer gets beyond the limit whose bytes were here already when it was reached, in seconds.
    private static let graceSeconds = 1.0

    private let sources: any ChannelSources
    /// The limit, in seconds.
    private var seconds = 0.0
    private var time = Time.unlimited
    /// Of a server's connection, as long as its handshake is not over.
    private var handshake: (entry: UnfinishedHandshakes.Entry, among: UnfinishedHandshakes)?

    init(_ sources: any ChannelSources) { self.sources = sources }

    // MARK: - Time

    /// Does nothing while the time is running.
    mutating func start(_ configuration: ChannelConfiguration) {
        let limits = [configuration.openingLimit, configuration.handshakes?.seconds]
        guard case .unlimited = time, let seconds = limits.compactMap({ $0 }).min() else { return }
        self.seconds = seconds
        time = .running(sources.startTimers(after: seconds))
    }

    mutating func stop() {
        switch time {
        case .running(let timers), .grace(let timers): sources.stop(timers)
        case .unlimited: return
        }
        time = .unlimited
    }

    /// Whether the time is over.
    ///
    /// - Parameter mayHaveMore: Whether bytes of the peer's are here: the loop may have been in another mode, so they are
    ///   looked at before the clock is.
    mutating func isReached(mayHaveMore: @autoclosure () -> Bool) -> Bool {
        switch time {
        case .running(let timers) where timers.contains { !$0.isValid }:
            guard mayHaveMore() else { return true }
            sources.stop(timers)
            time = .grace(sources.startTimers(after: Self.graceSeconds))
            return false
        case .grace(let timers): return timers.contains { !$0.isValid }
        case .running, .unlimited: return false
        }
    }

    func timedOut(_ configuration: ChannelConfiguration) -> ChannelError {
        .timedOut(host: configuration.host, port: configuration.port, seconds: seconds)
    }

    // MARK: - Handshakes

    /// A handshake begins, as one of `handshakes` if there is a limit to them.
    mutating func enter(_ handshakes: UnfinishedHandshakes?, whenGivenUp: @escaping @Sendable () -> Void) {
        guard handshake == nil, let handshakes else { return }
        handshake = (handshakes.enter(whenGivenUp: whenGivenUp), handshakes)
    }

    /// The peer has done its part, or is gone.
    mutating func leaveHandshake() {
        if let (entry, handshakes) = handshake.take() { handshakes.leave(entry) }
    }

    /// Newer handshakes have taken this one's room.
    var hasGivenWay: Bool { handshake?.entry.hasGivenWay ?? false }

    func gaveWay(_ configuration: ChannelConfiguration) -> ChannelError {
        .gaveWay(host: configuration.host, port: configuration.port, limit: handshake?.among.limit ?? 0)
    }

    mutating func end() {
        stop()
        leaveHandshake()
    }
}

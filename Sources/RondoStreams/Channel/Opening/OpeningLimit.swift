internal import RondoCore

/// The limits of an opening: its time and, for a server's connection, the number of unfinished handshakes.
struct OpeningLimit {
    private enum Time {
        case unlimited
        case running([Timer])
        /// The limit was reached while an answer waited; it is processed first.
        case grace([Timer])
        /// The opening is suspended, with that many seconds left.
        case suspended(left: Double, isGrace: Bool)
    }

    /// The extra seconds for an opening whose next answer had already come when the limit was reached.
    private static let graceSeconds = 1.0

    private let sources: any ChannelSources
    /// The limit, in seconds.
    private var seconds = 0.0
    /// The end of the time that is running.
    private var deadline = LoopInstant.never
    private var time = Time.unlimited
    /// The entry of a server's connection while its handshake is unfinished.
    private var handshake: (entry: UnfinishedHandshakes.Entry, among: UnfinishedHandshakes)?

    init(_ sources: any ChannelSources) { self.sources = sources }

    // MARK: - Time

    /// Starts the time limit, unless it is running.
    mutating func start(_ configuration: ChannelConfiguration) {
        let limit = min(
            configuration.openingLimit ?? .infinity, configuration.handshakes?.seconds ?? .infinity)
        guard case .unlimited = time, limit < .infinity else { return }
        seconds = limit
        time = .running(startTimers(after: limit))
    }

    private mutating func startTimers(after seconds: Double) -> [Timer] {
        deadline = LoopClock.now.advanced(bySeconds: seconds)
        return sources.startTimers(after: seconds)
    }

    /// Stops the time until `resume()`, unless the limit has been reached.
    mutating func suspend() {
        let isGrace: Bool
        switch time {
        case .running(let timers), .grace(let timers):
            if timers.contains(where: { !$0.isValid }) { return }
            isGrace = if case .grace = time { true } else { false }
            sources.stop(timers)
        case .unlimited, .suspended: return
        }
        time = .suspended(left: max(0, deadline.seconds(since: LoopClock.now)), isGrace: isGrace)
    }

    mutating func resume() {
        guard case .suspended(let left, let isGrace) = time else { return }
        let timers = startTimers(after: left)
        time = isGrace ? .grace(timers) : .running(timers)
    }

    mutating func stop() {
        switch time {
        case .running(let timers), .grace(let timers): sources.stop(timers)
        case .unlimited: return
        case .suspended: break
        }
        time = .unlimited
    }

    /// Looks at the time limit; begins the time of grace where that applies.
    ///
    /// - Parameter hasAnswer: Whether a result of the look-up, a connection, or bytes of the peer have come.
    ///   They are processed before the limit applies, because the loop may have been in another mode
    ///   meanwhile.
    /// - Returns: Whether the time limit was reached.
    mutating func takeExpiry(hasAnswer: @autoclosure () -> Bool) -> Bool {
        switch time {
        case .running(let timers) where timers.contains { !$0.isValid }:
            guard hasAnswer() else { return true }
            beginGrace(timers)
            return false
        case .grace(let timers): return timers.contains { !$0.isValid }
        case .running, .unlimited, .suspended: return false
        }
    }

    /// Notes that an answer is being processed, which may come before the timer: if the limit has been
    /// reached, the time of grace begins.
    mutating func noteAnswer() {
        if case .running(let timers) = time, LoopClock.now >= deadline { beginGrace(timers) }
    }

    private mutating func beginGrace(_ timers: [Timer]) {
        sources.stop(timers)
        time = .grace(startTimers(after: Self.graceSeconds))
    }

    func timedOut(host: String, port: Int) -> ChannelError {
        .timedOut(host: host, port: port, seconds: seconds)
    }

    // MARK: - Handshakes

    /// Registers a handshake with `handshakes`, if there is such a limit.
    mutating func enter(_ handshakes: UnfinishedHandshakes?, onEviction: @escaping @Sendable () -> Void) {
        guard handshake == nil, let handshakes else { return }
        handshake = (handshakes.enter(onEviction: onEviction), handshakes)
    }

    /// Removes the handshake: the peer has done its part, or is gone.
    mutating func leaveHandshake() {
        if let (entry, handshakes) = handshake.take() { handshakes.leave(entry) }
    }

    /// True if newer handshakes have taken this one's place.
    var isEvicted: Bool { handshake?.entry.isEvicted ?? false }

    func eviction(of configuration: ChannelConfiguration) -> ChannelError {
        .evicted(host: configuration.host, port: configuration.port, limit: handshake?.among.limit ?? 0)
    }

    mutating func end() {
        stop()
        leaveHandshake()
    }
}

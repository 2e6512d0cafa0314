internal import RondoCore

/// Limits the rate at which a load takes bytes. Most loads have no such limit, and no such object.
///
/// Used inside the gate of its load.
final class RateLimiter {
    private let modes: [LoopMode]
    private var pace: ReceivePace
    private var pause: ScheduleTimer?

    init(bytesPerSecond rate: Int, in modes: [LoopMode]) {
        self.modes = modes
        pace = ReceivePace(bytesPerSecond: rate)
    }

    /// Whether no bytes are taken at present.
    var isPausing: Bool { pause != nil }

    /// Notes that bytes were taken.
    ///
    /// - Parameter pauseIsOver: Called in a mode of the load when more may be taken, unless that is at once.
    /// - Returns: Whether the load has to wait for that call.
    func received(_ count: Int, thenCall pauseIsOver: @escaping @Sendable () -> Void) -> Bool {
        guard let seconds = pace.received(count, at: LoopClock.now) else { return false }
        pause?.invalidate()
        pause = ScheduleTimer(modes, after: seconds, repeats: false) { _ in pauseIsOver() }
        return true
    }

    /// Allows more bytes to be taken.
    func endPause() { pause.take()?.invalidate() }

    func stop() { endPause() }
}

/// The pace of receiving: when the next bytes may be taken, so that an average rate is kept. A value.
struct ReceivePace {
    /// The shortest pause, in seconds. Shorter ones are added to the next pause, to save timers.
    static let shortestPause = 0.005

    private let bytesPerSecond: Double
    /// The instant at which a sender of exactly this rate would have sent the bytes taken so far.
    private var due: LoopInstant?

    init(bytesPerSecond: Int) { self.bytesPerSecond = Double(max(bytesPerSecond, 1)) }

    /// - Returns: The seconds until more may be taken; nil if that is at once.
    mutating func received(_ count: Int, at now: LoopInstant) -> Double? {
        let late = max(0, due?.seconds(since: now) ?? 0)
        let wait = late + Double(count) / bytesPerSecond
        due = LoopInstant(nanoseconds: now.nanoseconds &+ Int64(min(wait, 1e9) * 1e9))
        return wait < Self.shortestPause ? nil : min(wait, 1e9)
    }
}

internal import RondoCore

/// The limits of a load that most have none of: its time in all, and the rate at which it takes bytes.
///
/// Used inside the gate of its load.
final class LoadLimits {
    private let schedule: [LoopMode]
    private var pace: ReceivePace?
    private var end: ScheduleTimer?
    private var pause: ScheduleTimer?

    /// - Parameters:
    ///   - totalTimeout: In seconds; nil: no limit.
    ///   - maximumRate: Bytes a second; nil: no limit.
    ///   - atEnd: Called in a mode of the load's when its time is over.
    init(
        totalTimeout: TimeInterval?, maximumRate: Int?, in schedule: [LoopMode],
        atEnd: @escaping @Sendable () -> Void
    ) {
        self.schedule = schedule
        pace = maximumRate.map(ReceivePace.init)
        if let seconds = totalTimeout {
            end = ScheduleTimer(schedule, after: max(seconds, 0), repeats: false) { _ in atEnd() }
        }
    }

    /// No more bytes are taken at present.
    var isPausing: Bool { pause != nil }

    /// Bytes were taken.
    ///
    /// - Parameter goOn: Called in a mode of the load's when more may be taken, if that is later.
    /// - Returns: Whether it is later.
    func received(_ count: Int, thenCall goOn: @escaping @Sendable () -> Void) -> Bool {
        guard let seconds = pace?.received(count, at: LoopClock.now) else { return false }
        pause?.invalidate()
        pause = ScheduleTimer(schedule, after: seconds, repeats: false) { _ in goOn() }
        return true
    }

    /// More may be taken.
    func endPause() { pause.take()?.invalidate() }

    func stop() {
        endPause()
        end.take()?.invalidate()
    }
}

/// When the next bytes may be taken, so that a rate is kept on the average; a value.
struct ReceivePace {
    /// Shorter pauses are added to the next one, in seconds: a timer has its price.
    static let shortestPause = 0.005

    private let bytesPerSecond: Double
    /// When what was taken so far will have had its time.
    private var due: LoopInstant?

    init(bytesPerSecond: Int) { self.bytesPerSecond = Double(max(bytesPerSecond, 1)) }

    /// - Returns: The seconds until more may be taken; nil: at once.
    mutating func received(_ count: Int, at now: LoopInstant) -> Double? {
        let late = max(0, due?.seconds(since: now) ?? 0)
        let wait = late + Double(count) / bytesPerSecond
        due = LoopInstant(nanoseconds: now.nanoseconds &+ Int64(min(wait, 1e9) * 1e9))
        return wait < Self.shortestPause ? nil : min(wait, 1e9)
    }
}

/// Tells when a transfer has been slower than `-Y` allows for longer than `-y` allows; a value.
struct SpeedFloor {
    /// Bytes a second.
    private let limit: Int
    /// Seconds for which a lower speed is accepted.
    private let time: Double
    private var meter: RateMeter
    private var slowSince: Double?

    /// - Parameter total: The bytes that had been transferred at the time `start`.
    /// - Returns: nil if the operation accepts every speed.
    init?(_ operation: FetchOperation, from start: Double, with total: Int) {
        guard let limit = operation.slowLimit, let time = operation.slowTime else { return nil }
        self.limit = limit
        self.time = time
        meter = RateMeter(from: start, with: total)
    }

    /// - Parameter total: The bytes sent and received until `now`.
    /// - Returns: The failure of a transfer that is too slow.
    mutating func failure(transferred total: Int, at now: Double) -> FetchFailure? {
        meter.note(total, at: now)
        if meter.rate >= Double(limit) { slowSince = nil } else { slowSince = slowSince ?? now }
        guard let slowSince, now - slowSince >= time else { return nil }
        return FetchFailure(
            .timedOut, "slower than \(limit) bytes a second for \(time) s (-Y, -y)", status: .timedOut)
    }
}

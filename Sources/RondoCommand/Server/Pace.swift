/// How fast to send: so many bytes, then a pause, fifty times a second.
///
/// What could not be sent in time (the receiver was not reading) is not made up for later: the rate is a
/// ceiling at every moment, not an average.
struct Pace: Sendable {
    private static let slicesPerSecond = 50

    /// How many bytes to send at once.
    let slice: Int
    private let rate: Double
    private var next = 0.0

    /// - Parameter rate: bytes a second, at least 1.
    init(rate: Int) {
        self.rate = Double(rate)
        slice = max(rate / Self.slicesPerSecond, 1)
    }

    /// Seconds to wait before the next `count` bytes, `now` being seconds on any steady clock.
    mutating func pause(before count: Int, now: Double) -> Double {
        let due = max(next, now)
        next = due + Double(count) / rate
        return due - now
    }
}

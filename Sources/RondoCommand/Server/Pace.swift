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

    /// Seconds to wait before the next bytes, `now` being seconds on any steady clock.
    func pause(now: Double) -> Double { max(0, next - now) }

    /// `count` bytes were sent.
    mutating func note(_ count: Int, now: Double) { next = max(next, now) + Double(count) / rate }
}

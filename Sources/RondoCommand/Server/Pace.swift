/// Limits a rate: a number of bytes, then a pause, fifty times a second.
///
/// Bytes that could not be sent in time, because the receiver was not reading, are not made up for later: the
/// rate is a limit at every moment, not an average.
struct Pace: Sendable {
    private static let slicesPerSecond = 50

    /// The number of bytes to send at once.
    let slice: Int
    private let rate: Double
    private var next = 0.0

    /// - Parameter rate: Bytes a second, at least 1.
    init(rate: Int) {
        self.rate = Double(rate)
        slice = max(rate / Self.slicesPerSecond, 1)
    }

    /// Seconds to wait before the next bytes; `now` is in seconds on any steady clock.
    func pause(now: Double) -> Double { max(0, next - now) }

    /// Records that `count` bytes were sent.
    mutating func note(_ count: Int, now: Double) { next = max(next, now) + Double(count) / rate }
}

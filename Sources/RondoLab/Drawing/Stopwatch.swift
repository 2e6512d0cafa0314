/// Measures the seconds since its creation on the monotonic clock.
package struct Stopwatch: Sendable {
    private let began = ContinuousClock.now

    package init() {}

    package var elapsed: Double {
        let (seconds, attoseconds) = (ContinuousClock.now - began).components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}

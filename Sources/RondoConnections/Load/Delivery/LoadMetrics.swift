package import RondoCore

/// The times of a load: the values behind `URLConnection.Metrics`.
package struct LoadMetrics: Sendable {
    package let startDate: Date
    /// Seconds from the start to the last call.
    package let duration: TimeInterval
    /// Redirects that were followed.
    package let redirectCount: Int
    package let transfers: [TransferMetrics]

    /// The metrics of a load that began at `start` and ends now.
    package init(since start: LoopInstant, redirectCount: Int, transfers: [TransferMetrics]) {
        startDate = LoopClock.date(of: start)
        duration = LoopClock.now.seconds(since: start)
        self.redirectCount = redirectCount
        self.transfers = transfers
    }
}

import Rondo
import RondoHTTP

/// The time between two tries of a transfer.
enum RetryDelay {
    /// The most seconds that a server can delay a retry.
    private static let longestPause = 3600.0

    /// The seconds before the next try; nil if that would be later than --retry-max-time allows. What the
    /// server asks for has precedence, as in curl.
    ///
    /// - Parameters:
    ///   - retries: The number of retries so far.
    ///   - retryAfter: The value of the response's Retry-After: seconds, or a date (RFC 9110 §10.2.3). Nil
    ///     for a status that no retry follows by default.
    ///   - elapsed: Seconds since the transfer began.
    static func seconds(
        _ operation: FetchOperation, retries: Int, retryAfter: String?, elapsed: Double, now: Date = Date()
    ) -> Double? {
        let wanted = retryAfter.flatMap { pause($0, now: now) }
        if let most = operation.maximumRetryTime, most > 0, elapsed + (wanted ?? 0) > most { return nil }
        if let wanted { return wanted }
        if let delay = operation.retryDelay, delay > 0 { return delay }
        return min(Double(1 << min(retries, 10)), 600)
    }

    /// Nil if the field cannot be read, or asks for no pause.
    private static func pause(_ text: String, now: Date) -> Double? {
        let seconds =
            Int64(text).map { Double($0) } ?? HTTPDate.parse(text, now: now)?.timeIntervalSince(now) ?? 0
        return seconds > 0 ? min(seconds.rounded(.up), longestPause) : nil
    }
}

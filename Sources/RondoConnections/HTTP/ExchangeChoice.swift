internal import RondoStreams

/// Chooses the version of HTTP for a request. There is one: HTTP/1.1, over kept connections and over new ones, which
/// offer no other version (ALPN).
enum ExchangeChoice {
    /// An exchange for `owner`, which is not started yet.
    ///
    /// - Parameters:
    ///   - lease: The lease, which the exchange ends.
    ///   - channel: How to open a channel where the lease has no connection yet.
    static func exchange(
        by lease: consuming Lease, opening channel: @autoclosure () -> SocketChannel.Configuration,
        for owner: any ExchangeOwner, reporting: ExchangeReporting
    ) -> any Exchange {
        HTTP1Exchange(by: lease, opening: channel(), of: owner, reporting: reporting)
    }
}

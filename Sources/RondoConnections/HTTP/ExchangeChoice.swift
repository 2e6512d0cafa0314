internal import RondoStreams

/// Chooses the version of HTTP that carries a request: HTTP/1.1, over connections that were kept and over new ones, to which
/// no other version is offered (ALPN).
enum ExchangeChoice {
    /// An exchange for `owner`, which is not started yet.
    ///
    /// - Parameters:
    ///   - lease: The lease, which the exchange ends.
    ///   - channel: How to open a channel where the lease has no connection yet.
    static func exchange(
        by lease: borrowing Lease, opening channel: @autoclosure () -> SocketChannel.Configuration,
        for owner: any ExchangeOwner, telling: ExchangeTelling
    ) -> any Exchange {
        HTTP1Exchange(by: lease, opening: channel(), of: owner, telling: telling)
    }
}

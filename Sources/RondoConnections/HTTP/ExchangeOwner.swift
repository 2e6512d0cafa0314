internal import RondoCore
internal import RondoStreams

/// What an exchange answers: it tells its owner what happens, and comes in by its gate.
protocol ExchangeOwner: AnyObject, Sendable {
    /// Inside the gate.
    func received(_ event: HTTPExchange.Event)

    /// Runs `body` inside the gate, if a loop that serves `exchange` has brought something to its channel.
    func enter(for exchange: HTTPExchange, _ body: (SocketChannel) -> Void)

    /// Has `work` done a little later, with others of the kind; false: it is to be done at once.
    func putOff(_ work: any PutOffWork) -> Bool

    /// Bytes have come that say nothing yet.
    func noteProgress()

    /// Has the exchange looked at in a pass of a scheduled mode. Any thread.
    func wakeUp()
}

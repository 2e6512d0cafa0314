/// Lets the events of an exchange's connection into the exchange's load, one call at a time. The load implements it,
/// with its lock (`Gate`).
protocol EventGate: AnyObject, Sendable {
    /// Runs `event`, the callback of a connection's event, unless another call is inside or this thread is none of the
    /// load's loops.
    ///
    /// - Parameter onRefusal: Called if another call is inside, before that leaves: it stops the connection's events. The
    ///   call inside then calls `Exchange.endSuspension()`, unless the load is suspended.
    func admit(_ event: () -> Void, onRefusal: () -> Void)
}

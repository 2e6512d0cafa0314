/// The part of a port besides its queue: the sockets of a `SocketPort`. The port calls these functions on the
/// thread on which the event happens, with no lock held.
package protocol PortBacking: AnyObject, Sendable {
    /// The port has entered a mode. The modes of `.common` come one by one. Another thread may have removed the port by now, and
    /// may already have reported that: ask `Port.isIn`.
    func entered(_ loop: RunLoop, _ mode: RunLoop.Mode)
    func left(_ loop: RunLoop, _ mode: RunLoop.Mode)
    /// A message was taken out of the port's queue.
    func messageWasTaken()
    /// The port has become invalid, or is being freed. May be called more than once.
    func close()
    /// The address that the port listens on, for `RunLoop.debugDescription`.
    var summary: String { get }
}

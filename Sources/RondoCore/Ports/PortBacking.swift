/// What a port has besides its queue: the sockets of a `SocketPort`. Told of what happens to the port, on the thread
/// on which it happens, with no lock held.
package protocol PortBacking: AnyObject, Sendable {
    /// The port has entered a mode. The modes of `.common` come one by one. Where another thread has taken it out again, that
    /// may have been told before: `Port.isIn` says what is so.
    func entered(_ loop: RunLoop, _ mode: RunLoop.Mode)
    func left(_ loop: RunLoop, _ mode: RunLoop.Mode)
    /// A message was taken out of the port's queue.
    func messageWasTaken()
    /// The port has become invalid, or is gone. May come more than once.
    func close()
    /// For `RunLoop.debugDescription`: what it listens on.
    var summary: String { get }
}

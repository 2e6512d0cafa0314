/// What a port warns about in the log, each kind once.
package enum PortWarning: Hashable, Sendable {
    /// A message that cannot be sent as it is.
    case message
    /// A sender that waits for itself.
    case ownThread
    /// A peer that does not keep to the format.
    case peer
    /// A socket that accepts or receives nothing any more.
    case socket
}

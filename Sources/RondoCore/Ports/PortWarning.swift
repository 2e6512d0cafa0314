/// The kinds of warning that a port logs, each once.
package enum PortWarning: Hashable, Sendable {
    /// A message with a component that cannot be sent.
    case message
    /// A sender that waits for its own thread.
    case ownThread
    /// A peer that violates the format.
    case peer
    /// A socket that no longer accepts or receives anything.
    case socket
}

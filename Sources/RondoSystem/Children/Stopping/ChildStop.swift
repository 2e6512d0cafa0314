/// A stop or continuation of a child by job control (rule CH-24).
///
/// A `switch` needs no `default`: POSIX has no other state change of a running process (`waitid`), so no case
/// will be added.
public enum ChildStop: Hashable, Sendable {
    /// This signal stopped the child, usually SIGSTOP or SIGTSTP.
    case stopped(Int32)
    /// The child continued.
    case continued
}

/// A stop or continuation of a child by job control (rule CH-24).
public enum ChildStop: Hashable, Sendable {
    /// This signal stopped the child, usually SIGSTOP or SIGTSTP.
    case stopped(Int32)
    /// The child continued.
    case continued
}

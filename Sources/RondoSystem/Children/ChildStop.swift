/// A change of a child by job control (rule CH-24).
public enum ChildStop: Hashable, Sendable {
    /// By this signal, SIGSTOP or SIGTSTP as a rule.
    case stopped(Int32)
    case continued
}

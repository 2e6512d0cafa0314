internal import Glibc
internal import RondoCore

/// The way in which a child has ended (rule CH-6).
///
/// A `switch` needs no `default`: POSIX has no other way for a process to end (`waitid`), so no case will be
/// added.
public enum ChildStatus: Hashable, Sendable, CustomStringConvertible {
    /// The child called `exit` with this code, 0 to 255.
    case exited(Int32)
    /// A signal ended the child.
    case signalled(Int32, coreDumped: Bool)
    /// Another part of the program has collected the child, or ignores SIGCHLD, so that its end is not known.
    case unknown

    /// True if the child exited with the code 0.
    public var isSuccess: Bool { self == .exited(0) }

    public var description: String {
        switch self {
        case .exited(let code): "exited with \(code)"
        case .signalled(let number, let coreDumped):
            "ended by signal \(number) (\(String(cString: strsignal(number))))"
                + (coreDumped ? ", core dumped" : "")
        case .unknown: "ended, and was collected by another part of the program"
        }
    }

    /// Makes a status from the result of `waitid`: the kind, such as `CLD_EXITED` or `CLD_KILLED`, and the
    /// code.
    init(kind: Int32, code: Int32) {
        switch kind {
        case Int32(CLD_EXITED): self = .exited(code)
        default: self = .signalled(code, coreDumped: kind == Int32(CLD_DUMPED))
        }
    }
}

internal import Glibc
internal import RondoCore

/// How a child has ended (rule CH-6).
public enum ChildStatus: Hashable, Sendable, CustomStringConvertible {
    /// It has called `exit` with this code, 0 to 255.
    case exited(Int32)
    /// A signal has ended it.
    case signalled(Int32, coreDumped: Bool)
    /// Another part of the program has collected the child, or ignores SIGCHLD: how it ended is not known.
    case unknown

    /// Whether it has exited with the code 0.
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

    /// What `waitid` reports: `CLD_EXITED` or one of the signals' kinds, and its number.
    init(kind: Int32, code: Int32) {
        switch kind {
        case Int32(CLD_EXITED): self = .exited(code)
        default: self = .signalled(code, coreDumped: kind == Int32(CLD_DUMPED))
        }
    }
}

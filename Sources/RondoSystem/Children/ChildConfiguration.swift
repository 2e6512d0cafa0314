public import RondoCore

extension Child {
    /// The program, arguments, environment and descriptors of a child. `spawn` reads them once (rule CH-21).
    public struct Configuration: Sendable {
        /// A path, or a name without a slash, which is searched in the PATH of the child's environment if one
        /// was given, otherwise in that of the parent (rule CH-20).
        public var program: String
        /// The arguments after the program's name.
        public var arguments: [String]
        /// The environment of the child; at first the parent's.
        public var environment = Environment.inherited
        /// The working directory of the child; nil means the parent's.
        public var workingDirectory: String?
        /// The source of the child's standard input; at first the parent's.
        public var standardInput = Input.inherited
        /// The destination of the child's standard output; at first the parent's.
        public var standardOutput = Output.inherited
        /// The destination of the child's standard error; at first the parent's.
        public var standardError = Output.inherited
        /// Further descriptors of the child, by their number in the child, from 3 on. The values are
        /// descriptors of the parent, which stay open there (rule CH-9).
        public var descriptors: [Int32: Int32] = [:]
        /// The process group of the child; at first the parent's.
        public var group = Group.parents
        /// Whether the kernel kills the child when this process ends, in whatever way (rule CH-19).
        public var diesWithParent = false
        /// Signals that the child ignores from its beginning. All others have their default action
        /// (rule CH-8).
        public var ignoredSignals: Set<Int32> = []
        /// The steps by which the child is stopped (rule CH-17).
        public var stopping = [StopStep(signal: SIGTERM, seconds: 5)]
        /// Seconds that the completion waits for the end of the outputs after the end of the process, because
        /// the child's own children may keep them open (rule CH-12).
        public var outputGrace: TimeInterval = 1

        /// Makes a configuration with the values that the properties have at first.
        public init(_ program: String, _ arguments: [String] = []) {
            self.program = program
            self.arguments = arguments
        }
    }

    /// The environment of a child. Later versions may add kinds.
    public struct Environment: Sendable, Hashable {
        enum Kind: Sendable, Hashable {
            case inherited
            case exactly([String: String])
            case changed([String: String?])
        }

        let kind: Kind

        /// The parent's environment at the time of the spawn.
        public static let inherited = Environment(kind: .inherited)
        /// These variables and no others.
        public static func exactly(_ variables: [String: String]) -> Environment {
            Environment(kind: .exactly(variables))
        }
        /// The parent's environment with some variables set, or removed if the value is nil.
        public static func changed(_ changes: [String: String?]) -> Environment {
            Environment(kind: .changed(changes))
        }
    }

    /// The source of a child's standard input. Later versions may add kinds.
    public struct Input: Sendable, Hashable {
        enum Kind: Sendable, Hashable {
            case inherited
            case none
            case stream
            case descriptor(Int32)
        }

        let kind: Kind

        /// The parent's standard input.
        public static let inherited = Input(kind: .inherited)
        /// `/dev/null`.
        public static let none = Input(kind: .none)
        /// A pipe; `Child.input` writes to it.
        public static let stream = Input(kind: .stream)
        /// A descriptor of the parent, which stays open there.
        public static func descriptor(_ number: Int32) -> Input { Input(kind: .descriptor(number)) }
    }

    /// The destination of an output of a child. Later versions may add kinds.
    public struct Output: Sendable, Hashable {
        enum Kind: Sendable, Hashable {
            case inherited
            case none
            case stream
            case collected(limit: Int)
            case descriptor(Int32)
            case sameAsOutput
        }

        let kind: Kind

        /// The same output of the parent.
        public static let inherited = Output(kind: .inherited)
        /// `/dev/null`.
        public static let none = Output(kind: .none)
        /// A pipe; `Child.output` or `Child.errorOutput` reads from it.
        public static let stream = Output(kind: .stream)
        /// A pipe that is read into memory in the modes of the child. The child is stopped if the output
        /// exceeds `limit` bytes (rule CH-14).
        public static func collected(limit: Int) -> Output { Output(kind: .collected(limit: limit)) }
        /// A descriptor of the parent, which stays open there.
        public static func descriptor(_ number: Int32) -> Output { Output(kind: .descriptor(number)) }
        /// For the standard error: the destination of the standard output.
        public static let sameAsOutput = Output(kind: .sameAsOutput)
    }

    /// The process group of a child (rule CH-18). Later versions may add kinds.
    public struct Group: Sendable, Hashable {
        enum Kind: Sendable, Hashable {
            case parents
            case own
            case session
        }

        let kind: Kind

        /// The parent's group: Ctrl-C at the terminal reaches the child too.
        public static let parents = Group(kind: .parents)
        /// A new group that the child leads: stopping the child also stops its own children.
        public static let own = Group(kind: .own)
        /// A new session without a terminal.
        public static let session = Group(kind: .session)
    }

    /// One step in stopping a child: a signal, and the seconds to wait after it.
    public struct StopStep: Sendable, Hashable {
        /// The number of the signal, SIGTERM for example.
        public var signal: Int32
        /// The seconds until the next step.
        public var seconds: TimeInterval

        /// Makes a step of a signal and the seconds after it.
        public init(signal: Int32, seconds: TimeInterval) {
            self.signal = signal
            self.seconds = seconds
        }
    }
}

public import RondoCore

extension Child {
    /// A program and what it is to find when it begins. It is looked at once, by the spawn (rule CH-21).
    public struct Configuration: Sendable {
        /// A path; or a name without a slash, which is looked for in the PATH of the child's environment, if that was given,
        /// else of the parent's (rule CH-20).
        public var program: String
        /// What follows the program's name, which is its first argument.
        public var arguments: [String]
        public var environment = Environment.inherited
        /// The directory that the child begins in; nil: the parent's.
        public var workingDirectory: String?
        public var standardInput = Input.inherited
        public var standardOutput = Output.inherited
        public var standardError = Output.inherited
        /// Further descriptors of the child, by their number there: descriptors of the parent, which stay open there (rule
        /// CH-9).
        public var descriptors: [Int32: Int32] = [:]
        public var group = Group.parents
        /// The kernel kills the child when this process ends, however that comes (rule CH-19).
        public var diesWithParent = false
        /// Signals that the child ignores from its beginning. All others have their default action (rule CH-8).
        public var ignoredSignals: Set<Int32> = []
        /// How the child is stopped (rule CH-17).
        public var stopping = [StopStep(signal: SIGTERM, seconds: 5)]
        /// How long after the end of the process its completion waits for the end of its outputs, in seconds, where a
        /// child of its own keeps one open (rule CH-12).
        public var outputGrace: TimeInterval = 1

        public init(_ program: String, _ arguments: [String] = []) {
            self.program = program
            self.arguments = arguments
        }
    }

    /// The environment of a child. Later versions may know more of them.
    public struct Environment: Sendable, Hashable {
        enum Kind: Sendable, Hashable {
            case inherited
            case exactly([String: String])
            case changed([String: String?])
        }

        let kind: Kind

        /// The parent's, as it is at the spawn.
        public static let inherited = Environment(kind: .inherited)
        /// These variables and no others.
        public static func exactly(_ variables: [String: String]) -> Environment {
            Environment(kind: .exactly(variables))
        }
        /// The parent's with some variables set, or taken away where the value is nil.
        public static func changed(_ changes: [String: String?]) -> Environment {
            Environment(kind: .changed(changes))
        }
    }

    /// Where a child's standard input comes from. Later versions may know more places.
    public struct Input: Sendable, Hashable {
        enum Kind: Sendable, Hashable {
            case inherited
            case none
            case stream
            case descriptor(Int32)
        }

        let kind: Kind

        /// The parent's own.
        public static let inherited = Input(kind: .inherited)
        /// `/dev/null`.
        public static let none = Input(kind: .none)
        /// A pipe, which `Child.input` writes.
        public static let stream = Input(kind: .stream)
        /// A descriptor of the parent's, which stays open there.
        public static func descriptor(_ number: Int32) -> Input { Input(kind: .descriptor(number)) }
    }

    /// Where an output of a child goes. Later versions may know more places.
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

        /// The parent's own.
        public static let inherited = Output(kind: .inherited)
        /// `/dev/null`.
        public static let none = Output(kind: .none)
        /// A pipe, which `Child.output` or `Child.errorOutput` reads.
        public static let stream = Output(kind: .stream)
        /// A pipe that is read into memory in the modes of the child; beyond so many bytes the child is stopped (rule
        /// CH-14).
        public static func collected(limit: Int) -> Output { Output(kind: .collected(limit: limit)) }
        /// A descriptor of the parent's, which stays open there.
        public static func descriptor(_ number: Int32) -> Output { Output(kind: .descriptor(number)) }
        /// Of the standard error: where the standard output goes.
        public static let sameAsOutput = Output(kind: .sameAsOutput)
    }

    /// The process group of a child (rule CH-18). Later versions may know more of them.
    public struct Group: Sendable, Hashable {
        enum Kind: Sendable, Hashable {
            case parents
            case own
            case session
        }

        let kind: Kind

        /// The parent's: Ctrl-C at the terminal reaches the child as well.
        public static let parents = Group(kind: .parents)
        /// One of its own, whose leader it is: stopping it stops its own children too.
        public static let own = Group(kind: .own)
        /// A session of its own, without a terminal.
        public static let session = Group(kind: .session)
    }

    /// A step on the way to the end of a child: a signal, and how long the child has after it.
    public struct StopStep: Sendable, Hashable {
        public var signal: Int32
        public var seconds: TimeInterval

        public init(signal: Int32, seconds: TimeInterval) {
            self.signal = signal
            self.seconds = seconds
        }
    }
}

public import RondoCore

/// The reason why a child could not be started, or an operation on it failed.
public struct ChildError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error. Later versions may add kinds: a `switch` needs a `default`.
    public struct Code: Hashable, Sendable {
        private let name: String

        /// The program could not be started; `path` is the program's.
        public static let program = Code(name: "program")
        /// The working directory could not be entered; `path` is the directory's.
        public static let workingDirectory = Code(name: "workingDirectory")
        /// The kernel had no process, descriptor or memory for the child, or is older than Linux 5.4.
        public static let system = Code(name: "system")
        /// The configuration is invalid: a NUL in a string, or one of the descriptors 0 to 2 among
        /// those that are given by number.
        public static let configuration = Code(name: "configuration")
        /// A signal could not be sent.
        public static let signal = Code(name: "signal")
        /// An output exceeded its limit, and the child was stopped (rule CH-14).
        public static let outputLimit = Code(name: "outputLimit")
        /// The time limit was reached, and the child was stopped.
        public static let timeLimit = Code(name: "timeLimit")
        /// A collected output is not UTF-8.
        public static let encoding = Code(name: "encoding")
    }

    /// The kind of the error.
    public let code: Code
    /// The value of `errno`; 0 if no system call has failed.
    public let systemCode: Int32
    /// The path of the file in question; nil if there is none.
    public let path: String?
    /// A sentence for people.
    public let description: String

    init(_ code: Code, systemCode: Int32 = 0, path: String? = nil, _ what: String) {
        self.code = code
        self.systemCode = systemCode
        self.path = path
        let reason = systemCode == 0 ? "" : ": \(String(cString: strerror(systemCode))) (errno \(systemCode))"
        description = what + reason
    }
}

extension ChildError: LocalizedError, CustomNSError {
    public var errorDescription: String? { description }
    public static var errorDomain: String { "RondoChildErrorDomain" }
    public var errorCode: Int { Int(systemCode) }

    public var errorUserInfo: [String: Any] {
        var info: [String: Any] = [NSLocalizedDescriptionKey: description]
        if let path { info[NSFilePathErrorKey] = path }
        if systemCode != 0 {
            info[NSUnderlyingErrorKey] = NSError(domain: NSPOSIXErrorDomain, code: Int(systemCode))
        }
        return info
    }
}

public import RondoCore

/// Why a child was not started, or could not be told something.
public struct ChildError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What has failed. Later versions may know more: a `switch` needs a `default`.
    public struct Code: Hashable, Sendable {
        private let name: String

        /// The program could not be started; `path` is its own.
        public static let program = Code(name: "program")
        /// The working directory could not be entered; `path` is that.
        public static let workingDirectory = Code(name: "workingDirectory")
        /// The kernel gave no process, descriptor or memory for it, or is older than Linux 5.4.
        public static let system = Code(name: "system")
        /// The configuration cannot be: a NUL in a string, a descriptor given twice.
        public static let configuration = Code(name: "configuration")
        /// A signal could not be sent.
        public static let signal = Code(name: "signal")
        /// An output was larger than its limit, and the child was stopped (rule CH-14).
        public static let outputLimit = Code(name: "outputLimit")
        /// The limit of time was reached, and the child was stopped.
        public static let timeLimit = Code(name: "timeLimit")
        /// A collected output is not UTF-8.
        public static let encoding = Code(name: "encoding")
    }

    public let code: Code
    /// The value of `errno`; 0 where no system call has failed.
    public let systemCode: Int32
    /// The file that it is about.
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

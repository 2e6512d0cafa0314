internal import Glibc

/// The kinds of information that a `CFHost` can find out (rule CS-19).
public enum CFHostInfoType: Int32, Sendable {
    case addresses = 0
    case names = 1
    /// Not available on Linux: the look-up fails.
    case reachability = 2
}

/// An error by domain and number; both are 0 if there is none.
public struct CFStreamError: Hashable, Sendable {
    /// `kCFStreamErrorDomainNetDB` or `kCFStreamErrorDomainPOSIX`, among others.
    public var domain: Int
    public var error: Int32

    public init(domain: Int = 0, error: Int32 = 0) {
        self.domain = domain
        self.error = error
    }
}

extension CFStreamError {
    package static let posixDomain = 1
    package static let netDatabaseDomain = 12

    static let none = CFStreamError()

    /// The error for an errno.
    static func posix(_ code: Int32) -> CFStreamError { CFStreamError(domain: posixDomain, error: code) }

    /// The error for an `EAI_` number of `getaddrinfo` or `getnameinfo`, or for the errno behind it.
    static func netDatabase(_ code: Int32, systemCode: Int32 = 0) -> CFStreamError {
        code == EAI_SYSTEM && systemCode != 0
            ? posix(systemCode) : CFStreamError(domain: netDatabaseDomain, error: code)
    }

    init(_ error: ResolveError) {
        switch error.kind {
        case .unknownHost, .lookupFailed: self = .netDatabase(error.code, systemCode: error.systemCode)
        case .tooManyLookups: self = .netDatabase(EAI_AGAIN)
        }
    }
}

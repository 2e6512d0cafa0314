internal import RondoCore

/// The reason why a name has no addresses.
package struct ResolveError: Error, Hashable, Sendable {
    package enum Kind: Sendable {
        /// The name service has answered that there is no such host, or none with an address.
        case unknownHost
        /// There was no answer (no name server was reached, or it failed): another attempt may succeed.
        case lookupFailed
        /// Refused by the resolver: `Resolver.waitingLimit` look-ups are waiting already.
        case tooManyLookups
    }

    package let host: String
    package let kind: Kind
    /// The error of `getaddrinfo`, an `EAI_` number; 0 if it was not called.
    package let code: Int32
    /// The errno behind `EAI_SYSTEM`, otherwise 0.
    package let systemCode: Int32

    package init(host: String, code: Int32, systemCode: Int32 = 0) {
        self.host = host
        self.code = code
        self.systemCode = code == EAI_SYSTEM ? systemCode : 0
        kind = Self.kind(of: code)
    }

    package static func tooManyLookups(host: String) -> ResolveError {
        ResolveError(host: host, kind: .tooManyLookups)
    }

    private init(host: String, kind: Kind) {
        self.host = host
        self.kind = kind
        code = 0
        systemCode = 0
    }

    /// glibc defines EAI_NODATA (-5) and EAI_ADDRFAMILY (-9) under `_GNU_SOURCE` only, so Swift does not see
    /// them.
    private static func kind(of code: Int32) -> Kind {
        switch code {
        case EAI_NONAME, -5, -9: .unknownHost
        default: .lookupFailed
        }
    }
}

extension ResolveError: CustomStringConvertible {
    package var description: String {
        switch kind {
        case .unknownHost:
            "no host is called “\(host)”: \(sentence). Check the spelling of the name"
        case .lookupFailed:
            "the name “\(host)” could not be looked up: \(sentence). Check this machine's network and name servers"
        case .tooManyLookups:
            "the name “\(host)” was not looked up: \(Resolver.waitingLimit) look-ups are waiting already. Try again "
                + "when some of them have ended"
        }
    }

    /// `gai_strerror`'s sentence, or that of the errno for `EAI_SYSTEM`.
    package var sentence: String {
        systemCode != 0 ? SocketError.sentence(of: systemCode) : String(cString: gai_strerror(code))
    }
}

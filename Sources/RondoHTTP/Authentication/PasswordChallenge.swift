/// A challenge that a user name and a password can answer.
package enum PasswordChallenge: Sendable, Equatable {
    case basic(realm: String)
    case digest(DigestChallenge)

    package var realm: String {
        switch self {
        case .basic(let realm): realm
        case .digest(let challenge): challenge.realm
        }
    }

    /// The challenges that a user name and a password can answer, the strongest first: Digest before Basic,
    /// SHA-512-256 before SHA-256 before MD5, and among equals the one that the server named first (RFC 9110
    /// §11.3, RFC 7616 §3.7). Each realm appears once for each kind.
    ///
    /// Bearer, Negotiate and others are left out: their credentials are the program's affair. The program
    /// sets Authorization itself and gets the response unchanged.
    package static func strongestFirst(_ challenges: [Challenge]) -> [PasswordChallenge] {
        var usable: [PasswordChallenge] = []
        for challenge in challenges {
            guard let candidate = PasswordChallenge(challenge) else { continue }
            let isKnown = usable.contains {
                $0.strength == candidate.strength && $0.realm == candidate.realm
            }
            if !isKnown { usable.append(candidate) }
        }
        // A stable sort: equals stay in the server's order.
        return usable.enumerated()
            .sorted { ($1.element.strength, $0.offset) < ($0.element.strength, $1.offset) }
            .map(\.element)
    }

    /// Returns nil for another scheme, or an unknown algorithm or `qop`.
    package init?(_ challenge: Challenge) {
        switch challenge.scheme.lowercased() {
        case "basic": self = .basic(realm: challenge.realm)
        case "digest":
            guard let digest = DigestChallenge(challenge) else { return nil }
            self = .digest(digest)
        default: return nil
        }
    }

    private var strength: Int {
        switch self {
        case .basic: 0
        case .digest(let challenge):
            switch challenge.algorithm.hash {
            case .md5: 1
            case .sha256: 2
            case .sha512T256: 3
            }
        }
    }
}

/// A challenge of the Digest scheme (RFC 7616 §3.3) that can be answered here.
package struct DigestChallenge: Sendable, Equatable {
    package struct Algorithm: Sendable, Equatable {
        package var hash: DigestHash
        /// One of the `-sess` variants: the password is hashed with the first nonces of a session.
        package var isSession: Bool
        /// As the challenge spelled it; nil if it named none, which means MD5.
        package var name: String?

        /// Nil for one that is not known.
        package init?(_ name: String?) {
            self.name = name
            switch (name ?? "MD5").lowercased() {
            case "md5": (hash, isSession) = (.md5, false)
            case "md5-sess": (hash, isSession) = (.md5, true)
            case "sha-256": (hash, isSession) = (.sha256, false)
            case "sha-256-sess": (hash, isSession) = (.sha256, true)
            case "sha-512-256": (hash, isSession) = (.sha512T256, false)
            case "sha-512-256-sess": (hash, isSession) = (.sha512T256, true)
            default: return nil
            }
        }
    }

    /// What the answer protects besides the password (`qop`).
    package enum Protection: String, Sendable {
        /// Method and target. RFC 2069 had no `qop`: neither client nonce nor count take part.
        case unnamed = ""
        /// Method and target.
        case auth
        /// Method, target and body.
        case authInt = "auth-int"
    }

    package var realm: String
    package var nonce: String
    package var opaque: String?
    package var algorithm: Algorithm
    package var protection: Protection
    /// The user's name was right and the nonce too old: to be answered anew without a challenge to the delegate.
    package var isStale: Bool
    /// The user's name is to be sent hashed (§3.4.4).
    package var hashesUser: Bool
    /// The server reads names in UTF-8 (§3.3, `charset`).
    package var isUTF8: Bool
    /// Where the credentials hold: absolute paths and URLs (§3.3, `domain`); empty for the whole server.
    package var domain: [String]

    /// Nil where the scheme is another one, the nonce is missing, or algorithm and `qop` are unknown: such a
    /// challenge has to be ignored (§3.3). So has one with control characters: the answer would repeat them.
    package init?(_ challenge: Challenge) {
        guard challenge.scheme.lowercased() == "digest", let nonce = challenge["nonce"],
            let algorithm = Algorithm(challenge["algorithm"]), algorithm.hash.isAvailable,
            let protection = Self.protection(challenge["qop"]),
            challenge.parameters.allSatisfy({ $0.value.utf8.allSatisfy(Grammar.isFieldValue) })
        else { return nil }
        self.nonce = nonce
        self.algorithm = algorithm
        self.protection = protection
        realm = challenge.realm
        opaque = challenge["opaque"]
        isStale = challenge["stale"]?.lowercased() == "true"
        hashesUser = challenge["userhash"]?.lowercased() == "true"
        isUTF8 = challenge["charset"]?.lowercased() == "utf-8"
        domain = (challenge["domain"] ?? "").split(separator: " ").map(String.init)
    }

    /// `auth` wherever it is offered, as in every browser: `auth-int` needs the whole body before its head.
    private static func protection(_ offered: String?) -> Protection? {
        guard let offered else { return .unnamed }
        let names = offered.lowercased().split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" })
        if names.isEmpty { return .unnamed }
        if names.contains("auth") { return .auth }
        return names.contains("auth-int") ? .authInt : nil
    }
}

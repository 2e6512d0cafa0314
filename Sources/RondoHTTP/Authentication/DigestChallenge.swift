/// A challenge of the Digest scheme (RFC 7616 §3.3) that this library can answer.
package struct DigestChallenge: Sendable, Equatable {
    package struct Algorithm: Sendable, Equatable {
        package var hash: DigestHash
        /// One of the `-sess` variants: the password is hashed with the first nonces of a session.
        package var isSession: Bool
        /// The name as the challenge spelled it; nil if it named no algorithm, which means MD5.
        package var name: String?

        /// Returns nil for an unknown algorithm.
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

    /// The parts of the message that the answer protects besides the password (`qop`).
    package enum Protection: String, Sendable {
        /// Method and target. RFC 2069 had no `qop`: the hash includes neither client nonce nor count.
        case unnamed = ""
        /// Method and target.
        case auth
        /// Method, target and body.
        case authInt = "auth-int"
    }

    package var realm: String
    /// The bytes of the realm. They, the nonce and the opaque value go back as they came (§3.4).
    package var realmBytes: [UInt8]
    package var nonce: [UInt8]
    package var opaque: [UInt8]?
    package var algorithm: Algorithm
    package var protection: Protection
    /// The credentials were right and the nonce too old: answer again without asking the delegate.
    package var isStale: Bool
    /// The user's name has to be sent hashed (§3.4.4).
    package var hashesUser: Bool
    /// The server reads names in UTF-8 (§3.3, `charset`).
    package var isUTF8: Bool
    /// The absolute paths and URLs for which the credentials are valid (§3.3, `domain`); empty for the whole
    /// server.
    package var domain: [String]

    /// Returns nil if the scheme is not Digest, the nonce is missing, or algorithm or `qop` is unknown: such
    /// a challenge has to be ignored (§3.3). So has one with control characters, since the answer would
    /// repeat them.
    package init?(_ challenge: Challenge) {
        guard challenge.scheme.lowercased() == "digest", let nonce = challenge.bytes(of: "nonce"),
            let algorithm = Algorithm(challenge["algorithm"]), algorithm.hash.isAvailable,
            let protection = Self.protection(challenge["qop"]),
            challenge.parameters.allSatisfy({ $0.bytes.allSatisfy(Grammar.isFieldValue) })
        else { return nil }
        self.nonce = nonce
        self.algorithm = algorithm
        self.protection = protection
        realm = challenge.realm
        realmBytes = challenge.bytes(of: "realm") ?? []
        opaque = challenge.bytes(of: "opaque")
        isStale = challenge["stale"]?.lowercased() == "true"
        hashesUser = challenge["userhash"]?.lowercased() == "true"
        isUTF8 = challenge["charset"]?.lowercased() == "utf-8"
        domain = (challenge["domain"] ?? "").split(separator: " ").map(String.init)
    }

    /// Chooses `auth` if it is offered, like every browser: `auth-int` needs the whole body before the
    /// request's head.
    private static func protection(_ offered: String?) -> Protection? {
        guard let offered else { return .unnamed }
        let names = offered.lowercased().split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" })
        if names.isEmpty { return .unnamed }
        if names.contains("auth") { return .auth }
        return names.contains("auth-int") ? .authInt : nil
    }
}

import Foundation

/// The authorization of a user's requests by one Digest challenge: of the request that was refused, and of
/// later ones, which need not be refused first (RFC 7616 §3.6).
///
/// A session counts its requests, so each nonce must have only one session, and it follows the nonces that
/// the server sends in Authentication-Info. It stores the user's name and a hash of the password.
package struct DigestSession: Sendable, Equatable {
    package enum Failure: Error, Sendable, Equatable, CustomStringConvertible {
        /// The user name contains a control character, which a header field cannot carry.
        case controlCharacter
        /// The protection is `auth-int`, and the caller passed no hash of the body.
        case bodyHashMissing
        /// OpenSSL does not offer the hash function.
        case hashUnavailable

        package var description: String {
            switch self {
            case .controlCharacter:
                "A user name with a control character cannot be sent in Digest authentication."
            case .bodyHashMissing:
                "The server asks for Digest authentication of the body, which is not known in advance."
            case .hashUnavailable: "OpenSSL does not offer the hash function that the server asks for."
            }
        }
    }

    package let challenge: DigestChallenge
    private let user: String
    /// The client nonce: one for the session, so that a server that stores nothing can check the `-sess`
    /// variants.
    private let clientNonce: String
    /// H(A1) (§3.4.2), computed once with the nonce of the challenge.
    private let secret: String
    private var nonce: [UInt8]
    /// The number of requests sent with `nonce`.
    private var count: UInt32 = 0

    /// - Parameter clientNonce: Unguessable and never used before; tests pass a fixed one.
    package init(
        _ challenge: DigestChallenge, user: String, password: String, clientNonce: String = randomNonce()
    ) throws(Failure) {
        let user = user.precomposedStringWithCanonicalMapping
        let password = password.precomposedStringWithCanonicalMapping
        if user.utf8.contains(where: { $0 < Grammar.space || $0 == 0x7F }) { throw .controlCharacter }
        let hash = challenge.algorithm.hash
        guard var secret = hash.hexadecimal(of: Self.joined("\(user):", challenge.realmBytes, ":\(password)"))
        else { throw .hashUnavailable }
        if challenge.algorithm.isSession {
            let text = Self.joined("\(secret):", challenge.nonce, ":\(clientNonce)")
            secret = hash.hexadecimal(of: text) ?? secret
        }
        self.challenge = challenge
        self.user = user
        self.clientNonce = clientNonce
        self.secret = secret
        nonce = challenge.nonce
    }

    /// 128 random bits as text.
    package static func randomNonce() -> String {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
        return Data(bytes).base64EncodedString()
    }

    /// Whether `authorize` needs the hash of the request's body.
    package var needsBodyHash: Bool { challenge.protection == .authInt }

    // MARK: Authorizing

    /// The authorization of one request as sent. The server's proof is checked against it.
    package struct Authorization: Sendable, Equatable {
        /// The value of Authorization or Proxy-Authorization.
        package let fieldValue: [UInt8]
        fileprivate let target: String
        fileprivate let nonce: [UInt8]
        fileprivate let count: String
    }

    /// The field value for one request. Each call counts as a request.
    ///
    /// - Parameters:
    ///   - target: The request target exactly as it is sent, `host:port` for CONNECT.
    ///   - bodyHash: The body's hash in hexadecimal digits, by the challenge's function; required if
    ///     `needsBodyHash`.
    package mutating func authorize(
        method: String, target: String, bodyHash: String? = nil
    ) throws(Failure) -> Authorization {
        // Before 2³² − 1 requests the server will have sent another nonce; otherwise it will answer that this
        // one is stale.
        count &+= 1
        let digits = String(count, radix: 16)
        let countText = String(repeating: "0", count: 8 - digits.count) + digits
        var subject = "\(method):\(target)"
        if needsBodyHash {
            guard let bodyHash else { throw .bodyHashMissing }
            subject += ":" + bodyHash
        }
        let response = try response(to: subject, nonce: nonce, count: countText)
        return Authorization(
            fieldValue: fieldValue(target: target, count: countText, response: response), target: target,
            nonce: nonce, count: countText)
    }

    private func response(to subject: String, nonce: [UInt8], count: String) throws(Failure) -> String {
        let hash = challenge.algorithm.hash
        guard let subjectHash = hash.hexadecimal(of: subject) else { throw .hashUnavailable }
        let rest =
            switch challenge.protection {
            case .unnamed: ":\(subjectHash)"
            case .auth, .authInt: ":\(count):\(clientNonce):\(challenge.protection.rawValue):\(subjectHash)"
            }
        let text = Self.joined("\(secret):", nonce, rest)
        guard let response = hash.hexadecimal(of: text) else { throw .hashUnavailable }
        return response
    }

    private static func joined(_ start: String, _ bytes: [UInt8], _ end: String) -> [UInt8] {
        Array(start.utf8) + bytes + Array(end.utf8)
    }

    /// Quoted and unquoted exactly as RFC 7616 §3.4 lists the parameters: some servers insist on it.
    private func fieldValue(target: String, count: String, response: String) -> [UInt8] {
        var value = Array("Digest ".utf8) + userParameter
        value += Array(", realm=".utf8) + Self.quoted(challenge.realmBytes)
        value += Array(", nonce=".utf8) + Self.quoted(nonce)
        value += Array(", uri=".utf8) + Self.quoted(Array(target.utf8))
        value += Array(", response=\"\(response)\"".utf8)
        if let name = challenge.algorithm.name { value += Array(", algorithm=\(name)".utf8) }
        if challenge.protection != .unnamed || challenge.algorithm.isSession {
            value += Array(", cnonce=".utf8) + Self.quoted(Array(clientNonce.utf8))
        }
        if let opaque = challenge.opaque { value += Array(", opaque=".utf8) + Self.quoted(opaque) }
        if challenge.protection != .unnamed {
            value += Array(", qop=\(challenge.protection.rawValue), nc=\(count)".utf8)
        }
        if challenge.hashesUser { value += Array(", userhash=true".utf8) }
        return value
    }

    private var userParameter: [UInt8] {
        if challenge.hashesUser {
            let text = Self.joined("\(user):", challenge.realmBytes, "")
            let hash = challenge.algorithm.hash.hexadecimal(of: text) ?? ""
            return Array("username=\"\(hash)\"".utf8)
        }
        // The extended form is part of RFC 7616; by sending the charset, which is too, a server shows that it
        // supports that RFC.
        if challenge.isUTF8, !user.utf8.allSatisfy({ $0 < 0x80 }) {
            return Array("username*=UTF-8''\(Self.percentEncoded(user))".utf8)
        }
        return Array("username=".utf8) + Self.quoted(Array(user.utf8))
    }

    private static func quoted(_ value: [UInt8]) -> [UInt8] {
        let (quote, backslash) = (UInt8(ascii: "\""), UInt8(ascii: "\\"))
        var text = [quote]
        for byte in value {
            if byte == quote || byte == backslash { text.append(backslash) }
            text.append(byte)
        }
        text.append(quote)
        return text
    }

    /// RFC 8187 §3.2.1, `value-chars`.
    private static func percentEncoded(_ value: String) -> String {
        let allowed = CharacterSet(
            charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$&+-.^_`|~")
        return value.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
    }

    // MARK: The server's confirmation

    /// The meaning of Authentication-Info or Proxy-Authentication-Info for an authorization (RFC 7616 §3.5).
    package enum Confirmation: Sendable, Equatable {
        /// The field proves nothing: it has no `rspauth`.
        case absent
        /// The server also knows the password.
        case confirmed
        /// The server does not know the password: another server may have answered.
        case refuted
        /// The field says `auth-int`, and the caller passed no hash of the response's body.
        case bodyHashMissing
    }

    /// Reads the value of the field. The next request uses the nonce in it, if there is one.
    ///
    /// - Parameter bodyHash: The hash of the response's body as it was transferred; needed only for
    ///   `auth-int`.
    package mutating func received(
        _ info: [UInt8], to sent: Authorization, bodyHash: String? = nil
    ) -> Confirmation {
        let info = Challenge(scheme: "", parameters: authenticationParameters(in: info))
        if let next = info.bytes(of: "nextnonce"), !next.isEmpty, next != nonce {
            nonce = next
            count = 0
        }
        guard let given = info["rspauth"] else { return .absent }
        var subject = ":\(sent.target)"
        if info["qop"]?.lowercased() == DigestChallenge.Protection.authInt.rawValue {
            guard let bodyHash else { return .bodyHashMissing }
            subject += ":" + bodyHash
        }
        // The hash is available: the request was signed with it.
        let expected = try? response(to: subject, nonce: sent.nonce, count: sent.count)
        return given.lowercased() == expected ? .confirmed : .refuted
    }
}

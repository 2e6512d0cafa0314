import Foundation

/// The value of an Authorization or Proxy-Authorization field in the Basic scheme (RFC 7617).
package struct BasicAuthentication: Sendable, Equatable {
    package enum Failure: Error, Sendable, Equatable, CustomStringConvertible {
        /// The server would take what follows the colon for the password.
        case colonInUser
        /// RFC 7617 §2 allows no control characters in either.
        case controlCharacter

        package var description: String {
            switch self {
            case .colonInUser: "A user name with a colon cannot be sent in Basic authentication."
            case .controlCharacter:
                "A user name or password with a control character cannot be sent in Basic authentication."
            }
        }
    }

    /// `Basic dXNlcjpwYXNz`. It holds the password as plain text does.
    package let fieldValue: String

    /// Both are sent in UTF-8 and in normal form C (§2.1): what servers ask for that say `charset="UTF-8"`, the
    /// only value there is, and what the browsers send to all others.
    package init(user: String, password: String) throws(Failure) {
        let isControl = { (byte: UInt8) in byte < Grammar.space || byte == 0x7F }
        if user.utf8.contains(Grammar.colon) { throw .colonInUser }
        if user.utf8.contains(where: isControl) || password.utf8.contains(where: isControl) {
            throw .controlCharacter
        }
        let pair = "\(user):\(password)".precomposedStringWithCanonicalMapping
        fieldValue = "Basic " + Data(pair.utf8).base64EncodedString()
    }
}

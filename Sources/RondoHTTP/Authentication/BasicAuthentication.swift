import Foundation

/// The value of an Authorization or Proxy-Authorization field in the Basic scheme (RFC 7617).
package struct BasicAuthentication: Sendable, Equatable {
    package enum Failure: Error, Sendable, Equatable, CustomStringConvertible {
        /// The server would read the text after the colon as the password.
        case colonInUser
        /// RFC 7617 §2 allows control characters in neither of them.
        case controlCharacter

        package var description: String {
            switch self {
            case .colonInUser: "A user name with a colon cannot be sent in Basic authentication."
            case .controlCharacter:
                "A user name or password with a control character cannot be sent in Basic authentication."
            }
        }
    }

    /// For example `Basic dXNlcjpwYXNz`. The value reveals the password like plain text.
    package let fieldValue: String

    /// User and password are sent in UTF-8 and in normal form C (§2.1): servers that say `charset="UTF-8"`,
    /// the only possible value, ask for this, and browsers send it to all others.
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

/// A message that could not be sent or read, in terms that do not depend on the version of HTTP. The exchange
/// of a version makes it from what its codec says.
package struct HTTPFailure: Error, Equatable {
    package enum Kind: Sendable {
        /// The client's request, or a piece of its body, cannot be sent.
        case invalidRequest
        /// The connection ended before the head of the response was complete.
        case closedEarly
        /// It ended in the middle of the body.
        case truncatedBody
        /// The bytes are not HTTP.
        case notHTTP
        /// The head or the trailer is malformed, or longer than the limit.
        case unreadable
        /// The body is not divided as its head announces.
        case unreadableBody
        /// The message is well formed, but its fields contradict each other, or it is no answer to the
        /// request.
        case contradictory
    }

    package let kind: Kind
    /// The version, as it is written in a message, or "HTTP".
    let version: String
    /// A sentence for people.
    let description: String

    /// The failure of a body of which the end is missing, whatever version it came by.
    ///
    /// - Parameter expected: Nil if its length was not announced.
    static func truncatedBody(expected: Int64?, received: Int64) -> HTTPFailure {
        let bytes =
            expected.map { "\(received) of the \($0) bytes of the body" }
            ?? "\(received) bytes of a body whose end had not come"
        return HTTPFailure(
            kind: .truncatedBody, version: "HTTP",
            description: "The server closed the connection after \(bytes).")
    }
}

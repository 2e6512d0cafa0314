/// What has to be said on a fresh connection before anything else, TLS included: SOCKS, or HTTP's CONNECT.
///
/// A value that knows no socket and no loop: the channel feeds it what the proxy says, and sends what it
/// answers. It keeps what it has taken and not understood yet, within a limit of its own.
package protocol ChannelNegotiation: Sendable {
    /// The connection stands.
    mutating func begin() -> NegotiationStep

    /// The proxy has said something.
    ///
    /// - Parameter consumed: Where to put how many of `bytes` were taken. The rest comes again; after
    ///   `done` it is the first that the host behind the proxy has said. A step that takes nothing and sends
    ///   nothing is a mistake.
    mutating func receive(_ bytes: UnsafeRawBufferPointer, consumed: inout Int) -> NegotiationStep

    /// The proxy has closed its side.
    mutating func receiveEnd() -> NegotiationError
}

/// What a negotiation wants next.
package enum NegotiationStep: Equatable, Sendable {
    /// Send these, perhaps none, and come back with what the proxy answers.
    case exchange([UInt8])
    /// Send these, perhaps none; from then on the connection is the host's.
    case done([UInt8])
    case failed(NegotiationError)
}

/// Why a proxy does not let a connection through.
package struct NegotiationError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        /// It does not want to, or cannot reach the host.
        case refused
        /// It wants a user name and a password, or others.
        case authentication
        /// What it says is not what such a proxy says.
        case protocolViolation
        /// It has closed the connection without an answer.
        case closed
    }

    package let kind: Kind
    /// The proxy's own number for it, a reply of SOCKS or a status of HTTP; 0: none.
    package let code: Int
    /// A sentence that names the proxy, the host and the cause.
    package let description: String
    /// What the proxy has said, as far as an owner can use it: the head of an HTTP response.
    package let response: [UInt8]

    package init(_ kind: Kind, code: Int = 0, response: [UInt8] = [], description: String) {
        self.kind = kind
        self.code = code
        self.response = response
        self.description = description
    }
}

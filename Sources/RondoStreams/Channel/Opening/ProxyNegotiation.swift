/// The dialogue that a proxy requires on a new connection before anything else, TLS included: SOCKS, or
/// HTTP's CONNECT.
///
/// A value that knows no socket and no loop: the channel passes it the proxy's bytes and sends its answers.
/// It keeps bytes that it has consumed but not yet understood, up to a limit of its own.
package protocol ProxyNegotiation: Sendable {
    /// Starts the dialogue: the connection to the proxy is open.
    mutating func begin() -> NegotiationStep

    /// Processes bytes of the proxy.
    ///
    /// - Parameter consumed: Receives the number of bytes consumed. The remaining ones are passed again;
    ///   after `done` they are the first bytes of the host behind the proxy. A step must not both consume
    ///   nothing and send nothing.
    mutating func receive(_ bytes: UnsafeRawBufferPointer, consumed: inout Int) -> NegotiationStep

    /// The proxy has closed its side.
    mutating func receiveEnd() -> NegotiationError
}

/// The next action of a negotiation.
package enum NegotiationStep: Equatable, Sendable {
    /// Send these bytes, perhaps none, and call `receive` with the proxy's answer.
    case exchange([UInt8])
    /// Send these bytes, perhaps none; after that the connection leads to the host.
    case done([UInt8])
    case failed(NegotiationError)
}

/// The reason why a proxy refuses a connection.
package struct NegotiationError: Error, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        /// The proxy refuses the request, or cannot reach the host.
        case refused
        /// The proxy asks for a user name and a password, or for different ones.
        case authentication
        /// The proxy's bytes violate its protocol.
        case protocolViolation
        /// The proxy has closed the connection before its answer was complete.
        case closed
    }

    package let kind: Kind
    /// The proxy's own code, a SOCKS reply or an HTTP status; 0: none.
    package let code: Int
    /// A sentence that names the proxy, the host and the cause.
    package let description: String
    /// The proxy's answer as it came, for the program to read: the head of an HTTP response; empty for none.
    package let response: [UInt8]
    /// The proxy's answer as the negotiation has read it, for the layer to which the negotiation belongs; nil
    /// for none.
    package let answer: (any Sendable)?

    package init(
        _ kind: Kind, code: Int = 0, response: [UInt8] = [], answer: (any Sendable)? = nil,
        description: String
    ) {
        self.kind = kind
        self.code = code
        self.response = response
        self.answer = answer
        self.description = description
    }
}

extension NegotiationError: Equatable {
    /// Compares everything but `answer`, of which only its own layer knows the type.
    package static func == (left: NegotiationError, right: NegotiationError) -> Bool {
        left.kind == right.kind && left.code == right.code && left.response == right.response
            && left.description == right.description
    }
}

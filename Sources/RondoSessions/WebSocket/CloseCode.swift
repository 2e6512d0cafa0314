extension URLSessionWebSocketTask {
    /// Why a WebSocket was closed (RFC 6455 §7.4.1). Codes without a name are kept as `other` (rule WS-20).
    ///
    /// The cases are Apple's and `other`, and none will be added: a later version that names another code
    /// does so by a static member, which is equal to `other` with its number. An enumeration, as on Apple's
    /// systems, so that a `switch` with `@unknown default` compiles.
    public enum CloseCode: RawRepresentable, Hashable, Sendable {
        /// 0: the WebSocket is not closed.
        case invalid
        /// 1000: the WebSocket has done its work.
        case normalClosure
        /// 1001: the server shuts down, or the program leaves.
        case goingAway
        /// 1002: the peer violated the protocol.
        case protocolError
        /// 1003: the peer sent a kind of data that is not accepted.
        case unsupportedData
        /// 1005: the close frame had no code. It is never sent.
        case noStatusReceived
        /// 1006: the connection ended without a close frame. It is never sent.
        case abnormalClosure
        /// 1007: text was not UTF-8, or compressed data were broken.
        case invalidFramePayloadData
        /// 1008: a message violated a policy.
        case policyViolation
        /// 1009: a message was too long.
        case messageTooBig
        /// 1010: the server did not accept an extension that the program needs.
        case mandatoryExtensionMissing
        /// 1011: the server failed unexpectedly.
        case internalServerError
        /// 1015: the TLS handshake failed. It is never sent.
        case tlsHandshakeFailure
        /// A code without a name here. Programs may define 4000 to 4999 for their own use.
        case other(Int)

        private static let named: [(Int, CloseCode)] = [
            (0, .invalid), (1000, .normalClosure), (1001, .goingAway), (1002, .protocolError),
            (1003, .unsupportedData), (1005, .noStatusReceived), (1006, .abnormalClosure),
            (1007, .invalidFramePayloadData), (1008, .policyViolation), (1009, .messageTooBig),
            (1010, .mandatoryExtensionMissing), (1011, .internalServerError), (1015, .tlsHandshakeFailure),
        ]

        /// The close code of this number; never nil.
        public init?(rawValue: Int) {
            self = Self.named.first { $0.0 == rawValue }?.1 ?? .other(rawValue)
        }

        /// The number of the close code.
        public var rawValue: Int {
            switch self {
            case .invalid: 0
            case .normalClosure: 1000
            case .goingAway: 1001
            case .protocolError: 1002
            case .unsupportedData: 1003
            case .noStatusReceived: 1005
            case .abnormalClosure: 1006
            case .invalidFramePayloadData: 1007
            case .policyViolation: 1008
            case .messageTooBig: 1009
            case .mandatoryExtensionMissing: 1010
            case .internalServerError: 1011
            case .tlsHandshakeFailure: 1015
            case .other(let code): code
            }
        }

        public static func == (left: CloseCode, right: CloseCode) -> Bool { left.rawValue == right.rawValue }
        public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }
    }
}

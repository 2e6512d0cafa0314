extension URLSessionWebSocketTask {
    /// Why a WebSocket was closed (RFC 6455 §7.4). Any number is kept (rule WS-20).
    public enum CloseCode: RawRepresentable, Hashable, Sendable {
        /// 0: it is not closed.
        case invalid
        case normalClosure
        case goingAway
        case protocolError
        case unsupportedData
        /// 1005: the close frame names no code.
        case noStatusReceived
        /// 1006: the connection has ended without a close frame.
        case abnormalClosure
        case invalidFramePayloadData
        case policyViolation
        case messageTooBig
        case mandatoryExtensionMissing
        case internalServerError
        case tlsHandshakeFailure
        /// A code without a name here: those of a program's own are 4000 to 4999.
        case other(Int)

        private static let named: [(Int, CloseCode)] = [
            (0, .invalid), (1000, .normalClosure), (1001, .goingAway), (1002, .protocolError),
            (1003, .unsupportedData), (1005, .noStatusReceived), (1006, .abnormalClosure),
            (1007, .invalidFramePayloadData), (1008, .policyViolation), (1009, .messageTooBig),
            (1010, .mandatoryExtensionMissing), (1011, .internalServerError), (1015, .tlsHandshakeFailure),
        ]

        /// Never nil.
        public init?(rawValue: Int) {
            self = Self.named.first { $0.0 == rawValue }?.1 ?? .other(rawValue)
        }

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

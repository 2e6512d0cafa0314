internal import RondoHTTP

extension HTTPFailure {
    /// The failure of a response that has switched to the protocol that the request offered, where no code
    /// takes the connection over.
    static let unusedSwitch = HTTPFailure(
        kind: .contradictory, version: "HTTP/1.1",
        description: "The server switched to another protocol (101), and no code took the connection over: "
            + "a session's delegate does so by the answer becomeStream.")

    init(_ error: HTTP1Error) {
        kind = Self.kind(of: error)
        version = "HTTP/1.1"
        description = error.description
    }

    private static func kind(of error: HTTP1Error) -> Kind {
        switch error {
        case .local: return .invalidRequest
        case .peer(let peer):
            switch peer {
            case .closedBeforeResponse, .closedBeforeFinalResponse, .truncatedHead: return .closedEarly
            case .truncatedBody: return .truncatedBody
            case .invalidStatusLine: return .notHTTP
            case .unsupportedVersion, .invalidFieldLine, .invalidFieldValue, .invalidLineEnd,
                .invalidContentLength, .unsolicitedBytes:
                return .unreadable
            case .invalidChunk: return .unreadableBody
            case .conflictingContentLengths, .contentLengthWithTransferEncoding, .transferEncodingInHTTP10,
                .unsupportedTransferCoding, .unexpectedSwitchingProtocols:
                return .contradictory
            case .exceeded(let limit):
                switch limit {
                case .statusLineLength, .headSize, .fieldCount, .emptyLines, .trailerSize: return .unreadable
                case .chunkLineLength: return .unreadableBody
                case .informationalResponses: return .contradictory
                }
            }
        }
    }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoStreams

extension URLErrors {
    /// The code for what went wrong below HTTP.
    static func code(of error: ChannelError) -> URLError.Code {
        switch error {
        case .resolve(let error):
            switch error.kind {
            case .unknownHost: .cannotFindHost
            case .lookupFailed: .dnsLookupFailed
            case .tooManyLookups: .resourceUnavailable
            }
        case .connect(_, _, let errors): code(ofConnect: errors)
        case .broken, .evicted: .networkConnectionLost
        case .negotiation: .cannotConnectToHost
        case .timedOut: .timedOut
        case .tls(let error): code(of: error)
        case .proxy(_, let error): code(of: error)
        }
    }

    /// The code of the last attempt, after which there was none left to make.
    private static func code(ofConnect errors: [SocketError]) -> URLError.Code {
        switch errors.last?.code {
        case ENETUNREACH, ENETDOWN: .notConnectedToInternet
        case ETIMEDOUT: .timedOut
        // The server accepted the connection and reset it before the client saw it established.
        case ECONNRESET: .networkConnectionLost
        default: .cannotConnectToHost
        }
    }

    private static func code(of error: TLSError) -> URLError.Code {
        switch error.reason {
        case .certificate(let problem):
            switch problem.kind {
            case .expired: .serverCertificateHasBadDate
            case .notYetValid: .serverCertificateNotYetValid
            case .unknownIssuer: .serverCertificateHasUnknownRoot
            default: .serverCertificateUntrusted
            }
        case .alert(let alert):
            switch alert.number {
            case 42...46, 48: .clientCertificateRejected
            default: .secureConnectionFailed
            }
        case .certificateRequired: .clientCertificateRequired
        case .system: .networkConnectionLost
        case .certificateMissing, .protocolVersion, .closedDuringHandshake, .notTLS, .protocolViolation,
            .settings:
            .secureConnectionFailed
        }
    }
}

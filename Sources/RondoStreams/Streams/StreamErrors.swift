// The errors that clients of socket streams see as `streamError`, translated once, here.

internal import RondoCore

extension ChannelError {
    /// The error in the domain that Apple's streams use: POSIX for the kernel's, the stream SSL domain for
    /// TLS.
    var streamError: NSError {
        switch self {
        case .resolve(let error) where error.systemCode != 0:
            .posix(error.systemCode, description)
        case .resolve(let error):
            // Apple's domain and code for an unknown host (kCFHostErrorUnknown), with getaddrinfo's error.
            NSError(
                domain: "kCFErrorDomainCFNetwork", code: 2,
                userInfo: [
                    NSLocalizedDescriptionKey: description,
                    "kCFGetAddrInfoFailureKey": NSNumber(value: error.code),
                ])
        case .connect(_, _, let errors):
            .posix(errors.last?.code ?? EADDRNOTAVAIL, description)
        case .broken(_, _, let error):
            .posix(error.code, description)
        case .tls(let error):
            error.streamError
        case .negotiation(let error):
            // Apple's code for a proxy that refuses (kCFErrorHTTPSProxyConnectionFailure; for SOCKS Apple has
            // kCFSOCKSErrorUnknownClientVersion and others, for which this one stands here).
            NSError(
                domain: "kCFErrorDomainCFNetwork", code: 310,
                userInfo: [NSLocalizedDescriptionKey: error.description])
        case .proxy(_, let error):
            error.streamError.described(description)
        case .timedOut:
            .posix(ETIMEDOUT, description)
        case .evicted:
            .posix(ECONNABORTED, description)
        }
    }
}

extension NSError {
    /// The same error with another description.
    fileprivate func described(_ words: String) -> NSError {
        var userInfo = userInfo
        userInfo[NSLocalizedDescriptionKey] = words
        return NSError(domain: domain, code: code, userInfo: userInfo)
    }
}

extension TLSError {
    var streamError: NSError {
        if case .system(let code) = reason { return .posix(code, description) }
        return NSError(
            domain: NSStreamSocketSSLErrorDomain, code: secureTransportCode,
            userInfo: [NSLocalizedDescriptionKey: description])
    }

    /// The error code of Apple's Secure Transport (`errSSL…`).
    private var secureTransportCode: Int {
        switch reason {
        case .certificate(let problem):
            switch problem.kind {
            case .expired: -9814
            case .notYetValid: -9815
            case .selfSigned: -9807
            case .unknownIssuer: -9812
            case .hostNameMismatch: -9843
            case .revoked: -9827
            case .weak: -9890
            case .wrongUsage: -9830
            default: -9808
            }
        case .certificateMissing: -9801
        case .protocolVersion: -9836
        case .alert, .certificateRequired: -9824
        case .closedDuringHandshake: -9806
        case .notTLS, .protocolViolation: -9800
        case .system: -9810
        case .settings: -9850
        }
    }
}

extension NSError {
    /// The error of a connection that was closed without close_notify (errSSLClosedNoNotify).
    static func truncated(host: String) -> NSError {
        NSError(
            domain: NSStreamSocketSSLErrorDomain, code: -9816,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "the secured connection to \(host) was cut off: it ended without the "
                    + "close_notify that ends it in order, and what came last may be missing"
            ])
    }
}

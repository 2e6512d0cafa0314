internal import CRondoOpenSSL

/// The meaning of the result of an OpenSSL call on a connection.
enum TLSOutcome: Equatable {
    case done
    case wantsRead
    case wantsWrite
    /// The peer has sent close_notify.
    case end
    /// The connection was closed without close_notify.
    case closed
    /// The handshake waits for an answer of the program; in handshakes only.
    case waits
    case failed(TLSError.Reason)

    /// Must be called right after the call: OpenSSL's error queue and the BIO tell the reason of a failure.
    ///
    /// - Parameters:
    ///   - bio: The socket's BIO.
    ///   - carrierHasEnded: Whether the TLS connection below, with a proxy, has received close_notify.
    ///   - refusal: The problem for which the handshake has refused the peer's certificate.
    init(
        of result: Int32, _ ssl: OpaquePointer, bio: @autoclosure () -> OpaquePointer?,
        carrierHasEnded: @autoclosure () -> Bool, refusal: @autoclosure () -> CertificateProblem?
    ) {
        if result > 0 {
            self = .done
            return
        }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_NONE: self = .done
        case SSL_ERROR_WANT_READ: self = .wantsRead
        case SSL_ERROR_WANT_WRITE: self = .wantsWrite
        case SSL_ERROR_ZERO_RETURN: self = .end
        case SSL_ERROR_WANT_RETRY_VERIFY, SSL_ERROR_WANT_X509_LOOKUP: self = .waits
        case SSL_ERROR_SYSCALL:
            OpenSSLErrors.clear()
            let bio = bio()
            let code = SocketBIO.takeCode(of: bio)
            if code != 0 {
                self = .failed(.system(code))
            } else {
                self =
                    SocketBIO.hasReachedEnd(bio) || carrierHasEnded()
                    ? .closed : .failed(.protocolViolation("unknown error"))
            }
        default: self = .failed(Self.reason(refusal: refusal()))
        }
    }

    /// The reason of the first error in OpenSSL's queue, which is emptied.
    private static func reason(refusal: @autoclosure () -> CertificateProblem?) -> TLSError.Reason {
        guard let first = OpenSSLErrors.drain().first else { return .protocolViolation("unknown error") }
        if first.library == ERR_LIB_SSL, first.reason == SSL_R_CERTIFICATE_VERIFY_FAILED,
            let problem = refusal()
        {
            return .certificate(problem)
        }
        return OpenSSLErrors.reason(for: first)
    }
}

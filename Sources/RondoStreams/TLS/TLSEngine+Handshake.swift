internal import CRondoOpenSSL
internal import RondoCore

// How it begins and ends, and what OpenSSL's answers mean.
extension TLSEngine {
    /// Goes on with the handshake. After `.done` the peer has proved its identity, as far as the settings ask.
    package func handshake() throws(TLSError) -> HandshakeResult {
        if let failure { throw failure }
        if state.asking?.waits ?? false { return .waits }
        if !hasBegun { begin() }
        OpenSSLErrors.clear()
        var result = SSL_do_handshake(ssl)
        if readsMemory, result <= 0, SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ {
            readSocket()
            OpenSSLErrors.clear()
            result = SSL_do_handshake(ssl)
        }
        switch outcome(of: result) {
        case .done: return try finishHandshake()
        case .wantsRead: return .wantsRead
        case .wantsWrite: return .wantsWrite
        case .waits: return .waits
        case .end, .closed: throw fail(.closedDuringHandshake(nil))
        case .failed(.system(let code)) where code == ECONNRESET || code == EPIPE:
            throw fail(.closedDuringHandshake(code))
        case .failed(let reason): throw fail(state.callbackFailure ?? reason)
        }
    }

    private func begin() {
        hasBegun = true
        // A program that asks to be asked is asked about each connection.
        guard state.asking == nil, let key = state.sessionKey, let session = state.sessions.take(for: key)
        else { return }
        // Counted by OpenSSL from here on. What it does not take is no loss.
        if SSL_set_session(ssl, session.pointer) == 1 { state.offered = session }
    }

    private func finishHandshake() throws(TLSError) -> HandshakeResult {
        if readsMemory { readSocket() }
        // A server could not ask before.
        if state.asking?.waits ?? false { return .waits }
        if let decision = state.decision, decision != .accept, let refusal = state.refusal {
            throw fail(.certificate(refusal))
        }
        // What a program has decided otherwise than the settings holds for this connection alone.
        if !state.isDecidedBySettings { state.sessionKey = nil }
        state.asking = nil
        // The checks were made when the session was.
        if isResumed, let offered = state.offered { state.problems = offered.problems }
        return .done
    }

    /// Tells the peer that this side will send no more (close_notify), without waiting for its answer.
    ///
    /// Bytes not sent yet go first; `.wantsWrite` asks to be called again. Does nothing before the handshake
    /// is done or after a failure.
    @discardableResult
    package func shutdown() -> Progress {
        guard failure == nil, SSL_is_init_finished(ssl) == 1 else { return .done }
        // A failure here takes nothing away: the connection is being given up.
        guard let flushed = try? flush() else { return .done }
        guard flushed == .done, !hasSentEnd else { return flushed }
        OpenSSLErrors.clear()
        // Called again until it is sent: OpenSSL's own flag for that (SSL_SENT_SHUTDOWN) is set before.
        let result = SSL_shutdown(ssl)
        // 0 says that the peer's answer has not come yet; it is not waited for.
        if result < 0, outcome(of: result) == .wantsWrite { return .wantsWrite }
        hasSentEnd = true
        return .done
    }

    /// `shutdown()` here, and then of the TLS below, where there is one.
    @discardableResult
    package func shutdownAll() -> Progress {
        let own = shutdown()
        guard own == .done, let carrier else { return own }
        return carrier.shutdown()
    }

    /// Whether something may still come from a peer after the handshake is done, or has failed on this
    /// side: it has neither ended nor gone, as far as this side has heard. It is the one next to the socket.
    package var peerMaySpeak: Bool {
        if let carrier { return carrier.peerMaySpeak }
        if case .system = (failure ?? writeFailure)?.reason { return false }
        guard failure != nil || SSL_is_init_finished(ssl) == 1 else { return false }
        return SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN == 0 && !SocketBIO.hasMetEnd(SSL_get_wbio(ssl))
    }

    /// The peer has said that it will send no more.
    var hasReceivedEnd: Bool { SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN != 0 }

    enum Outcome: Equatable {
        case done, wantsRead, wantsWrite, end, closed
        /// For an answer; in handshakes only.
        case waits
        case failed(TLSError.Reason)
    }

    /// What the result of an OpenSSL call means; to be asked right after it.
    func outcome(of result: Int32) -> Outcome {
        if result > 0 { return .done }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_NONE: return .done
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        case SSL_ERROR_ZERO_RETURN: return .end
        case SSL_ERROR_WANT_RETRY_VERIFY, SSL_ERROR_WANT_X509_LOOKUP: return .waits
        case SSL_ERROR_SYSCALL:
            OpenSSLErrors.clear()
            let bio = socketBIO
            let code = SocketBIO.takeCode(of: bio)
            if code != 0 { return .failed(.system(code)) }
            let isAtEnd = SocketBIO.hasMetEnd(bio) || carrier?.hasReceivedEnd ?? false
            return isAtEnd ? .closed : .failed(.protocolViolation("unknown error"))
        default:
            guard let first = OpenSSLErrors.drain().first else {
                return .failed(.protocolViolation("unknown error"))
            }
            if first.library == ERR_LIB_SSL, first.reason == SSL_R_CERTIFICATE_VERIFY_FAILED,
                let problem = state.refusal
            {
                return .failed(.certificate(problem))
            }
            return .failed(OpenSSLErrors.reason(for: first))
        }
    }

    func fail(_ reason: TLSError.Reason) -> TLSError {
        let error = TLSError(reason, host: peerName, isServers: isServers)
        failure = error
        unsent = nil
        return error
    }
}

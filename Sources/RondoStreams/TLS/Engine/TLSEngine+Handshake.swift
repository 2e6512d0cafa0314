internal import CRondoOpenSSL
internal import RondoCore

// The beginning and the end of a connection.
extension TLSEngine {
    /// Continues the handshake. After `.done` the peer has proved its identity, as far as the settings
    /// require.
    package func handshake() throws(TLSError) -> HandshakeResult {
        if let failure { throw failure }
        if mustWaitForAnswer { return .waits }
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
        case .failed(.alert(let alert)) where alert == .handshakeFailure && state.lacksCertificate:
            throw fail(.certificateRequired(alert))
        case .failed(let reason): throw fail(state.callbackFailure ?? reason)
        }
    }

    /// Whether the handshake may not go on before the program has answered. On a server it goes on until it
    /// is done: before the client's signature was checked, its certificate may be another's.
    private var mustWaitForAnswer: Bool {
        guard state.questions?.waits ?? false else { return false }
        return !isServers || SSL_is_init_finished(ssl) == 1
    }

    /// Has OpenSSL read the socket: the bytes that were received before TLS began are used up.
    private func readSocket() {
        readsMemory = false
        MemoryBIO.remove(from: ssl)
    }

    private func begin() {
        hasBegun = true
        // A program with a handler is asked about each connection, so no session is resumed.
        guard state.questions == nil, let key = state.sessionKey, let session = state.sessions.take(for: key)
        else { return }
        // OpenSSL takes a reference of its own. If it refuses the session, a full handshake follows.
        if SSL_set_session(ssl, session.pointer) == 1 { state.offered = session }
    }

    private func finishHandshake() throws(TLSError) -> HandshakeResult {
        if readsMemory { readSocket() }
        // A server asks only now that the handshake is done, see `TLSTrust`.
        if mustWaitForAnswer { return .waits }
        if let decision = state.decision, decision != .accept, let refusal = state.refusal {
            throw fail(.certificate(refusal))
        }
        // If the program decided otherwise than the settings, its decision holds for this connection alone.
        if !state.isDecidedBySettings { state.sessionKey = nil }
        state.questions = nil
        // A resumed handshake checks nothing: the problems are those found when the session was made.
        if isResumed, let offered = state.offered { state.problems = offered.problems }
        return .done
    }

    /// Tells the peer that this side will send no more (close_notify), without waiting for its answer.
    ///
    /// Unsent bytes go first; `.wantsWrite` means that the caller must call again. Does nothing before the
    /// handshake is done or after a failure.
    @discardableResult
    package func shutdown() -> Progress {
        guard failure == nil, SSL_is_init_finished(ssl) == 1 else { return .done }
        // A failure here loses nothing: the connection is being closed.
        guard let flushed = try? flush() else { return .done }
        guard flushed == .done, writing.end != .sent else { return flushed }
        OpenSSLErrors.clear()
        // Called again until it succeeds: OpenSSL's own flag (SSL_SENT_SHUTDOWN) is set before close_notify
        // is sent.
        let result = SSL_shutdown(ssl)
        // 0 means that the peer's close_notify has not come yet; this side does not wait for it.
        if result < 0, outcome(of: result) == .wantsWrite { return .wantsWrite }
        writing.end = .sent
        return .done
    }

    /// Calls `shutdown()` on this engine, then on the engine of the TLS connection below, if there is one.
    @discardableResult
    package func shutdownAll() -> Progress {
        let own = shutdown()
        guard own == .done, let carrier else { return own }
        return carrier.shutdown()
    }

    /// Whether the peer may still send something after the handshake is done or has failed on this side: as
    /// far as this side knows, the peer has neither ended its side nor disappeared. Over a proxy's TLS, the
    /// peer is the proxy, which is next to the socket.
    package var peerMaySpeak: Bool {
        if let carrier { return carrier.peerMaySpeak }
        if case .system = (failure ?? writing.failure)?.reason { return false }
        guard failure != nil || SSL_is_init_finished(ssl) == 1 else { return false }
        return SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN == 0
            && !SocketBIO.hasReachedEnd(SSL_get_wbio(ssl))
    }

    /// True if the peer has sent close_notify.
    var hasReceivedEnd: Bool { SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN != 0 }

    /// The meaning of an OpenSSL call's result; must be called right after it.
    func outcome(of result: Int32) -> TLSOutcome {
        TLSOutcome(
            of: result, ssl, bio: socketBIO, carrierHasEnded: carrier?.hasReceivedEnd ?? false,
            refusal: state.refusal)
    }

    func fail(_ reason: TLSError.Reason) -> TLSError {
        let error = TLSError(reason, host: peerName, isServers: isServers)
        failure = error
        writing.stop()
        return error
    }
}

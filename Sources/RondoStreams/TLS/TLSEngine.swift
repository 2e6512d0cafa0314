// The client's side of one TLS connection, over a socket that somebody else owns and waits for.
//
// style.md sketched an engine with ciphertext in and out through memory. This one is given the descriptor's
// number instead and lets OpenSSL call recv and send on it (SocketBIO.swift): that saves one copy of every
// byte, and the kernel's own TLS stays possible. It still waits for nothing: each call does what can be done
// now and answers what it wants, and the caller waits for that. The handshake, reading and writing may each
// want either direction.
//
// Three rules that OpenSSL leaves to its caller are kept here:
//
// - *Plaintext is never forgotten because the socket is quiet.* OpenSSL decrypts whole records; a small
//   buffer leaves the rest of one inside. As long as `hasPendingPlaintext`, read again without waiting. It
//   asks SSL_pending, not SSL_has_pending: the latter is true of half a record that has not arrived yet as
//   well, and a caller who read again for it would spin.
// - *A write that has begun cannot be taken back.* Once a record is encrypted OpenSSL wants to be called with
//   the same bytes until it is sent, and a caller who changed his mind would corrupt the stream. So such a
//   record's bytes count as written and are kept here (`hasUnsentBytes`), at most one record, until `flush()`
//   or the next write has sent them.
// - *An error is a state that is never left.* What a call threw, every later one throws again. A failure that
//   comes after bytes were moved is thrown by the next call. Only what the kernel says about writing does not
//   end reading: a server that answers early and closes has left its answer in the socket.
//
// Threads: one at a time, like the socket's.

internal import COpenSSL
internal import RondoCore

package final class TLSEngine {
    package enum Progress: Hashable, Sendable {
        case done
        case wantsRead
        case wantsWrite
    }

    package enum ReadResult: Hashable, Sendable {
        case bytes(Int)
        case wantsRead
        case wantsWrite
        /// The peer said that it will send no more (close_notify).
        case end
        /// The connection was closed without that: what was received may be a part only.
        case truncated
    }

    package enum WriteResult: Hashable, Sendable {
        case bytes(Int)
        case wantsRead
        case wantsWrite
    }

    /// The most plaintext that one record holds (RFC 8446, section 5.1).
    package static let recordLimit = 16_384

    /// The name that was asked for and is looked for in the certificate.
    package let peerName: String

    /// Freed in `deinit`, and with it the BIO, which `SSL_set_bio` gave to it. It counts its `SSL_CTX`
    /// itself.
    private let ssl: OpaquePointer
    /// What was received before TLS began is not used up yet.
    private var readsMemory = false
    /// The bytes of a record that OpenSSL has encrypted and the socket did not take yet.
    private var unsent: [UInt8]?
    /// The last read has left a part of a record behind, because its buffer was full.
    private var hasRestOfRecord = false
    private var failure: TLSError?
    /// Ends writing only.
    private var writeFailure: TLSError?

    /// An engine for the connected socket with this number, which must stay open until `detach()` or
    /// `deinit`.
    /// - Parameters:
    ///   - hostName: A DNS name or an IP address without brackets; `TLSSettings.serverName` overrides it.
    ///   - received: What the peer has said and somebody has read before it was known to be TLS.
    package init(
        context: TLSContext, descriptor: Int32, hostName: String, received: [UInt8] = []
    ) throws(TLSError) {
        peerName = context.settings.serverName ?? hostName
        OpenSSLErrors.clear()
        guard let ssl = SSL_new(context.pointer) else {
            throw TLSError(
                .settings("OpenSSL has no memory: \(OpenSSLErrors.drainedWords())"), host: peerName)
        }
        self.ssl = ssl
        guard let bio = SocketBIO.make(descriptor: descriptor) else {
            throw TLSError(
                .settings("OpenSSL has no memory: \(OpenSSLErrors.drainedWords())"), host: peerName)
        }
        // One BIO for both directions: SSL_set_bio takes over the one count that there is.
        SSL_set_bio(ssl, bio, bio)
        if !received.isEmpty { try begin(with: received) }
        SSL_set_connect_state(ssl)
        try setPeerName(verification: context.settings.verification)
    }

    deinit { SSL_free(ssl) }

    /// Forgets the descriptor, which is about to be closed: the number may soon be another socket's.
    package func detach() {
        SocketBIO.detach(SSL_get_wbio(ssl))
    }

    /// Lets OpenSSL read `bytes` before it reads the socket: it does so until it wants more, see `handshake`.
    private func begin(with bytes: [UInt8]) throws(TLSError) {
        guard let memory = BIO_new(BIO_s_mem()) else {
            throw TLSError(.settings("OpenSSL has no memory"), host: peerName)
        }
        // Empty means "later", not "end".
        rondo_BIO_set_mem_eof_return(memory, -1)
        let written = bytes.withUnsafeBytes { BIO_write(memory, $0.baseAddress, Int32(clamping: $0.count)) }
        // Takes the memory over, and gives up one of the socket's two counts.
        SSL_set0_rbio(ssl, memory)
        guard written == bytes.count else {
            throw TLSError(.settings("OpenSSL has no memory"), host: peerName)
        }
        readsMemory = true
    }

    /// The bytes of `begin(with:)` are used up: from here on OpenSSL reads the socket.
    private func readSocket() {
        readsMemory = false
        let bio = SSL_get_wbio(ssl)
        // One count for each direction.
        BIO_up_ref(bio)
        SSL_set0_rbio(ssl, bio)
    }

    /// Tells OpenSSL whom to ask for (SNI) and whom the certificate has to name.
    private func setPeerName(verification: TLSSettings.Verification) throws(TLSError) {
        let checksName = verification != .withoutHostName
        if let address = SocketAddress(literal: peerName, port: 0) {
            // RFC 6066, section 3: no SNI for addresses. A scope says something to this machine only.
            let literal = address.host.split(separator: "%").first.map(String.init) ?? address.host
            if checksName { try require(X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), literal)) }
            return
        }
        // The dot that ends a complete name belongs neither into SNI nor into certificates.
        let name = peerName.last == "." ? String(peerName.dropLast()) : peerName
        if name.isEmpty || name.first == "." || name.utf8.contains(0) || !name.utf8.allSatisfy({ $0 < 0x80 })
        {
            // An empty name would switch the check off, a leading dot would stand for every host below, a C
            // function would stop at a NUL.
            if verification == .none { return }
            throw TLSError(
                .settings("“\(peerName)” is not a host name that a certificate could be checked for"),
                host: peerName)
        }
        try require(rondo_SSL_set_tlsext_host_name(ssl, name))
        guard checksName else { return }
        // Names count in the one place where RFC 9525 has them, not in the subject, and "*" stands for a
        // label.
        let flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT
        SSL_set_hostflags(ssl, UInt32(flags))
        try require(SSL_set1_host(ssl, name))
    }

    private func require(_ result: Int32) throws(TLSError) {
        guard result == 1 else {
            let words = OpenSSLErrors.drainedWords()
            throw TLSError(.settings("the host name “\(peerName)” cannot be used: \(words)"), host: peerName)
        }
    }
}

@available(*, unavailable)
extension TLSEngine: Sendable {}

// MARK: - Handshake and end

extension TLSEngine {
    /// Goes on with the handshake. After `.done` the peer is who it claims to be, as far as the settings ask.
    package func handshake() throws(TLSError) -> Progress {
        if let failure { throw failure }
        OpenSSLErrors.clear()
        var result = SSL_do_handshake(ssl)
        if readsMemory, result <= 0, SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ {
            readSocket()
            OpenSSLErrors.clear()
            result = SSL_do_handshake(ssl)
        }
        switch outcome(of: result) {
        case .done:
            if readsMemory { readSocket() }
            return .done
        case .wantsRead: return .wantsRead
        case .wantsWrite: return .wantsWrite
        case .end, .closed: throw fail(.closedDuringHandshake(nil))
        case .failed(.system(let code)) where code == ECONNRESET || code == EPIPE:
            throw fail(.closedDuringHandshake(code))
        case .failed(let reason): throw fail(reason)
        }
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
        guard flushed == .done, SSL_get_shutdown(ssl) & SSL_SENT_SHUTDOWN == 0 else { return flushed }
        OpenSSLErrors.clear()
        let result = SSL_shutdown(ssl)
        // 0 says that the peer's answer has not come yet, which nobody waits for.
        return result < 0 && outcome(of: result) == .wantsWrite ? .wantsWrite : .done
    }

    private enum Outcome: Equatable {
        case done, wantsRead, wantsWrite, end, closed
        case failed(TLSError.Reason)
    }

    /// What the result of an OpenSSL call means; to be asked right after it.
    private func outcome(of result: Int32) -> Outcome {
        if result > 0 { return .done }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_NONE: return .done
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        case SSL_ERROR_ZERO_RETURN: return .end
        case SSL_ERROR_SYSCALL:
            OpenSSLErrors.clear()
            let bio = SSL_get_wbio(ssl)
            let code = SocketBIO.takeCode(of: bio)
            if code != 0 { return .failed(.system(code)) }
            return SocketBIO.hasMetEnd(bio) ? .closed : .failed(.protocolViolation("unknown error"))
        default:
            guard let first = OpenSSLErrors.drain().first else {
                return .failed(.protocolViolation("unknown error"))
            }
            if first.library == ERR_LIB_SSL, first.reason == SSL_R_CERTIFICATE_VERIFY_FAILED,
                let problem = certificateProblem
            {
                return .failed(.certificate(problem))
            }
            return .failed(OpenSSLErrors.reason(for: first))
        }
    }

    private func fail(_ reason: TLSError.Reason) -> TLSError {
        let error = TLSError(reason, host: peerName)
        failure = error
        unsent = nil
        return error
    }
}

// MARK: - Bytes

extension TLSEngine {
    /// Whether `read` has bytes that were decrypted already, and for which no socket will turn readable.
    package var hasPendingPlaintext: Bool { SSL_pending(ssl) > 0 }

    /// Whether bytes of an earlier write still wait for the socket; `flush()` when it is writable.
    package var hasUnsentBytes: Bool { unsent != nil }

    /// Reads records until the buffer is full, a record is shorter than the longest, or no more is here.
    ///
    /// A short record is taken for the end of what the peer had to say, which saves the call that finds
    /// nothing; if there is more after all, the socket is still readable.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(TLSError) -> ReadResult {
        if let failure { throw failure }
        guard let start = buffer.baseAddress, buffer.count > 0 else { return .bytes(0) }
        OpenSSLErrors.clear()
        var filled = 0
        while filled < buffer.count {
            var count = 0
            let result = SSL_read_ex(ssl, start + filled, buffer.count - filled, &count)
            if result == 1 {
                filled += count
                // The rest of a record is short without saying anything.
                if count < Self.recordLimit && !hasRestOfRecord { break }
                hasRestOfRecord = false
                continue
            }
            let outcome = outcome(of: result)
            if case .failed(let reason) = outcome {
                let error = fail(reason)
                if filled == 0 { throw error }
            }
            if filled > 0 { break }
            switch outcome {
            case .wantsRead: return .wantsRead
            case .wantsWrite: return .wantsWrite
            case .end: return .end
            case .closed: return .truncated
            case .done, .failed: return .bytes(0)
            }
        }
        hasRestOfRecord = filled == buffer.count && hasPendingPlaintext
        return .bytes(filled)
    }

    /// Encrypts bytes and sends them, as many as the socket takes, and counts what it has encrypted as
    /// written.
    ///
    /// `.wantsRead` and `.wantsWrite` say that nothing was taken, because bytes of an earlier write still
    /// wait.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> WriteResult {
        switch try flush() {
        case .done: break
        case .wantsRead: return .wantsRead
        case .wantsWrite: return .wantsWrite
        }
        var written = 0
        while written < bytes.count {
            let piece = UnsafeRawBufferPointer(rebasing: bytes[written...].prefix(Self.recordLimit))
            let outcome = send(piece)
            switch outcome {
            case .done:
                written += piece.count
            case .wantsRead, .wantsWrite:
                unsent = Array(piece)
                return .bytes(written + piece.count)
            case .end, .closed, .failed:
                let error = failWriting(outcome)
                if written == 0 { throw error }
                return .bytes(written)
            }
        }
        return .bytes(written)
    }
    /// Sends what an earlier write has left, see `hasUnsentBytes`.
    package func flush() throws(TLSError) -> Progress {
        if let error = failure ?? writeFailure { throw error }
        guard let unsent else { return .done }
        let outcome = unsent.withUnsafeBytes { send($0) }
        switch outcome {
        case .done:
            self.unsent = nil
            return .done
        case .wantsRead: return .wantsRead
        case .wantsWrite: return .wantsWrite
        case .end, .closed, .failed: throw failWriting(outcome)
        }
    }

    private func failWriting(_ outcome: Outcome) -> TLSError {
        unsent = nil
        var reason = TLSError.Reason.system(EPIPE)
        if case .failed(let found) = outcome { reason = found }
        guard case .system = reason else { return fail(reason) }
        let error = TLSError(reason, host: peerName)
        writeFailure = error
        return error
    }

    /// Sends one record's worth of bytes: all or, for now, nothing.
    private func send(_ piece: UnsafeRawBufferPointer) -> Outcome {
        OpenSSLErrors.clear()
        var count = 0
        let result = SSL_write_ex(ssl, piece.baseAddress, piece.count, &count)
        return result == 1 ? .done : outcome(of: result)
    }

    /// Whether a connection that was kept idle can be used again: it is open and the peer has sent nothing
    /// but what belongs to TLS itself, such as session tickets, which this takes in.
    package func isQuiet() -> Bool {
        guard failure == nil else { return false }
        OpenSSLErrors.clear()
        var byte: UInt8 = 0
        var count = 0
        let result = SSL_peek_ex(ssl, &byte, 1, &count)
        guard result != 1 else { return false }
        let outcome = outcome(of: result)
        if case .failed(let reason) = outcome { failure = TLSError(reason, host: peerName) }
        return outcome == .wantsRead
    }
}

// MARK: - What was agreed upon

extension TLSEngine {
    /// "TLSv1.3", once the handshake is done.
    package var version: String { String(cString: SSL_get_version(ssl)) }

    /// "TLS_AES_256_GCM_SHA384", once the handshake is done.
    package var cipher: String? {
        SSL_get_current_cipher(ssl).map { String(cString: SSL_CIPHER_get_name($0)) }
    }

    /// The protocol that the peer chose of `TLSSettings.alpn`, nil if it chose none.
    package var applicationProtocol: String? {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &start, &count)
        guard let start, count > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }

    /// The certificates as the peer sent them, its own first, once the handshake has come that far.
    package var peerCertificates: [PeerCertificate] { PeerCertificate.chain(SSL_get_peer_cert_chain(ssl)) }

    /// Why the peer's certificate is not to be trusted; nil if it is, or was not seen. With
    /// `Verification.none` the handshake goes on in spite of it, and this says in spite of what.
    package var certificateProblem: CertificateProblem? {
        let code = Int32(truncatingIfNeeded: SSL_get_verify_result(ssl))
        guard code != X509_V_OK else { return nil }
        // The chain as far as OpenSSL got with it; the other is not kept when the check fails.
        let chain = PeerCertificate.chain(SSL_get0_verified_chain(ssl))
        let now = Date()
        let culprit: PeerCertificate? =
            switch CertificateProblem.kind(of: code) {
            case .expired: chain.first { $0.notAfter < now }
            case .notYetValid: chain.first { $0.notBefore > now }
            case .selfSigned, .unknownIssuer, .hostNameMismatch, .revoked, .other: nil
            }
        return CertificateProblem(code: code, certificate: culprit ?? chain.first)
    }
}

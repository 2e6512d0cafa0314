// One side of one TLS connection, over a socket that the owner of the engine owns and waits for.
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
//   well, and a caller that read again for it would spin.
// - *A write that has begun cannot be taken back.* Once a record is encrypted OpenSSL wants to be called with
//   the same bytes until it is sent, and other bytes would corrupt the stream. So such a
//   record's bytes count as written and are kept here (`hasUnsentBytes`), at most one record, until `flush()`
//   or the next write has sent them.
// - *An error is a state that is never left.* What a call threw, every later one throws again. A failure that
//   comes after bytes were moved is thrown by the next call. Only what the kernel says about writing does not
//   end reading: a server that answers early and closes has left its answer in the socket.
//
// Threads: one at a time, like the socket's.

internal import CRondoOpenSSL
internal import RondoCore

/// One side of one TLS connection: its handshake, its bytes and its end.
package final class TLSEngine {
    package enum HandshakeResult: Hashable, Sendable {
        case done
        case wantsRead
        case wantsWrite
        /// A question has to be answered, see `takeQuestion`; to be called again then.
        case waits
    }

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

    /// What its handshake is to be like, and has found out.
    let state: TLSHandshakeState

    /// Freed in `deinit`, and with it the BIO, which `SSL_set_bio` gave to it. It counts its `SSL_CTX`
    /// itself.
    let ssl: OpaquePointer

    // Changed in `+Handshake`, which begins and ends the connection, and in `+Bytes`:

    var hasBegun = false
    /// What was received before TLS began is not used up yet.
    var readsMemory = false
    /// The bytes of a record that OpenSSL has encrypted and the socket did not take yet.
    var unsent: [UInt8]?
    /// The last read has left a part of a record behind, because its buffer was full.
    var hasRestOfRecord = false
    /// The last read has met the end or a failure behind its bytes; the socket has nothing more to announce.
    var hasMetMore = false
    /// close_notify has gone out.
    var hasSentEnd = false
    var failure: TLSError?
    /// Ends writing only.
    var writeFailure: TLSError?

    /// The connection with a proxy that this one goes through: TLS inside of TLS. Kept here because OpenSSL's
    /// BIO has a pointer to it.
    let carrier: TLSEngine?
    /// It is spoken with a proxy, and what the host says goes through it.
    let leadsToProxy: Bool
    /// This side is the server.
    let isServers: Bool

    /// An engine for the connected socket with this number, which must stay open until `detach()` or
    /// `deinit`.
    /// - Parameters:
    ///   - hostName: A DNS name or an IP address without brackets; `TLSSettings.serverName` overrides it.
    ///   - port: With the host, what sessions of earlier connections are found by; 0: none are.
    ///   - received: Bytes of the peer's that were read before they were known to be TLS.
    ///   - carrier: The TLS with a proxy that this one goes through, its handshake done and nothing left to send.
    ///   - leadsToProxy: The peer is a proxy that is to be one.
    ///   - sessions: Where a client's sessions are kept.
    package init(
        context: TLSContext, descriptor: Int32, hostName: String, port: Int = 0, received: [UInt8] = [],
        through carrier: TLSEngine? = nil, leadsToProxy: Bool = false, sessions: TLSSessionCache = .shared
    ) throws(TLSError) {
        self.carrier = carrier
        self.leadsToProxy = leadsToProxy
        let isClient = context.settings.role == .client
        isServers = !isClient
        let peerName = isClient ? context.settings.serverName ?? hostName : hostName
        OpenSSLErrors.clear()
        guard let ssl = SSL_new(context.pointer) else {
            OpenSSLErrors.clear()
            throw TLSError(.system(ENOMEM), host: peerName)
        }
        self.ssl = ssl
        state = TLSHandshakeState(ssl, context, peerName: peerName, sessions: sessions)
        let bio = carrier.map { rondo_BIO_new_over_SSL($0.ssl) } ?? SocketBIO.make(descriptor: descriptor)
        guard let bio else {
            OpenSSLErrors.clear()
            throw TLSError(.system(ENOMEM), host: peerName)
        }
        // One BIO for both directions: SSL_set_bio takes over the one count that there is.
        SSL_set_bio(ssl, bio, bio)
        if !received.isEmpty { try begin(with: received) }
        try state.install()
        if isClient {
            SSL_set_connect_state(ssl)
            try TLSPeerName.set(peerName, of: ssl, verification: context.settings.verification)
            if context.settings.resumesSessions, port != 0 {
                state.sessionKey = .init(
                    host: peerName, port: port, settings: context.settings, files: context.files)
            }
        } else {
            SSL_set_accept_state(ssl)
        }
    }

    deinit {
        // OpenSSL takes a connection that ends without this side's close_notify for one that was attacked, and spoils its
        // session, which the cache holds as well. RFC 5246, section 7.2.1, has dropped that rule.
        if failure == nil, SSL_is_init_finished(ssl) == 1 {
            SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_SENT_SHUTDOWN)
        }
        SSL_free(ssl)
    }

    /// The name that was asked for and is looked for in the certificate; of a server, what its errors call
    /// the client.
    package var peerName: String { state.peerName }

    /// Forgets the descriptor, which is about to be closed: the number may soon be another socket's.
    package func detach() {
        SocketBIO.detach(socketBIO)
    }

    /// The one of ours, of whichever TLS is next to the socket.
    var socketBIO: OpaquePointer? { carrier?.socketBIO ?? SSL_get_wbio(ssl) }

    /// Lets OpenSSL read `bytes` before it reads the socket: it does so until it wants more, see `handshake`.
    private func begin(with bytes: [UInt8]) throws(TLSError) {
        guard let memory = BIO_new(BIO_s_mem()) else { throw TLSError(.system(ENOMEM), host: peerName) }
        // Empty means "later", not "end".
        rondo_BIO_set_mem_eof_return(memory, -1)
        let written = bytes.withUnsafeBytes { BIO_write(memory, $0.baseAddress, Int32(clamping: $0.count)) }
        // Takes the memory over, and gives up one of the socket's two counts.
        SSL_set0_rbio(ssl, memory)
        guard written == bytes.count else { throw TLSError(.system(ENOMEM), host: peerName) }
        readsMemory = true
    }

    /// The bytes of `begin(with:)` are used up: from here on OpenSSL reads the socket.
    func readSocket() {
        readsMemory = false
        let bio = SSL_get_wbio(ssl)
        // One count for each direction.
        BIO_up_ref(bio)
        SSL_set0_rbio(ssl, bio)
    }
}

@available(*, unavailable)
extension TLSEngine: Sendable {}

// One side of one TLS connection, over a socket that the engine's owner owns and waits for.
//
// The engine has the descriptor's number and lets OpenSSL call recv and send on it (SocketBIO.swift), which
// saves the copy of every byte through memory BIOs. It never blocks: each call does what can be done now and
// returns what it waits for, and the caller waits for that. The handshake, reading and writing may each wait
// for either direction.
//
// Three rules that OpenSSL leaves to its caller are kept here:
//
// - *Plaintext is never left behind because the socket is quiet.* OpenSSL decrypts whole records; after a
//   read into a small buffer the rest of a record stays inside. While `hasPendingPlaintext` is true, the
//   caller must read again without waiting. The property uses SSL_pending, not SSL_has_pending: the latter is
//   also true for half a record whose rest has not arrived, and a caller that read again for that would spin.
// - *A write that has begun cannot be taken back.* Once a record is encrypted, OpenSSL must be called with
//   the same bytes until it is sent; other bytes would corrupt the stream. The bytes that it was given
//   therefore count as written and are kept here (`hasUnsentBytes`), at most `recordLimit` of them, until
//   `flush()` or the next write has sent them.
// - *An error is a state that is never left.* After a call has thrown, every later call throws the same
//   error. A failure that comes after bytes were moved is thrown by the next call. Only a system error of a
//   write does not end reading: a server that answers early and closes has left its answer in the socket.
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
        /// A question has to be answered, see `takeQuestion`; call again when it is.
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
        /// The peer has said that it will send no more (close_notify).
        case end
        /// The connection was closed without close_notify: the bytes received may be only a part.
        case truncated
    }

    package enum WriteResult: Hashable, Sendable {
        case bytes(Int)
        case wantsRead
        case wantsWrite
    }

    /// The most plaintext that one record holds (RFC 8446, section 5.1).
    package static let recordLimit = 16_384

    /// The input and the findings of the handshake.
    let state: TLSHandshakeState

    /// Freed in `deinit`, together with the BIO, which `SSL_set_bio` handed over to it. It holds its own
    /// reference to its `SSL_CTX`.
    let ssl: OpaquePointer

    // Changed in `+Handshake`, `+Bytes` and `+Readiness` too, which call OpenSSL for one purpose each: a
    // result of any such call may concern the others, since OpenSSL reads to write, writes to read, and fails
    // for both.
    var hasBegun = false
    /// True while bytes that were received before TLS began are not used up.
    var readsMemory = false
    var reading = TLSReadingSide()
    var writing = TLSWritingSide()
    /// A failure that ends both directions.
    var failure: TLSError?

    /// The TLS connection with a proxy that this one goes through: TLS inside TLS. Retained here because
    /// OpenSSL's BIO has a pointer to it.
    let carrier: TLSEngine?
    /// True if the peer is a proxy; the connection with the host goes through this one.
    let leadsToProxy: Bool
    /// True if this side is the server.
    let isServers: Bool

    /// An engine for the connected socket with this number, which must stay open until `detach()` or
    /// `deinit`.
    /// - Parameters:
    ///   - hostName: A DNS name or an IP address without brackets; `TLSSettings.serverName` overrides it.
    ///   - port: Part of the key under which sessions are kept, with the host; 0: no session is looked up or
    ///     kept.
    ///   - received: Bytes that were read from the peer before TLS began; they belong to TLS.
    ///   - carrier: The TLS with a proxy that this one goes through, its handshake done and nothing left to
    ///     send.
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
        // One BIO for both directions. SSL_set_bio takes over our single reference and adds the second
        // itself.
        SSL_set_bio(ssl, bio, bio)
        if !received.isEmpty {
            guard MemoryBIO.install(received, in: ssl) else {
                throw TLSError(.system(ENOMEM), host: peerName)
            }
            readsMemory = true
        }
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
        // OpenSSL marks the session of a connection that is freed without having sent close_notify as not
        // resumable, and the cache shares that session. RFC 5246 §7.2.1 has dropped the rule behind it.
        if failure == nil, SSL_is_init_finished(ssl) == 1 {
            SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_SENT_SHUTDOWN)
        }
        SSL_free(ssl)
    }

    /// On a client, the name for SNI and the certificate check; on a server, the client's name in errors.
    package var peerName: String { state.peerName }

    /// Detaches the engine from the descriptor, which is about to be closed: the number may soon be another
    /// socket's.
    package func detach() { SocketBIO.detach(socketBIO) }

    /// Our socket BIO: that of this engine, or of the proxy's engine below.
    var socketBIO: OpaquePointer? { carrier?.socketBIO ?? SSL_get_wbio(ssl) }
}

@available(*, unavailable)
extension TLSEngine: Sendable {}

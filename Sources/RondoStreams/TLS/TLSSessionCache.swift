// Sessions of earlier connections to servers, with which the next connection resumes instead of a full
// handshake (RFC 8446, section 2.2): that saves the server a signature, this side a verification, and in TLS
// 1.2 a round trip.
//
// A session carries the trust that was decided when it was made, because a resumed handshake shows no
// certificate. A session is therefore reused only under equal settings, host and port, and only while the
// certificates and revocation lists of the original checks are valid. A connection whose program is asked for
// trust or for an identity uses no session, and leaves one only where the program left the decision to the
// settings: a program's exception for one connection must not be reused by another one unasked.

internal import CRondoOpenSSL
internal import RondoCore
internal import RondoMutex

/// The TLS sessions that clients keep for resumption. Any thread may use it.
package final class TLSSessionCache: Sendable {
    /// The cache of all connections; tests make their own.
    package static let shared = TLSSessionCache()

    /// The most keys (host, port and settings) whose sessions are kept; beyond it the least recently used is
    /// dropped. A session takes a few kilobytes, because it contains the peer's certificates.
    package static let hostLimit = 256
    /// The most sessions kept for one host. A TLS 1.3 ticket is used once (RFC 8446, appendix C.4), so this
    /// is also how many simultaneous connections can be resumed.
    package static let sessionLimit = 4

    struct Key: Hashable, Sendable {
        let host: String
        let port: Int
        let settings: TLSSettings
        /// The trusted files: sessions made before one of them changed are not found again.
        let files: TrustFiles
    }

    private let table = Mutex(
        SessionTable<Key, Session>(hostLimit: hostLimit, sessionLimit: sessionLimit))
    /// Returns the time in seconds since 1970.
    private let now: @Sendable () -> Int

    /// - Parameter now: The time, in seconds since 1970.
    package init(now: @escaping @Sendable () -> Int = { time(nil) }) { self.now = now }

    func add(_ session: Session, for key: Key) {
        // Freed here, after the lock was released.
        let dropped = table.withLock { $0.add(session, for: key) }
        _ = dropped
    }

    func take(for key: Key) -> Session? {
        let now = now()
        return table.withLock { $0.take(for: key) { $0.isUsable(at: now) } }
    }

    /// Owns an `SSL_SESSION`.
    final class Session: ResumableSession, Sendable {
        /// `nonisolated(unsafe)` is safe: OpenSSL counts references to the session atomically and no longer
        /// changes it once it was handed out, except to mark it as not resumable, under a lock of its own.
        nonisolated(unsafe) let pointer: OpaquePointer

        /// The problems of the server's certificates that were tolerated.
        let problems: [CertificateProblem]
        /// The time when the first of the checked certificates or lists expires, in seconds since 1970.
        let trustEnds: Int

        /// Takes over the caller's reference.
        init(_ pointer: OpaquePointer, problems: [CertificateProblem], trustEnds: Int) {
            self.pointer = pointer
            self.problems = problems
            self.trustEnds = trustEnds
        }

        deinit { SSL_SESSION_free(pointer) }

        var isForOneUse: Bool { SSL_SESSION_get_protocol_version(pointer) >= TLS1_3_VERSION }

        /// Whether the session is still within the lifetime that the server allows, its trust has not expired
        /// and, in TLS 1.3, it has a ticket.
        func isUsable(at now: Int) -> Bool {
            let age = now - SSL_SESSION_get_time(pointer)
            return SSL_SESSION_is_resumable(pointer) == 1 && age >= 0
                && age < SSL_SESSION_get_timeout(pointer) && now <= trustEnds
        }
    }
}

// MARK: - With OpenSSL

extension TLSSessionCache {
    /// Makes OpenSSL hand new sessions to this cache and keep none itself.
    static func install(on context: OpaquePointer) {
        _ = rondo_SSL_CTX_set_session_cache_mode(
            context, Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL))
        SSL_CTX_sess_set_new_cb(context, isNew)
    }

    /// OpenSSL's callback for a new session; in TLS 1.3 a ticket brings it after the handshake. Returning 1
    /// keeps the reference.
    private static let isNew: @convention(c) (OpaquePointer?, OpaquePointer?) -> Int32 = { ssl, session in
        guard let ssl, let session, let state = TLSHandshakeState.of(ssl), let key = state.sessionKey,
            state.isDecidedBySettings
        else { return 0 }
        // A session made by a resumed connection inherits the problems and the expiry of the original one.
        let origin = state.isResumed ? state.offered : nil
        state.sessions.add(
            Session(
                session, problems: origin?.problems ?? state.problems,
                trustEnds: origin?.trustEnds ?? state.trustEnds),
            for: key)
        return 1
    }
}

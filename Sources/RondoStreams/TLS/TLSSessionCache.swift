// Sessions of servers that were met before, so that the next connection there need not begin anew (RFC 8446,
// section 2.2): it saves the server a signature, this side a verification, and in TLS 1.2 a round trip.
//
// A session carries the trust that was decided when it was made, because a resumed handshake shows no
// certificate. So it is found again only under equal settings, host and port, and for as long as the certificates
// and lists that were looked at then are valid. A connection whose program is asked for trust or for an identity
// takes no session, and leaves one only where the program has left the decision to the settings: what one program
// accepted must not let another one in unasked.

internal import CRondoOpenSSL
internal import RondoCore
internal import RondoMutex

/// What a client keeps of earlier connections. Any thread.
package final class TLSSessionCache: Sendable {
    /// That of all connections; tests have their own.
    package static let shared = TLSSessionCache()

    /// Hosts (with port and settings) whose sessions are kept; beyond, the one that was used longest ago goes.
    /// A session has a few kilobytes: the peer's certificates are in it.
    package static let hostLimit = 256
    /// Sessions kept for one host. A ticket of TLS 1.3 is used once (RFC 8446, appendix C.4), so that as many
    /// connections at once can be resumed.
    package static let sessionLimit = 4

    struct Key: Hashable, Sendable {
        let host: String
        let port: Int
        let settings: TLSSettings
        /// What was trusted: a session of before a change is not found again.
        let files: TrustFiles
    }

    private let table = Mutex(
        SessionTable<Key, Session>(hostLimit: hostLimit, sessionLimit: sessionLimit))
    /// Seconds since 1970.
    private let now: @Sendable () -> Int

    /// - Parameter now: The time, in seconds since 1970.
    package init(now: @escaping @Sendable () -> Int = { time(nil) }) { self.now = now }

    func add(_ session: Session, for key: Key) {
        // Freed with the lock let go.
        let dropped = table.withLock { $0.add(session, for: key) }
        _ = dropped
    }

    func take(for key: Key) -> Session? {
        let now = now()
        return table.withLock { $0.take(for: key) { $0.isUsable(at: now) } }
    }

    /// Owns an `SSL_SESSION`.
    final class Session: ResumableSession, Sendable {
        /// Unsafe in name only: OpenSSL counts references to it, and changes nothing in it any more once it
        /// was handed out, except that it is not resumable, which it notes under a lock of its own.
        nonisolated(unsafe) let pointer: OpaquePointer

        /// What was wrong with the server's certificates, and was tolerated.
        let problems: [CertificateProblem]
        /// When something that was looked at then expires, in seconds since 1970.
        let trustEnds: Int

        /// Takes over the caller's count.
        init(_ pointer: OpaquePointer, problems: [CertificateProblem], trustEnds: Int) {
            self.pointer = pointer
            self.problems = problems
            self.trustEnds = trustEnds
        }

        deinit { SSL_SESSION_free(pointer) }

        var isForOneUse: Bool { SSL_SESSION_get_protocol_version(pointer) >= TLS1_3_VERSION }

        /// It is not used for longer than its server allows, and in TLS 1.3 holds a ticket.
        func isUsable(at now: Int) -> Bool {
            let age = now - SSL_SESSION_get_time(pointer)
            return SSL_SESSION_is_resumable(pointer) == 1 && age >= 0
                && age < SSL_SESSION_get_timeout(pointer) && now <= trustEnds
        }
    }
}

// MARK: - With OpenSSL

extension TLSSessionCache {
    /// Lets OpenSSL hand out new sessions, and keep none itself.
    static func install(on context: OpaquePointer) {
        _ = rondo_SSL_CTX_set_session_cache_mode(
            context, Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL))
        SSL_CTX_sess_set_new_cb(context, isNew)
    }

    /// A session was made, in TLS 1.3 by a ticket that comes after the handshake. 1 keeps its count.
    private static let isNew: @convention(c) (OpaquePointer?, OpaquePointer?) -> Int32 = { ssl, session in
        guard let ssl, let session, let state = TLSHandshakeState.of(ssl), let key = state.sessionKey,
            state.isDecidedBySettings
        else { return 0 }
        // A session that follows from another one is no better than that.
        let origin = state.isResumed ? state.offered : nil
        state.sessions.add(
            Session(
                session, problems: origin?.problems ?? state.problems,
                trustEnds: origin?.trustEnds ?? state.trustEnds),
            for: key)
        return 1
    }
}

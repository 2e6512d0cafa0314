// The part of TLS that connections with equal settings share: versions, trust store, identity, options.

internal import CRondoOpenSSL
package import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// Owns one `SSL_CTX`, which is set up from settings once and never changed afterwards.
///
/// Making one reads the certificate authorities and costs about a millisecond; `TLSContext.shared` reuses
/// contexts.
package final class TLSContext: Sendable {
    package let settings: TLSSettings

    /// Freed in `deinit`; every `SSL` made from it holds its own reference, so either may be freed first.
    ///
    /// `nonisolated(unsafe)` is safe: this class changes nothing in it after `init`, and OpenSSL protects
    /// what it changes itself (reference counts, the cache of the trust store) with its own locks.
    nonisolated(unsafe) let pointer: OpaquePointer

    /// `TLSSettings.alpn` in wire format: each name behind its length. OpenSSL holds pointers into this
    /// memory, which outlives them because every engine retains its context.
    ///
    /// `nonisolated(unsafe)`: the memory is written before `init` returns, and freed in `deinit`.
    nonisolated(unsafe) let protocols: UnsafeMutableBufferPointer<UInt8>

    /// The most contexts that are kept for reuse. Programs use one or two settings; a program that makes new
    /// settings for each connection has a new context made each time, and the limit keeps its memory from
    /// growing.
    package static let sharedLimit = 16

    /// `TLSSettings.identities` with lower-case names, as they are looked up.
    let identities: [String: TLSIdentity]

    /// The time when the first of the revocation lists becomes too old, in seconds since 1970.
    ///
    /// `nonisolated(unsafe)` is safe: it is written in `init` only.
    nonisolated(unsafe) var revocationListsEnd = Int.max

    /// The files that the context was made from.
    let files: TrustFiles
    /// The time when the files were checked last, in nanoseconds of the machine's clock.
    private let filesSeen: Atomic<Int64>
    /// The seconds after a check for which the files are assumed to be unchanged.
    package static let fileInterval = 1.0

    private static let kept = Mutex<[TLSContext]>([])

    /// Returns the context for `settings`: an existing one, if it is still kept and its files have not
    /// changed since it was made, otherwise a new one.
    ///
    /// - Parameter now: The current time of the machine's clock.
    package static func shared(
        for settings: TLSSettings, now: LoopInstant = LoopClock.systemNow
    ) throws(TLSError) -> TLSContext {
        var settings = settings
        settings.resumesSessions = mayResumeSessions(settings)
        // Beyond that the handlers affect nothing that OpenSSL prepares: settings that differ in them alone
        // share a context.
        settings.trustHandler = nil
        settings.identityHandler = nil
        let found = kept.withLock { [settings] kept -> TLSContext? in
            guard let index = kept.firstIndex(where: { $0.settings == settings }) else { return nil }
            if index > 0 { kept.insert(kept.remove(at: index), at: 0) }
            return kept[0]
        }
        if let found, found.isUpToDate(at: now) { return found }
        // Two threads may both make a context: both are kept, and one is dropped in time.
        let made = try TLSContext(settings, now: now)
        let dropped = kept.withLock { kept in
            if let found { kept.removeAll { $0 === found } }
            kept.insert(made, at: 0)
            return kept.count > sharedLimit ? kept.removeLast() : nil
        }
        // Freed here, after the lock was released.
        _ = dropped
        return made
    }

    /// Whether connections with `settings` may take up sessions.
    ///
    /// A server that checks its clients' certificates lets none take one up: OpenSSL does not verify such a
    /// client again, and with TLS 1.3 gives it a new ticket each time, also when its certificate has expired
    /// meanwhile. With a trust handler the tickets would even be sent before the program has decided about
    /// the client.
    private static func mayResumeSessions(_ settings: TLSSettings) -> Bool {
        let checksClients =
            settings.role == .server
            && (settings.clientCertificates != .notRequested || settings.trustHandler != nil)
        return settings.resumesSessions && !checksClients
    }

    /// Whether the files are unchanged since the context was made.
    private func isUpToDate(at now: LoopInstant) -> Bool {
        guard !files.isEmpty else { return true }
        let seen = LoopInstant(nanoseconds: filesSeen.load(ordering: .relaxed))
        guard now.seconds(since: seen) >= Self.fileInterval else { return true }
        guard TrustFiles(of: settings) == files else { return false }
        filesSeen.store(now.nanoseconds, ordering: .relaxed)
        return true
    }

    package init(_ settings: TLSSettings, now: LoopInstant = LoopClock.systemNow) throws(TLSError) {
        guard Self.library else { throw TLSError(.settings("OpenSSL could not be set up")) }
        var settings = settings
        settings.resumesSessions = Self.mayResumeSessions(settings)
        // Taken before the files are read, so that a change meanwhile is noticed later.
        files = TrustFiles(of: settings)
        filesSeen = Atomic(now.nanoseconds)
        let wire = try Self.wireForm(of: settings.alpn)
        identities = try Self.byName(settings.identities)
        OpenSSLErrors.clear()
        guard
            let pointer = SSL_CTX_new(
                settings.role == .client ? TLS_client_method() : TLS_server_method())
        else {
            throw TLSError(.settings("OpenSSL could not be set up: \(OpenSSLErrors.drainedWords())"))
        }
        self.pointer = pointer
        self.settings = settings
        protocols = .allocate(capacity: wire.count)
        _ = protocols.initialize(from: wire)
        setModes()
        try setVersions()
        try setCiphers()
        try setIdentity()
        try setIdentities()
        try setProtocols()
        try setAuthorities()
        try setRevocationLists()
        try setVerification()
        OpenSSLErrors.clear()
    }

    deinit {
        SSL_CTX_free(pointer)
        protocols.deallocate()
    }

    /// OpenSSL is not cleaned up at exit: other threads' run loops may still be using it then.
    private static let library: Bool = OPENSSL_init_ssl(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1

    func unusable(_ name: String, _ setting: TLSError.Setting = .other) -> TLSError {
        TLSError(.settings("TLSSettings.\(name) cannot be used: \(OpenSSLErrors.drainedWords())", setting))
    }
}

// MARK: - Setting up

extension TLSContext {
    private func setModes() {
        // A write takes as many bytes as the socket does, and a repeated write may come from another buffer.
        // The buffers of an idle connection (34 KiB) are freed. No read-ahead: with room for one record or
        // two it halves the calls of recv but gains nothing measurable; with more room, every byte is copied
        // once more.
        let modes =
            SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS
        _ = rondo_SSL_CTX_set_mode(pointer, Int(modes))
        // Renegotiation is refused, as browsers do.
        SSL_CTX_set_options(pointer, rondo_SSL_OP_NO_RENEGOTIATION)
        if settings.role == .server { SSL_CTX_set_options(pointer, rondo_SSL_OP_CIPHER_SERVER_PREFERENCE) }
    }

    private func setVersions() throws(TLSError) {
        guard settings.minimumVersion <= settings.maximumVersion else {
            throw TLSError(.settings("TLSSettings.minimumVersion is above maximumVersion"))
        }
        guard rondo_SSL_CTX_set_min_proto_version(pointer, settings.minimumVersion.number) == 1,
            rondo_SSL_CTX_set_max_proto_version(pointer, settings.maximumVersion.number) == 1
        else { throw unusable("minimumVersion or maximumVersion") }
        // OpenSSL 3 allows the signatures of TLS 1.0 and 1.1 at security level 0 only.
        if settings.minimumVersion < .tls12 {
            guard SSL_CTX_set_cipher_list(pointer, "DEFAULT:@SECLEVEL=0") == 1 else {
                throw unusable("minimumVersion")
            }
        } else {
            // 112 bits: RSA from 2,048 and elliptic curves from 224 bits, SHA-2. OpenSSL's default is 1 or 2,
            // depending on the distribution.
            SSL_CTX_set_security_level(pointer, 2)
        }
    }

    private func setCiphers() throws(TLSError) {
        if let ciphers = settings.ciphers {
            // Versions before 1.2 need level 0, but a list may name a level of its own.
            let level = settings.minimumVersion < .tls12 && !ciphers.contains("@") ? ":@SECLEVEL=0" : ""
            guard SSL_CTX_set_cipher_list(pointer, ciphers + level) == 1 else {
                throw unusable("ciphers", .ciphers)
            }
        }
        if let suites = settings.cipherSuites {
            guard SSL_CTX_set_ciphersuites(pointer, suites) == 1 else {
                throw unusable("cipherSuites", .ciphers)
            }
        }
    }

    private func setVerification() throws(TLSError) {
        TLSVerifier.install(on: pointer)
        TLSKeyLog.install(on: pointer)
        setSessions()
        if settings.role == .client { TLSHandshakeState.installIdentityCallback(on: pointer) }
        for hash in settings.pinnedKeys where hash.count != 32 {
            throw TLSError(.settings("TLSSettings.pinnedKeys: a hash has 32 bytes, not \(hash.count)"))
        }
        // Always SSL_VERIFY_PEER: the verifier decides, even where the settings check nothing.
        var mode = SSL_VERIFY_PEER
        if settings.role == .server {
            mode =
                switch settings.clientCertificates.kind {
                case .notRequested: SSL_VERIFY_NONE
                case .requested: SSL_VERIFY_PEER
                case .required: SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
                }
        }
        SSL_CTX_set_verify(pointer, mode, nil)
    }

    /// The most sessions that a server keeps itself, for clients of TLS 1.2 that do not support tickets.
    /// OpenSSL's default is 20,480, of several kilobytes each.
    package static let serverSessionLimit = 1_024

    private func setSessions() {
        switch settings.role {
        case .client where settings.resumesSessions:
            TLSSessionCache.install(on: pointer)
        case .server where settings.resumesSessions:
            _ = rondo_SSL_CTX_sess_set_cache_size(pointer, Self.serverSessionLimit)
        case .client, .server:
            _ = rondo_SSL_CTX_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_OFF))
            SSL_CTX_set_options(pointer, rondo_SSL_OP_NO_TICKET)
            SSL_CTX_set_num_tickets(pointer, 0)
        }
    }

    private func setIdentity() throws(TLSError) {
        guard let identity = settings.identity else {
            guard settings.role == .client else {
                throw TLSError(.settings("a server needs a certificate: set TLSSettings.identity"))
            }
            return
        }
        let isUsed = identity.use { SSL_CTX_use_cert_and_key(pointer, $0, $1, $2, 1) }
        guard isUsed else { throw unusable("identity (\(identity.certificates[0]))") }
        guard settings.role == .server else { return }
        // Diffie-Hellman in finite fields for old clients, with a group as strong as the key.
        _ = rondo_SSL_CTX_set_dh_auto(pointer, 1)
        // With SSL_VERIFY_PEER and no ID context a session that a client offers, and that is known, is an
        // error for OpenSSL. The name is the same for all contexts; ticket keys and cache belong to one
        // SSL_CTX, and so to its settings.
        let name = Array("Rondo".utf8)
        SSL_CTX_set_session_id_context(pointer, name, UInt32(name.count))
    }
}

// MARK: - Protocols (ALPN)

extension TLSContext {
    private static func wireForm(of names: [String]) throws(TLSError) -> [UInt8] {
        var wire: [UInt8] = []
        for name in names {
            guard (1...255).contains(name.utf8.count) else {
                throw TLSError(
                    .settings("TLSSettings.alpn: a name has 1 to 255 bytes, not \(name.utf8.count)"))
            }
            wire.append(UInt8(name.utf8.count))
            wire.append(contentsOf: name.utf8)
        }
        // RFC 7301 encodes the total length in two bytes.
        guard wire.count <= Int(UInt16.max) else {
            throw TLSError(.settings("TLSSettings.alpn: the names have more than 65,535 bytes together"))
        }
        return wire
    }

    private func setProtocols() throws(TLSError) {
        guard !protocols.isEmpty else { return }
        switch settings.role {
        case .client:
            // Unlike the functions around it, this one returns 0 for success.
            guard SSL_CTX_set_alpn_protos(pointer, protocols.baseAddress, UInt32(protocols.count)) == 0
            else { throw unusable("alpn") }
        case .server:
            SSL_CTX_set_alpn_select_cb(pointer, Self.selectProtocol, nil)
        }
    }

    /// Selects the server's first protocol that the client offers.
    private static let selectProtocol:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, UnsafeMutablePointer<UInt8>?,
            UnsafePointer<UInt8>?, UInt32, UnsafeMutableRawPointer?
        ) -> Int32 = { ssl, chosen, count, offered, offeredCount, _ in
            guard let ssl, let ours = TLSHandshakeState.of(ssl)?.context.protocols else {
                return SSL_TLSEXT_ERR_NOACK
            }
            var start: UnsafeMutablePointer<UInt8>?
            let answer = SSL_select_next_proto(
                &start, count, ours.baseAddress, UInt32(ours.count), offered, offeredCount)
            // Without a match `start` is the client's first protocol, which this server does not speak.
            guard answer == OPENSSL_NPN_NEGOTIATED else { return SSL_TLSEXT_ERR_ALERT_FATAL }
            chosen?.pointee = UnsafePointer(start)
            return SSL_TLSEXT_ERR_OK
        }
}

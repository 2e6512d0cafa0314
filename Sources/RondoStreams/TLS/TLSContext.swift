// The part of TLS that connections with the same settings share: versions, trust store, identity, options.

internal import CRondoOpenSSL
package import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// Owns one `SSL_CTX`, set up from settings once and never changed afterwards.
///
/// Making one reads certificate authorities and costs about a millisecond; `TLSContext.shared` keeps them.
package final class TLSContext: Sendable {
    package let settings: TLSSettings

    /// Freed in `deinit`; every `SSL` made from it holds a count of its own, so either may go first.
    ///
    /// Unsafe in name only: nothing here changes it after `init`, and what OpenSSL itself changes in it
    /// (counts, the cache of the trust store) it does under locks of its own.
    nonisolated(unsafe) let pointer: OpaquePointer

    /// `TLSSettings.alpn` as it goes over the wire: each name behind its length. OpenSSL is handed pointers
    /// into it, which live as long as an engine, and that keeps its context.
    ///
    /// `nonisolated(unsafe)`: the memory is written before `init` returns, and freed in `deinit`.
    nonisolated(unsafe) let protocols: UnsafeMutableBufferPointer<UInt8>

    /// Contexts kept for reuse. Programs have one or two settings; one that makes other settings for
    /// each connection has every context made anew, and its memory does not grow.
    package static let sharedLimit = 16

    /// `TLSSettings.identities` as they are looked up: by names in small letters.
    let identities: [String: TLSIdentity]

    /// When the first list of revoked certificates is too old, in seconds since 1970.
    ///
    /// Unsafe in name only: written in `init` alone.
    nonisolated(unsafe) var revocationListsEnd = Int.max

    /// What it was made from.
    let files: TrustFiles
    /// When the files were looked at last, in nanoseconds of the machine's clock.
    private let filesSeen: Atomic<Int64>
    /// Seconds for which they are taken to be as they were.
    package static let fileInterval = 1.0

    private static let kept = Mutex<[TLSContext]>([])

    /// The context for these settings: the one that was made for them earlier, if it is still kept and the files that
    /// it was made from have not changed since.
    ///
    /// - Parameter now: By the machine's clock.
    package static func shared(
        for settings: TLSSettings, now: LoopInstant = LoopClock.machineNow
    ) throws(TLSError) -> TLSContext {
        // The handlers do not change what OpenSSL prepares, with one exception: a server's tickets go out before
        // the program has decided about the client, and a client that comes back with one shows no certificate.
        var settings = settings
        if settings.role == .server, settings.trustHandler != nil { settings.resumesSessions = false }
        settings.trustHandler = nil
        settings.identityHandler = nil
        let found = kept.withLock { [settings] kept -> TLSContext? in
            guard let index = kept.firstIndex(where: { $0.settings == settings }) else { return nil }
            if index > 0 { kept.insert(kept.remove(at: index), at: 0) }
            return kept[0]
        }
        if let found, found.isUpToDate(at: now) { return found }
        // Two threads may both make one: the later is kept as well and pushed out in time.
        let made = try TLSContext(settings, now: now)
        let dropped = kept.withLock { kept in
            if let found { kept.removeAll { $0 === found } }
            kept.insert(made, at: 0)
            return kept.count > sharedLimit ? kept.removeLast() : nil
        }
        // Freed here, with the lock let go.
        _ = dropped
        return made
    }

    /// Whether the files are what they were when it was made.
    private func isUpToDate(at now: LoopInstant) -> Bool {
        guard !files.isEmpty else { return true }
        let seen = LoopInstant(nanoseconds: filesSeen.load(ordering: .relaxed))
        guard now.seconds(since: seen) >= Self.fileInterval else { return true }
        guard TrustFiles(of: settings) == files else { return false }
        filesSeen.store(now.nanoseconds, ordering: .relaxed)
        return true
    }

    package init(_ settings: TLSSettings, now: LoopInstant = LoopClock.machineNow) throws(TLSError) {
        guard Self.library else { throw TLSError(.settings("OpenSSL could not be set up")) }
        // Before they are read: what changes meanwhile is found to have changed.
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

    /// OpenSSL is not taken down at exit: other threads' run loops may still be at work with it then.
    private static let library: Bool = OPENSSL_init_ssl(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1

    func unusable(_ setting: String) -> TLSError {
        TLSError(.settings("TLSSettings.\(setting) cannot be used: \(OpenSSLErrors.drainedWords())"))
    }
}

// MARK: - Setting up

extension TLSContext {
    private func setModes() {
        // A write takes as much as the socket does, from wherever the caller has it then. The buffers of an
        // idle connection (34 KiB) go back. No read-ahead: with room for one record or two it halves the
        // calls of recv and gains nothing that could be measured; with more, every byte is copied once more.
        let modes =
            SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS
        _ = rondo_SSL_CTX_set_mode(pointer, Int(modes))
        // A peer that wants to begin anew in the middle of a connection is refused, as browsers do.
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
        // OpenSSL 3 has the signatures of TLS 1.0 and 1.1 at security level 0 only.
        if settings.minimumVersion < .tls12 {
            guard SSL_CTX_set_cipher_list(pointer, "DEFAULT:@SECLEVEL=0") == 1 else {
                throw unusable("minimumVersion")
            }
        } else {
            // 112 bits: RSA from 2,048 and elliptic curves from 224 bits, SHA-2. OpenSSL's default is 1 or 2,
            // as its packager likes it.
            SSL_CTX_set_security_level(pointer, 2)
        }
    }

    private func setCiphers() throws(TLSError) {
        if let ciphers = settings.ciphers {
            // A list may name a level of its own, which versions before 1.2 need.
            let level = settings.minimumVersion < .tls12 && !ciphers.contains("@") ? ":@SECLEVEL=0" : ""
            guard SSL_CTX_set_cipher_list(pointer, ciphers + level) == 1 else { throw unusable("ciphers") }
        }
        if let suites = settings.cipherSuites {
            guard SSL_CTX_set_ciphersuites(pointer, suites) == 1 else { throw unusable("cipherSuites") }
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
        // The verifier decides, also where the settings want nothing checked.
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

    /// Sessions that a server keeps itself, for clients of TLS 1.2 that cannot keep a ticket. OpenSSL's default
    /// is 20,480, of several kilobytes each.
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
        // Finite-field groups for old clients, as long as the key is strong.
        _ = rondo_SSL_CTX_set_dh_auto(pointer, 1)
        // Sessions are resumed under these settings only.
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
        // RFC 7301 has two bytes for the length of all.
        guard wire.count <= Int(UInt16.max) else {
            throw TLSError(.settings("TLSSettings.alpn: the names have more than 65,535 bytes together"))
        }
        return wire
    }

    private func setProtocols() throws(TLSError) {
        guard !protocols.isEmpty else { return }
        switch settings.role {
        case .client:
            // Unlike its neighbours this function answers 0 for success.
            guard SSL_CTX_set_alpn_protos(pointer, protocols.baseAddress, UInt32(protocols.count)) == 0
            else { throw unusable("alpn") }
        case .server:
            SSL_CTX_set_alpn_select_cb(pointer, Self.selectProtocol, nil)
        }
    }

    /// The server's first protocol that the client offers.
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
            // Otherwise `start` is the client's first, which this server does not speak.
            guard answer == OPENSSL_NPN_NEGOTIATED else { return SSL_TLSEXT_ERR_ALERT_FATAL }
            chosen?.pointee = UnsafePointer(start)
            return SSL_TLSEXT_ERR_OK
        }
}

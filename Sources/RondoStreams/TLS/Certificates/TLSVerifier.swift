// The check of a peer's certificates, inside OpenSSL's handshake.
//
// By default OpenSSL stops at the first problem. Here its callback makes it continue and records every
// problem, so that a person, or a program that decides, sees all of them; the settings decide afterwards
// whether the certificate is accepted. An error names the first problem, the same one that OpenSSL itself
// would have named.
//
// The callbacks find the state of their handshake in the SSL's application data.

internal import CRondoOpenSSL
internal import RondoCore

/// Checks a peer's certificates in OpenSSL's callbacks and records every problem.
enum TLSVerifier {
    /// The most problems that are kept of one chain, counted separately for those that the settings tolerate
    /// and those that they do not; a chain has at most a hundred certificates. Dropping a problem is a
    /// problem itself (`Kind.tooMany`), which no settings tolerate.
    static let problemLimit = 32

    static func install(on context: OpaquePointer) {
        SSL_CTX_set_cert_verify_callback(context, verify, nil)
    }

    private static let verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = {
        store, _ in
        guard let store, let state = state(of: store) else { return 0 }
        return state.verify(store)
    }

    /// OpenSSL's callback for every check of every certificate; returning 1 continues.
    private static let note: @convention(c) (Int32, OpaquePointer?) -> Int32 = { isGood, store in
        guard isGood != 1, let store, let state = state(of: store) else { return isGood }
        state.note(X509_STORE_CTX_get_error(store), store)
        return 1
    }

    private static func state(of store: OpaquePointer) -> TLSHandshakeState? {
        guard let ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()) else {
            return nil
        }
        return TLSHandshakeState.of(OpaquePointer(ssl))
    }

    /// Runs OpenSSL's checks; `note` records their problems.
    static func run(_ store: OpaquePointer) -> Int32 {
        X509_STORE_CTX_set_verify_cb(store, note)
        return X509_verify_cert(store)
    }
}

extension TLSHandshakeState {
    /// OpenSSL's question in the handshake; 1 accepts.
    fileprivate func verify(_ store: OpaquePointer) -> Int32 {
        if decision != nil { return conclude(store) }
        problems = []
        hasDroppedProblems = false
        let isDone = TLSVerifier.run(store) == 1
        if hasDroppedProblems { problems.append(CertificateProblem(.tooMany, certificate: nil)) }
        if !isDone, problems.allSatisfy({ settings.tolerance.covers($0) }) {
            // The checks were aborted, usually for lack of memory, although every recorded problem is
            // tolerated: checks that were not made must not count as passed. The store's error may be that of
            // a problem recorded before.
            let code = X509_STORE_CTX_get_error(store)
            let isNoted = code == X509_V_OK || problems.contains { $0.code == code }
            problems.append(
                CertificateProblem(code: isNoted ? X509_V_ERR_UNSPECIFIED : code, certificate: nil))
        }
        // This problem follows from the other one and says less.
        if problems.contains(where: { $0.kind == .unknownIssuer || $0.kind == .selfSigned }) {
            let first = problems.first { $0.kind == .unknownIssuer || $0.kind == .selfSigned }
            problems.removeAll { $0.code == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE && $0 != first }
        }
        checkPins(store)
        if sessionKey != nil { trustEnds = end(of: store) }
        if askForTrust(store) {
            X509_STORE_CTX_set_error(store, X509_V_OK)
            return 1
        }
        return conclude(store)
    }

    private func conclude(_ store: OpaquePointer) -> Int32 {
        let refusal = refusal
        // OpenSSL derives the alert for the peer from this code.
        let code =
            refusal?.code == X509_V_ERR_APPLICATION_VERIFICATION ? X509_V_ERR_CERT_REJECTED : refusal?.code
        X509_STORE_CTX_set_error(store, code ?? X509_V_OK)
        return refusal == nil ? 1 : 0
    }

    /// Looks for a pinned key. In an unchecked chain only the first certificate counts: a peer can send
    /// certificates of others, whose private keys it does not have.
    private func checkPins(_ store: OpaquePointer) {
        guard !settings.pinnedKeys.isEmpty, let own = X509_STORE_CTX_get0_cert(store) else { return }
        var chain = [own]
        if settings.verification != .none {
            chain += TLSCertificate.pointers(in: X509_STORE_CTX_get0_chain(store))
        }
        let pins = settings.pinnedKeys
        guard !chain.contains(where: { pins.contains(TLSCertificate.publicKeyHash(of: $0)) }) else { return }
        problems.append(CertificateProblem(.keyNotPinned, certificate: TLSCertificate(own)))
    }

    fileprivate func note(_ code: Int32, _ store: OpaquePointer) {
        if code == X509_V_ERR_UNABLE_TO_GET_CRL, !settings.requiresRevocationLists { return }
        let current = X509_STORE_CTX_get_current_cert(store)
        let depth = Int(X509_STORE_CTX_get_error_depth(store))
        let problem = CertificateProblem(
            code: code, depth: depth, isOfRoot: current.map { Self.isRoot($0, at: depth) } ?? false,
            certificate: current.map { TLSCertificate($0) })
        // Counted separately, so that tolerated problems cannot push out the ones that are not.
        let isTolerated = settings.tolerance.covers(problem)
        guard
            problems.count(where: { settings.tolerance.covers($0) == isTolerated }) < TLSVerifier.problemLimit
        else {
            hasDroppedProblems = true
            return
        }
        problems.append(problem)
    }

    /// Uses OpenSSL's comparison of the names: our texts of them are shortened.
    private static func isRoot(_ certificate: OpaquePointer, at depth: Int) -> Bool {
        depth > 0 && X509_get_extension_flags(certificate) & UInt32(EXFLAG_SI) != 0
    }

    /// The time until which the checks stay valid, in seconds since 1970: the earliest expiry in the chain
    /// and of the revocation lists.
    fileprivate func end(of store: OpaquePointer) -> Int {
        guard settings.verification != .none else { return .max }
        var end = context.revocationListsEnd
        for (depth, pointer) in TLSCertificate.pointers(in: X509_STORE_CTX_get0_chain(store)).enumerated() {
            let expiry = CertificateProblem(
                code: X509_V_ERR_CERT_HAS_EXPIRED, depth: depth, isOfRoot: Self.isRoot(pointer, at: depth),
                certificate: nil)
            if settings.tolerance.covers(expiry) { continue }
            end = min(end, TLSCertificate.seconds(of: X509_get0_notAfter(pointer)) ?? 0)
        }
        return end
    }

    /// The problem for which the program or the settings refuse the peer; nil: the peer is accepted.
    var refusal: CertificateProblem? {
        switch decision {
        case .accept: nil
        case .reject: CertificateProblem(.rejected, certificate: peerCertificates.first)
        case .byDefault, nil:
            problems.first { problem in
                settings.verification == .none
                    ? problem.kind == .keyNotPinned : !settings.tolerance.covers(problem)
            }
        }
    }
}

extension TLSSettings.Tolerance {
    func covers(_ problem: CertificateProblem) -> Bool {
        switch problem.kind {
        case .selfSigned, .unknownIssuer: contains(.anyRoot)
        case .expired: contains(problem.isOfRoot ? .expiredRoots : .expiredCertificates)
        default: false
        }
    }
}

// A server's identities, selected by the name that a client asks for (SNI).

internal import CRondoOpenSSL
internal import RondoCore

extension TLSContext {
    /// The identities by their names in lower case.
    static func byName(_ identities: [String: TLSIdentity]) throws(TLSError) -> [String: TLSIdentity] {
        var byName: [String: TLSIdentity] = [:]
        for (name, identity) in identities {
            let rest = name.hasPrefix("*.") ? name.dropFirst(2) : name[...]
            let isName =
                !rest.isEmpty && rest.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "*") }
            guard isName, byName.updateValue(identity, forKey: canonical(name)) == nil else {
                throw TLSError(
                    .settings(
                        "TLSSettings.identities: “\(name)” is no DNS name, or is there twice; a star stands "
                            + "for the first label alone"))
            }
        }
        return byName
    }

    private static func canonical(_ name: String) -> String {
        let name = name.lowercased()
        return name.last == "." ? String(name.dropLast()) : name
    }

    /// Returns the identity for `name`; nil means the one for all other names.
    func identity(byName name: String) -> TLSIdentity? {
        let name = Self.canonical(name)
        if let identity = identities[name] { return identity }
        return name.firstIndex(of: ".").flatMap { identities["*" + name[$0...]] }
    }

    func setIdentities() throws(TLSError) {
        guard settings.role == .server, !identities.isEmpty else { return }
        // Test each identity now, so that an unusable one fails here and not with the first client that asks.
        for (name, identity) in identities {
            guard let probe = SSL_CTX_new(TLS_server_method()) else { throw TLSError(.system(ENOMEM)) }
            defer { SSL_CTX_free(probe) }
            SSL_CTX_set_security_level(probe, SSL_CTX_get_security_level(pointer))
            guard identity.use({ SSL_CTX_use_cert_and_key(probe, $0, $1, $2, 1) }) else {
                throw unusable("identities (“\(name)”)")
            }
        }
        rondo_SSL_CTX_set_servername_callback(pointer, Self.selectIdentity)
    }

    /// Selects the identity for the name in the ClientHello, before the server has answered.
    private static let selectIdentity:
        @convention(c) (OpaquePointer?, UnsafeMutablePointer<Int32>?, UnsafeMutableRawPointer?) -> Int32 = {
            ssl, alert, _ in
            guard let ssl, let name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name),
                let identity = TLSHandshakeState.of(ssl)?.context.identity(byName: String(cString: name))
            else { return SSL_TLSEXT_ERR_OK }
            // Otherwise the default identity, with another kind of key, would stay beside this one and could
            // be chosen.
            SSL_certs_clear(ssl)
            guard identity.use({ SSL_use_cert_and_key(ssl, $0, $1, $2, 1) }) else {
                alert?.pointee = SSL_AD_INTERNAL_ERROR
                return SSL_TLSEXT_ERR_ALERT_FATAL
            }
            return SSL_TLSEXT_ERR_OK
        }
}

public import RondoCore

/// A server's request for a client certificate, for whose answer the handshake waits.
///
/// Answer with `use(_:)`, `useNone()` or `useDefault()`, at once or later, from any thread; the first answer
/// counts. If the object is released without an answer, `useDefault()` applies.
public final class TLSIdentityRequest: Sendable {
    enum Decision: Sendable {
        case use(TLSIdentity)
        case useNone
        case byDefault
    }

    /// The host of the connection. The server has been verified already.
    public let host: String
    /// The authorities whose certificates the server accepts, as RFC 2253 writes them, the first 1,000.
    /// Empty: the server does not say.
    public let issuers: [String]
    /// The same names in DER form.
    public let encodedIssuers: [Data]

    static let issuerLimit = 1_000

    let promise = TLSPromise<Decision>()

    init(host: String, issuers: [String], encodedIssuers: [Data]) {
        self.host = host
        self.issuers = issuers
        self.encodedIssuers = encodedIssuers
    }

    deinit { promise.fulfill(.byDefault) }

    /// Whether the server accepts the issuer of one of the identity's certificates, or names no issuers.
    public func accepts(_ identity: TLSIdentity) -> Bool {
        issuers.isEmpty || identity.certificates.contains { issuers.contains($0.issuer) }
    }

    /// Shows this identity.
    public func use(_ identity: TLSIdentity) { promise.fulfill(.use(identity)) }

    /// Shows no certificate; many servers then close the connection.
    public func useNone() { promise.fulfill(.useNone) }

    /// Shows `TLSSettings.identity`, if there is one.
    public func useDefault() { promise.fulfill(.byDefault) }
}

/// Chooses the identity that a client shows, in place of `TLSSettings.identity`.
///
/// A class, so that settings stay comparable: settings with different handlers are unequal.
public final class TLSIdentityHandler: Sendable {
    let body: @Sendable (TLSIdentityRequest) -> Void

    /// - Parameter body: Called for each connection whose server asks for a certificate, on the thread of a
    ///   run loop that serves the connection, with no lock held.
    public init(_ body: @escaping @Sendable (TLSIdentityRequest) -> Void) { self.body = body }
}

extension TLSIdentityHandler: Hashable {
    public static func == (a: TLSIdentityHandler, b: TLSIdentityHandler) -> Bool { a === b }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
